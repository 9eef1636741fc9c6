//! When the timers of QPs are due, the earliest first. A QP has one entry at most, so the memory is bounded, and the
//! cost of a due timer does not depend on how many QPs there are. It must not know QPs.

use std::collections::BTreeSet;

use crate::lock::Lock;

/// The entries: due time in nanoseconds, and QP number.
#[derive(Default)]
pub(crate) struct Timers(Lock<BTreeSet<(u64, u32)>>);

impl Timers {
    /// Moves a QP's entry from `before_ns` to `due_ns`; each is `u64::MAX` for none.
    pub(crate) fn replace(&self, qpn: u32, before_ns: u64, due_ns: u64) {
        let mut entries = self.0.lock();
        entries.remove(&(before_ns, qpn));
        if due_ns != u64::MAX {
            entries.insert((due_ns, qpn));
        }
    }

    /// Takes the earliest entry that is due: its time and its QP.
    pub(crate) fn take_due(&self, now_ns: u64) -> Option<(u64, u32)> {
        let mut entries = self.0.lock();
        let (due_ns, _) = *entries.first()?;
        (due_ns <= now_ns).then(|| entries.pop_first()).flatten()
    }

    /// When the earliest is due; `u64::MAX` if there is none.
    pub(crate) fn earliest_ns(&self) -> u64 {
        self.0.lock().first().map_or(u64::MAX, |(due_ns, _)| *due_ns)
    }
}

/// A QP's entry, as the QP knows it.
pub(crate) struct Entry {
    /// `u64::MAX` for none.
    due_ns: u64,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry { due_ns: u64::MAX }
    }
}

impl Entry {
    /// Makes it due at this time if that is sooner; returns whether it is.
    pub(crate) fn hasten(&mut self, timers: &Timers, qpn: u32, due_ns: u64) -> bool {
        let is_sooner = due_ns < self.due_ns;
        if is_sooner {
            timers.replace(qpn, self.due_ns, due_ns);
            self.due_ns = due_ns;
        }
        is_sooner
    }

    /// The entry of this time was taken. Another thread may have put a new one meanwhile.
    pub(crate) fn was_taken(&mut self, due_ns: u64) {
        if self.due_ns == due_ns {
            *self = Entry::default();
        }
    }

    pub(crate) fn remove(&mut self, timers: &Timers, qpn: u32) {
        timers.replace(qpn, self.due_ns, u64::MAX);
        *self = Entry::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_only_comes_sooner_until_it_is_taken() {
        let timers = Timers::default();
        let mut entry = Entry::default();
        assert!(entry.hasten(&timers, 7, 30) && entry.hasten(&timers, 7, 10));
        assert!(!entry.hasten(&timers, 7, 20));
        assert_eq!(timers.take_due(10), Some((10, 7)));
        assert_eq!(timers.earliest_ns(), u64::MAX, "there was one");
        entry.was_taken(30);
        assert!(!entry.hasten(&timers, 7, 20), "another one was taken");
        entry.was_taken(10);
        assert!(entry.hasten(&timers, 7, 20));
        entry.remove(&timers, 7);
        assert_eq!(timers.earliest_ns(), u64::MAX);
    }

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
