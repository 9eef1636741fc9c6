//! Figures of cases with several flows.

use super::*;
use crate::results::model::{Fairness, StarvedQp};

#[test]
fn flows_of_a_case_have_lines_of_their_own_at_their_own_places() {
    let with = |id: &str, sizes: [u32; 2]| {
        let [small, large] = sizes.map(|size| {
            let size = size.to_string();
            Settings::from([("op", "write"), ("qps", "2"), ("size", &size)])
        });
        let flows = vec![
            FlowConfig::of("small", CLIENT, SERVER, &small, &small),
            FlowConfig::of("large", SERVER, CLIENT, &small, &large),
        ];
        let config = CaseConfig { settings: small, flows };
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
    let figures = bandwidth_by_size::SPEC.figures(&results);
    assert_eq!(figures.len(), 1);
    let flows = ["flow large", "flow large", "flow small", "flow small"];
    assert_eq!(texts(&figures[0], 0, 0), flows);
    let sizes = ["64 KiB", "1 MiB", "64 B", "128 B"].map(|size| size.replace(' ', "\u{a0}"));
    assert_eq!(texts(&figures[0], 0, 1), sizes);
    has(&figures[0].subtitle, ["1 run a case"]);
    let over_time = texts(&timeline::figures(&results)[0], 0, 0);
    assert_eq!(over_time.len(), 4);
    has(over_time.join("; "), ["one, flow large"]);
    let shares = texts(&shares::shares(&results).figures[0], 0, 0);
    assert_eq!(shares, ["one, flow large"]);
}

#[test]
fn qps_that_are_served_evenly_are_said() {
    let of = |bytes: [u64; 2], fairness: Option<Fairness>| {
        let mut case = at("qps=2", 1.0);
        let flow = &mut case.runs[0].flows[0];
        flow.qps = (0..).zip(bytes).map(|(index, bytes)| sample::qp(index, bytes)).collect();
        flow.fairness = fairness;
        shares::shares(&one_file(vec![case]))
    };
    let even = || Fairness::of(&[10.0, 10.0]);
    for (bytes, fairness, told) in [([10, 11], None, "0.997"), ([10, 10], even(), "0.999")] {
        let shares = of(bytes, fairness);
        assert!(shares.figures.is_empty());
        let told = format!("Jain’s index is {told} or more.");
        has(&shares.sentences[0], [&told]);
    }
    let mut starved = even();
    starved.as_mut().unwrap().starved = vec![StarvedQp::default()];
    let starved = of([10, 10], starved);
    assert!(starved.sentences.is_empty() && starved.figures.len() == 1);
}
