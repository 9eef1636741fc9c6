//! Settings as tables and sentences write them.

use settings::{Id, NO_VALUE, ROWS, Row, Settings, differing};

use crate::observe::format::human_size;

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
    fn values_have_words_where_they_are_usual_too() {
        let settings = Settings::from([("op", "write"), ("qps", "4")]);
        let told = |flag: &str| words(Settings::row(flag).unwrap(), &settings);
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
            assert_eq!(told(flag), text, "{flag}");
        }
    }

    #[test]
    fn what_is_alike_and_not_usual_is_told() {
        let with = |depth: &str| {
            let depth = ("tx-depth", depth);
            Settings::from([("op", "write"), depth, ("sges", "4"), ("duration", "1")])
        };
        let all = [with("64"), with("128")];
        let told = alike(&all, false).join(" · ");
        let short = "write · CQ shared · 64 KiB · 1 QP · 1 worker · 4 SGEs · windows of 1s";
        assert_eq!(told, short);
        let told = alike(&all, true).join(" · ");
        let whole = short.replace("4 SGEs", "signalled 1 in 1 · post list 1 · 4 SGEs");
        assert_eq!(told, whole);
        assert!(alike(&[], true).is_empty());
    }
}
