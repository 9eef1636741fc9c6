//! Counters of the protocol. It must not know what increments them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of protocol events.
#[derive(Default)]
#[allow(missing_docs)]
pub(super) struct Statistics {
    pub(super) unknown_qp: AtomicU64,
    pub(super) unparsed: AtomicU64,
    pub(super) acks_sent: AtomicU64,
    pub(super) naks_sent: AtomicU64,
    pub(super) rnr_naks_sent: AtomicU64,
    pub(super) duplicate_requests: AtomicU64,
    pub(super) out_of_sequence: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) go_backs: AtomicU64,
    pub(super) dropped_datagrams: AtomicU64,
}

impl Statistics {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Each counter with its name.
    pub(super) fn named(&self) -> [(&'static str, u64); 10] {
        let counters = [
            ("unknown_qp", &self.unknown_qp),
            ("unparsed", &self.unparsed),
            ("acks_sent", &self.acks_sent),
            ("naks_sent", &self.naks_sent),
            ("rnr_naks_sent", &self.rnr_naks_sent),
            ("duplicate_requests", &self.duplicate_requests),
            ("out_of_sequence", &self.out_of_sequence),
            ("timeouts", &self.timeouts),
            ("go_backs", &self.go_backs),
            ("dropped_datagrams", &self.dropped_datagrams),
        ];
        counters.map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}
