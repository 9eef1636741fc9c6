//! Every figure of results of every kind: well-formed, with all text in the frame and apart, and nothing made up.

use ::settings::{CqMode, Op, Settings};
use proptest::prelude::*;

use super::*;
use crate::judge::compare::{Aspect, Options, compare};
use crate::results::load::{Found, Loaded};
use crate::results::model::*;
use crate::results::sample::{self, cases, has, limits, node, window};
use crate::show::plot::draw::check::faults;
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;
use crate::show::plot::specs::{
    bandwidth_by_size, latency, latency_by_load, latency_by_throughput, rate_by_qps, workers,
};

mod flows;
mod launches;
mod loads;
mod meshes;
mod qps;
mod searches;

type Maker = fn(&[Loaded]) -> Vec<Figure>;

const KINDS: [(&str, Maker); 13] = [
    ("latency-by-load", |it| latency_by_load::SPEC.figures(it)),
    ("latency-by-throughput-", |it| paths(it)),
    ("bandwidth-by-size", |it| {
        bandwidth_by_size::SPEC.figures(it)
    }),
    ("rate-by-qps", |it| rate_by_qps::SPEC.figures(it)),
    ("rate-by-workers", |it| workers::SPEC.figures(it)),
    ("latency", |it| latency::SPEC.figures(it)),
    ("timeline", |it| timeline::figures(it)),
    ("qp-time", |it| qp_time::figures(it)),
    ("trend", |it| trend::figures(it)),
    ("shares", |it| shares::shares(it).figures),
    ("heat-map", heat_map::figures),
    ("latency", |it| {
        let (base, new) = it.split_at(it.len() / 2);
        latency::SPEC.figures(Sides { new, base })
    }),
    ("comparison-", |results| {
        let half = results.len() / 2;
        let found = |results: &[Loaded]| Found {
            results: results.to_vec(),
            refused: Vec::new(),
        };
        let across = Aspect::ALL.to_vec();
        let options = Options {
            across,
            ..Options::default()
        };
        let [base, new] = [&results[..half], &results[half..]].map(found);
        let compared = compare(("old".as_ref(), &base), ("new".as_ref(), &new), &options);
        comparison::figures(results, Some(&compared))
    }),
];

fn paths<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let sides = results.into();
    let specs = [
        latency_by_throughput::BY_DEPTH,
        latency_by_throughput::BY_QPS,
    ];
    specs.iter().flat_map(|spec| spec.figures(sides)).collect()
}

/// What a generated run has.
#[derive(Clone, Debug)]
struct Made {
    gbit_per_s: Option<f64>,
    complete: bool,
    limit: Option<f64>,
    latencies: Vec<u64>,
    histogram: bool,
    timeline: Vec<u64>,
}

fn run(number: u32, flows: &[FlowConfig], made: &Made) -> Run {
    let latency = sample::latency(&made.latencies, 2, made.histogram);
    let at = (1..=made.timeline.len()).map(|index| index as f64 * 0.01);
    let is_timed = !made.timeline.is_empty();
    let qps = sample::qp_timeline(0.01, qps_of(&made.timeline));
    let rate = made.gbit_per_s;
    let bandwidth = |rate| Bandwidth::of_intervals(0.01, made.timeline.iter().map(|_| rate));
    let flow = FlowResult {
        timeline: is_timed.then(|| Timeline {
            interval_seconds: 0.01,
            at_seconds: at.collect(),
            messages: made.timeline.clone(),
            longest_stall_seconds: None,
        }),
        qp_timeline: qps.filter(|_| is_timed),
        window: window(1.0),
        totals: Totals {
            messages: made.latencies.len() as u64,
            gbit_per_s: rate,
            mmsg_per_s: rate.map(|rate| rate / 3.0),
            ..Totals::default()
        },
        latency_ns: latency,
        bandwidth_gbit_per_s: rate.and_then(bandwidth),
        limits: made.limit.and_then(|link| limits(link, 0.9, None)),
        ..FlowResult::default()
    };
    let flows = flows.iter().map(|config| FlowResult {
        name: config.name.clone(),
        from: config.from.clone(),
        to: config.to.clone(),
        ..flow.clone()
    });
    Run {
        run: number,
        complete: made.complete,
        ..sample::run(flows.collect())
    }
}

/// More QPs than a map has rows, of which one has nothing and some have more than others.
fn qps_of(messages: &[u64]) -> Vec<Vec<u64>> {
    let of_qp = |qp: u64| messages.iter().map(|&count| count * (qp % 5)).collect();
    (0..70).map(of_qp).collect()
}

fn config(op: u8, cq: u8, qps: u32, size_bytes: u32, workers: u32) -> CaseConfig {
    let settings = Settings {
        op: Op::ALL[usize::from(op % 3)].into(),
        cq: [CqMode::Shared, CqMode::PerQp][usize::from(cq % 2)],
        qps,
        size_bytes,
        workers,
        ..Settings::default()
    };
    settings.into()
}

