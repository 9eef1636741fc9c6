//! Figures of lines, each a value. A new one is a value here and its place in `KINDS`. Then what latency against
//! load and set-ups have of their own.

use std::collections::{BTreeMap, BTreeSet};

use results::model::{
    Connect, ConnectStep, Latency, LatencyLimit, LoadSearch, LoadVerdict, SearchEnd, TrialOutcome,
};
use settings::{ROWS, Settings};

use crate::observe::{
    Metric,
    format::{counted, each_once},
};
use crate::show::plot::{
    draw::{Key, KeyMark, Marker, Scale, SeriesStyle, Unit, style, text},
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Band, Chart, Dot, Fill, Mark, Rule, Tile, uncounted},
    rows::{Group, Groups, Line, Sample, Setting, Sides},
    spec::{Beside, OVERLOADED, Spec, X, Y},
};

/// Over the logarithm of 1 / (1 - q).
pub const LATENCY: Spec = Spec {
    id: "latency-percentiles",
    title: "Latency percentiles",
    caption: "Latency: from the post (with --rate from the planned time) until the program sees the completion; for \
              ping-pongs half of the round trip.",
    rows: |sides| Sample::with_times(sides, Metric::P99Ns),
    x: X::Percentile,
    y: &[Y::Log(Metric::P99Ns)],
    columns: &[Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns, Metric::MaxNs],
    ..Spec::USUAL
};

pub const STEPS: Spec = Spec {
    id: "step-percentiles",
    title: "Percentiles of steps in lock-step",
    caption: "Time of a step: from when a node has what the step needs until it has what the next one needs, of all nodes.",
    rows: |sides| Sample::with_times(sides, Metric::StepP99Ns),
    y: &[Y::Log(Metric::StepP99Ns)],
    columns: &[Metric::StepP50Ns, Metric::StepP99Ns, Metric::BusGbitPerS],
    ..LATENCY
};

pub const RATE_BY_QPS: Spec = Spec {
    id: "rate-by-qps",
    title: "{y} against QPs",
    caption: "All QPs of a flow together, for each way of sharing completion queues.",
    x: X::Setting("qps", "QPs", Unit::Plain),
    y: &[Y::Rate],
    apart: &["size"],
    ..Spec::USUAL
};

/// What more QPs bring at each size.
pub const MAP_OF_QPS: Spec = Spec {
    id: "heat-map",
    title: "Effect of more QPs at each size (%)",
    caption: "Each cell: the best case’s Gb/s as a percentage of the best number of QPs at that size.",
    rows: |sides| with_other_qps(sides),
    x: X::Setting("size", "size (B)", Unit::Plain),
    y: &[Y::OfBest("qps", Metric::GbitPerS)],
    apart: &["op", "cq"],
    most_lines: usize::MAX,
    ..Spec::USUAL
};

