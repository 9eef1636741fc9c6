//! Figures as tables and sentences write them: digits that count, and units that fit.

use std::time::Duration;

/// Digits after the point that leave about four that count, in at most seven places; of a value below 0.001 three, in up to
/// nine places.
pub fn digits(value: f64) -> usize {
    match value.abs() {
        0.0 => 0,
        value if value >= 9999.95 => 0,
        value if value >= 999.995 => 1,
        value if value >= 99.9995 => 2,
        value if value >= 0.1 => 3,
        value if value >= 0.01 => 4,
        value if value >= 0.001 => 5,
        // 10^-4 has its first digit in the fourth place.
        value => (2 - value.log10().floor() as i32).clamp(5, 9) as usize,
    }
}

/// A figure with about four digits that count.
pub fn exact(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// A figure with so many digits after the point, or with more where it would have less than two that count.
pub fn fixed(value: f64, digits: usize) -> String {
    let magnitude = value.abs().log10().floor();
    let least = if value.is_finite() && value != 0.0 {
        (1.0 - magnitude).clamp(0.0, 9.0) as usize
    } else {
        0
    };
    format!("{value:.*}", digits.max(least))
}

/// A rate in the largest unit of which it is at least one, with four digits that count, and that unit: `1.234`, `M`.
fn with_unit(rate: f64) -> (String, &'static str) {
    // A value rounded up to the next unit is written in that unit.
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| rate >= unit * 0.999_95).unwrap_or((1.0, ""));
    let value = rate / unit;
    let digits = match value {
        value if value >= 99.995 => 1,
        value if value >= 9.9995 => 2,
        _ => 3,
    };
    (format!("{value:.digits$}"), name)
}

/// A time in the unit in which it is at least one, with three digits that count: `1.64 s`, `35.0 µs`.
pub fn time_text(ns: f64) -> String {
    // A value rounded up to the next unit is written in that unit.
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| ns >= unit * 0.999_5).unwrap_or((1.0, "ns"));
    let value = ns / unit;
    let digits = match value {
        _ if unit == 1.0 => 0,
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {name}")
}

/// `1 h 5 min`, `2 min 30 s`, `45 s`, `1.5 s`.
pub fn for_people(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{} s", span.as_millis() as f64 / 1e3),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Messages a second as people write them: `1.234 M/s`.
pub fn rate_text(rate: f64) -> String {
    let (value, unit) = with_unit(rate);
    format!("{value} {unit}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        for (ns, text) in [
            (1_643_119_000.0, "1.64 s"),
            (104_726_700.0, "105 ms"),
            (999_600.0, "1.00 ms"),
            (35_040.0, "35.0 µs"),
            (2_975.7, "2.98 µs"),
            (512.4, "512 ns"),
            (0.0, "0 ns"),
            (123e9, "123 s"),
        ] {
            assert_eq!(time_text(ns), text);
        }
    }

    #[test]
    fn rates_keep_four_digits() {
        for (rate, text) in [
            (1_234_567.0, "1.235 M/s"),
            (246_123.0, "246.1 k/s"),
            (10_000.0, "10.00 k/s"),
            (999_960.0, "1.000 M/s"),
            (2.5e9, "2.500 G/s"),
            (12.0, "12.00 /s"),
            (0.5, "0.500 /s"),
            (0.0, "0.000 /s"),
        ] {
            assert_eq!(rate_text(rate), text);
        }
    }

    #[test]
    fn cells_have_as_many_digits_but_very_small_ones() {
        for (value, digits, text) in [
            (9.4684, 3, "9.468"),
            (102.0, 3, "102.000"),
            (0.0, 3, "0.000"),
            (0.000_043_21, 4, "0.000043"),
            (0.3, 1, "0.30"),
            (41.0, 0, "41"),
        ] {
            assert_eq!(fixed(value, digits), text);
        }
    }

    #[test]
    fn figures_keep_about_four_digits_in_seven_places() {
        for (value, text) in [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (0.000_43, "0.000430"),
            (0.000_001_234, "0.00000123"),
            (0.000_000_123_4, "0.000000123"),
            (0.000_000_001, "0.000000001"),
            (0.012_34, "0.0123"),
            (0.1234, "0.123"),
            (1.2346, "1.235"),
            (99.9996, "100.00"),
            (999.996, "1000.0"),
            (9999.96, "10000"),
            (123_456.7, "123457"),
        ] {
            assert_eq!(exact(value), text);
        }
    }
}
