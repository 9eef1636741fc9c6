//! Figures of cases with several flows.

use super::*;
use crate::results::model::{Fairness, StarvedQp};

#[test]
fn flows_of_a_case_have_lines_of_their_own_at_their_own_places() {
    let with = |id: &str, sizes: [u32; 2]| {
        let settings = sizes.map(|size| config(1, 0, 2, size, 1).settings);
        let [small, large] = settings.each_ref();
        let config = CaseConfig {
            settings: small.clone(),
            flows: vec![
                FlowConfig::of("small", CLIENT, SERVER, small, small),
                FlowConfig::of("large", SERVER, CLIENT, small, large),
            ],
        };
        CaseResult {
            id: id.to_owned(),
            ..case(config, &[plain(f64::from(sizes[0]))])
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
    let mut even = sends(2, 64, 1.0);
    even.runs[0].flows[0].qps = vec![sample::qp(0, 10), sample::qp(1, 11)];
    let shares = shares::shares(&one_file(vec![even]));
    assert!(shares.figures.is_empty());
    has(&shares.sentences[0], ["Jain’s index is 0.997 or more."]);
    let with_qps = |bytes: [u64; 2], starved: Vec<StarvedQp>| {
        let mut case = sends(2, 64, 1.0);
        let flow = &mut case.runs[0].flows[0];
        flow.qps = (0..)
            .zip(bytes)
            .map(|(index, bytes)| sample::qp(index, bytes))
            .collect();
        flow.fairness = Fairness::of(&bytes.map(|bytes| bytes as f64));
        flow.fairness.as_mut().unwrap().starved = starved;
        shares::shares(&one_file(vec![case]))
    };
    let same = with_qps([10, 10], Vec::new());
    has(&same.sentences[0], ["Jain’s index is 0.999 or more."]);
    let starved = with_qps([10, 10], vec![StarvedQp::default()]);
    assert!(starved.sentences.is_empty() && starved.figures.len() == 1);
}
