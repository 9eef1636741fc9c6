//! Every figure of results of every kind: well-formed, with all text in the frame and apart, and nothing made up.

use crate::results::sample::has;
use ::settings::{CqMode, Op, Settings};
use hdrhistogram::Histogram;
use proptest::prelude::*;

use super::*;
use crate::compare::{Aspect, Options, compare};
use crate::plot::draw::check::faults;
use crate::plot::figure::{Cell, Figure};
use crate::plot::sides::Sides;
use crate::results::load::{Found, Loaded};
use crate::results::model::*;

mod flows;
mod launches;
mod loads;
mod meshes;
mod qps;
mod searches;

type Maker = fn(&[Loaded]) -> Vec<Figure>;

const KINDS: [(&str, Maker); 13] = [
    ("latency-by-load", |it| latency_by_load::figures(it)),
    ("latency-by-throughput-", |it| {
        latency_by_throughput::figures(it)
    }),
    ("bandwidth-by-size", |it| bandwidth_by_size::figures(it)),
    ("rate-by-qps", |it| rate_by_qps::figures(it)),
    ("rate-by-workers", |it| workers::figures(it)),
    ("latency", |it| latency::figures(it)),
    ("timeline", |it| timeline::figures(it)),
    ("qp-time", |it| qp_time::figures(it)),
    ("trend", |it| trend::figures(it)),
    ("shares", |it| shares::shares(it).figures),
    ("heat-map", heat_map::figures),
    ("latency", |it| {
        let (base, new) = it.split_at(it.len() / 2);
        latency::figures(Sides { new, base })
    }),
    ("comparison-", |results| {
        let half = results.len() / 2;
        let found = |results: &[Loaded]| Found {
            results: results.to_vec(),
            refused: Vec::new(),
        };
        let compared = compare(
            ("old".as_ref(), &found(&results[..half])),
            ("new".as_ref(), &found(&results[half..])),
            &Options {
                across: Aspect::ALL.to_vec(),
                ..Options::default()
            },
        );
        comparison::figures(results, Some(&compared))
    }),
];

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
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 2).unwrap();
    made.latencies
        .iter()
        .for_each(|&ns| histogram.saturating_record(ns));
    let mut latency = Latency::from_histogram(&histogram, 0);
    if let (Some(latency), false) = (&mut latency, made.histogram) {
        latency.histogram = None;
    }
    let at = (1..=made.timeline.len()).map(|index| index as f64 * 0.01);
    let flow = FlowResult {
        timeline: (!made.timeline.is_empty()).then(|| Timeline {
            interval_seconds: 0.01,
            at_seconds: at.clone().collect(),
            messages: made.timeline.clone(),
            longest_stall_seconds: None,
        }),
        qp_timeline: (!made.timeline.is_empty()).then(|| QpTimeline {
            interval_seconds: 0.01,
            at_seconds: at.clone().collect(),
            messages: qps_of(&made.timeline),
        }),
        window: Window {
            seconds: 1.0,
            ..Window::default()
        },
        totals: Totals {
            messages: made.latencies.len() as u64,
            gbit_per_s: made.gbit_per_s,
            mmsg_per_s: made.gbit_per_s.map(|rate| rate / 3.0),
            ..Totals::default()
        },
        latency_ns: latency,
        bandwidth_gbit_per_s: made
            .gbit_per_s
            .and_then(|rate| Bandwidth::of_intervals(0.01, made.timeline.iter().map(|_| rate))),
        limits: made.limit.map(|link_gbit_per_s| Limits {
            link_gbit_per_s,
            protocol_efficiency: 0.9,
            share_of_limit: None,
        }),
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
        flows: flows.collect(),
        ..Run::default()
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
    let runs = (1..)
        .zip(made)
        .map(|(number, made)| run(number, &config.flows, made));
    CaseResult {
        id: format!(
            "{}-{}-q{}-{}-w{}",
            config.op, config.cq, config.qps, config.size_bytes, config.workers
        ),
        runs: runs.collect(),
        config,
        perftest: Some(PerftestComparison {
            metric: "gbit_per_s".to_owned(),
            pairs: made
                .iter()
                .map(|made| PerftestPair {
                    perftest: made.gbit_per_s,
                    ..PerftestPair::default()
                })
                .collect(),
            ..PerftestComparison::default()
        }),
        ..CaseResult::default()
    }
}

