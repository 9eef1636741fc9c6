//! Counters of the protocol. It must not know what increments them.

use crate::net::Count;

macro_rules! statistics {
    ($($(#[$doc:meta])* $counter:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($(#[$doc])* pub(crate) $counter: Count,)*
        }

        impl Statistics {
            /// Each counter with its name.
            pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter.get()),)*].into_iter()
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