fn case(config: CaseConfig, made: &[Made]) -> CaseResult {
    let numbered = (1..).zip(made);
    let runs = numbered.map(|(number, made)| run(number, &config.flows, made));
    CaseResult {
        id: format!(
            "{}-{}-q{}-{}-w{}",
            config.op, config.cq, config.qps, config.size_bytes, config.workers
        ),
        runs: runs.collect(),
        config,
        ..CaseResult::default()
    }
}

/// A case of sends with a run of this rate.
fn sends(qps: u32, size_bytes: u32, gbit_per_s: f64) -> CaseResult {
    case(config(0, 0, qps, size_bytes, 1), &[plain(gbit_per_s)])
}

fn with_perftest(mut case: CaseResult) -> CaseResult {
    let pair = |run: &Run| PerftestPair {
        perftest: run.flows[0].totals.gbit_per_s,
        ..PerftestPair::default()
    };
    case.perftest = Some(PerftestComparison {
        metric: "gbit_per_s".to_owned(),
        pairs: case.runs.iter().map(pair).collect(),
        ..PerftestComparison::default()
    });
    case
}

/// A file from a day of its own.
fn file(index: usize, host: &str, git: &str, all: Vec<CaseResult>) -> Loaded {
    Loaded {
        path: format!("{host}-{index}.json").into(),
        result: ResultFile {
            started_at: format!("2026-11-{:02}T0{}:00:00Z", 1 + index % 28, index % 10),
            tool: Tool {
                git: Some(git.to_owned()),
                ..Tool::default()
            },
            nodes: vec![node(CLIENT, host, Vec::new())],
            ..cases(all)
        },
    }
}

fn one_file(cases: Vec<CaseResult>) -> [Loaded; 1] {
    [file(0, "host", "a", cases)]
}

/// The cells of a column of a figure's table.
fn cells(figure: &Figure, table: usize, column: usize) -> Vec<Cell> {
    let rows = figure.tables[table].rows.iter();
    rows.map(|row| row[column].clone()).collect()
}

fn texts(figure: &Figure, table: usize, column: usize) -> Vec<String> {
    let told = cells(figure, table, column).into_iter();
    let told = told.map(|cell| match cell {
        Cell::Text(text) => text,
        Cell::Number(number, digits) => format!("{number:.digits$}"),
        Cell::Missing => "–".to_owned(),
    });
    told.collect()
}

fn plain(gbit_per_s: f64) -> Made {
    Made {
        gbit_per_s: Some(gbit_per_s),
        complete: true,
        limit: None,
        latencies: [1000, 2000, 3000].repeat(10),
        histogram: true,
        timeline: vec![5, 5, 0, 5],
    }
}

fn made() -> impl Strategy<Value = Made> {
    let rate = prop_oneof![
        4 => (0.0..400.0f64).prop_map(Some),
        1 => Just(Some(0.0)),
        1 => Just(None),
        1 => (-12..12i32).prop_map(|exponent| Some(10f64.powi(exponent))),
    ];
    let latencies = proptest::collection::vec(prop_oneof![Just(7u64), 1..90_000_000_000u64], 0..40);
    let counts = |most: usize| {
        proptest::collection::vec(prop_oneof![3 => 0..100_000u64, 1 => Just(0)], 0..most)
    };
    let timeline = prop_oneof![4 => counts(60), 1 => counts(700)];
    let limit = proptest::option::of(1.0..800.0f64);
    let is_complete = proptest::bool::weighted(0.85);
    let all = (rate, is_complete, limit, latencies, any::<bool>(), timeline);
    all.prop_map(
        |(gbit_per_s, complete, limit, latencies, histogram, timeline)| Made {
            gbit_per_s,
            complete,
            limit,
            latencies,
            histogram,
            timeline,
        },
    )
}

fn a_case() -> impl Strategy<Value = CaseResult> {
    let size = (0..30u32).prop_map(|bits| 1u32 << bits);
    let config = (0..3u8, 0..2u8, 1..20u32, size, 1..9u32);
    let made = proptest::collection::vec(made(), 0..5);
    (config, made).prop_map(|((op, cq, qps, size, workers), made)| {
        with_perftest(case(self::config(op, cq, qps, size, workers), &made))
    })
}

/// What keeps a figure from being seen: text that overlaps or leaves the frame, and what is not whole.
fn unfit(figure: &Figure) -> Vec<String> {
    let pictures = [&figure.svg, &figure.narrow_svg];
    let mut found = pictures.map(|svg| faults(svg)).concat();
    let is_whole = |table: &Table| {
        let mut rows = table.rows.iter();
        rows.all(|row| row.len() == table.columns.len())
    };
    let is_told = !figure.description.is_empty() && !figure.tables[0].rows.is_empty();
    if !is_told || !figure.tables.iter().all(is_whole) {
        found.push(format!("not whole: {:?}", figure.tables));
    }
    found
}

