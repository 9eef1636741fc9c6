//! What each QP of a flow got, medians over its case's runs that count.

use std::collections::BTreeMap;

use crate::observe::{Metric, Observed};
use crate::results::model::CaseFlow;
use crate::results::rates;

#[derive(Clone, Debug)]
pub(super) struct QpShares {
    /// Its QPs, the best served first.
    pub(super) qps: Vec<QpShare>,
    /// Jain's index: 1 is even, 1/n is one QP alone.
    pub(super) jain: Option<f64>,
    pub(super) has_starved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QpShare {
    /// Index within the flow, from 0.
    pub(super) index: u32,
    /// Its bytes over an even share.
    pub(super) share: f64,
    /// 99 % of its latencies are at most this; `None` where not measured.
    pub(super) p99_ns: Option<f64>,
}

impl QpShares {
    /// Of a flow; `None` with a single QP, without a run that counts or without traffic.
    pub(super) fn of(flow: CaseFlow<'_>) -> Option<QpShares> {
        let mut shares: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let observed = Observed::of(flow);
        for qps in observed.counted().filter_map(|it| it.moved).map(|moved| &moved.qps) {
            let bytes = rates::sum(qps.iter().map(|qp| qp.bytes));
            for qp in qps.iter().filter(|_| bytes > 0) {
                let (share, p99_ns) = shares.entry(qp.index).or_default();
                share.push(qp.bytes as f64 * qps.len() as f64 / bytes as f64);
                let p99 = qp.latency_ns.as_ref().and_then(|latency| latency.p99);
                p99_ns.extend(p99.map(|ns| ns as f64));
            }
        }
        let mut qps: Vec<QpShare> = shares
            .into_iter()
            .filter_map(|(index, (share, p99_ns))| {
                Some(QpShare {
                    index,
                    share: statistics::median(&share)?,
                    p99_ns: statistics::median(&p99_ns),
                })
            })
            .collect();
        qps.sort_by(|one, other| other.share.total_cmp(&one.share));
        let mut fairness =
            observed.counted().filter_map(|it| it.moved).filter_map(|it| it.fairness.as_ref());
        (qps.len() > 1).then(|| QpShares {
            qps,
            jain: observed.median(Metric::Fairness),
            has_starved: fairness.any(|it| !it.starved.is_empty()),
        })
    }

    /// Jain's index; where it is not known, that of the shares.
    pub(super) fn evenness(&self) -> f64 {
        let squares: f64 = self.qps.iter().map(|qp| qp.share * qp.share).sum();
        let sum: f64 = self.qps.iter().map(|qp| qp.share).sum();
        let own = sum * sum / (self.qps.len() as f64 * squares);
        self.jain.unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{FlowResult, Latency, QpResult, Run};
    use crate::results::sample;

    fn run(bytes: &[u64], complete: bool) -> Run {
        let flow = FlowResult {
            qps: (0..)
                .zip(bytes)
                .map(|(index, &bytes)| QpResult {
                    latency_ns: (index != 1).then(|| Latency {
                        p99: Some(1000 * u64::from(index + 1)),
                        ..Latency::default()
                    }),
                    ..sample::qp(index, bytes)
                })
                .collect(),
            ..FlowResult::default()
        };
        Run { complete, ..sample::run(vec![flow]) }
    }

    #[test]
    fn the_best_served_comes_first_and_failed_runs_do_not_count() {
        let case = sample::case(vec![
            run(&[10, 30], true),
            run(&[999, 1], false),
            run(&[20, 60], true),
            run(&[0, 0], true),
        ]);
        let shares = QpShares::of(case.flows().next().unwrap()).unwrap();
        let told = shares.qps.iter().map(|it| (it.index, it.share, it.p99_ns));
        assert!(told.eq([(1, 1.5, None), (0, 0.5, Some(1000.0))]));
        assert_eq!(shares.jain, None);
    }

    #[test]
    fn a_single_qp_has_nothing_to_share() {
        let case = sample::case(vec![run(&[10], true)]);
        assert!(QpShares::of(case.flows().next().unwrap()).is_none());
    }
}
