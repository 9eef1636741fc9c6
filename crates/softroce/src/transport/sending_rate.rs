//! The rate of a QP that has a limit, or whose packets meet congestion: the reaction point of DCQCN (Y. Zhu et al.,
//! "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 3.1). Of its two ways back to the
//! full rate, by time and by bytes sent, it has the one by time.

/// How much one notification weighs in `alpha` (the paper's g).
const GAIN: f64 = 1.0 / 256.0;
/// The time after which the rate grows, and `alpha` falls. The paper's K and T are 55 µs, for adapters; here CNPs come when a
/// thread has its turn on a core.
const PERIOD_NS: u64 = 1_000_000;
/// Periods of fast recovery, in which the rate comes back halfway to where it was (the paper's F).
const RECOVERY_PERIODS: u32 = 5;
/// What the rate aimed at grows by in each of as many periods after these, in bytes a nanosecond: 40 Mb/s (the paper's R_AI);
/// then by twice as much, three times, and so on (hyper increase).
const STEP: f64 = 0.005;
/// 100 Gb/s, more than one QP of this device reaches.
const FULL: f64 = 12.5;
/// 10 Mb/s: a packet of 4096 bytes each 3 ms.
const FLOOR: f64 = 0.00125;
/// What the rate gives for so long waits for a QP that does not send, or is late.
const SAVED_NS: u64 = 1_000_000;
/// The same of a limit, which is to be kept in the mean: threads wait so long for a core.
const SAVED_OF_LIMIT_NS: u64 = 10_000_000;
/// The longest time without a look at how the rate has grown.
const LONGEST_WAIT_NS: u64 = PERIOD_NS;
/// The least that is sent at once.
const LEAST_BYTES: usize = 4096;

/// How near the highest rate counts as that, as a part of it: within a step of the full one.
const NEAR: f64 = STEP / FULL;

/// A rate, in bytes a nanosecond, that notifications make smaller and time makes larger.
#[derive(Clone, Debug)]
pub(crate) struct SendingRate {
    /// The highest: the limit, or the full one.
    highest: f64,
    current: f64,
    /// Where it was before the last notification, or above.
    target: f64,
    /// How strong the congestion is, from 0 to 1.
    alpha: f64,
    /// How many periods have passed since the last notification.
    periods: u32,
    /// When the last one ended.
    period_ns: u64,
    /// Bytes that it has given and that were not sent, until `given_ns`; below 0 what was sent too early.
    saved_bytes: f64,
    given_ns: u64,
}

impl SendingRate {
    /// The full rate, before the first notification.
    pub(crate) fn full(now_ns: u64) -> SendingRate {
        SendingRate::limited(now_ns, FULL)
    }

    /// A rate that is never higher than `highest`, in bytes a nanosecond.
    pub(crate) fn limited(now_ns: u64, highest: f64) -> SendingRate {
        SendingRate {
            highest,
            current: highest,
            target: highest,
            alpha: 1.0,
            periods: 0,
            period_ns: now_ns,
            saved_bytes: 0.0,
            given_ns: now_ns,
        }
    }

    /// Makes it smaller, for a notification.
    pub(crate) fn cut(&mut self, now_ns: u64) {
        self.recover(now_ns);
        self.target = self.current;
        let least = FLOOR.min(self.highest);
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(least);
        self.alpha += (1.0 - self.alpha) * GAIN;
        self.periods = 0;
        self.period_ns = now_ns;
    }

    /// Lets it grow for the time that has passed. Returns whether it limits the QP no longer.
    pub(crate) fn recover(&mut self, now_ns: u64) -> bool {
        while !self.is_highest() && now_ns.saturating_sub(self.period_ns) >= PERIOD_NS {
            self.period_ns += PERIOD_NS;
            self.give(self.period_ns);
            self.periods += 1;
            self.alpha *= 1.0 - GAIN;
            if self.periods > RECOVERY_PERIODS {
                let steps = self.periods.saturating_sub(2 * RECOVERY_PERIODS) + 1;
                self.target = (self.target + STEP * f64::from(steps)).min(self.highest);
            }
            self.current = f64::midpoint(self.current, self.target);
        }
        self.give(now_ns);
        self.is_highest() && self.highest >= FULL
    }

    fn give(&mut self, until_ns: u64) {
        let given = until_ns.saturating_sub(self.given_ns) as f64 * self.current;
        let saved_ns = if self.highest < FULL { SAVED_OF_LIMIT_NS } else { SAVED_NS };
        let most = saved_ns as f64 * self.current;
        self.saved_bytes = (self.saved_bytes + given).min(most);
        self.given_ns = self.given_ns.max(until_ns);
    }

    fn is_highest(&self) -> bool {
        self.highest - self.current < self.highest * NEAR
    }

    /// How many bytes may be sent now; 0 if none. To be called after [`SendingRate::recover`].
    pub(crate) fn allowance_bytes(&self) -> usize {
        if self.saved_bytes >= 0.0 { self.saved_bytes as usize + LEAST_BYTES } else { 0 }
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.saved_bytes -= bytes as f64;
    }

