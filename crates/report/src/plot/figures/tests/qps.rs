//! Maps of QPs over time, of runs whose stalls are made up.

use super::*;
use crate::results::sample::{has, starts};

/// A case of one run, whose QPs have 100 messages in each of 50 intervals of 40 ms but for what `change` does.
fn with(config: CaseConfig, change: impl FnOnce(&mut [Vec<u64>])) -> CaseResult {
    let mut messages = vec![vec![100; 50]; config.qps as usize];
    change(&mut messages);
    let mut case = case(config, &[plain(1.0)]);
    case.runs[0].flows[0].qp_timeline = Some(QpTimeline {
        interval_seconds: 0.04,
        at_seconds: (1..=50).map(|end| f64::from(end) * 0.04).collect(),
        messages,
    });
    case
}

fn of_qps(qps: u32) -> CaseConfig {
    let mut config = config(0, 0, qps, 64, 1);
    config.signal_every = 1;
    config.flows[0] = FlowConfig::of("forward", CLIENT, SERVER, &config, &config);
    config
}

fn figures_of(cases: Vec<CaseResult>) -> Vec<Figure> {
    let figures = qp_time::figures(&[file(0, "host", "a", cases)]);
    for svg in figures.iter().flat_map(|it| [&it.svg, &it.narrow_svg]) {
        assert_eq!(faults(svg), Vec::<String>::new());
    }
    figures
}

#[test]
fn a_qp_that_stands_still_has_its_place_in_the_map_and_the_first_row_of_the_table() {
    let stalled = with(of_qps(4), |qps| qps[2][30..33].fill(0));
    let even = with(of_qps(8), |_| ());
    let figures = figures_of(vec![even, stalled]);
    let [figure] = &figures[..] else {
        panic!("{figures:?}");
    };
    let words = "QP 2 had no message for 120\u{a0}ms from 1.20 s on, and 95 % of its share in all";
    assert!(figure.description.contains(words), "{}", figure.description);
    let rows = &figure.tables[0].rows;
    assert_eq!(rows.len(), 4, "the even case has none");
    assert_eq!(rows[0][2], Cell::Number(2.0, 0));
    let Cell::Number(stall_ms, 1) = rows[0][4] else {
        panic!("{rows:?}");
    };
    assert!((stall_ms - 120.0).abs() < 1e-6);
    // Besides its sample in the legend, "no message" has one tile: three of fifty intervals of the third of four rows.
    let tiles = |svg: &str| -> Vec<String> {
        let of_ink = |line: &&str| line.contains("crispEdges") && line.contains("#222222");
        let tiles = svg.lines().filter(of_ink);
        tiles.map(str::to_owned).collect()
    };
    let tiles = tiles(&figure.svg);
    assert_eq!(tiles.len(), 1, "{tiles:?}");
    assert_eq!(tiles[0].matches('M').count(), 1, "{tiles:?}");
    let numbers = tiles[0].split("d=\"M").nth(1).unwrap();
    let numbers: Vec<f64> = numbers
        .split(['h', 'v', ' '])
        .take(4)
        .map(|number| number.parse().unwrap())
        .collect();
    assert!((numbers[3] - 16.0).abs() < 0.01, "a row: {numbers:?}");
    assert_eq!(figure.svg.matches("<title>QP ").count(), 4);
}

#[test]
fn even_runs_and_those_without_counts_have_no_map() {
    assert!(figures_of(vec![with(of_qps(4), |_| ())]).is_empty());
    let mut without = with(of_qps(4), |_| ());
    without.runs[0].flows[0].qp_timeline = None;
    let one = file(0, "host", "a", vec![without.clone()]);
    assert_eq!(
        qp_time::left_out(&[one]),
        None,
        "it says nothing of four QPs"
    );
    let qp = |index| QpResult {
        index,
        ..QpResult::default()
    };
    without.runs[0].flows[0].qps = (0..1025).map(qp).collect();
    let many = file(0, "host", "a", vec![without]);
    let told = qp_time::left_out(&[many]).unwrap();
    starts(&told, "1 flow has no counts of each QP over time");
}

#[test]
fn of_many_qps_those_are_drawn_that_deviate_most() {
    let uneven = with(of_qps(100), |qps| {
        for (index, qp) in qps.iter_mut().enumerate() {
            qp.fill(if index < 36 { 100 } else { 300 });
        }
        qps[20][10..13].fill(0);
    });
    let figure = &figures_of(vec![uneven])[0];
    assert_eq!(figure.svg.matches("<title>QP ").count(), 64);
    assert!(figure.svg.contains("<title>QP 20 had no message"));
    assert!(
        !figure.svg.contains("<title>QP 99 "),
        "it is nearest to its share"
    );
    assert!(figure.svg.contains("Maps have 64 QPs at most"));
}

#[test]
fn the_least_even_runs_are_drawn_and_the_others_are_in_the_table() {
    let cases = (2..8).map(|qps| {
        with(of_qps(qps), |all| {
            let last = all.len() - 1;
            all[last].fill(5 * u64::from(qps));
        })
    });
    let figure = &figures_of(cases.collect())[0];
    assert_eq!(figure.svg.matches(">time in the window<").count(), 4);
    has(
        &figure.svg,
        ["The figure has 4 of 6 uneven runs, the table 6."],
    );
    let Cell::Text(first) = &figure.tables[0].rows[0][0] else {
        panic!("{figure:?}");
    };
    assert!(first.contains("q2"), "{first}");
}
