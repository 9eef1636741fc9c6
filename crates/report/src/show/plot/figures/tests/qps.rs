//! Maps of QPs over time, of runs whose stalls are made up. Figures of cases with several flows.

use results::{
    model::{Fairness, StarvedQp},
    sample::starts,
};

use crate::show::plot::figures::tests::*;

/// A case of one run of so many QPs, with 100 messages in each of 50 intervals of 40 ms but for what `change` does.
fn of_qps(qps: usize, change: impl FnOnce(&mut [Vec<u64>])) -> CaseResult {
    let mut messages = vec![vec![100; 50]; qps];
    change(&mut messages);
    let flags = format!("qps={qps} signal-every=1");
    let mut case = CaseResult { id: format!("q{qps}"), ..at(&flags, 1.0) };
    case.runs[0].flows[0].qp_timeline = sample::qp_timeline(0.04, messages);
    case
}

fn figures_of(cases: Vec<CaseResult>) -> Vec<Figure> {
    fit(queue_pairs::over_time_figures(&one_file(cases)))
}

#[test]
fn a_qp_that_stands_still_has_its_place_in_the_map_and_the_first_row_of_the_table() {
    let stalled = of_qps(4, |qps| qps[2][30..33].fill(0));
    let even = of_qps(8, |_| ());
    let figure = &only(figures_of(vec![even, stalled]));
    let words = "QP 2 had no message for 120\u{a0}ms from 1.20 s on, and 95 % of its share in all";
    has(&figure.svg, [words]);
    let rows = &figure.tables[0].rows;
    assert_eq!(rows.len(), 4, "the even case has none");
    assert_eq!(rows[0][2], Cell::Number(2.0, 0));
    assert_eq!(texts(figure, 0, 4)[0], "120.0");
    // Besides its sample in the legend, "no message" has one tile: three of fifty intervals of the third of four rows.
    let tiles: Vec<&str> = figure
        .svg
        .lines()
        .filter(|line| line.contains("crispEdges") && line.contains("#222222"))
        .collect();
    let [tile] = tiles.try_into().unwrap();
    assert_eq!(tile.matches('M').count(), 1, "{tile}");
    let mut numbers = tile.split("d=\"M").nth(1).unwrap().split(['h', 'v', ' ']);
    let height: f64 = numbers.nth(3).unwrap().parse().unwrap();
    assert!((height - 16.0).abs() < 0.01, "a row: {tile}");
    assert_eq!(figure.svg.matches("<title>QP ").count(), 4);
}

#[test]
fn even_runs_and_those_without_counts_have_no_map() {
    assert!(figures_of(vec![of_qps(4, |_| ())]).is_empty());
    let mut without = of_qps(4, |_| ());
    without.runs[0].flows[0].qp_timeline = None;
    // It says nothing of four QPs.
    let one = one_file(vec![without.clone()]);
    assert_eq!(queue_pairs::left_out(&one), None);
    without.runs[0].flows[0].qps = (0..1025).map(|index| sample::qp(index, 0)).collect();
    let text = queue_pairs::left_out(&one_file(vec![without])).unwrap();
    starts(text, "1 flow has no counts for each QP over time");
}

#[test]
fn of_many_qps_those_are_drawn_that_deviate_most() {
    let uneven = of_qps(100, |qps| {
        for (index, qp) in qps.iter_mut().enumerate() {
            qp.fill(if index < 36 { 100 } else { 300 });
        }
        qps[20][10..13].fill(0);
    });
    let figure = &figures_of(vec![uneven])[0];
    assert_eq!(figure.svg.matches("<title>QP ").count(), 64);
    let words = ["<title>QP 20 had no message", "Maps have at most 64 QPs"];
    has(&figure.svg, words);
    // It is nearest to its share.
    assert!(!figure.svg.contains("<title>QP 99 "));
}

#[test]
fn the_least_even_runs_are_drawn_and_the_others_are_in_the_table() {
    let cases = (2..8).map(|qps| {
        of_qps(qps, |all| {
            let last = all.len() - 1;
            all[last].fill(5 * qps as u64);
        })
    });
    let figure = &figures_of(cases.collect())[0];
    assert_eq!(figure.svg.matches("class=\"rb-plot\"").count(), 4);
    let words = "The figure has 4 of 6 uneven runs, the table 6.";
    has(&figure.svg, [words]);
    has(&texts(figure, 0, 0)[0], ["q2"]);
}

#[test]
fn flows_of_a_case_have_lines_of_their_own_at_their_own_places() {
    let with = |id: &str, sizes: [u32; 2]| {
        let [small, large] = sizes.map(|size| {
            let size = size.to_string();
            Settings::from([("op", "write"), ("qps", "2"), ("size", &size)])
        });
        let flows = vec![
            FlowConfig::new("small", CLIENT, SERVER, &small, &small),
            FlowConfig::new("large", SERVER, CLIENT, &small, &large),
        ];
        let config = CaseConfig { settings: small, flows, check: None };
        CaseResult {
            id: id.to_owned(),
            runs: vec![run(1, &config, &plain(f64::from(sizes[0])))],
            config,
            ..CaseResult::default()
        }
    };
    let mut cases = vec![with("one", [64, 65_536]), with("two", [128, 1 << 20])];
    cases[0].runs[0].flows[1].qps = vec![sample::qp(0, 10), sample::qp(1, 30)];
    let results = one_file(cases);
    let figures = specs::BANDWIDTH_BY_SIZE.figures(&results);
    assert_eq!(figures.len(), 1);
    let flows = ["flow large", "flow large", "flow small", "flow small"];
    assert_eq!(texts(&figures[0], 0, 0), flows);
    let sizes = ["64 KiB", "1 MiB", "64 B", "128 B"].map(|size| size.replace(' ', "\u{a0}"));
    assert_eq!(texts(&figures[0], 0, 1), sizes);
    has(&figures[0].subtitle, ["1 run a case"]);
    let over_time = texts(&timeline::figures(&results)[0], 0, 0);
    assert_eq!(over_time.len(), 4);
    has(over_time.join("; "), ["one, flow large"]);
    let shares = texts(&queue_pairs::shares(&results).figures[0], 0, 0);
    assert_eq!(shares, ["one, flow large"]);
}

#[test]
fn qps_that_are_served_evenly_are_said() {
    let of = |bytes: [u64; 2], fairness: Option<Fairness>| {
        let mut case = at("qps=2", 1.0);
        let flow = &mut case.runs[0].flows[0];
        flow.qps = (0..).zip(bytes).map(|(index, bytes)| sample::qp(index, bytes)).collect();
        flow.fairness = fairness;
        queue_pairs::shares(&one_file(vec![case]))
    };
    let even = || Fairness::new(&[10.0, 10.0]);
    for (bytes, fairness, index) in [([10, 11], None, "0.997"), ([10, 10], even(), "0.999")] {
        let shares = of(bytes, fairness);
        assert!(shares.figures.is_empty());
        let expected = format!("Jain’s index is {index} or more.");
        has(&shares.sentences[0], [&expected]);
    }
    let mut starved = even();
    starved.as_mut().unwrap().starved = vec![StarvedQp::default()];
    let starved = of([10, 10], starved);
    assert!(starved.sentences.is_empty() && starved.figures.len() == 1);
}
