//! Many questions about the same runs tested together: the runs are dealt to the sides anew, all figures of a run with
//! it, and the largest statistic of each deal shows what chance makes of so many questions (Westfall and Young 1993).
//! Questions that go up and down together so count as one. It must not know what is measured.

use std::rc::Rc;

use super::deals::{Deals, DealsBySize};
use super::shift::winsorise;

/// This part of a figure's margin is added to its scatter, so that figures which by luck hardly scatter do not pass for
/// differences (after Tusher and others 2001).
const PART_OF_MARGIN: f64 = 0.1;

/// Statistics that differ by less are the same figures added in another order.
const ROUNDING: f64 = 1e-9;

/// Which run of a side a figure is of. Figures of several runs of a launch count as the launch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Number of the launch on its side.
    pub launch: usize,
    /// Number of the run in it; `None` for the launch as a whole.
    pub run: Option<u32>,
}

/// One figure on both sides, as logarithms.
#[derive(Clone, Debug)]
pub(super) struct Series<'a> {
    /// Which runs it is of: those of the base, those of the new side.
    pub(super) units: [&'a [Unit]; 2],
    /// The figures in those runs.
    pub(super) logs: [&'a [f64]; 2],
    /// What does not matter, on the scale of the logarithms.
    pub(super) margin: f64,
    /// Whether it is less that is looked for on the new side, rather than more.
    pub(super) downwards: bool,
    /// Series that share runs have the same number.
    pub(super) block: usize,
}

/// What the test says of one series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    /// Probability that chance sets any series apart so far, those further apart left out (Holm's way).
    pub(super) p: f64,
    /// How far the new side lies in the direction that is looked for, in widened standard errors.
    pub(super) statistic: f64,
}

impl Series<'_> {
    /// The difference between the sides, in the direction that is looked for, and its widened standard error.
    pub(super) fn shift(&self) -> (f64, f64) {
        let total = Total::of(self, &self.scores());
        total.shift(total.new_sum, total.new)
    }

    /// Winsorised figures about their mean, those of the base first, in the direction that is looked for.
    fn scores(&self) -> Vec<f64> {
        let mut scores = self.logs.concat();
        winsorise(&mut scores);
        let centre = scores.iter().sum::<f64>() / scores.len() as f64;
        let sign = if self.downwards { -1.0 } else { 1.0 };
        scores.iter_mut().for_each(|score| *score = sign * (*score - centre));
        scores
    }
}

/// Tests all series. A deal that leaves a series fewer than `least` figures on a side does not count for it.
pub(super) fn test(series: &[Series<'_>], least: usize, deals: &mut DealsBySize) -> Vec<Tested> {
    let mut sitting = Sitting::of(series, least, deals);
    let mut tested: Vec<Tested> = series
        .iter()
        .map(|series| {
            let (shift, error) = series.shift();
            let statistic = shift / error;
            Tested { p: 1.0, statistic }
        })
        .collect();
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| tested[*a].statistic.total_cmp(&tested[*b].statistic));
    let mut as_far = vec![0usize; series.len()];
    let mut all: u32 = 0;
    sitting.each_deal(|statistics| {
        all += 1;
        let mut highest = f64::NEG_INFINITY;
        for index in &order {
            highest = highest.max(statistics[*index]);
            let made = tested[*index].statistic;
            as_far[*index] += usize::from(highest >= made - ROUNDING * made.abs());
        }
    });
    let mut so_far: f64 = 0.0;
    for index in order.into_iter().rev() {
        if tested[index].statistic > 0.0 {
            so_far = so_far.max(as_far[index] as f64 / f64::from(all));
            tested[index].p = so_far;
        }
    }
    tested
}

