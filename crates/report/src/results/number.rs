//! Numbers as tables and figures write them. It must not know what they are of.

/// A cell that says that a figure was not measured.
pub(super) const NOT_MEASURED: &str = "-";

/// A figure, or a dash for what was not measured.
pub(super) fn figure(value: Option<f64>, digits: impl Fn(f64) -> usize) -> String {
    match value {
        Some(value) => format!("{value:.*}", digits(value)),
        None => NOT_MEASURED.to_owned(),
    }
}

/// Digits after the point that leave about four that count, in at most seven places.
pub(crate) fn digits(value: f64) -> usize {
    match value.abs() {
        0.0 => 0,
        value if value >= 9999.95 => 0,
        value if value >= 999.995 => 1,
        value if value >= 99.9995 => 2,
        value if value >= 0.1 => 3,
        value if value >= 0.01 => 4,
        _ => 5,
    }
}

/// A size in the largest unit of which it is a whole number: `64 KiB`, `1000 B`.
pub fn human_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        for (bytes, text) in [
            (1, "1 B"),
            (1000, "1000 B"),
            (1024, "1 KiB"),
            (1536, "1536 B"),
            (65536, "64 KiB"),
            (1 << 20, "1 MiB"),
            (3 << 30, "3 GiB"),
            (0, "0 B"),
        ] {
            assert_eq!(human_size(bytes), text);
        }
    }

    #[test]
    fn figures_keep_about_four_digits_in_seven_places() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_43, "0.00043"),
            (0.012_34, "0.0123"),
            (0.1234, "0.123"),
            (1.2346, "1.235"),
            (99.9996, "100.00"),
            (999.996, "1000.0"),
            (9999.96, "10000"),
            (123_456.7, "123457"),
        ] {
            assert_eq!(figure(Some(value), digits), text);
        }
    }
}
