//! Tracks which slots of a QP's memory are free. Both ends count alike: a QP delivers in order, so the n-th chunk of
//! a QP is in slot n modulo the window at both ends, and no slot number is sent.

/// The sender's view of one QP. A slot is free again when its WRITE has completed, because the device may retransmit
/// it until then, and when the receiver has released it.
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    slots: u64,
    posted: u64,
    completed: u64,
    credited: u64,
}

/// The peer released more slots than it was sent chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuchCredit;

impl SendWindow {
    pub(super) fn new(slots: u32) -> Self {
        SendWindow { slots: u64::from(slots.max(1)), posted: 0, completed: 0, credited: 0 }
    }

    /// The slot of the next chunk, if it is free.
    pub(super) fn free_slot(&self) -> Option<u64> {
        let reusable = self.completed.min(self.credited);
        (self.posted - reusable < self.slots).then_some(self.posted % self.slots)
    }

    /// Records that the next chunk was posted, in the free slot.
    pub(super) fn posted(&mut self) {
        self.posted += 1;
    }

    /// Records that a WRITE has completed.
    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// Records that the receiver has taken this many chunks in total, modulo 2^32; returns how many of them are new.
    pub(super) fn credit(&mut self, taken: u32) -> Result<u64, TooMuchCredit> {
        // Compares with the low 32 bits of the count so far.
        let news = u64::from(taken.wrapping_sub(self.credited as u32));
        if self.credited + news > self.posted {
            return Err(TooMuchCredit);
        }
        self.credited += news;
        Ok(news)
    }

    /// Whether no chunk is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.posted == self.completed && self.posted == self.credited
    }
}

/// The receiver's view of one QP. A credit is the total number of chunks taken, so one credit may stand for several
/// chunks.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    slots: u64,
    taken: u64,
    granted: u64,
    telling: u64,
}

impl ReceiveWindow {
    pub(super) fn new(slots: u32) -> Self {
        ReceiveWindow { slots: u64::from(slots.max(1)), taken: 0, granted: 0, telling: 0 }
    }

    /// The slot of the next chunk to arrive.
    pub(super) fn next_slot(&self) -> u64 {
        self.taken % self.slots
    }

    /// Records that the chunk was copied out of its slot.
    pub(super) fn taken(&mut self) {
        self.taken += 1;
    }

    /// The credit to send now; none if nothing has changed, or if earlier credits fill the send queue.
    pub(super) fn credit(&mut self) -> Option<u32> {
        if self.taken == self.granted || self.telling == self.slots {
            return None;
        }
        self.granted = self.taken;
        self.telling += 1;
        // Modulo 2^32.
        Some(self.taken as u32)
    }

    /// Records that a credit's SEND has completed.
    pub(super) fn credit_sent(&mut self) {
        self.telling = self.telling.saturating_sub(1);
    }

    /// Whether chunks were taken that no credit reports yet.
    pub(super) fn owes(&self) -> bool {
        self.taken != self.granted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// A model of one QP: both ends and the messages between them.
    struct Pair {
        sender: SendWindow,
        receiver: ReceiveWindow,
        /// The chunk in each slot of the receiver.
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
            (receiver.taken, receiver.granted) = (start, start);
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

        /// Performs one event; returns whether it was possible.
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
                        self.receiver.credit_sent();
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
