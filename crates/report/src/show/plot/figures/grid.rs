//! What more QPs bring at each size: throughput as a share of the best number of QPs. It must not know how it is drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::observe::{Metric, Observed};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult};
use settings::{CqMode, ROWS, Row, Settings, Workload};

/// An operation on a device with one layout of completion queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Operation.
    pub op: String,
    /// Device at the end that ran the sweep; empty where the results do not tell.
    pub device: String,
    /// How completion queues are shared.
    pub cq: String,
    /// Numbers of QPs, ascending.
    pub qps: Vec<u32>,
    /// Sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Best case of each cell, by QPs and size; what was not measured is not there.
    pub cells: BTreeMap<(u32, u64), GridCell>,
    /// Most cases that share a cell, of which the best is shown.
    pub cases_a_cell: usize,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridCell {
    /// Payload throughput.
    pub gbit_per_s: f64,
    /// Of the best cell of its size; 1 is all of it.
    pub share: f64,
}

/// Grids with two numbers of QPs at a size, in the order of device, operation and layout.
pub fn grids(results: &[Loaded]) -> Vec<Grid> {
    let mut groups: BTreeMap<(&str, usize, usize), Vec<CaseFlow<'_>>> = BTreeMap::new();
    let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    for flow in cases.flat_map(CaseResult::flows) {
        let settings = &flow.settings;
        // What many nodes move together is no share of a link.
        let is_of_pattern = settings.pattern.is_some();
        let is_mix = settings.size_mix.is_some();
        if settings.is_set_up() || is_of_pattern || is_mix || !settings.is_closed_loop() {
            continue;
        }
        let op = Workload::ALL.iter().position(|op| *op == settings.op);
        let cq = CqMode::ALL.iter().position(|cq| *cq == settings.cq);
        let device = flow.config.and_then(|config| config.from_device.as_deref());
        let key = (
            device.unwrap_or_default(),
            op.unwrap_or_default(),
            cq.unwrap_or_default(),
        );
        groups.entry(key).or_default().push(flow);
    }
    let grids = groups
        .into_iter()
        .filter_map(|((device, op, cq), mut flows)| {
            let (op, cq) = (Workload::ALL.get(op)?, CqMode::ALL.get(cq)?);
            keep_comparable(&mut flows);
            let (cells, cases_a_cell) = cells(&flows)?;
            // Rows and columns of all cases: one that failed leaves a gap.
            let qps: BTreeSet<u32> = flows.iter().map(|flow| flow.settings.qps).collect();
            let sizes: BTreeSet<u64> = flows
                .iter()
                .map(|flow| u64::from(flow.settings.size_bytes))
                .collect();
            Some(Grid {
                op: op.name().to_owned(),
                device: device.to_owned(),
                cq: cq.name().to_owned(),
                qps: qps.into_iter().collect(),
                sizes: sizes.into_iter().collect(),
                cells,
                cases_a_cell,
            })
        });
    grids.collect()
}

/// Leaves the cases that others of the same size differ from in QPs: a single QP that was measured with another send depth
/// only says nothing about QPs.
fn keep_comparable(flows: &mut Vec<CaseFlow<'_>>) {
    let mut qps: BTreeMap<(u32, Vec<String>), BTreeSet<u32>> = BTreeMap::new();
    let key = |flow: &CaseFlow<'_>| (flow.settings.size_bytes, others(&flow.settings));
    for flow in flows.iter() {
        qps.entry(key(flow)).or_default().insert(flow.settings.qps);
    }
    flows.retain(|flow| qps.get(&key(flow)).is_some_and(|qps| qps.len() > 1));
}

/// All settings but QPs, size, and those that may follow from them.
fn others(settings: &Settings) -> Vec<String> {
    let is_other = |row: &&Row| {
        let follows = row.may_follow && row.flag != "tx-depth";
        !follows && !row.may_differ && !["qps", "size"].contains(&row.flag)
    };
    let rows = ROWS.iter().filter(is_other);
    rows.map(|row| row.text(settings)).collect()
}

