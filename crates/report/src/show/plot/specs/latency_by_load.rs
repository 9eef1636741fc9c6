//! Latency against load: percentiles from the planned time over what was achieved, what the closed loop says of the same
//! settings, and what searches for a load found.

use super::searches;
use crate::observe::Metric;
use crate::results::model::{LoadVerdict, SearchEnd, TrialOutcome};
use crate::show::plot::charts::OVERLOADED;
use crate::show::plot::draw::palette::{Look, Marker};
use crate::show::plot::marks::{Band, Dot, Mark, Rule};
use crate::show::plot::rows::groups::{Group, Groups, Line};
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::Setting;
use crate::show::plot::sides::Sides;
use crate::show::plot::spec::{Spec, X, Y};
use settings::Settings;

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
    tables: searches::tables,
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
        let look = groups.look(line).with_dash("");
        let mut samples = line.points.iter().map(|(_, sample)| sample);
        let own = samples.clone().find(|sample| sample.is_closed_loop());
        if let Some(sample) =
            own.or_else(|| samples.find_map(|sample| same_but_closed(sample, &closed)))
        {
            marks.extend(closed_loop(sample, &name, look, rate).map(Mark::Dot));
        }
        marks.extend(of_searches(line, &name, look, rate));
    }
    marks
}

/// What the closed loop says: a bar for each percentile, above its throughput.
fn closed_loop(
    sample: &Sample<'_>,
    name: &str,
    look: Look,
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
                look: Look { marker: Marker::Bar, ..look },
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
fn of_searches(line: &Line<'_>, name: &str, look: Look, rate: Metric) -> Vec<Mark> {
    let has_loads = line.points.iter().any(|(place, _)| *place > 0.0);
    let mut marks = Vec::new();
    for (sample, search) in searches::of(line) {
        let factor = searches::factor(sample, rate);
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
                look,
                transparency: 0.65,
                ends: (from * factor, to * factor),
                hint: format!("{name}, {}", searches::words(search, rate, factor)),
            })
        }));
        marks.extend(search.limits.iter().map(|limit| {
            Mark::Rule(Rule {
                look: Look::of_rule(0),
                y: limit.below_ns as f64,
                label: searches::limit_words(limit),
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
                look: Look {
                    hollow: !matches!(trial.outcome, TrialOutcome::Kept | TrialOutcome::Broke),
                    ..look
                },
                hint: format!("{name}, trial: p99 {}, {}", Metric::P99Ns.text(p99), trial.outcome),
                ..Dot::default()
            }))
        }));
    }
    marks
}
