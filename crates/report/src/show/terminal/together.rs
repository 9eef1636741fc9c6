//! All flows of a pattern's run as one row: what they move together.

use std::collections::{BTreeMap, BTreeSet};

use results::model::{CaseConfig, FlowResult, Latency, Run, Window};

/// Of more flows the latencies are not put together: that would take longer than the run's other figures.
const MOST_HISTOGRAMS: usize = 256;

/// What the flows of a run that go over several rails moved together, each with the place of its first flow and how many they are.
pub(super) fn over_rails(config: &CaseConfig, run: &Run) -> Vec<(usize, FlowResult, usize)> {
    let mut flows: BTreeMap<&str, (usize, Vec<FlowResult>)> = BTreeMap::new();
    for (place, (flow, moved)) in config.flows.iter().zip(&run.flows).enumerate() {
        if let Some((name, _)) = flow.over_rails() {
            let (_, known) = flows.entry(name).or_insert_with(|| (place, Vec::new()));
            known.push(moved.clone());
        }
    }
    let mut sums: Vec<_> = flows
        .into_values()
        .filter(|(_, flows)| flows.len() > 1)
        .map(|(place, flows)| {
            let first = &flows[0];
            let (from, to) = (first.from.clone(), first.to.clone());
            (place, FlowResult { from, to, ..together(&flows) }, flows.len())
        })
        .collect();
    sums.sort_by_key(|(place, ..)| *place);
    sums
}

/// What these flows moved together.
pub(super) fn together(flows: &[FlowResult]) -> FlowResult {
    let few = (flows.len() <= MOST_HISTOGRAMS).then_some(flows);
    FlowResult {
        latency_ns: few.and_then(|few| Latency::merged(few, |flow| flow.latency_ns.as_ref())),
        notice_ns: few.and_then(|few| Latency::merged(few, |flow| flow.notice_ns.as_ref())),
        window: window(flows),
        ..FlowResult::together(flows)
    }
}

/// What makes figures doubtful, each kind once.
fn window(flows: &[FlowResult]) -> Window {
    let windows = flows.iter().map(|flow| &flow.window);
    let mut seen = BTreeSet::new();
    let doubts = windows.clone().flat_map(|window| &window.doubts);
    Window {
        warmup_steady: windows
            .clone()
            .any(|window| window.warmup_steady == Some(false))
            .then_some(false),
        doubts: doubts.filter(|doubt| seen.insert(doubt.kind)).cloned().collect(),
        ..Window::default()
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn stamps_of_all_flows_are_put_together() {
        let flow = |ns: u64| {
            let mut histogram = Histogram::new(3).unwrap();
            histogram.record(ns).unwrap();
            FlowResult {
                notice_ns: Latency::from_histogram(&histogram, 0),
                ..FlowResult::default()
            }
        };
        let mut run = Run { flows: vec![flow(1000), flow(1500)], ..Run::default() };
        let all = together(&run.flows);
        let notice = all.notice_ns.map(|it| (it.count, it.min, it.max));
        assert_eq!((notice, all.latency_ns), (Some((2, 1000, 1500)), None));
        run.flows[1].notice_ns = None;
        assert_eq!(together(&run.flows).notice_ns, None);
    }
}