type Cells = BTreeMap<(u32, u64), GridCell>;

/// The best case of each cell, and how many share one at most; `None` where no size has two.
fn cells(flows: &[CaseFlow<'_>]) -> Option<(Cells, usize)> {
    let mut best: BTreeMap<(u32, u64), (f64, usize)> = BTreeMap::new();
    let mut best_of_size: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
    for flow in flows {
        let gbit_per_s = Observed::of(flow.clone())
            .median(Metric::GbitPerS)
            .filter(|gbit| *gbit > 0.0);
        let Some(gbit_per_s) = gbit_per_s else {
            continue;
        };
        let size = u64::from(flow.settings.size_bytes);
        let cell = best.entry((flow.settings.qps, size)).or_default();
        let of_size = best_of_size.entry(size).or_default();
        of_size.1 += usize::from(cell.1 == 0);
        (cell.0, cell.1) = (cell.0.max(gbit_per_s), cell.1 + 1);
        of_size.0 = of_size.0.max(gbit_per_s);
    }
    if !best_of_size.values().any(|(_, cells)| *cells > 1) {
        return None;
    }
    let cases_a_cell = best.values().map(|(_, cases)| *cases).max()?;
    let cell = |((qps, size), (gbit_per_s, _)): ((u32, u64), (f64, usize))| {
        let share = gbit_per_s / best_of_size.get(&size)?.0;
        Some(((qps, size), GridCell { gbit_per_s, share }))
    };
    Some((best.into_iter().filter_map(cell).collect(), cases_a_cell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{file, moved};

    fn case(qps: u32, size_bytes: u32, gbit_per_s: Option<f64>) -> CaseResult {
        let settings = Settings {
            qps,
            size_bytes,
            ..Settings::default()
        };
        moved(settings, gbit_per_s)
    }

    fn grids_of(cases: impl Into<Vec<CaseResult>>) -> Vec<Grid> {
        grids(&[file(cases.into())])
    }

    #[test]
    fn the_best_case_of_a_cell_is_kept_and_what_failed_is_a_gap() {
        let grids = grids_of([
            case(1, 64, Some(10.0)),
            case(1, 64, Some(20.0)),
            case(4, 64, Some(40.0)),
            case(4, 4096, Some(80.0)),
            case(16, 4096, None),
        ]);
        let [grid] = <&[Grid; 1]>::try_from(&*grids).unwrap();
        assert_eq!((grid.cases_a_cell, grid.cells.len()), (2, 3));
        assert_eq!(grid.qps, [1, 4, 16]);
        assert_eq!(grid.cells[&(1, 64)].share, 0.5);
        assert_eq!(grid.cells[&(4, 64)].share, 1.0);
        assert_eq!(grid.cells[&(4, 4096)].share, 1.0);
    }

    #[test]
    fn cases_that_differ_in_more_than_qps_are_in_no_row() {
        let mut shallow = case(1, 64, Some(1.0));
        shallow.config.settings.tx_depth = 1;
        let others = [case(2, 64, Some(20.0)), case(4, 64, Some(40.0))];
        let grids = grids_of([&[shallow][..], &others].concat());
        assert_eq!(grids[0].qps, [2, 4]);
    }

    #[test]
    fn a_mix_of_sizes_is_in_no_cell() {
        let mut mix = case(4, 64, Some(40.0));
        mix.config.settings.size_mix = "64:9,64K:1".parse().ok();
        assert!(mix.config.size_mix.is_some());
        assert!(grids_of([case(1, 64, Some(10.0)), mix]).is_empty());
    }

    #[test]
    fn sizes_alone_are_no_map() {
        assert!(grids_of([case(1, 64, Some(10.0)), case(1, 4096, Some(20.0))]).is_empty());
    }
}