    /// When more may be sent, or when to ask again, since the rate will have grown.
    pub(crate) fn next_ns(&self) -> u64 {
        let wait_ns = (-self.saved_bytes / self.current).ceil().max(0.0) as u64;
        self.given_ns + wait_ns.min(LONGEST_WAIT_NS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A rate after this many notifications, 50 µs apart, and the time then.
    fn after(notifications: u64) -> (SendingRate, u64) {
        let mut rate = SendingRate::full(0);
        for at in 0..notifications {
            rate.cut(at * 50_000);
        }
        (rate, notifications.saturating_sub(1) * 50_000)
    }

    #[test]
    fn the_first_notification_halves_it_and_recovery_brings_it_halfway_back() {
        let (mut rate, now_ns) = after(1);
        assert_eq!(rate.current, FULL / 2.0);
        assert!(!rate.recover(now_ns + PERIOD_NS - 1));
        assert_eq!(rate.current, FULL / 2.0);
        rate.recover(now_ns + PERIOD_NS);
        assert_eq!(rate.current, FULL * 0.75);
        rate.recover(now_ns + 2 * PERIOD_NS);
        assert_eq!(rate.current, FULL * 0.875);
    }

    #[test]
    fn notifications_without_end_make_it_the_least_and_silence_the_full_one() {
        let (mut rate, now_ns) = after(100);
        assert_eq!(rate.current, FLOOR);
        assert!(!rate.recover(now_ns + 5 * PERIOD_NS));
        assert_eq!(rate.current, FLOOR);
        assert!(!rate.recover(now_ns + 10 * PERIOD_NS));
        assert!(rate.current < FLOOR + 5.0 * STEP);
        assert!(!rate.recover(now_ns + 60 * PERIOD_NS));
        assert!(rate.recover(now_ns + 100 * PERIOD_NS));
    }

    #[test]
    fn rare_notifications_cost_less_each() {
        let mut rate = SendingRate::full(0);
        let mut least = FULL;
        for at in 0..2000 {
            let now_ns = at * 20 * PERIOD_NS;
            rate.recover(now_ns);
            let before = rate.current;
            rate.cut(now_ns);
            least = before - rate.current;
        }
        assert!(least < FULL / 10.0, "{rate:?}");
    }

    #[test]
    fn a_limit_is_what_is_sent_and_what_notifications_give_back() {
        for limit in [FLOOR / 10.0, 0.025, FULL] {
            let mut rate = SendingRate::limited(0, limit);
            let mut sent = 0.0;
            let until_ns = if limit == FULL { 1_000_000_000 } else { 10_000_000_000 };
            let mut now_ns = 0;
            while now_ns < until_ns {
                assert_eq!(rate.recover(now_ns), limit == FULL);
                let bytes = rate.allowance_bytes().min(10_000);
                rate.spend(bytes);
                sent += bytes as f64;
                now_ns = rate.next_ns().max(now_ns + 500);
            }
            let wanted = limit * until_ns as f64;
            let near = wanted * 0.99..wanted * 1.01;
            assert!(near.contains(&sent), "{limit}: {sent}");
            rate.cut(now_ns);
            assert!(rate.current <= limit && rate.current > 0.0);
            rate.recover(now_ns + 200_000_000);
            assert!(rate.current > limit * 0.99, "{rate:?}");
        }
    }

    proptest! {
        #[test]
        fn it_is_from_the_floor_to_the_full_rate_and_comes_back(
            pauses_ns in proptest::collection::vec(0..10 * PERIOD_NS, 1..200),
        ) {
            let mut rate = SendingRate::full(0);
            let mut now_ns = 0;
            for pause_ns in pauses_ns {
                now_ns += pause_ns;
                rate.cut(now_ns);
                prop_assert!((FLOOR..=FULL).contains(&rate.current), "{:?}", rate);
                prop_assert!((0.0..=1.0).contains(&rate.alpha));
                prop_assert!(rate.current <= rate.target);
            }
            prop_assert!(!rate.recover(now_ns));
            prop_assert!(rate.recover(now_ns + 150_000_000), "{:?}", rate);
        }

        /// However late and long the turns are, no more is sent than the rate gives, what is saved and a turn.
        #[test]
        fn what_is_sent_is_bounded(
            notifications in 10..30_u64,
            turns in proptest::collection::vec((0..200_000_u64, 1..200_000_usize), 1..100),
        ) {
            let (mut rate, began_ns) = after(notifications);
            let (mut now_ns, mut sent) = (began_ns, 0);
            for (pause_ns, wanted) in turns {
                now_ns += pause_ns;
                rate.recover(now_ns);
                let bytes = wanted.min(rate.allowance_bytes());
                rate.spend(bytes);
                sent += bytes;
            }
            // It has only grown.
            let given = (now_ns - began_ns + SAVED_NS) as f64 * rate.current;
            // The full rate gave something before the first notification.
            let saved = SAVED_NS as f64 * FULL;
            prop_assert!(sent as f64 <= given + saved + LEAST_BYTES as f64);
        }
    }
}
