//! How far two machines' clocks are apart.

use std::time::{SystemTime, UNIX_EPOCH};

/// The other end's clock minus this end's, from one question and its answer: the other end read its clock at
/// some time between both, so the middle is right to half the time between them (F. Cristian, Probabilistic
/// clock synchronization, 1989).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Positive when the other end's clock is ahead.
    pub offset_ns: i128,
    /// The true offset is at most so far from it, as long as neither clock was set meanwhile.
    pub uncertainty_ns: u64,
}

impl ClockOffset {
    /// `theirs_ns` was read between `asked_ns` and `answered_ns`, all since 1970.
    pub fn between(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> ClockOffset {
        let round_trip_ns = answered_ns.saturating_sub(asked_ns);
        let middle_ns = i128::from(asked_ns) + i128::from(round_trip_ns / 2);
        ClockOffset {
            offset_ns: i128::from(theirs_ns) - middle_ns,
            uncertainty_ns: round_trip_ns.div_ceil(2),
        }
    }
}

/// Nanoseconds since 1970; `None` before it or after the year 2554.
pub(crate) fn wall_clock_ns() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.ok()?.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_by_its_distance_from_the_middle() {
        let ahead = ClockOffset::between(1_000, 6_050, 1_101);
        assert_eq!((ahead.offset_ns, ahead.uncertainty_ns), (5_000, 51));
        let behind = ClockOffset::between(9_000, 4_000, 9_000);
        assert_eq!((behind.offset_ns, behind.uncertainty_ns), (-5_000, 0));
    }
}