/// Every figure of every kind has its own name and is fit to be seen.
fn check(results: &[Loaded]) -> Result<(), TestCaseError> {
    for (prefix, figures) in KINDS {
        let mut ids = std::collections::BTreeSet::new();
        for figure in figures(results) {
            prop_assert!(figure.id.starts_with(prefix), "{}", figure.id);
            prop_assert!(ids.insert(figure.id.clone()), "{} comes twice", figure.id);
            prop_assert_eq!(unfit(&figure), Vec::<String>::new(), "{}", figure.id);
        }
    }
    Ok(())
}

/// The only one.
fn only(figures: Vec<Figure>) -> Figure {
    let [figure] = figures.try_into().unwrap();
    figure
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn every_figure_of_any_results_is_fit_to_be_seen(
        cases in proptest::collection::vec(a_case(), 0..20),
        files in proptest::collection::vec(("[ -~µ\u{1}]{0,120}", "[0-9a-f]{0,40}"), 1..6),
    ) {
        let of = |(index, (host, git)): (usize, &(String, String))| {
            file(index, host, git, cases.iter().skip(index).cloned().collect())
        };
        check(&files.iter().enumerate().map(of).collect::<Vec<_>>())?;
    }

    #[test]
    fn every_figure_of_any_loads_is_fit_to_be_seen(
        cases in proptest::collection::vec(loads::an_open_case(), 1..25),
    ) {
        let (one, other) = cases.split_at(cases.len() / 2);
        check(&[file(0, "host", "a", one.to_vec()), file(1, "host", "b", other.to_vec())])?;
    }
}

#[test]
fn nothing_makes_no_figure() {
    let empty = one_file(Vec::new());
    let one = one_file(vec![with_perftest(case(config(0, 0, 1, 64, 1), &[]))]);
    for (prefix, figures) in KINDS {
        for results in [&[][..], &empty, &one] {
            assert!(figures(results).is_empty(), "{prefix}");
        }
    }
}

#[test]
fn a_run_that_is_not_complete_is_no_figure() {
    let broken = Made {
        complete: false,
        ..plain(77.0)
    };
    let of_size = |size, made: &[Made]| case(config(0, 0, 1, size, 1), made);
    let results = one_file(vec![
        of_size(64, &[plain(1.0), broken.clone()]),
        of_size(1024, &[broken]),
        of_size(4096, &[plain(3.0)]),
    ]);
    let figure = only(bandwidth_by_size::SPEC.figures(&results));
    let numbers = [Cell::Number(1.0, 3), Cell::Missing, Cell::Number(3.0, 3)];
    assert_eq!(cells(&figure, 0, 3), numbers);
    has(&figure.subtitle, [", left out: 2 failed"]);
    assert!(!figure.svg.contains(">protocol limit<"));
    // What went wrong has no figure, also none that does not count.
    assert!(!figure.svg.contains("does not count"));
    let timeline = only(timeline::figures(&results));
    assert_eq!(timeline.tables[0].rows.len(), 2);
}

/// A doubtful run has its ring, and is in no line, median or row.
#[test]
fn what_does_not_count_is_hollow() {
    let mut mixed = case(
        config(0, 0, 1, 64, 1),
        &[plain(1.0), plain(1.0), plain(9.0)],
    );
    let mut doubtful = case(config(0, 0, 1, 1024, 1), &[plain(5.0)]);
    for run in [&mut mixed.runs[2], &mut doubtful.runs[0]] {
        let doubt = sample::doubt(DoubtKind::EdgeMissed);
        run.flows[0].window.doubts.push(doubt);
    }
    let results = one_file(vec![mixed, doubtful.clone(), sends(1, 4096, 2.0)]);
    let figure = only(bandwidth_by_size::SPEC.figures(&results));
    let numbers = [Cell::Number(1.0, 3), Cell::Missing, Cell::Number(2.0, 3)];
    assert_eq!(cells(&figure, 0, 3), numbers);
    assert_eq!(texts(&figure, 0, 2), ["2 of 3", "0 of 1", "1"]);
    has(
        &figure.svg,
        [
            ": 5.00, does not count",
            ": 9.00, does not count",
            "data-points=\"64 1,4096 2\"",
        ],
    );
    assert_eq!(unfit(&figure), [""; 0]);
    // Without a run that counts there are rings only.
    let mut larger = doubtful.clone();
    larger.config.settings.size_bytes = 4096;
    let figure = only(bandwidth_by_size::SPEC.figures(&one_file(vec![doubtful, larger])));
    assert_eq!(figure.svg.matches(", does not count").count(), 2);
    has(
        &figure.svg,
        ["data-points=\"\"", ">a run that does not count<"],
    );
}

