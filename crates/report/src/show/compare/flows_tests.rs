//! A case of several flows is compared flow by flow, and every document says which figure is of which.

use super::sample::{compared, noise, text};
use super::*;
use crate::judge::compare::model::Verdict;
use crate::observe::metric::Metric;
use results::load::Found;
use results::model::Totals;
use results::sample;
use results::sample::has;

/// Ten launches in turns with those of the other side; the flow `large` takes `factor` times as long.
fn side(name: &str, second: u32, factor: f64) -> Found {
    let mixed = sample::mixed();
    super::sample::side(name, second, 10, |launch| {
        let mut result = mixed.clone();
        for flow in &mut result.cases[0].runs[0].flows {
            let is_large = flow.name == "large";
            flow.window.seconds *= noise(launch, second) * if is_large { factor } else { 1.0 };
            let (messages, bytes) = (flow.totals.messages, flow.totals.bytes);
            flow.totals = Totals::in_window(messages, bytes, 0, flow.window.seconds);
            flow.qps.iter_mut().for_each(|qp| qp.gbit_per_s = None);
        }
        result
    })
}

#[test]
fn a_slower_flow_is_found_and_named() {
    let sides = [side("base", 0, 1.0), side("new", 30, 1.2)];
    let comparison = compared(&sides[0], &sides[1]);
    let case = &comparison.cases[0];
    assert_eq!(case.not_comparable, [""; 0]);
    let verdicts = case
        .metrics
        .iter()
        .filter(|it| it.metric == Metric::GbitPerS)
        .map(|it| (&*it.flow, it.verdict));
    let (equal, worse) = (Verdict::Equal, Verdict::Regressed);
    assert!(verdicts.eq([("small", equal), ("large", worse), ("back", equal)]));
    let table = text(|out| table::write(&comparison, out));
    let words = ["\n  small", "\n  large", "\n  back", "over all 3 flows"];
    has(&table, words);
    let markdown = text(|out| markdown::write(&comparison, out));
    has(&markdown, ["| `mixed` | bandwidth of large |"]);
    let junit = text(|out| junit::write(&comparison, out));
    has(&junit, ["name=\"large/gbit_per_s\""]);
    let action = text(|out| programs::action(&comparison, true, out));
    has(&action, ["\"mixed/large/gbit_per_s\""]);
    let bmf = text(|out| programs::bmf(&comparison, out));
    let bmf: serde_json::Value = serde_json::from_str(&bmf).unwrap();
    let subjects = bmf.as_object().unwrap().keys();
    assert!(subjects.eq(["mixed/small", "mixed/large", "mixed/back"]));
    let otava = text(|out| programs::otava(&comparison, sides.each_ref(), out));
    has(otava.lines().next().unwrap(), [",mixed/large.gbit_per_s,"]);
}

#[test]
fn a_flow_that_was_asked_for_differently_makes_the_case_not_comparable() {
    let base = side("base", 0, 1.0);
    let mut new = side("new", 30, 1.0);
    for loaded in &mut new.results {
        let flow = &mut loaded.result.cases[0].config.flows[1];
        flow.settings.insert("qps".to_owned(), 7.into());
    }
    let comparison = compared(&base, &new);
    let told = "flow large: qps: 2 in the base, 7 in the new results [settings]";
    assert_eq!(comparison.cases[0].not_comparable, [told]);
}
