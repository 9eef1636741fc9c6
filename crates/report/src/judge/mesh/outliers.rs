//! Nodes and paths of a matrix that are slower than the others, by a rule that docs/dev/statistics.md has with its
//! proof.

use super::causes::{Observed, Place, Rule, causes, tail};
use super::figures::median_of;
use super::matrix::{Cell, Matrix};
use crate::observe::Metric;
use statistics::{Scatter, median, spread};

/// Chance of naming a node although all are alike: by the figure that shows most, and by each other one.
pub(super) const CHANCES: [f64; 2] = [0.002, 0.001];
/// A flow that moves nothing counts as this share of the median.
const LEAST: f64 = 1e-4;

/// A node or a path that is slower than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// The figure that shows it.
    pub quantity: Metric,
    /// What is slow, by indices in [`Matrix::nodes`].
    pub place: Place,
    /// The median over its flows.
    pub value: f64,
    /// The median over the remaining flows.
    pub usual: f64,
    /// Its flows that are slow.
    pub slow: usize,
    /// Its flows that have the figure.
    pub flows: usize,
}

impl Outlier {
    /// Its figure over the usual one: below 1 for less, above 1 for longer.
    pub fn ratio(&self) -> f64 {
        self.value / self.usual
    }
}

/// Smaller differences never make an outlier: a share of the usual figure.
pub fn floor(metric: Metric) -> f64 {
    match metric {
        Metric::P99Ns => 0.25,
        rate if rate.higher_is_better() => 0.05,
        _ => 0.1,
    }
}

/// Runs that a path must have to be called slow by it: one moment in which a process is held up decides p99 of a run.
fn path_runs(metric: Metric) -> usize {
    match metric {
        Metric::P99Ns => 3,
        _ => 1,
    }
}

impl Matrix {
    /// What is slower than the others, whole nodes first; each cause once. Closed loops are asked for bandwidth first, then
    /// for p50 and p99 of what bandwidth did not show; open loops have the rate that they were offered, and only latency differs.
    pub fn outliers(&self) -> Vec<Outlier> {
        let quantities = [Metric::GbitPerS, Metric::P50Ns, Metric::P99Ns]
            .into_iter()
            .skip_while(|metric| *metric != self.quantity());
        let mut found: Vec<Outlier> = Vec::new();
        for (quantity, number) in quantities.zip(0..) {
            let left: Vec<&Cell> = self
                .cells
                .iter()
                .filter(|cell| !found.iter().any(|it| it.place.has(cell.from, cell.to)))
                .collect();
            let chance = CHANCES[usize::from(number > 0)];
            found.extend(of_quantity(self.nodes.len(), &left, quantity, chance));
        }
        found
    }

    /// Whether flows can be judged at all: two flows in one run do not show which is normal.
    pub fn can_tell(&self) -> bool {
        self.cells.iter().filter(|cell| cell.figures.of(self.quantity()).is_some()).count() > 2
    }
}

fn median_where(cells: &[&Cell], quantity: Metric, is_in: impl Fn(&Cell) -> bool) -> Option<f64> {
    median_of(cells.iter().filter(|cell| is_in(cell)).map(|cell| &cell.figures), quantity)
}

/// Logarithm of a value over the median.
fn log_over(value: f64, middle: f64) -> f64 {
    (value.max(middle * LEAST) / middle).ln()
}

fn of_quantity(nodes: usize, cells: &[&Cell], quantity: Metric, chance: f64) -> Vec<Outlier> {
    let Some(middle) = median_where(cells, quantity, |_| true).filter(|middle| *middle > 0.0)
    else {
        return Vec::new();
    };
    let sign = if quantity.higher_is_better() { 1.0 } else { -1.0 };
    let runs: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| {
            let values = cell.runs.iter().filter_map(|run| run.of(quantity));
            values.map(|value| sign * log_over(value, middle)).collect()
        })
        .collect();
    let flows: Vec<Observed<'_>> = cells
        .iter()
        .zip(&runs)
        .filter_map(|(cell, runs)| {
            Some(Observed {
                from: cell.from,
                to: cell.to,
                value: sign * log_over(cell.figures.of(quantity)?, middle),
                runs,
            })
        })
        .collect();
    let floor = if quantity.higher_is_better() {
        -(1.0 - floor(quantity)).ln()
    } else {
        (1.0 + floor(quantity)).ln()
    };
    let most = runs.iter().map(Vec::len).max().unwrap_or(0);
    let rule = Rule {
        floor,
        chance,
        scatter: scatter(cells, quantity),
        // What looked slow once is measured again before it is told, where others were.
        path_runs: path_runs(quantity).max(most.div_ceil(2)),
    };
    let causes = causes(nodes, &flows, rule);
    let Some(usual) = median_where(cells, quantity, |cell| {
        !causes.iter().any(|cause| cause.place.has(cell.from, cell.to))
    }) else {
        return Vec::new();
    };
    causes
        .iter()
        .filter_map(|cause| {
            Some(Outlier {
                quantity,
                place: cause.place,
                value: median_where(cells, quantity, |cell| cause.place.has(cell.from, cell.to))?,
                usual,
                slow: cause.slow,
                flows: cause.flows,
            })
        })
        .collect()
}

/// What the runs of each cell say of how much a cell's median scatters, and of its tail.
fn scatter(cells: &[&Cell], quantity: Metric) -> Scatter {
    let mut away = Vec::new();
    let mut counts = Vec::new();
    for cell in cells {
        let Some(middle) = cell.figures.of(quantity).filter(|middle| *middle > 0.0) else {
            continue;
        };
        let runs: Vec<f64> = cell
            .runs
            .iter()
            .filter_map(|run| run.of(quantity))
            .filter(|value| *value > 0.0)
            .collect();
        counts.push(runs.len() as f64);
        away.extend(runs.iter().flat_map(|value| {
            let away = (value / middle).ln();
            [away, -away]
        }));
    }
    let runs = median(&counts).unwrap_or(1.0);
    let tail = tail(runs);
    let least = if runs >= 2.0 {
        // A median scatters by √(π/2n) of what it is of, and what is around it by √((n-1)/n).
        let of_run = spread(&away).unwrap_or(0.0) * (runs / (runs - 1.0)).sqrt();
        of_run * (std::f64::consts::FRAC_PI_2 / runs).sqrt()
    } else {
        0.0
    };
    Scatter { least, tail }
}

#[cfg(test)]
mod tests;
