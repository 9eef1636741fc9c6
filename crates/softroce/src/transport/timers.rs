//! When the timers of QPs are due, the earliest first. A QP has one entry at most, so the memory is bounded, and the
//! cost of a due timer does not depend on how many QPs there are. It must not know QPs.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The entries: due time in nanoseconds, and QP number.
#[derive(Default)]
pub(super) struct Timers(Mutex<BTreeSet<(u64, u32)>>);

impl Timers {
    fn entries(&self) -> MutexGuard<'_, BTreeSet<(u64, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a QP's entry from `before_ns` to `due_ns`; each is `u64::MAX` for none.
    pub(super) fn replace(&self, qpn: u32, before_ns: u64, due_ns: u64) {
        let mut entries = self.entries();
        entries.remove(&(before_ns, qpn));
        if due_ns != u64::MAX {
            entries.insert((due_ns, qpn));
        }
    }

    /// Takes the earliest entry that is due: its time and its QP.
    pub(super) fn take_due(&self, now_ns: u64) -> Option<(u64, u32)> {
        let mut entries = self.entries();
        let (due_ns, _) = *entries.first()?;
        (due_ns <= now_ns).then(|| entries.pop_first()).flatten()
    }

    /// When the earliest is due; `u64::MAX` if there is none.
    pub(super) fn earliest_ns(&self) -> u64 {
        self.entries()
            .first()
            .map_or(u64::MAX, |(due_ns, _)| *due_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_when_due_in_order_and_once() {
        let timers = Timers::default();
        for (qpn, due_ns) in [(7, 30), (8, 10), (9, 20), (10, 10)] {
            timers.replace(qpn, u64::MAX, due_ns);
        }
        timers.replace(7, 30, 15);
        timers.replace(8, 10, u64::MAX);
        assert_eq!(timers.earliest_ns(), 10);
        let due: Vec<_> = std::iter::from_fn(|| timers.take_due(15)).collect();
        assert_eq!(due, [(10, 10), (15, 7)]);
        assert_eq!(timers.earliest_ns(), 20);
        assert_eq!(timers.take_due(u64::MAX), Some((20, 9)));
        assert_eq!(timers.earliest_ns(), u64::MAX);
    }
}