fn file(index: usize, host: &str, git: &str, cases: Vec<CaseResult>) -> Loaded {
    Loaded {
        path: format!("{host}-{index}.json").into(),
        result: ResultFile {
            started_at: format!("2026-11-{:02}T0{}:00:00Z", 1 + index % 28, index % 10),
            tool: Tool {
                git: Some(git.to_owned()),
                ..Tool::default()
            },
            nodes: vec![Node {
                name: CLIENT.to_owned(),
                host: Host {
                    hostname: host.to_owned(),
                    ..Host::default()
                },
                devices: Vec::new(),
            }],
            cases,
            ..ResultFile::default()
        },
    }
}

fn plain(gbit_per_s: f64) -> Made {
    Made {
        gbit_per_s: Some(gbit_per_s),
        complete: true,
        limit: None,
        latencies: vec![1000, 2000, 3000],
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
    let timeline = proptest::collection::vec(prop_oneof![3 => 0..100_000u64, 1 => Just(0)], 0..700);
    let limit = proptest::option::of(1.0..800.0f64);
    (
        rate,
        proptest::bool::weighted(0.85),
        limit,
        latencies,
        any::<bool>(),
        timeline,
    )
        .prop_map(
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
    let config = (
        0..3u8,
        0..2u8,
        1..20u32,
        (0..30u32).prop_map(|bits| 1u32 << bits),
        1..9u32,
    );
    (config, proptest::collection::vec(made(), 0..5)).prop_map(
        |((op, cq, qps, size, workers), made)| {
            case(self::config(op, cq, qps, size, workers), &made)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_figure_of_any_results_is_fit_to_be_seen(
        cases in proptest::collection::vec(a_case(), 0..40),
        files in proptest::collection::vec(("[ -~µ\u{1}]{0,120}", "[0-9a-f]{0,40}"), 1..6),
    ) {
        let of = |(index, (host, git)): (usize, &(String, String))| {
            file(index, host, git, cases.iter().skip(index).cloned().collect())
        };
        let results: Vec<Loaded> = files.iter().enumerate().map(of).collect();
        for (prefix, figures) in KINDS {
            let mut ids = std::collections::BTreeSet::new();
            for figure in figures(&results) {
                prop_assert!(figure.id.starts_with(prefix), "{}", figure.id);
                prop_assert!(ids.insert(figure.id.clone()), "{} comes twice", figure.id);
                for svg in [&figure.svg, &figure.narrow_svg] {
                    prop_assert_eq!(faults(svg), Vec::<String>::new(), "{}", figure.id);
                }
                prop_assert!(!figure.description.is_empty() && !figure.tables[0].rows.is_empty());
                for row in &figure.tables[0].rows {
                    prop_assert_eq!(row.len(), figure.tables[0].columns.len());
                }
            }
        }
    }
}

#[test]
fn nothing_makes_no_figure() {
    let empty = [file(0, "host", "a", Vec::new())];
    let one = [file(
        0,
        "host",
        "a",
        vec![case(config(0, 0, 1, 64, 1), &[])],
    )];
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
    let cases = vec![
        case(config(0, 0, 1, 64, 1), &[plain(1.0), broken.clone()]),
        case(config(0, 0, 1, 1024, 1), &[broken]),
        case(config(0, 0, 1, 4096, 1), &[plain(3.0)]),
    ];
    let mut results = [file(0, "host", "a", cases)];
    results[0]
        .result
        .cases
        .iter_mut()
        .for_each(|case| case.perftest = None);
    let figures = bandwidth_by_size::figures(&results);
    assert_eq!(figures.len(), 1);
    let cells: Vec<&Cell> = figures[0].tables[0]
        .rows
        .iter()
        .map(|row| &row[3])
        .collect();
    assert_eq!(
        cells,
        [&Cell::Number(1.0, 3), &Cell::Missing, &Cell::Number(3.0, 3)]
    );
    has(&figures[0].subtitle, ["2 not complete and left out"]);
    let timelines = timeline::figures(&results);
    assert!(!figures[0].svg.contains(">protocol limit<"));
    assert_eq!(timelines.len(), 1);
    assert_eq!(timelines[0].tables[0].rows.len(), 2);
}

#[test]
fn what_follows_from_the_size_does_not_part_a_line() {
    let with = |size, signal_every| {
        let mut config = config(0, 0, 1, size, 1);
        config.signal_every = signal_every;
        case(config, &[plain(1.0)])
    };
    let results = [file(
        0,
        "host",
        "a",
        vec![with(64, 100), with(1024, 100), with(65536, 1)],
    )];
    let figures = bandwidth_by_size::figures(&results);
    assert_eq!(figures[0].tables[0].rows.len(), 3);
    has(&figures[0].subtitle, ["signalling differs along a line"]);
}

#[test]
fn how_workers_wait_and_how_queue_pairs_meet_part_lines() {
    let with = |qps, poll: &str, connect: &str| {
        let mut config = config(0, 0, qps, 64, 1);
        (config.poll, config.connect) = (poll.parse().unwrap(), connect.parse().unwrap());
        let mut case = case(config, &[plain(1.0)]);
        case.perftest = None;
        case
    };
    for (other, names) in [
        (("event", "tcp"), ["busy", "event"]),
        (("busy", "cm"), ["tcp", "cm"]),
    ] {
        let mut cases = Vec::new();
        for qps in [1, 2] {
            cases.extend([with(qps, "busy", "tcp"), with(qps, other.0, other.1)]);
        }
        let results = [file(0, "host", "a", cases)];
        let figures = rate_by_qps::figures(&results);
        assert_eq!(figures.len(), 1);
        for name in names {
            assert!(figures[0].svg.contains(&format!(">{name}<")), "{name}");
        }
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
    cases.iter_mut().for_each(|case| case.perftest = None);
    let results = [file(0, "host", "a", cases)];
    let figures = bandwidth_by_size::figures(&results);
    let [figure] = figures.as_slice() else {
        panic!("{figures:?}");
    };
    for heading in ["send", "write", "read"] {
        let heading = format!("font-weight=\"bold\">{heading}<");
        assert_eq!(figure.svg.matches(&heading).count(), 1, "{heading}");
    }
    // One legend for all, and the same look for the same number of QPs.
    assert_eq!(figure.svg.matches("class=\"rb-key\"").count(), 4);
}

#[test]
fn launches_of_a_case_are_one_point_with_their_spread() {
    let rates = [3.0, 5.0, 10.0];
    let results: Vec<Loaded> = rates
        .into_iter()
        .enumerate()
        .map(|(index, rate)| {
            let cases = [64, 1024].map(|size| case(config(0, 0, 1, size, 1), &[plain(rate)]));
            file(index, "host", "a", cases.to_vec())
        })
        .collect();
    let figure = &bandwidth_by_size::figures(&results)[0];
    assert_eq!(figure.tables[0].rows.len(), 2);
    let number = |value| Cell::Number(value, 3);
    assert_eq!(
        figure.tables[0].rows[0][3..6],
        [number(5.0), number(3.0), number(10.0)]
    );
    assert!(
        figure.subtitle.ends_with("3 launches of 1 run a case"),
        "{}",
        figure.subtitle
    );
}

#[test]
fn the_base_is_drawn_beside_the_new_results() {
    let of = |index, rate: f64| {
        let cases = [64, 1024].map(|size| case(config(0, 0, 1, size, 1), &[plain(rate)]));
        file(index, "host", ["a", "b"][index], cases.to_vec())
    };
    let (base, new) = ([of(0, 1.0)], [of(1, 2.0)]);
    let figure = &bandwidth_by_size::figures(Sides {
        new: &new,
        base: &base,
    })[0];
    let lines = figure.tables[0].rows.iter().map(|row| row[0].clone());
    let text = |text: &str| Cell::Text(text.to_owned());
    assert_eq!(
        lines.collect::<Vec<_>>(),
        ["base", "base", "new", "new"].map(text)
    );
    // A file that is on both sides is of the base.
    let figures = bandwidth_by_size::figures(Sides {
        new: &base,
        base: &base,
    });
    assert_eq!(figures[0].tables[0].rows.len(), 2);
}

#[test]
fn a_slower_file_is_marked_in_the_trend() {
    let made = |rate: f64| [plain(rate), plain(rate * 1.001), plain(rate * 0.999)];
    let of = |(index, rate): (usize, f64)| {
        let cases = vec![case(config(0, 0, 1, 64, 1), &made(rate))];
        file(index, "host", if index < 2 { "old" } else { "new" }, cases)
    };
    let results: Vec<Loaded> = [10.0, 10.0, 9.0, 9.0]
        .into_iter()
        .enumerate()
        .map(of)
        .collect();
    let figures = trend::figures(&results);
    let bandwidth = figures
        .iter()
        .find(|figure| figure.id == "trend-of-metrics")
        .unwrap();
    let told: Vec<_> = bandwidth.tables[0]
        .rows
        .iter()
        .map(|row| row[7].clone())
        .collect();
    assert_eq!(told[0], Cell::Missing);
    let worse = |cell: &Cell| matches!(cell, Cell::Text(text) if text.ends_with("worse"));
    assert_eq!(
        told.iter().map(worse).collect::<Vec<_>>(),
        [false, false, true, false]
    );
    assert!(bandwidth.svg.contains("changed to new."));
}