/// Closed loops of the new side that differ from another one in QPs, and in what follows from them: one that was measured
/// with another send depth only says nothing about QPs. What many nodes move together is no share of a link.
fn with_other_qps(sides: Sides<'_>) -> Vec<Sample<'_>> {
    let mut samples = Sample::closed_loops(sides.new);
    samples.retain(|sample| {
        let settings = &sample.observed.flow.settings;
        settings.pattern.is_none() && settings.size_mix.is_none()
    });
    let mut qps: BTreeMap<Vec<String>, BTreeSet<u32>> = BTreeMap::new();
    for sample in &samples {
        qps.entry(but_for_qps(sample)).or_default().insert(sample.observed.flow.settings.qps);
    }
    samples.retain(|sample| qps.get(&but_for_qps(sample)).is_some_and(|qps| qps.len() > 1));
    samples
}

fn but_for_qps(sample: &Sample<'_>) -> Vec<String> {
    let rows = ROWS.iter().filter(|row| {
        let follows = row.may_follow && row.flag != "tx-depth";
        !follows && !row.may_differ && row.flag != "qps"
    });
    let settings = &sample.observed.flow.settings;
    let device = sample.value(Setting::Device).words.clone();
    rows.map(|row| row.text(settings)).chain([device]).collect()
}

pub const RATE_BY_WORKERS: Spec = Spec {
    id: "rate-by-workers",
    title: "{y} against workers",
    caption: "If N workers move less than N times the rate of one, they wait for each other, for the device or for the link.",
    x: X::Setting("workers", "workers at each end", Unit::Plain),
    y: &[Y::Linear(Metric::MmsgPerS)],
    apart: &["size"],
    ..Spec::USUAL
};

/// Paths over the send depth and over the number of QPs, which are what sets how much a closed loop has in flight.
pub const LATENCY_BY_THROUGHPUT: [Spec; 2] = [
    BY_DEPTH,
    Spec {
        id: "latency-by-throughput-qps",
        title: "Throughput and latency over QPs",
        x: X::RateOver("qps", "QPs", |qps, _| Some(format!("-q {qps}"))),
        ..BY_DEPTH
    },
];

const BY_DEPTH: Spec = Spec {
    id: "latency-by-throughput-tx-depth",
    title: "Throughput and latency over send depth",
    caption: "To the right: more messages in flight bring more throughput. Straight up: they only wait.",
    x: X::RateOver("tx-depth", "send depth", |it, _| Some(format!("-t {it}"))),
    y: &[Y::Percentiles(&[Metric::P50Ns, Metric::P99Ns])],
    apart: &["size", "size-mix"],
    most_lines: 4,
    ..Spec::USUAL
};

/// What several nodes move together to one, and one to several, over how many they are. The rows are sums: a case's flows as one.
pub const FANS: [Spec; 2] = [
    FAN_IN,
    Spec {
        id: "fan-out",
        title: "Outcast over fan-out",
        x: X::Setting("fan-out", "nodes that receive", Unit::Plain),
        ..FAN_IN
    },
];

const FAN_IN: Spec = Spec {
    id: "fan-in",
    title: "Incast over fan-in",
    caption: "All flows of a case together. Jain’s index over n nodes is 1/n if one node gets everything.",
    rows: |sides| Sample::transfers(sides),
    x: X::Setting("fan-in", "nodes that send", Unit::Plain),
    y: &[Y::Linear(Metric::GbitPerS), Y::Linear(Metric::P99Ns), Y::Linear(Metric::Fairness)],
    ..Spec::USUAL
};

pub const BANDWIDTH_BY_SIZE: Spec = Spec {
    id: "bandwidth-by-size",
    title: "{y} against message size",
    caption: "The cost of a message limits small messages, the link limits large ones.",
    x: X::Setting("size", "message size", Unit::Bytes),
    y: &[Y::Log(Metric::GbitPerS)],
    most_lines: 4,
    beside: &[
        Beside { name: "protocol limit", of: limit, is_limit: true },
        Beside { name: "perftest", of: perftest, is_limit: false },
    ],
    ..Spec::USUAL
};

/// What the link and the protocol allow, in Gb/s.
fn limit(sample: &Sample<'_>) -> Option<f64> {
    let mut counted = sample.observed.counted();
    let limits = counted.find_map(|it| it.moved?.limits.as_ref())?;
    Some(limits.payload_gbit_per_s())
}

/// What perftest reached, in Gb/s, over the pairs that count; `None` beside one of several flows, whose sum it measures.
fn perftest(sample: &Sample<'_>) -> Option<f64> {
    let case = sample.observed.flow.case;
    let comparison = case.comparison.as_ref().filter(|_| case.config.flows.len() == 1)?;
    let figures = comparison.metrics.first().filter(|_| !comparison.base_command.is_empty())?;
    let factor = match figures.metric {
        Metric::GbitPerS => 1.0,
        Metric::MmsgPerS => sample.observed.flow.settings.mean_bytes() * 8.0 / 1e3,
        _ => return None,
    };
    Some(figures.base_median? * factor)
}

/// Latency against load: percentiles from the planned time over what was achieved, what the closed loop says of the
/// same settings, and what searches for a load found. Searches for a load in words and rows.
pub const LATENCY_BY_LOAD: Spec = Spec {
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
    let bar = SeriesStyle { marker: Marker::Bar, ..style };
    let percentiles = [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns];
    let dots = percentiles.map(|metric| {
        let latency = sample.spread(metric)?.median;
        let (of, words) = (metric.short_name(), metric.text(latency));
        let hint = format!("{name}, closed loop: {of} {words}");
        let label = if metric == Metric::P99Ns { "closed loop" } else { "" }.to_owned();
        Some(Dot { label, ..Dot::new(name, (throughput?, latency), bar, hint) })
    });
    dots.into_iter().flatten()
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
            let hint = format!("{name}, {}", search_words(search, rate, factor));
            let loads = (from * factor, to * factor);
            Mark::Band(Band::new("bounds of a search", style, 0.65, loads, hint))
        }));
        marks.extend(search.limits.iter().map(|limit| {
            let label = limit_words(limit);
            Mark::Rule(Rule { label, ..Rule::across(0, limit.below_ns as f64) })
        }));
        // Shorter trials only steer.
        let trials = search.trials.iter().filter(|it| it.seconds >= search.trial_seconds);
        marks.extend(trials.filter(|_| !has_loads).filter_map(|trial| {
            let p99 = trial.p99_ns? as f64;
            let counts = matches!(trial.outcome, TrialOutcome::Kept | TrialOutcome::Broke);
            let own = if counts { style } else { uncounted(style) };
            let hint = format!("{name}, trial: p99 {}, {}", Metric::P99Ns.text(p99), trial.outcome);
            let at = (trial.achieved_per_second * factor, p99);
            Some(Mark::Dot(Dot::new(name, at, own, hint)))
        }));
    }
    marks
}