#[test]
fn what_follows_from_the_size_does_not_part_a_line() {
    let with = |size, signal_every| {
        let mut case = sends(1, size, 1.0);
        case.config.settings.signal_every = signal_every;
        case
    };
    let cases = vec![with(64, 100), with(1024, 100), with(65536, 1)];
    let figures = bandwidth_by_size::SPEC.figures(&one_file(cases));
    assert_eq!(figures[0].tables[0].rows.len(), 3);
    has(
        &figures[0].subtitle,
        ["signalled 1 in 1 or signalled 1 in 100"],
    );
}

#[test]
fn how_workers_wait_and_how_queue_pairs_meet_part_lines() {
    let with = |qps, poll: &str, connect: &str| {
        let mut case = sends(qps, 64, 1.0);
        case.config.settings.poll = poll.parse().unwrap();
        case.config.settings.connect = connect.parse().unwrap();
        case
    };
    for (poll, connect, names) in [
        ("event", "tcp", [">busy<", ">event<"]),
        ("busy", "cm", [">tcp<", ">cm<"]),
    ] {
        let both = |qps| [with(qps, "busy", "tcp"), with(qps, poll, connect)];
        let results = one_file([1, 2].map(both).concat());
        has(&only(rate_by_qps::SPEC.figures(&results)).svg, names);
    }
}

#[test]
fn too_many_lines_become_several_charts_that_say_what_they_have() {
    let mut cases = Vec::new();
    for op in 0..3 {
        for qps in [1, 2, 4, 8] {
            for size in [64, 4096] {
                let made = plain(f64::from(qps) * f64::from(op + 1));
                cases.push(case(config(op, 0, qps, size, 1), &[made]));
            }
        }
    }
    let figure = only(bandwidth_by_size::SPEC.figures(&one_file(cases)));
    for heading in ["send", "write", "read"] {
        let heading = format!("font-weight=\"bold\">{heading}<");
        assert_eq!(figure.svg.matches(&heading).count(), 1, "{heading}");
    }
    // One legend for all, and the same look for the same number of QPs.
    assert_eq!(figure.svg.matches("class=\"rb-key\"").count(), 4);
}

/// A file of two sizes at this rate.
fn sizes(index: usize, git: &str, rate: f64) -> Loaded {
    let cases = [64, 1024].map(|size| sends(1, size, rate));
    file(index, "host", git, cases.to_vec())
}

#[test]
fn launches_of_a_case_are_one_point_with_their_spread() {
    let rates = [3.0, 5.0, 10.0].into_iter().enumerate();
    let results: Vec<Loaded> = rates.map(|(index, rate)| sizes(index, "a", rate)).collect();
    let figure = &bandwidth_by_size::SPEC.figures(&results)[0];
    assert_eq!(figure.tables[0].rows.len(), 2);
    let spread = [5.0, 3.0, 10.0].map(|value| Cell::Number(value, 3));
    assert_eq!(figure.tables[0].rows[0][3..6], spread);
    has(&figure.subtitle, ["3 launches of 1 run a case"]);
}

#[test]
fn the_base_is_drawn_beside_the_new_results() {
    let (base, new) = ([sizes(0, "a", 1.0)], [sizes(1, "b", 2.0)]);
    let lines = |new, base| {
        let figures = bandwidth_by_size::SPEC.figures(Sides { new, base });
        texts(&figures[0], 0, 0)
    };
    assert_eq!(lines(&new, &base), ["base", "base", "new", "new"]);
    // A file that is on both sides is of the base.
    assert_eq!(lines(&base, &base).len(), 2);
}

#[test]
fn a_slower_file_is_marked_in_the_trend() {
    let made = |rate: f64| [plain(rate), plain(rate * 1.001), plain(rate * 0.999)];
    let of = |(index, rate): (usize, f64)| {
        let cases = vec![case(config(0, 0, 1, 64, 1), &made(rate))];
        file(index, "host", if index < 2 { "old" } else { "new" }, cases)
    };
    let rates = [10.0, 10.0, 9.0, 9.0].into_iter().enumerate();
    let figures = trend::figures(&rates.map(of).collect::<Vec<_>>());
    let figure = figures.iter().find(|it| it.id == "trend-of-metrics");
    let steps = texts(figure.unwrap(), 0, 7);
    assert_eq!(steps[0], "–");
    let worse: Vec<bool> = steps.iter().map(|it| it.ends_with("worse")).collect();
    assert_eq!(worse, [false, false, true, false]);
    has(&figure.unwrap().svg, ["left to right: new."]);
}
