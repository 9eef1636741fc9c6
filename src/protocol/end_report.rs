//! What the server tells of its end of a run. It must not know how that is measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use report::results::model::{ConnectStep, Device, Direction, PathEvent, QpResult, Receiver};

/// QPs beyond which the report leaves out each QP's histogram, and each QP's latencies, so that it fits a frame.
const MOST_HISTOGRAMS: usize = 1024;
const MOST_LATENCIES: usize = 32_768;

/// One end's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// The device that it used.
    pub device: Device,
    /// What it sent, in a bidirectional case.
    pub direction: Option<Direction>,
    /// What it received, in a SEND case.
    pub receiver: Option<Receiver>,
    /// Messages received on each QP since it was made.
    pub received_in_all: Vec<u64>,
    /// What its device's counters grew by in its window.
    pub counters: Option<DeviceCounters>,
    /// Times of its steps, where set-up was measured.
    pub setup_steps: Vec<ConnectStep>,
}

/// What an end's device counted over a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// By how much each counter grew; `None` where that is not known.
    pub grown: BTreeMap<String, Option<u64>>,
    /// What that means, of the end that told it.
    pub events: Vec<PathEvent>,
}

/// Leaves out of the QPs' results what of so many would not fit a frame.
pub(crate) fn shorten(qps: &mut [QpResult]) {
    let (has_histograms, has_latencies) =
        (qps.len() <= MOST_HISTOGRAMS, qps.len() <= MOST_LATENCIES);
    for latency in qps.iter_mut().map(|qp| &mut qp.latency_ns) {
        if !has_latencies {
            *latency = None;
        } else if let (Some(latency), false) = (latency, has_histograms) {
            latency.histogram = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::histogram::HIGHEST_NS;
    use crate::protocol::frame::encode;
    use crate::protocol::message::Message;
    use report::results::model::Latency;

    /// Long in all its figures.
    fn qp(index: u32) -> QpResult {
        const MESSAGES: u64 = 1 << 40;
        let ns = HIGHEST_NS;
        QpResult {
            index,
            qpn: 0xff_ffff,
            messages: MESSAGES,
            bytes: MESSAGES << 10,
            gbit_per_s: Some(1e2 / 3.0),
            latency_ns: Some(Latency {
                count: MESSAGES,
                min: ns,
                mean: 1e10 / 3.0,
                stddev: 1e10 / 3.0,
                p50: ns,
                p90: Some(ns),
                p99: Some(ns),
                p99_9: Some(ns),
                p99_99: Some(ns),
                max: ns,
                overflows: MESSAGES,
                histogram: Some("x".repeat(8 << 10)),
            }),
        }
    }

    #[test]
    fn a_report_fits_a_frame_with_any_number_of_queue_pairs() {
        for count in [1024, 1025, 32_768, 32_769, 65_536] {
            let mut qps: Vec<QpResult> = (0..count).map(qp).collect();
            shorten(&mut qps);
            let report = EndReport {
                received_in_all: vec![1 << 40; count as usize],
                direction: Some(Direction {
                    qps,
                    ..Direction::default()
                }),
                ..EndReport::default()
            };
            encode(&Message::Report(Box::new(report))).unwrap();
        }
    }
}
