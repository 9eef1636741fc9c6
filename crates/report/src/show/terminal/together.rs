//! All flows of a pattern's run as one row: what they move together. It must not know which nodes they are between.

use std::collections::BTreeSet;

use crate::results::model::{FlowResult, Latency, Run, Window};

/// Of more flows the latencies are not put together: that would take longer than the run's other figures.
const MOST_HISTOGRAMS: usize = 256;

/// What the flows of a run moved together.
pub(super) fn together(run: &Run) -> FlowResult {
    let flows = &run.flows;
    let merged = |of: fn(&FlowResult) -> Option<&Latency>| {
        let few = (flows.len() <= MOST_HISTOGRAMS).then_some(flows)?;
        Latency::merged(few, of)
    };
    FlowResult {
        latency_ns: merged(|flow| flow.latency_ns.as_ref()),
        notice_ns: merged(|flow| flow.notice_ns.as_ref()),
        window: window(flows),
        ..FlowResult::together(flows)
    }
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