fn searches_of<'l, 'a>(
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
fn rate_factor(sample: &Sample<'_>, rate: Metric) -> f64 {
    match rate {
        Metric::GbitPerS => sample.observed.flow.settings.mean_bytes() * 8.0 / 1e9,
        _ => 1e-6,
    }
}

/// A limit of a search in words: `p99 < 20 µs`.
fn limit_words(limit: &LatencyLimit) -> String {
    let (unit, ns) = text::time_unit(limit.below_ns as f64);
    let time = limit.below_ns as f64 / ns;
    format!("p{} < {time} {unit}", limit.percentile).replace(' ', "\u{a0}")
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
fn search_words(search: &LoadSearch, rate: Metric, factor: f64) -> String {
    let unit = rate.unit();
    let [lower, upper] = [search.lower_per_second, search.upper_per_second]
        .map(|bound| bound.map(|load| text::short(load * factor)));
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
fn search_tables(groups: &Groups<'_>) -> Vec<Table> {
    let searches: Vec<(String, &LoadSearch)> = groups
        .named_lines()
        .flat_map(|(_, name, line)| searches_of(line).map(move |(_, it)| (name.clone(), it)))
        .collect();
    let tables = [bounds_table(&searches), trials_table(&searches)];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn bounds_table(searches: &[(String, &LoadSearch)]) -> Table {
    Table::from_rows(
        "Searches for the highest load",
        searches,
        &[
            ("Line", &|(name, _)| Cell::text(name)),
            ("Searched for", &|(_, search)| Cell::text(request_words(search))),
            ("kept up to (msg/s)", &|(_, search)| Cell::number(search.lower_per_second, 0)),
            ("broken from (msg/s)", &|(_, search)| Cell::number(search.upper_per_second, 0)),
            ("kept, of the closed loop (%)", &|(_, search)| {
                let lower = search.lower_per_second;
                Cell::number(lower.map(|load| load / search.maximum_per_second * 100.0), 1)
            }),
            ("End", &|(_, search)| match &search.note {
                Some(note) => Cell::Text(format!("{}: {note}", search.end)),
                None => Cell::text(search.end.name()),
            }),
        ],
    )
}

fn trials_table(searches: &[(String, &LoadSearch)]) -> Table {
    let trials = searches.iter().flat_map(|(name, search)| {
        search.trials.iter().map(move |trial| (name, &search.asked, trial))
    });
    let in_us = |ns: Option<u64>| Cell::number(ns.map(|ns| ns as f64 / 1e3), 2);
    Table::from_rows(
        "Trials of the searches",
        trials,
        &[
            ("Line", &|(name, ..)| Cell::text(*name)),
            ("Searched for", &|(_, asked, _)| Cell::text(*asked)),
            ("offered (msg/s)", &|(.., trial)| Cell::number(trial.asked_per_second, 0)),
            ("achieved (msg/s)", &|(.., trial)| Cell::number(trial.achieved_per_second, 0)),
            ("window (s)", &|(.., trial)| Cell::number(trial.seconds, 2)),
            ("p50 (µs)", &|(.., trial)| in_us(trial.p50_ns)),
            ("p99 (µs)", &|(.., trial)| in_us(trial.p99_ns)),
            ("p99.9 (µs)", &|(.., trial)| in_us(trial.p99_9_ns)),
            ("late p99 (µs)", &|(.., trial)| in_us(trial.lateness_p99_ns)),
            ("Outcome", &|(.., trial)| Cell::text(trial.outcome.name())),
        ],
    )
}

/// How fast QPs are set up against how many a round sets up, and how long each step takes. What a connection's
/// set-up consists of, a bar for each case with its steps one after the other.
pub const SET_UP: Spec = Spec {
    id: "set-up-by-qps",
    title: "Connections a second and set-up time against QPs",
    caption: "A round creates QPs at both ends, connects them and destroys them. Connections a second are of whole rounds.",
    rows: |sides| Sample::set_ups(sides),
    x: X::Setting("qps", "QPs that a round sets up", Unit::Plain),
    y: &[Y::Log(Metric::ConnectionsPerS), Y::Log(Metric::SetupP99Ns)],
    ..Spec::USUAL
};

pub fn set_up_figures<'a>(sides: impl Into<Sides<'a>>) -> Vec<Figure> {
    let both = sides.into();
    let groups = SET_UP.groups(both);
    let steps = steps_figure(&groups);
    SET_UP.figure(&groups, both).into_iter().chain(steps).collect()
}

const STEPS_CAPTION: &str = "Mean times at the end that ran the sweep. All QPs of a round share an exchange. Destroying is in the \
    table only.";

const MOST_BARS: usize = 16;
const ROW_PX: f64 = 24.0;
/// Height of a bar; 1 is the whole row.
const BAR: f64 = 0.7;

/// The figure; `None` where no case has steps.
fn steps_figure(groups: &Groups<'_>) -> Option<Figure> {
    let steps = each_once(groups.samples().flat_map(step_names));
    let cases: Vec<(String, &Sample<'_>)> = groups
        .named_lines()
        .flat_map(|(_, name, line)| line.points.iter().map(move |point| (name.clone(), point)))
        .map(|(name, (qps, it))| (format!("{name}, {}", counted(*qps as usize, "QP")), it))
        .collect();
    let drawn: Vec<_> = cases
        .iter()
        .filter(|(_, sample)| steps.iter().any(|step| time_ns(sample, step) > 0.0))
        .take(MOST_BARS)
        .collect();
    let mut bars: Vec<Tile> = Vec::new();
    for (y, (name, sample)) in (0..).map(|row| -f64::from(row)).zip(&drawn) {
        let mut from = 0.0;
        for (number, step) in steps.iter().enumerate() {
            let to = from + time_ns(sample, step);
            let fill = Fill::Plain(style(number).colour);
            let hint = format!("{name}: {step} {}", text::time(to - from));
            bars.push(Tile { height: BAR, ..Tile::new(y, (from, to), fill, hint) });
            from = to;
        }
        bars.last_mut()?.behind = text::time(from);
    }
    let longest = bars.iter().map(|bar| bar.ends.1).reduce(f64::max)?.max(1.0);
    let keys =
        steps.iter().enumerate().map(|(index, step)| Key::new(KeyMark::Area, style(index), step));
    let x = Scale::from_zero(longest * 1.2);
    let x = Axis::new("mean time of a connection", x, Unit::Nanoseconds);
    let y = Axis::rows("", drawn.iter().map(|(name, _)| name.clone()));
    let more = (drawn.len() < cases.len()).then(|| "More are in the table.".to_owned());
    let picture = Picture {
        keys: keys.collect(),
        charts: vec![Chart::of_rows(ROW_PX, x, y, vec![Mark::Tiles(bars)])],
        tables: vec![steps_table(&cases)],
        ..groups.picture([more])
    };
    Some(picture.named("set-up-steps", "Steps of a connection’s set-up", STEPS_CAPTION))
}

fn connect<'a>(sample: &Sample<'a>) -> Option<&'a Connect> {
    let mut counted = sample.observed.counted();
    counted.find_map(|it| it.run.connect.as_ref())
}

/// Steps of a set-up that are one after the other: what `connect` contains is in it, and destroying is none.
fn step_names(sample: &Sample<'_>) -> Vec<String> {
    let steps = connect(sample).map_or(&[][..], |connect| &connect.steps);
    let by_cm = steps.iter().any(|step| step.step == "connect");
    steps
        .iter()
        .map(|step| step.step.clone())
        .filter(|step| {
            let is_of_connect = by_cm && ["init", "rtr", "rts"].contains(&step.as_str());
            !is_of_connect && step != "destroy"
        })
        .collect()
}

/// Mean time of a step for one connection, the median of the runs; 0 of a step that there is not.
fn time_ns(sample: &Sample<'_>, step: &str) -> f64 {
    let qps = f64::from(sample.observed.flow.settings.qps.max(1));
    let mean = sample.observed.median_of(|run| {
        let steps = &run.connect.as_ref()?.steps;
        let step = steps.iter().find(|it| it.step == step)?;
        let shared_by = if step.per == "round" { qps } else { 1.0 };
        Some(step.time_ns.mean / shared_by)
    });
    mean.unwrap_or(0.0).max(0.0)
}

type StepsOf = fn(&Connect) -> &Vec<ConnectStep>;

fn steps_table(cases: &[(String, &Sample<'_>)]) -> Table {
    let ends: [(&str, StepsOf); 2] = [("own", |it| &it.steps), ("other", |it| &it.peer_steps)];
    let rows = cases.iter().flat_map(|(name, sample)| {
        ends.into_iter().flat_map(move |(end, steps_of)| {
            let steps = connect(sample).map_or(&[][..], |connect| steps_of(connect));
            steps.iter().map(move |step| (name, *sample, (end, steps_of), step))
        })
    });
    let median = |sample: &Sample<'_>, steps_of: StepsOf, step: &str, of: fn(&Latency) -> f64| {
        let median = sample.observed.median_of(|run| {
            let steps = steps_of(run.connect.as_ref()?);
            Some(of(&steps.iter().find(|it| it.step == step)?.time_ns) / 1e3)
        });
        Cell::number(median, 2)
    };
    Table::from_rows(
        "Steps of set-up: medians of the runs that count",
        rows,
        &[
            ("Line", &|(name, ..)| Cell::text(*name)),
            ("end", &|(_, _, (end, _), _)| Cell::text(*end)),
            ("step", &|(.., step)| Cell::text(&step.step)),
            ("timed once a", &|(.., step)| Cell::text(&step.per)),
            ("mean (µs)", &|(_, sample, (_, of), step)| {
                median(sample, *of, &step.step, |time| time.mean)
            }),
            ("p99 (µs)", &|(_, sample, (_, of), step)| {
                median(sample, *of, &step.step, |time| time.p99.map_or(f64::NAN, |ns| ns as f64))
            }),
        ],
    )
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
            let words = search_words(&search, Metric::MmsgPerS, 1e-6);
            let wanted = format!("p99<20us: {wanted}");
            assert_eq!(words.replace('\u{a0}', " "), wanted);
        }
    }
}
