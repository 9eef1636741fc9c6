//! How much of the limit was reached for each number of QPs and each size. It must not know how it is drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::Metric;
use crate::plot::median;
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult};
use settings::{CqMode, Workload};

/// What a cell's share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOf {
    /// What the link and the protocol allow.
    Limit,
    /// The best cell, where there is no limit, as software devices have none.
    BestCell,
}

/// One operation on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Grids {
    /// Operation.
    pub op: String,
    /// Device at the end that ran the sweep; empty where the results do not tell.
    pub device: String,
    /// What the shares are of.
    pub share_of: ShareOf,
    /// Throughput of the best case.
    pub best_gbit_per_s: f64,
    /// Each layout of completion queues.
    pub layouts: Vec<Grid>,
    /// Most cases that share a cell, of which the best is shown.
    pub cases_a_cell: usize,
}

/// One layout of completion queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// How completion queues are shared.
    pub cq: String,
    /// Numbers of QPs, ascending.
    pub qps: Vec<u32>,
    /// Sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Best case of each cell, by QPs and size; what was not measured is not there.
    pub cells: BTreeMap<(u32, u64), GridCell>,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridCell {
    /// Payload throughput.
    pub gbit_per_s: f64,
    /// Of the limit or the best cell; 1 is all of it.
    pub share: f64,
}

/// Grids with at least two cells, in the order of device and operation.
pub fn grids(results: &[Loaded]) -> Vec<Grids> {
    let mut groups: BTreeMap<(&str, usize), Vec<CaseFlow<'_>>> = BTreeMap::new();
    let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    for flow in cases.flat_map(CaseResult::flows) {
        let op = flow.settings.op;
        // What many nodes move together is no share of a link.
        let is_of_pattern = flow.settings.pattern.is_some();
        if flow.settings.is_set_up() || is_of_pattern || !flow.settings.is_closed_loop() {
            continue;
        }
        let rank = Workload::ALL.iter().position(|other| *other == op);
        let device = flow.config.and_then(|config| config.from_device.as_deref());
        groups
            .entry((device.unwrap_or_default(), rank.unwrap_or_default()))
            .or_default()
            .push(flow);
    }
    groups
        .into_iter()
        .filter_map(|((device, op), cases)| {
            of_operation(device, Workload::ALL.get(op)?.name(), &cases)
        })
        .collect()
}

