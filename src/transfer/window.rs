//! Which slots of a QP's memory may be used. Both ends count alike: a QP delivers in order, so the n-th chunk of a
//! QP is in slot n modulo the window at both ends, and no number of a slot travels. It must not know verbs.

/// The sender's view of one QP. A slot may be used again when its WRITE has completed here, for the device may send
/// it again until then, and when the receiver has given it back.
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    slots: u64,
    posted: u64,
    completed: u64,
    credited: u64,
}

/// The peer gave back more slots than it was sent chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuchCredit;

impl SendWindow {
    pub(super) fn new(slots: u32) -> Self {
        SendWindow {
            slots: u64::from(slots.max(1)),
            posted: 0,
            completed: 0,
            credited: 0,
        }
    }

    /// The slot of the next chunk, if it is free.
    pub(super) fn free_slot(&self) -> Option<u64> {
        let reusable = self.completed.min(self.credited);
        (self.posted - reusable < self.slots).then_some(self.posted % self.slots)
    }

    /// The next chunk was posted, into the slot that was free.
    pub(super) fn posted(&mut self) {
        self.posted += 1;
    }

    /// A WRITE has completed.
    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// The receiver has now taken so many chunks in all, modulo 2^32; how many of them are news.
    pub(super) fn credit(&mut self, taken: u32) -> Result<u64, TooMuchCredit> {
        // The low 32 bits of the count so far.
        let news = u64::from(taken.wrapping_sub(self.credited as u32));
        if self.credited + news > self.posted {
            return Err(TooMuchCredit);
        }
        self.credited += news;
        Ok(news)
    }

    /// Nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.posted == self.completed && self.posted == self.credited
    }
}

/// The receiver's view of one QP. A credit says how many chunks were taken in all, so one may stand for several.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    slots: u64,
    taken: u64,
    told: u64,
    telling: u64,
}

impl ReceiveWindow {
    pub(super) fn new(slots: u32) -> Self {
        ReceiveWindow {
            slots: u64::from(slots.max(1)),
            taken: 0,
            told: 0,
            telling: 0,
        }
    }

    /// The slot of the chunk that arrives next.
    pub(super) fn next_slot(&self) -> u64 {
        self.taken % self.slots
    }

    /// That chunk is out of its slot.
    pub(super) fn taken(&mut self) {
        self.taken += 1;
    }

    /// The credit to send now: none if it would say nothing new, or if the send queue is full of earlier ones.
    pub(super) fn credit(&mut self) -> Option<u32> {
        if self.taken == self.told || self.telling == self.slots {
            return None;
        }
        self.told = self.taken;
        self.telling += 1;
        // Modulo 2^32.
        Some(self.taken as u32)
    }

    /// A credit's SEND has completed.
    pub(super) fn told(&mut self) {
        self.telling = self.telling.saturating_sub(1);
    }

    /// Chunks were taken of which the sender was not told.
    pub(super) fn owes(&self) -> bool {
        self.taken != self.told
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// One QP with both ends and what is between them.
    struct Pair {
        sender: SendWindow,
        receiver: ReceiveWindow,
        /// What each slot of the receiver holds.
        slots: Vec<Option<u64>>,
        writes: VecDeque<(u64, u64)>,
        written: u64,
        credits: VecDeque<u32>,
        credits_told: u64,
        sent: u64,
        got: Vec<u64>,
    }

    impl Pair {
        fn starting_at(slots: u32, start: u64) -> Pair {
            let mut sender = SendWindow::new(slots);
            (sender.posted, sender.completed, sender.credited) = (start, start, start);
            let mut receiver = ReceiveWindow::new(slots);
            (receiver.taken, receiver.told) = (start, start);
            Pair {
                sender,
                receiver,
                slots: vec![None; slots as usize],
                writes: VecDeque::new(),
                written: 0,
                credits: VecDeque::new(),
                credits_told: 0,
                sent: 0,
                got: Vec::new(),
            }
        }

        /// One thing happens; whether it could.
        fn step(&mut self, what: u8, total: u64) -> bool {
            match what % 6 {
                0 if self.sent < total => {
                    let Some(slot) = self.sender.free_slot() else {
                        return false;
                    };
                    self.sender.posted();
                    self.writes.push_back((slot, self.sent));
                    self.sent += 1;
                    true
                }
                // A WRITE arrives, in order.
                1 => self.writes.pop_front().is_some_and(|(slot, chunk)| {
                    let old = self.slots[slot as usize].replace(chunk);
                    assert_eq!(old, None, "a chunk was overwritten before it was taken");
                    self.written += 1;
                    true
                }),
                // Its acknowledgement arrives, perhaps after the credit.
                2 if self.written > 0 => {
                    self.written -= 1;
                    self.sender.completed();
                    true
                }
                3 => {
                    let slot = self.receiver.next_slot() as usize;
                    self.slots[slot].take().is_some_and(|chunk| {
                        self.got.push(chunk);
                        self.receiver.taken();
                        true
                    })
                }
                4 => self.receiver.credit().is_some_and(|credit| {
                    self.credits.push_back(credit);
                    self.credits_told += 1;
                    assert!(self.credits_told <= self.slots.len() as u64, "send queue");
                    assert!(self.credits.len() <= self.slots.len(), "receive queue");
                    true
                }),
                5 => {
                    if self.credits_told > self.credits.len() as u64 {
                        self.credits_told -= 1;
                        self.receiver.told();
                        return true;
                    }
                    self.credits
                        .pop_front()
                        .is_some_and(|credit| self.sender.credit(credit).unwrap() > 0)
                }
                _ => false,
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_overwritten_or_stuck_in_any_order(
            slots in 1_u32..6,
            start in prop_oneof![Just(0), Just(u64::from(u32::MAX) - 3), 0..u64::MAX / 2],
            total in 0_u64..40,
            order in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut pair = Pair::starting_at(slots, start);
            for what in order {
                pair.step(what, total);
            }
            while (0..6).any(|what| pair.step(what, total)) {}
            prop_assert_eq!(&pair.got, &(0..total).collect::<Vec<_>>());
            prop_assert!(pair.sender.is_idle() && !pair.receiver.owes());
        }

        #[test]
        fn credit_for_what_was_not_sent_is_refused(slots in 1_u32..9, posted in 0_u32..9, more in 1_u32..1000) {
            let mut window = SendWindow::new(slots);
            let mut sent = 0;
            while sent < posted && window.free_slot().is_some() {
                window.posted();
                sent += 1;
            }
            prop_assert_eq!(window.credit(sent + more), Err(TooMuchCredit));
            prop_assert_eq!(window.credit(sent), Ok(u64::from(sent)));
        }
    }

    #[test]
    fn a_slot_is_free_only_when_written_and_given_back() {
        let mut window = SendWindow::new(1);
        assert_eq!(window.free_slot(), Some(0));
        window.posted();
        assert_eq!(window.credit(1), Ok(1));
        assert_eq!(window.free_slot(), None, "it may still be sent again");
        window.completed();
        assert_eq!(window.free_slot(), Some(0));
    }
}
