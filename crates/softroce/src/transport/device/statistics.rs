//! Counters of the protocol. It must not know what increments them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! statistics {
    ($($(#[$doc:meta])* $counter:ident,)*) => {
        /// Counters of protocol events.
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($(#[$doc])* pub(crate) $counter: AtomicU64,)*
        }

        impl Statistics {
            /// Each counter with its name.
            pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                let counters = [$((stringify!($counter), &self.$counter),)*];
                let count = |(name, counter): (_, &AtomicU64)| (name, counter.load(Ordering::Relaxed));
                counters.into_iter().map(count)
            }
        }
    };
}

statistics! {
    unknown_qp,
    unparsed,
    wrong_service,
    pkey_violations,
    wrong_source,
    acks_sent,
    naks_sent,
    rnr_naks_sent,
    duplicate_requests,
    unanswered_duplicates,
    out_of_sequence,
    timeouts,
    probes,
    go_backs,
    /// QPs that were looked at because a timer of theirs was due, or had been.
    timer_checks,
    dropped_datagrams,
    np_ecn_marked_roce_packets,
    np_cnp_sent,
    rp_cnp_handled,
    rp_cnp_ignored,
    /// Turns of QPs that waited for the rate which CNPs left them.
    rate_waits,
}

impl Statistics {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