fn of_operation(device: &str, op: &str, cases: &[CaseFlow<'_>]) -> Option<Grids> {
    let gbit_per_s =
        |case: &CaseFlow<'_>| median::metric(case, Metric::GbitPerS).filter(|gbit| *gbit > 0.0);
    let best_gbit_per_s = cases.iter().filter_map(&gbit_per_s).fold(0.0, f64::max);
    // A mix of shares of different things would be none.
    let limited = cases
        .iter()
        .all(|case| gbit_per_s(case).is_none() || median::share_of_limit(case).is_some());
    let share_of = if limited {
        ShareOf::Limit
    } else {
        ShareOf::BestCell
    };
    let mut cases_a_cell = 0;
    let mut by_layout: BTreeMap<Option<usize>, Vec<&CaseFlow<'_>>> = BTreeMap::new();
    for case in cases {
        let rank = CqMode::ALL.iter().position(|cq| *cq == case.settings.cq);
        by_layout.entry(rank).or_default().push(case);
    }
    let layouts: Vec<Grid> = by_layout
        .into_iter()
        .map(|(cq, cases)| {
            let cq = cq
                .and_then(|cq| CqMode::ALL.get(cq))
                .map_or("", |cq| cq.name());
            let mut cells: BTreeMap<(u32, u64), GridCell> = BTreeMap::new();
            let mut counts: BTreeMap<(u32, u64), usize> = BTreeMap::new();
            for case in &cases {
                let Some(gbit_per_s) = gbit_per_s(case) else {
                    continue;
                };
                let share = match share_of {
                    ShareOf::Limit => median::share_of_limit(case),
                    ShareOf::BestCell => Some(gbit_per_s / best_gbit_per_s),
                };
                let Some(share) = share else { continue };
                let place = (case.settings.qps, u64::from(case.settings.size_bytes));
                *counts.entry(place).or_default() += 1;
                let cell = GridCell { gbit_per_s, share };
                let kept = cells.entry(place).or_insert(cell);
                if cell.share > kept.share {
                    *kept = cell;
                }
            }
            cases_a_cell = counts.into_values().max().unwrap_or(0).max(cases_a_cell);
            // Rows and columns of all cases: one that failed leaves a gap.
            let qps: BTreeSet<u32> = cases.iter().map(|case| case.settings.qps).collect();
            let sizes: BTreeSet<u64> = cases
                .iter()
                .map(|case| u64::from(case.settings.size_bytes))
                .collect();
            Grid {
                cq: cq.to_owned(),
                qps: qps.into_iter().collect(),
                sizes: sizes.into_iter().collect(),
                cells,
            }
        })
        .filter(|grid| !grid.cells.is_empty())
        .collect();
    let cells: usize = layouts.iter().map(|grid| grid.cells.len()).sum();
    (cells >= 2).then(|| Grids {
        op: op.to_owned(),
        device: device.to_owned(),
        share_of,
        best_gbit_per_s,
        layouts,
        cases_a_cell,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseConfig, FlowResult, Limits, ResultFile, Run, Totals};
    use settings::Settings;

    fn case(qps: u32, size_bytes: u32, gbit_per_s: Option<f64>, share: Option<f64>) -> CaseResult {
        let settings = Settings {
            qps,
            size_bytes,
            ..Settings::default()
        };
        let config = CaseConfig::from(settings);
        CaseResult {
            runs: vec![Run {
                complete: true,
                flows: vec![FlowResult {
                    totals: Totals {
                        gbit_per_s,
                        ..Totals::default()
                    },
                    limits: share.map(|share| Limits {
                        share_of_limit: Some(share),
                        ..Limits::default()
                    }),
                    ..FlowResult::of(&config.flows[0])
                }],
                ..Run::default()
            }],
            config,
            ..CaseResult::default()
        }
    }

    fn grids_of(cases: Vec<CaseResult>) -> Vec<Grids> {
        grids(&[Loaded {
            path: "r.json".into(),
            result: ResultFile {
                cases,
                ..ResultFile::default()
            },
        }])
    }

    #[test]
    fn the_best_case_of_a_cell_is_kept_and_what_failed_is_a_gap() {
        let grids = grids_of(vec![
            case(1, 64, Some(10.0), Some(0.2)),
            case(1, 64, Some(20.0), Some(0.4)),
            case(4, 4096, Some(40.0), Some(0.8)),
            case(16, 4096, None, None),
        ]);
        let [grids] = grids.as_slice() else {
            panic!("{grids:?}");
        };
        assert_eq!((grids.share_of, grids.cases_a_cell), (ShareOf::Limit, 2));
        let grid = &grids.layouts[0];
        assert_eq!(grid.qps, [1, 4, 16]);
        assert_eq!(grid.cells.len(), 2);
        assert_eq!(grid.cells[&(1, 64)].share, 0.4);
    }

    #[test]
    fn without_a_limit_the_best_cell_is_all() {
        let grids = grids_of(vec![
            case(1, 64, Some(10.0), None),
            case(4, 64, Some(40.0), Some(0.9)),
        ]);
        assert_eq!(grids[0].share_of, ShareOf::BestCell);
        assert_eq!(grids[0].layouts[0].cells[&(1, 64)].share, 0.25);
        assert_eq!(grids[0].layouts[0].cells[&(4, 64)].share, 1.0);
        assert!(grids_of(vec![case(1, 64, Some(10.0), None)]).is_empty());
    }
}
