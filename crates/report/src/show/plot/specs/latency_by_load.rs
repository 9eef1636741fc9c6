//! Latency against load: percentiles from the planned time over what was achieved, what the closed loop says of the
//! same settings, and what searches for a load found. Searches for a load in words and rows.

use settings::Settings;

use crate::observe::Metric;
use crate::show::plot::draw::number;
use crate::show::plot::draw::palette::{Marker, SeriesStyle};
use crate::show::plot::figure::{Cell, Table};
use crate::show::plot::marks::{Band, Dot, Mark, Rule};
use crate::show::plot::rows::groups::{Group, Groups, Line};
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::Setting;
use crate::show::plot::spec::{OVERLOADED, Spec, X, Y};
use crate::show::plot::sums::Sides;
use results::model::{LatencyLimit, LoadSearch, LoadVerdict, SearchEnd, TrialOutcome};

pub const SPEC: Spec = Spec {
    id: "latency-by-load",
    title: "Latency against load",
    caption: "Latency: from the planned time of a message until the program sees its completion. A closed loop posts the \
              next message when one completes, so it cannot show waiting.",
    rows: |sides| Sample::loads(sides),
    x: X::RateOver("rate", "load", words),
    y: &[Y::Percentiles(&[Metric::P50Ns, Metric::P99_9Ns, Metric::P99Ns])],
    columns: &[Metric::OfferedPerS, Metric::AchievedPerS, Metric::LateP99Ns],
    apart: &["size", "size-mix"],
    most_lines: 4,
    extra,
    tables: search_tables,
    ..Spec::USUAL
};

/// Latency of an overloaded system grows as long as a run lasts.
fn words(_: f64, sample: &Sample<'_>) -> Option<String> {
    let verdicts: Vec<LoadVerdict> = sample
        .counted()
        .filter_map(|run| run.moved?.load.as_ref())
        .map(|load| load.verdict)
        .collect();
    let over = verdicts.iter().filter(|it| **it == LoadVerdict::Overloaded).count();
    (over > 0 && over * 2 >= verdicts.len()).then(|| OVERLOADED.to_owned())
}

fn extra<'a>(groups: &Groups<'a>, group: &Group<'a>, sides: Sides<'a>, rate: Metric) -> Vec<Mark> {
    let closed = Sample::closed_loops(sides);
    let mut marks = Vec::new();
    for line in &group.lines {
        let name = groups.name(line);
        let style = groups.style(line).with_dash("");
        let mut samples = line.points.iter().map(|(_, sample)| sample);
        let own = samples.clone().find(|sample| sample.is_closed_loop());
        if let Some(sample) =
            own.or_else(|| samples.find_map(|sample| same_but_closed(sample, &closed)))
        {
            marks.extend(closed_loop(sample, &name, style, rate).map(Mark::Dot));
        }
        marks.extend(of_searches(line, &name, style, rate));
    }
    marks
}

/// What the closed loop says: a bar for each percentile, above its throughput.
fn closed_loop(
    sample: &Sample<'_>,
    name: &str,
    style: SeriesStyle,
    rate: Metric,
) -> impl Iterator<Item = Dot> {
    let throughput = sample.spread(rate).map(|rate| rate.median);
    let percentiles = [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns];
    percentiles
        .map(|metric| {
            let latency = sample.spread(metric)?.median;
            let is_named = metric == Metric::P99Ns;
            Some(Dot {
                name: name.to_owned(),
                at: (throughput?, latency),
                style: SeriesStyle { marker: Marker::Bar, ..style },
                hint: format!(
                    "{name}, closed loop: {} {}",
                    metric.short_name(),
                    metric.text(latency)
                ),
                label: if is_named { "closed loop" } else { "" }.to_owned(),
                ..Dot::default()
            })
        })
        .into_iter()
        .flatten()
}

/// The sample with the same settings in the same file whose load was not planned.
fn same_but_closed<'s, 'a>(
    sample: &Sample<'a>,
    closed: &'s [Sample<'a>],
) -> Option<&'s Sample<'a>> {
    let usual = Settings::default();
    let wanted = Settings {
        rate: usual.rate,
        arrivals: usual.arrivals,
        seed: usual.seed,
        ..sample.observed.flow.settings.clone()
    };
    let path = [Setting::Flow, Setting::Device, Setting::PathMtu];
    closed.iter().find(|other| {
        std::ptr::eq(other.loaded, sample.loaded)
            && path.iter().all(|it| other.value(*it) == sample.value(*it))
            && other.observed.flow.settings == wanted
    })
}

/// Bounds, limits and trials of searches; the trials of a line without loads of its own only.
fn of_searches(line: &Line<'_>, name: &str, style: SeriesStyle, rate: Metric) -> Vec<Mark> {
    let has_loads = line.points.iter().any(|(place, _)| *place > 0.0);
    let mut marks = Vec::new();
    for (sample, search) in searches_of(line) {
        let factor = rate_factor(sample, rate);
        let (lower, upper) = (search.lower_per_second, search.upper_per_second);
        let ends = match search.end {
            // What lies above is not known, or nothing does.
            SearchEnd::ScheduleNotKept | SearchEnd::AllKeep => lower.zip(lower),
            SearchEnd::NoneKeeps => None,
            _ => lower.or(upper).zip(upper.or(lower)),
        };
        marks.extend(ends.map(|(from, to)| {
            Mark::Band(Band {
                name: "bounds of a search",
                style,
                transparency: 0.65,
                ends: (from * factor, to * factor),
                hint: format!("{name}, {}", search_words(search, rate, factor)),
            })
        }));
        marks.extend(search.limits.iter().map(|limit| {
            Mark::Rule(Rule {
                style: SeriesStyle::of_rule(0),
                y: limit.below_ns as f64,
                label: limit_words(limit),
                ..Rule::default()
            })
        }));
        // Shorter trials only steer.
        let trials = search.trials.iter().filter(|it| it.seconds >= search.trial_seconds);
        marks.extend(trials.filter(|_| !has_loads).filter_map(|trial| {
            let p99 = trial.p99_ns? as f64;
            let achieved = trial.achieved_per_second * factor;
            Some(Mark::Dot(Dot {
                name: name.to_owned(),
                at: (achieved, p99),
                style: SeriesStyle {
                    hollow: !matches!(trial.outcome, TrialOutcome::Kept | TrialOutcome::Broke),
                    ..style
                },
                hint: format!("{name}, trial: p99 {}, {}", Metric::P99Ns.text(p99), trial.outcome),
                ..Dot::default()
            }))
        }));
    }
    marks
}

pub(super) fn searches_of<'l, 'a>(
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
pub(super) fn rate_factor(sample: &Sample<'_>, rate: Metric) -> f64 {
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
pub(super) fn search_words(search: &LoadSearch, rate: Metric, factor: f64) -> String {
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
pub(super) fn search_tables(groups: &Groups<'_>) -> Vec<Table> {
    let (mut searches, mut trials) = (Vec::new(), Vec::new());
    for (name, line) in groups.named_lines() {
        for (_, search) in searches_of(line) {
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
            let told = search_words(&search, Metric::MmsgPerS, 1e-6);
            let wanted = format!("p99<20us: {wanted}");
            assert_eq!(told.replace('\u{a0}', " "), wanted);
        }
    }
}
