//! Figures of lines, each a value. A new one is a value here and its line in `sections`. Then what latency against
//! load and set-ups have of their own.

use results::model::{
    Connect, ConnectStep, Latency, LatencyLimit, LoadSearch, LoadVerdict, PerftestPair, SearchEnd,
    TrialOutcome,
};
use settings::Settings;

use crate::observe::{
    Metric, Spread,
    format::{counted, each_once},
};
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale, Unit,
        palette::{Marker, SeriesStyle, style},
        text,
    },
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Band, Chart, Dot, Fill, Mark, Rule, Tile},
    rows::{
        Sample, Sides,
        case_settings::Setting,
        groups::{Group, Groups, Line},
    },
    spec::{Beside, OVERLOADED, Spec, X, Y},
};

/// Over the logarithm of 1 / (1 - q).
pub const LATENCY: Spec = Spec {
    id: "latency-percentiles",
    title: "Latency percentiles",
    caption: "Latency: from the post (with --rate from the planned time) until the program sees the completion; for \
              ping-pongs half of the round trip.",
    rows: |sides| Sample::with_latency(sides),
    x: X::Percentile,
    y: &[Y::Log(Metric::P99Ns)],
    ..Spec::USUAL
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
    Some(limits.link_gbit_per_s * limits.protocol_efficiency)
}

/// What perftest reached, in Gb/s, over the pairs that count; `None` beside one of several flows, whose sum it measures.
fn perftest(sample: &Sample<'_>) -> Option<f64> {
    let case = sample.observed.flow.case;
    let comparison = case.perftest.as_ref().filter(|_| case.config.flows.len() == 1)?;
    let factor = match comparison.metric.as_str() {
        "gbit_per_s" => 1.0,
        "mmsg_per_s" => sample.observed.flow.settings.mean_bytes() * 8.0 / 1e3,
        _ => return None,
    };
    Some(
        Spread::new(
            comparison
                .pairs
                .iter()
                .filter_map(PerftestPair::counted)
                .map(|(_, perftest)| perftest * factor),
        )?
        .median,
    )
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
    let unit = text::time_unit(limit.below_ns as f64);
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
        .flat_map(|(name, line)| {
            line.points
                .iter()
                .map(|(qps, sample)| {
                    let qps = counted(*qps as usize, "QP");
                    (format!("{name}, {qps}"), sample)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let drawn: Vec<_> = cases
        .iter()
        .filter(|(_, sample)| steps.iter().any(|step| time_ns(sample, step) > 0.0))
        .take(MOST_BARS)
        .collect();
    drawn.first()?;
    let (mut bars, mut longest) = (Vec::new(), 1.0_f64);
    for (row, (name, sample)) in drawn.iter().enumerate() {
        let mut from = 0.0;
        for (number, step) in steps.iter().enumerate() {
            let to = from + time_ns(sample, step);
            let fill = Fill::Plain(style(number).colour);
            let hint = format!("{name}: {step} {}", text::time(to - from));
            bars.push(Tile { height: BAR, ..Tile::new(-(row as f64), (from, to), fill, hint) });
            from = to;
        }
        bars.last_mut()?.behind = text::time(from);
        longest = longest.max(from);
    }
    let keys =
        steps.iter().enumerate().map(|(index, step)| Key::new(KeyMark::Area, style(index), step));
    let x = Scale::from_zero(longest * 1.2);
    let x = Axis::new("mean time of a connection", x, Unit::Nanoseconds);
    let y = Axis::rows("", drawn.iter().map(|(name, _)| name.clone()));
    let more = (drawn.len() < cases.len()).then(|| "More are in the table.".to_owned());
    let picture = Picture {
        subtitle: groups.subtitle(Setting::from_flag("qps")),
        keys: keys.collect(),
        charts: vec![Chart::of_rows(ROW_PX, x, y, vec![Mark::Tiles(bars)])],
        notes: more.into_iter().collect(),
        tables: vec![steps_table(&cases)],
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
    let mut rows = Vec::new();
    for (name, sample) in cases {
        for (end, steps_of) in ends {
            for step in connect(sample).map_or(&[][..], |connect| steps_of(connect)) {
                let figures: [fn(&Latency) -> Option<f64>; 2] =
                    [|time| Some(time.mean), |time| time.p99.map(|ns| ns as f64)];
                let mut row = [name, end, &step.step, &step.per].map(Cell::text).to_vec();
                row.extend(figures.map(|figure| {
                    let median = sample.observed.median_of(|run| {
                        let steps = steps_of(run.connect.as_ref()?);
                        let same = steps.iter().find(|it| it.step == step.step)?;
                        Some(figure(&same.time_ns)? / 1e3)
                    });
                    Cell::number(median, 2)
                }));
                rows.push(row);
            }
        }
    }
    let names = ["Line", "end", "step", "timed once a", "mean (µs)", "p99 (µs)"];
    Table::new("Steps of set-up: medians of the runs that count", names, rows)
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
