//! Numbers and settings as tables, figures and sentences write them.

pub use results::numbers::time_text;
pub(crate) use results::numbers::{exact, fixed, rate_text};
use settings::{Id, NO_VALUE, ROWS, Row, Settings, differing};

/// A cell that says that a figure was not measured.
pub(crate) const NOT_MEASURED: &str = "-";

/// The first names with commas, and how many more: `a, b and 3 more`.
pub fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
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
