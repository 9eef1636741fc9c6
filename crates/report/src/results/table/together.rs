//! All flows of a pattern's run as one row: what they move together. It must not know which nodes they are between.

use std::collections::BTreeSet;

use super::super::model::{
    Delivery, Fairness, FlowResult, Latency, Load, LoadVerdict, Run, Window,
};

/// Of more flows the latencies are not put together: that would take longer than the run's other figures.
const MOST_HISTOGRAMS: usize = 256;

/// What the flows of a run moved together; how evenly is told of flows, not of QPs.
pub(super) fn together(run: &Run) -> FlowResult {
    let flows = &run.flows;
    let sum = |of: fn(&FlowResult) -> Option<f64>| flows.iter().map(of).sum::<Option<f64>>();
    let rates: Option<Vec<f64>> = flows.iter().map(FlowResult::gbit_per_s).collect();
    let merged = |of: fn(&FlowResult) -> Option<&Latency>| {
        let few = (flows.len() <= MOST_HISTOGRAMS).then_some(flows)?;
        Latency::merged(few, of)
    };
    let mut all = FlowResult {
        latency_ns: merged(|flow| flow.latency_ns.as_ref()),
        notice_ns: merged(|flow| flow.notice_ns.as_ref()),
        fairness: rates.and_then(|rates| Fairness::of(&rates)),
        load: load(flows),
        window: window(flows),
        delivery: Delivery::of_flows(flows),
        ..FlowResult::default()
    };
    all.totals.messages = flows.iter().map(|flow| flow.totals.messages).sum();
    all.totals.bytes = flows.iter().map(|flow| flow.totals.bytes).sum();
    all.totals.errors = flows.iter().map(|flow| flow.totals.errors).sum();
    if !flows.is_empty() {
        all.totals.gbit_per_s = sum(|flow| flow.totals.gbit_per_s);
        all.totals.mmsg_per_s = sum(|flow| flow.totals.mmsg_per_s);
    }
    all
}

/// What all flows offered and achieved, with the worst verdict.
fn load(flows: &[FlowResult]) -> Option<Load> {
    let loads: Option<Vec<&Load>> = flows.iter().map(|flow| flow.load.as_ref()).collect();
    let loads = loads.filter(|loads| !loads.is_empty())?;
    let of = |verdict| loads.iter().any(|load| load.verdict == verdict);
    let verdicts = [LoadVerdict::NotKept, LoadVerdict::Overloaded];
    Some(Load {
        offered_per_second: loads.iter().map(|load| load.offered_per_second).sum(),
        achieved_per_second: loads.iter().map(|load| load.achieved_per_second).sum(),
        verdict: verdicts.into_iter().find(|it| of(*it)).unwrap_or_default(),
        ..Load::default()
    })
}

/// What makes figures doubtful, each kind once.
fn window(flows: &[FlowResult]) -> Window {
    let windows = || flows.iter().map(|flow| &flow.window);
    let mut told = BTreeSet::new();
    let doubts = windows().flat_map(|window| &window.doubts);
    Window {
        warmup_steady: windows()
            .any(|window| window.warmup_steady == Some(false))
            .then_some(false),
        doubts: doubts
            .filter(|doubt| told.insert(doubt.kind))
            .cloned()
            .collect(),
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
        let mut run = Run {
            flows: vec![flow(1000), flow(1500)],
            ..Run::default()
        };
        let all = together(&run);
        let notice = all.notice_ns.map(|it| (it.count, it.min, it.max));
        assert_eq!((notice, all.latency_ns), (Some((2, 1000, 1500)), None));
        run.flows[1].notice_ns = None;
        assert_eq!(together(&run).notice_ns, None);
    }
}
