//! Seconds as people write them.

/// Seconds to the nanosecond, without zeros at the end: `0.3 s`, not `0.30000000000000004 s`.
pub fn seconds_text(seconds: f64) -> String {
    let text = format!("{seconds:.9}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_end_where_their_digits_do() {
        for (seconds, text) in [
            (0.1 + 0.2, "0.3 s"),
            (300_000_000.0 * 1e-9, "0.3 s"),
            (1.0, "1 s"),
            (100.0, "100 s"),
            (0.0, "0 s"),
            (2.5, "2.5 s"),
            (0.000_000_001, "0.000000001 s"),
        ] {
            assert_eq!(seconds_text(seconds), text);
        }
    }
}