/// The statistic that the largest of these series reaches by chance with this probability; `None` of no series.
pub(super) fn critical(
    series: &[Series<'_>],
    least: usize,
    level: f64,
    deals: &mut DealsBySize,
) -> Option<f64> {
    let mut highest = Vec::new();
    Sitting::of(series, least, deals).each_deal(|statistics| {
        highest.extend(statistics.iter().copied().max_by(f64::total_cmp));
    });
    highest.sort_unstable_by(f64::total_cmp);
    let beyond = ((level * highest.len() as f64) as usize).max(1);
    highest.get(highest.len().checked_sub(beyond)?).copied()
}

/// All series by the runs that they share.
struct Sitting {
    blocks: Vec<Block>,
    series: usize,
    least: f64,
}

impl Sitting {
    fn of(series: &[Series<'_>], least: usize, deals: &mut DealsBySize) -> Sitting {
        let mut numbers: Vec<usize> = series.iter().map(|series| series.block).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // Blocks are dealt side by side, so each has a sample of the same size.
        let alone = numbers.len() == 1;
        let blocks = (1..).zip(&numbers).map(|(stream, number)| {
            Block::new(series, *number, |base, new| {
                if alone { deals.of(base, new) } else { Rc::new(Deals::drawn(base, new, stream)) }
            })
        });
        Sitting { blocks: blocks.collect(), series: series.len(), least: least as f64 }
    }

    /// Shows every deal's statistics, that of the deal which was made first.
    fn each_deal(&mut self, mut show: impl FnMut(&[f64])) {
        let mut statistics = vec![f64::NEG_INFINITY; self.series];
        let mut room = Room::default();
        let Some(first) = self.blocks.first() else {
            return;
        };
        let mut deals: Vec<_> = self.blocks.iter().map(|block| block.deals.iter()).collect();
        for _ in 0..first.deals.len() {
            for (block, deals) in self.blocks.iter().zip(&mut deals) {
                if let Some(runs) = deals.next() {
                    block.statistics(runs, self.least, &mut room, &mut statistics);
                }
            }
            show(&statistics);
        }
    }
}

/// Series of the same runs, or of some of them.
struct Block {
    members: Vec<usize>,
    deals: Rc<Deals>,
    /// A run after another: the members' winsorised logarithms about their mean, 0 where there is none.
    scores: Vec<f64>,
    /// The same with 1 where there is a figure; empty when none is missing.
    present: Vec<f64>,
    totals: Vec<Total>,
    /// Runs of the new side.
    new: usize,
}

/// Used again for each deal.
#[derive(Default)]
struct Room {
    sums: Vec<f64>,
    counts: Vec<f64>,
}

impl Block {
    fn new(
        series: &[Series<'_>],
        number: usize,
        deals: impl FnOnce(usize, usize) -> Rc<Deals>,
    ) -> Block {
        let members: Vec<usize> =
            (0..series.len()).filter(|index| series[*index].block == number).collect();
        let runs = [0, 1].map(|side| {
            let mut units: Vec<Unit> =
                members.iter().flat_map(|member| series[*member].units[side]).copied().collect();
            units.sort_unstable();
            units.dedup();
            units
        });
        let (base, new) = (runs[0].len(), runs[1].len());
        let width = members.len();
        let mut scores = vec![0.0; (base + new) * width];
        let mut present = scores.clone();
        let mut totals = Vec::with_capacity(width);
        for (column, member) in members.iter().enumerate() {
            let series = &series[*member];
            let own = series.scores();
            for (place, score) in [0, 1]
                .into_iter()
                .flat_map(|side| {
                    let (runs, first) = (&runs[side], [0, base][side]);
                    series.units[side]
                        .iter()
                        .filter_map(move |unit| Some(first + runs.binary_search(unit).ok()?))
                })
                .zip(&own)
            {
                scores[place * width + column] = *score;
                present[place * width + column] = 1.0;
            }
            totals.push(Total::of(series, &own));
        }
        if present.iter().all(|present| *present > 0.0) {
            present.clear();
        }
        Block { members, deals: deals(base, new), scores, present, totals, new }
    }

    fn statistics(&self, runs: &[u32], least: f64, room: &mut Room, statistics: &mut [f64]) {
        let width = self.members.len();
        let add = |rows: &[f64], sums: &mut Vec<f64>| {
            sums.clear();
            sums.resize(width, 0.0);
            for run in runs {
                let row = &rows[*run as usize * width..][..width];
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        };
        add(&self.scores, &mut room.sums);
        if self.present.is_empty() {
            room.counts.clear();
            room.counts.resize(width, self.new as f64);
        } else {
            add(&self.present, &mut room.counts);
        }
        let sums = room.sums.iter().zip(&room.counts);
        for ((member, total), (sum, new)) in self.members.iter().zip(&self.totals).zip(sums) {
            let (shift, error) = total.shift(*sum, *new);
            let counts = *new >= least && total.count - new >= least;
            statistics[*member] = if counts { shift / error } else { f64::NEG_INFINITY };
        }
    }
}

/// What a series comes to however it is dealt, and as it was.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    count: f64,
    sum: f64,
    squares: f64,
    /// Added to the standard error.
    widening: f64,
    /// Figures of the new side, and their sum.
    new: f64,
    new_sum: f64,
}

impl Total {
    fn of(series: &Series<'_>, scores: &[f64]) -> Total {
        let base = series.logs[0].len();
        Total {
            count: scores.len() as f64,
            sum: scores.iter().sum(),
            squares: scores.iter().map(|score| score * score).sum(),
            widening: PART_OF_MARGIN * series.margin,
            new: series.logs[1].len() as f64,
            new_sum: scores.iter().skip(base).sum(),
        }
    }

    /// Difference of the means and its widened standard error, with a sum of so many figures on the new side.
    fn shift(&self, sum: f64, new: f64) -> (f64, f64) {
        let base = self.count - new;
        let (mean, other) = (sum / new, (self.sum - sum) / base);
        let within = (self.squares - new * mean * mean - base * other * other).max(0.0);
        let error = (within / (self.count - 2.0) * (1.0 / new + 1.0 / base)).sqrt();
        (mean - other, error + self.widening)
    }
}
