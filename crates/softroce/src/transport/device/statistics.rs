//! Counters of the protocol. It must not know what increments them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of protocol events.
#[derive(Default)]
#[allow(missing_docs)]
pub(crate) struct Statistics {
    pub(crate) unknown_qp: AtomicU64,
    pub(crate) unparsed: AtomicU64,
    pub(crate) wrong_service: AtomicU64,
    pub(crate) pkey_violations: AtomicU64,
    pub(crate) wrong_source: AtomicU64,
    pub(crate) acks_sent: AtomicU64,
    pub(crate) naks_sent: AtomicU64,
    pub(crate) rnr_naks_sent: AtomicU64,
    pub(crate) duplicate_requests: AtomicU64,
    pub(crate) unanswered_duplicates: AtomicU64,
    pub(crate) out_of_sequence: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) probes: AtomicU64,
    pub(crate) go_backs: AtomicU64,
    /// QPs that were looked at because a timer of theirs was due, or had been.
    pub(crate) timer_checks: AtomicU64,
    pub(crate) dropped_datagrams: AtomicU64,
    pub(crate) np_ecn_marked_roce_packets: AtomicU64,
    pub(crate) np_cnp_sent: AtomicU64,
    pub(crate) rp_cnp_handled: AtomicU64,
    pub(crate) rp_cnp_ignored: AtomicU64,
    /// Turns of QPs that waited for the rate which CNPs left them.
    pub(crate) rate_waits: AtomicU64,
}

impl Statistics {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Each counter with its name.
    pub(crate) fn named(&self) -> [(&'static str, u64); 21] {
        let counters = [
            ("unknown_qp", &self.unknown_qp),
            ("unparsed", &self.unparsed),
            ("wrong_service", &self.wrong_service),
            ("pkey_violations", &self.pkey_violations),
            ("wrong_source", &self.wrong_source),
            ("acks_sent", &self.acks_sent),
            ("naks_sent", &self.naks_sent),
            ("rnr_naks_sent", &self.rnr_naks_sent),
            ("duplicate_requests", &self.duplicate_requests),
            ("unanswered_duplicates", &self.unanswered_duplicates),
            ("out_of_sequence", &self.out_of_sequence),
            ("timeouts", &self.timeouts),
            ("probes", &self.probes),
            ("go_backs", &self.go_backs),
            ("timer_checks", &self.timer_checks),
            ("dropped_datagrams", &self.dropped_datagrams),
            (
                "np_ecn_marked_roce_packets",
                &self.np_ecn_marked_roce_packets,
            ),
            ("np_cnp_sent", &self.np_cnp_sent),
            ("rp_cnp_handled", &self.rp_cnp_handled),
            ("rp_cnp_ignored", &self.rp_cnp_ignored),
            ("rate_waits", &self.rate_waits),
        ];
        counters.map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}
