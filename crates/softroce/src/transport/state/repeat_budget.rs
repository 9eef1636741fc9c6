//! Bounds the bytes that repeated READs make a responder send: a request of 40 bytes asks for up to 2 GiB, and who can
//! record one can send it again and again. It must not know packets.
//!
//! A READ that is new earns a multiple of its length, since a lossy link makes its requester repeat much: after each
//! loss all that was in flight. Time earns a little, so that a requester whose repetition was dropped succeeds with a
//! later one. A repetition is answered while the budget is positive.

/// The most that time earns.
const BURST_BYTES: i64 = 4 << 20;
/// Time earns a byte in so many nanoseconds: 62.5 MB/s.
const NS_A_BYTE: u64 = 16;
/// A new READ earns its length so many times: as often may losses repeat it, on average, while it is in flight.
const EARNS: i64 = 16;
/// The most that new READs earn.
const MOST_BYTES: i64 = 1 << 40;

/// What repeated READs of a QP may still cost.
#[derive(Default)]
pub(crate) struct RepeatBudget {
    bytes: i64,
    /// When time last earned something.
    earned_ns: u64,
}

impl RepeatBudget {
    /// Counts a new READ.
    pub(crate) fn earn(&mut self, bytes: u32) {
        self.bytes = (self.bytes + EARNS * i64::from(bytes)).min(MOST_BYTES);
    }

    /// Whether to answer a repeated READ of this length.
    pub(crate) fn spend(&mut self, bytes: u32, now_ns: u64) -> bool {
        if self.bytes < BURST_BYTES {
            let by_time = now_ns.saturating_sub(self.earned_ns) / NS_A_BYTE;
            let by_time = i64::try_from(by_time).unwrap_or(i64::MAX);
            self.bytes = self.bytes.saturating_add(by_time).min(BURST_BYTES);
        }
        self.earned_ns = now_ns;
        let affordable = self.bytes > 0;
        if affordable {
            // A long one does not block the next for longer than the burst takes.
            self.bytes = (self.bytes - i64::from(bytes)).max(-BURST_BYTES);
        }
        affordable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_longest_read_another_is_answered_within_two_bursts() {
        let mut budget = RepeatBudget::default();
        let start = 1_000_000_000;
        assert!(budget.spend(u32::MAX, start));
        assert!(!budget.spend(1, start));
        let burst_ns = BURST_BYTES.cast_unsigned() * NS_A_BYTE;
        assert!(budget.spend(1, start + burst_ns + NS_A_BYTE));
    }
}
