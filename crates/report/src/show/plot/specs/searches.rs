//! Searches for a load in words and rows.

use crate::observe::Metric;
use crate::results::model::{LatencyLimit, LoadSearch, SearchEnd};
use crate::show::plot::draw::number;
use crate::show::plot::figure::{Cell, Table};
use crate::show::plot::rows::groups::{Groups, Line};
use crate::show::plot::rows::sample::Sample;

pub(super) fn of<'l, 'a>(
    line: &'l Line<'a>,
) -> impl Iterator<Item = (&'l Sample<'a>, &'a LoadSearch)> {
    line.points
        .iter()
        .map(|(_, sample)| sample)
        .filter(|sample| sample.is_closed_loop() && sample.observed.flow.is_first())
        .flat_map(|sample| {
            sample.cases().flat_map(|case| &case.searches).map(move |search| (sample, search))
        })
}

/// What a message a second is in a rate.
pub(super) fn factor(sample: &Sample<'_>, rate: Metric) -> f64 {
    match rate {
        Metric::GbitPerS => sample.observed.flow.settings.mean_bytes() * 8.0 / 1e9,
        _ => 1e-6,
    }
}

/// `p99 < 20 µs`.
pub(super) fn limit_words(limit: &LatencyLimit) -> String {
    let unit = number::time_unit(limit.below_ns as f64);
    let time = limit.below_ns as f64 / unit.ns;
    format!("p{} < {time} {}", limit.percentile, unit.name).replace(' ', "\u{a0}")
}

/// What was searched for: `p99 < 20 µs`, or `knee 3 (p99 < 12 µs)`.
fn request_words(search: &LoadSearch) -> String {
    let limits = search.limits.iter().map(limit_words).collect::<Vec<_>>().join(", ");
    match (search.reference_p99_ns.is_some(), limits.is_empty()) {
        (true, false) => format!("{} ({limits})", search.asked),
        (false, false) => limits,
        (_, true) => search.asked.clone(),
    }
}

/// What was searched for, and what came of it.
pub(super) fn words(search: &LoadSearch, rate: Metric, factor: f64) -> String {
    let unit = rate.unit();
    let [lower, upper] = [search.lower_per_second, search.upper_per_second]
        .map(|bound| bound.map(|load| number::short(load * factor)));
    let found = match (lower, upper) {
        (Some(lower), Some(upper)) => format!("{lower} to {upper}\u{a0}{unit}"),
        (Some(lower), None) => format!("{lower}\u{a0}{unit} or more"),
        (None, Some(upper)) => format!("less than {upper}\u{a0}{unit}"),
        (None, None) => "not known".to_owned(),
    };
    let request = request_words(search);
    match search.end {
        SearchEnd::Found => format!("{request}: {found}"),
        end => format!("{request}: {found} ({end})"),
    }
}

/// The searches, and their trials in the order in which they ran.
pub(super) fn tables(groups: &Groups<'_>) -> Vec<Table> {
    let (mut searches, mut trials) = (Vec::new(), Vec::new());
    for (name, line) in groups.named_lines() {
        for (_, search) in of(line) {
            let (lower, upper) = (search.lower_per_second, search.upper_per_second);
            let percent = lower.map(|load| load / search.maximum_per_second * 100.0);
            searches.push(vec![
                Cell::text(&name),
                Cell::text(request_words(search)),
                Cell::number(lower, 0),
                Cell::number(upper, 0),
                Cell::number(percent, 1),
                Cell::Text(match &search.note {
                    Some(note) => format!("{}: {note}", search.end),
                    None => search.end.name().to_owned(),
                }),
            ]);
            trials.extend(search.trials.iter().map(|trial| {
                vec![
                    Cell::text(&name),
                    Cell::text(&search.asked),
                    Cell::number(trial.asked_per_second, 0),
                    Cell::number(trial.achieved_per_second, 0),
                    Cell::number(trial.seconds, 2),
                    in_us(trial.p50_ns),
                    in_us(trial.p99_ns),
                    in_us(trial.p99_9_ns),
                    in_us(trial.lateness_p99_ns),
                    Cell::text(trial.outcome.name()),
                ]
            }));
        }
    }
    let bounds = [
        "Line",
        "Searched for",
        "kept up to (msg/s)",
        "broken from (msg/s)",
        "kept, of the closed loop (%)",
        "End",
    ];
    let of_trials = [
        "Line",
        "Searched for",
        "offered (msg/s)",
        "achieved (msg/s)",
        "window (s)",
        "p50 (µs)",
        "p99 (µs)",
        "p99.9 (µs)",
        "late p99 (µs)",
        "Outcome",
    ];
    let tables = [
        Table::new("Searches for the highest load", bounds, searches),
        Table::new("Trials of the searches", of_trials, trials),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn in_us(ns: Option<u64>) -> Cell {
    Cell::number(ns.map(|ns| ns as f64 / 1e3), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_came_to_is_said_in_words() {
        let (low, high) = (Some(0.5e6), Some(0.75e6));
        let (found, none, stopped) = (SearchEnd::Found, SearchEnd::NoneKeeps, SearchEnd::Stopped);
        for (end, lower_per_second, upper_per_second, wanted) in [
            (found, low, high, "0.500 to 0.750 Mmsg/s"),
            (none, None, low, "less than 0.500 Mmsg/s (no load keeps it)"),
            (stopped, low, None, "0.500 Mmsg/s or more (stopped)"),
        ] {
            let search = LoadSearch {
                asked: "p99<20us".to_owned(),
                lower_per_second,
                upper_per_second,
                end,
                ..LoadSearch::default()
            };
            let told = words(&search, Metric::MmsgPerS, 1e-6);
            let wanted = format!("p99<20us: {wanted}");
            assert_eq!(told.replace('\u{a0}', " "), wanted);
        }
    }
}
