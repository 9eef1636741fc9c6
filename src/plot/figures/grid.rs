//! How much of the limit was reached for each number of QPs and each size. It must not know how it is drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::Metric;
use crate::plot::median;
use crate::results::load::Loaded;
use crate::results::model::CaseResult;

/// What a cell's share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOf {
    /// What the link and the protocol allow.
    Limit,
    /// The best cell, where there is no limit, as software devices have none.
    BestCell,
}

/// One operation with one layout of CQs on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Operation.
    pub op: String,
    /// How completion queues are shared.
    pub cq: String,
    /// Device at the end that ran the sweep.
    pub device: String,
    /// What the shares are of.
    pub share_of: ShareOf,
    /// Numbers of QPs, ascending.
    pub qps: Vec<u32>,
    /// Sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Best case of each cell, by QPs and size.
    pub cells: BTreeMap<(u32, u64), GridCell>,
    /// Most cases that share a cell, of which the best is shown.
    pub cases_a_cell: usize,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridCell {
    /// Payload throughput.
    pub gbit_per_s: f64,
    /// Of the limit or the best cell; 1 is all of it.
    pub share: f64,
}

/// Grids with at least two cells, in the order of device, operation and layout.
pub fn grids(results: &[Loaded]) -> Vec<Grid> {
    let mut groups: BTreeMap<(String, usize, String, String), Vec<&CaseResult>> = BTreeMap::new();
    for case in results.iter().flat_map(|loaded| &loaded.result.cases) {
        let config = &case.config;
        let rank = ["send", "write", "read"]
            .iter()
            .position(|op| *op == config.op)
            .unwrap_or(usize::MAX);
        let device = config.device.clone().unwrap_or_default();
        let key = (device, rank, config.op.clone(), config.cq.clone());
        groups.entry(key).or_default().push(case);
    }
    groups
        .into_iter()
        .filter_map(|((device, _, op, cq), cases)| grid(device, op, cq, &cases))
        .collect()
}

fn grid(device: String, op: String, cq: String, cases: &[&CaseResult]) -> Option<Grid> {
    let measured: Vec<(&CaseResult, f64, Option<f64>)> = cases
        .iter()
        .filter_map(|case| {
            let gbit_per_s = median::metric(case, Metric::GbitPerS)?;
            Some((*case, gbit_per_s, median::share_of_limit(case)))
        })
        .collect();
    // A mix of shares of different things would be none.
    let limited = measured.iter().all(|(.., share)| share.is_some());
    let best = measured.iter().map(|(_, gbit, _)| *gbit).fold(0.0, f64::max);
    let mut cells: BTreeMap<(u32, u64), GridCell> = BTreeMap::new();
    let mut counts: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    for (case, gbit_per_s, share) in measured {
        let share = match share {
            Some(share) if limited => share,
            _ if best > 0.0 => gbit_per_s / best,
            _ => continue,
        };
        let place = (case.config.qps, case.config.size);
        *counts.entry(place).or_default() += 1;
        let cell = GridCell { gbit_per_s, share };
        let kept = cells.entry(place).or_insert(cell);
        if cell.share > kept.share {
            *kept = cell;
        }
    }
    // Rows and columns of all cases: one that failed leaves a gap.
    let qps: BTreeSet<u32> = cases.iter().map(|case| case.config.qps).collect();
    let sizes: BTreeSet<u64> = cases.iter().map(|case| case.config.size).collect();
    (cells.len() >= 2).then(|| Grid {
        op,
        cq,
        device,
        share_of: if limited { ShareOf::Limit } else { ShareOf::BestCell },
        qps: qps.into_iter().collect(),
        sizes: sizes.into_iter().collect(),
        cells,
        cases_a_cell: counts.into_values().max().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseConfig, Direction, Limits, ResultFile, Run, Totals};

    fn case(qps: u32, size: u64, gbit_per_s: Option<f64>, share: Option<f64>) -> CaseResult {
        CaseResult {
            config: CaseConfig {
                op: "send".to_owned(),
                cq: "shared".to_owned(),
                qps,
                size,
                ..CaseConfig::default()
            },
            runs: vec![Run {
                complete: true,
                forward: Direction {
                    totals: Totals {
                        gbit_per_s,
                        ..Totals::default()
                    },
                    limits: share.map(|share| Limits {
                        share_of_limit: Some(share),
                        ..Limits::default()
                    }),
                    ..Direction::default()
                },
                ..Run::default()
            }],
            ..CaseResult::default()
        }
    }

    fn grids_of(cases: Vec<CaseResult>) -> Vec<Grid> {
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
        let [grid] = grids.as_slice() else {
            panic!("{grids:?}");
        };
        assert_eq!((grid.share_of, grid.cases_a_cell), (ShareOf::Limit, 2));
        assert_eq!(grid.qps, [1, 4, 16]);
        assert_eq!(grid.cells.len(), 2);
        assert_eq!(grid.cells[&(1, 64)].share, 0.4);
    }

    #[test]
    fn without_a_limit_the_best_cell_is_all() {
        let grids = grids_of(vec![case(1, 64, Some(10.0), None), case(4, 64, Some(40.0), Some(0.9))]);
        assert_eq!(grids[0].share_of, ShareOf::BestCell);
        assert_eq!(grids[0].cells[&(1, 64)].share, 0.25);
        assert_eq!(grids[0].cells[&(4, 64)].share, 1.0);
        assert!(grids_of(vec![case(1, 64, Some(10.0), None)]).is_empty());
    }
}
