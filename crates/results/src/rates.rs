//! Rates from counts and a window's length, the same for every writer of a result.

/// Payload throughput in Gb/s (10^9 bits); `None` for a window without length.
pub fn gbit_per_s(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / 1e9 / seconds)
}

/// Message rate in 10^6 a second; `None` for a window without length.
pub fn mmsg_per_s(messages: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| messages as f64 / 1e6 / seconds)
}

/// The sum of counts. A file may hold any count that fits 64 bits, so sums stay at the largest.
pub fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_length_has_no_rate() {
        assert_eq!((gbit_per_s(0, 0.0), mmsg_per_s(0, 0.0)), (None, None));
    }
}
