//! Numbers and settings as tables, figures and sentences write them.

use settings::{Id, NO_VALUE, ROWS, Row, Settings, differing};

/// A cell that says that a figure was not measured.
pub(crate) const NOT_MEASURED: &str = "-";

/// Digits after the point that leave about four that count, in at most seven places; of a value below 0.001 three, in up to
/// nine places.
pub(crate) fn digits(value: f64) -> usize {
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
pub(crate) fn exact(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// A figure with so many digits after the point, or with more where it would have less than two that count.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
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

/// Messages a second as people write them: `1.234 M/s`.
pub(crate) fn rate_text(rate: f64) -> String {
    let (value, unit) = with_unit(rate);
    format!("{value} {unit}/s")
}

/// The first names with commas, and how many more: `a, b and 3 more`.
pub(crate) fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let named = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Each once, in the order in which they first come.
pub(crate) fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

/// The word for so many of a thing.
pub(crate) fn plural(count: usize, word: &str) -> String {
    format!("{word}{}", if count == 1 { "" } else { "s" })
}

/// So many of a thing: `1 run`, `2 runs`.
pub fn counted(count: usize, word: &str) -> String {
    format!("{count} {}", plural(count, word))
}

/// A size in the largest unit of which it is a whole number: `64 KiB`, `1000 B`.
pub fn human_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A setting's value in a table, sizes as people write them.
pub fn cell(row: &Row, settings: &Settings) -> String {
    match row.number(settings) {
        Some(bytes) if row.is_size && row.has_effect(settings) => human_size(bytes as u64),
        _ => row.cell(settings),
    }
}

/// A setting's value in words, also where it is the usual one; empty where it does not apply.
pub fn words(row: &Row, settings: &Settings) -> String {
    let cell = cell(row, settings);
    if cell == NO_VALUE {
        return String::new();
    }
    match row.words(settings, &cell) {
        words if !words.is_empty() && !row.title.is_empty() => words,
        _ => format!("{} {cell}", row.heading_of_column()),
    }
}

/// What all cases have alike, in words: what tells cases apart most often, and what is not usual. With `followed`, also
/// depths and batches that follow from other settings.
pub fn alike(cases: &[Settings], followed: bool) -> Vec<String> {
    let differ = differing(cases);
    ROWS.iter()
        .filter(|row| !row.title.is_empty() && differ.iter().all(|it| it.field != row.field))
        .filter_map(|row| {
            let one = cases.iter().find(|settings| row.has_effect(settings))?;
            let is_told = row.id == Id::Head
                || row.flag == "workers"
                || followed && row.may_follow && !row.column.is_empty()
                || one.unusual().any(|it| it.field == row.field);
            let value = if row.text(one).is_empty() { String::new() } else { cell(row, one) };
            is_told.then(|| row.words(one, &value))
        })
        .filter(|words| !words.is_empty())
        .collect()
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

    #[test]
    fn values_have_words_where_they_are_usual_too() {
        let settings = Settings::from([("op", "write"), ("qps", "4")]);
        let text_of = |flag: &str| words(Settings::row(flag).unwrap(), &settings);
        for (flag, text) in [
            ("op", "write"),
            ("qps", "4 QPs"),
            ("cq", "CQ shared"),
            ("size", "64 KiB"),
            ("poll", "poll busy"),
            ("memory", "working set auto"),
            ("mtu", "MTU auto"),
            ("rx-depth", ""),
        ] {
            assert_eq!(text_of(flag), text, "{flag}");
        }
    }

    #[test]
    fn what_is_alike_and_not_usual_is_told() {
        let with = |depth: &str| {
            let depth = ("tx-depth", depth);
            Settings::from([("op", "write"), depth, ("sges", "4"), ("duration", "1")])
        };
        let cases = [with("64"), with("128")];
        let brief = alike(&cases, false).join(" · ");
        let short = "write · CQ shared · 64 KiB · 1 QP · 1 worker · 4 SGEs · windows of 1s";
        assert_eq!(brief, short);
        let full = alike(&cases, true).join(" · ");
        let whole = short.replace("4 SGEs", "signalled 1 in 1 · post list 1 · 4 SGEs");
        assert_eq!(full, whole);
        assert!(alike(&[], true).is_empty());
    }
}
