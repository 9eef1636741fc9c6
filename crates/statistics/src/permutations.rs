//! Permutation tests: the ways in which runs could have been assigned to the two sides (all of them where there are few,
//! else a sample), and tests of many series of the same runs together. All figures of a run move with it, and the largest
//! statistic of each permutation shows what chance makes of so many questions (Westfall and Young 1993). Questions that go
//! up and down together so count as one.

use std::collections::HashMap;
use std::rc::Rc;

use fastrand::Rng;

use super::distributions::winsorise;

/// So many permutations are looked at where there are more in all, that which was made among them.
const DRAWN: usize = 1_000;

/// Where the drawing starts, so that the same figures always give the same answer.
const SEED: u64 = 0x0715_2026;

/// Permutations of runs to two sides, that which was made first. Runs of the base have the numbers before those of the new side.
#[derive(Clone, Debug)]
pub(super) struct Permutations {
    /// Runs that a permutation gives to the new side.
    new: usize,
    /// Those runs, permutation after permutation.
    runs: Vec<u32>,
}

impl Permutations {
    /// All permutations, or a sample of them.
    pub(super) fn new(base: usize, new: usize) -> Permutations {
        if count(base, new) <= DRAWN as f64 {
            Permutations::complete(base, new)
        } else {
            Permutations::drawn(base, new, 0)
        }
    }

    fn complete(base: usize, new: usize) -> Permutations {
        // Downwards from the permutation that was made, which has the last runs.
        let mut permutation: Vec<u32> = (base as u32..(base + new) as u32).collect();
        let mut runs = permutation.clone();
        // The first that can go down does, and those before it go up as far as they can.
        while let Some(place) = (0..new).find(|place| permutation[*place] > *place as u32) {
            permutation[place] -= 1;
            for before in (0..place).rev() {
                permutation[before] = permutation[before + 1] - 1;
            }
            runs.extend(&permutation);
        }
        Permutations { new, runs }
    }

    /// A sample; each `stream` has its own.
    pub(super) fn drawn(base: usize, new: usize, stream: u64) -> Permutations {
        let mut rng = Rng::with_seed(SEED ^ stream);
        let mut order: Vec<u32> = (0..(base + new) as u32).collect();
        let mut runs: Vec<u32> = order[base..].to_vec();
        runs.reserve(new * (DRAWN - 1));
        for _ in 1..DRAWN {
            for place in 0..new {
                let other = rng.usize(place..order.len());
                order.swap(place, other);
            }
            runs.extend(&order[..new]);
        }
        Permutations { new, runs }
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len() / self.new.max(1)
    }

    /// The new side's runs in each.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.runs.chunks_exact(self.new.max(1))
    }
}

/// In how many ways runs can be assigned to two sides of these sizes.
pub(super) fn count(base: usize, new: usize) -> f64 {
    (1..=base).fold(1.0, |ways, k| ways * (new + k) as f64 / k as f64)
}

/// Runs on each side without which no test can come out at this level.
pub(super) fn runs_for(level: f64) -> usize {
    (1..).find(|runs| count(*runs, *runs) * level >= 1.0).unwrap_or(usize::MAX)
}

/// Permutations by the sizes of the sides, each made once.
#[derive(Debug, Default)]
pub(super) struct PermutationsBySize(HashMap<(usize, usize), Rc<Permutations>>);

impl PermutationsBySize {
    pub(super) fn get(&mut self, base: usize, new: usize) -> Rc<Permutations> {
        let permutations = self.0.entry((base, new));
        Rc::clone(permutations.or_insert_with(|| Rc::new(Permutations::new(base, new))))
    }
}

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
        let total = Total::new(self, &self.scores());
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

/// Tests all series. A permutation that leaves a series fewer than `least` figures on a side does not count for it.
pub(super) fn joint_tests(
    series: &[Series<'_>],
    least: usize,
    permutations: &mut PermutationsBySize,
) -> Vec<Tested> {
    let mut blocks = Blocks::new(series, least, permutations);
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
    let mut permuted: u32 = 0;
    blocks.each_permutation(|statistics| {
        permuted += 1;
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
            so_far = so_far.max(as_far[index] as f64 / f64::from(permuted));
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
    permutations: &mut PermutationsBySize,
) -> Option<f64> {
    let mut highest = Vec::new();
    Blocks::new(series, least, permutations).each_permutation(|statistics| {
        highest.extend(statistics.iter().copied().max_by(f64::total_cmp));
    });
    highest.sort_unstable_by(f64::total_cmp);
    let beyond = ((level * highest.len() as f64) as usize).max(1);
    highest.get(highest.len().checked_sub(beyond)?).copied()
}

/// All series by the runs that they share.
struct Blocks {
    blocks: Vec<Block>,
    series: usize,
    least: f64,
}

impl Blocks {
    fn new(series: &[Series<'_>], least: usize, permutations: &mut PermutationsBySize) -> Blocks {
        let mut numbers: Vec<usize> = series.iter().map(|series| series.block).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // Blocks are assigned side by side, so each has a sample of the same size.
        let alone = numbers.len() == 1;
        let blocks = (1..).zip(&numbers).map(|(stream, number)| {
            Block::new(series, *number, |base, new| {
                if alone {
                    permutations.get(base, new)
                } else {
                    Rc::new(Permutations::drawn(base, new, stream))
                }
            })
        });
        Blocks { blocks: blocks.collect(), series: series.len(), least: least as f64 }
    }

    /// Shows every permutation's statistics, that of the permutation which was made first.
    fn each_permutation(&mut self, mut show: impl FnMut(&[f64])) {
        let mut statistics = vec![f64::NEG_INFINITY; self.series];
        let mut buffers = Buffers::default();
        let Some(first) = self.blocks.first() else {
            return;
        };
        let mut permutations: Vec<_> =
            self.blocks.iter().map(|block| block.permutations.iter()).collect();
        for _ in 0..first.permutations.len() {
            for (block, next) in self.blocks.iter().zip(&mut permutations) {
                if let Some(runs) = next.next() {
                    block.statistics(runs, self.least, &mut buffers, &mut statistics);
                }
            }
            show(&statistics);
        }
    }
}

/// Series of the same runs, or of some of them.
struct Block {
    members: Vec<usize>,
    permutations: Rc<Permutations>,
    /// A run after another: the members' winsorised logarithms about their mean, 0 where there is none.
    scores: Vec<f64>,
    /// The same with 1 where there is a figure; empty when none is missing.
    present: Vec<f64>,
    totals: Vec<Total>,
    /// Runs of the new side.
    new: usize,
}

/// Used again for each permutation.
#[derive(Default)]
struct Buffers {
    sums: Vec<f64>,
    counts: Vec<f64>,
}

impl Block {
    fn new(
        series: &[Series<'_>],
        number: usize,
        permutations: impl FnOnce(usize, usize) -> Rc<Permutations>,
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
            let own = series[*member].scores();
            for (place, score) in [0, 1]
                .into_iter()
                .flat_map(|side| {
                    let (runs, first) = (&runs[side], [0, base][side]);
                    series[*member].units[side]
                        .iter()
                        .filter_map(move |unit| Some(first + runs.binary_search(unit).ok()?))
                })
                .zip(&own)
            {
                scores[place * width + column] = *score;
                present[place * width + column] = 1.0;
            }
            totals.push(Total::new(&series[*member], &own));
        }
        if present.iter().all(|present| *present > 0.0) {
            present.clear();
        }
        Block { members, permutations: permutations(base, new), scores, present, totals, new }
    }

    fn statistics(&self, runs: &[u32], least: f64, buffers: &mut Buffers, statistics: &mut [f64]) {
        let width = self.members.len();
        sum_rows(&self.scores, width, runs, &mut buffers.sums);
        if self.present.is_empty() {
            buffers.counts.clear();
            buffers.counts.resize(width, self.new as f64);
        } else {
            sum_rows(&self.present, width, runs, &mut buffers.counts);
        }
        let sums = buffers.sums.iter().zip(&buffers.counts);
        for ((member, total), (sum, new)) in self.members.iter().zip(&self.totals).zip(sums) {
            let (shift, error) = total.shift(*sum, *new);
            let counts = *new >= least && total.count - new >= least;
            statistics[*member] = if counts { shift / error } else { f64::NEG_INFINITY };
        }
    }
}

/// Sums of those rows of `width` values that belong to `runs`.
fn sum_rows(rows: &[f64], width: usize, runs: &[u32], sums: &mut Vec<f64>) {
    sums.clear();
    sums.resize(width, 0.0);
    for run in runs {
        let row = &rows[*run as usize * width..][..width];
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
}

/// What a series comes to however it is assigned, and as it was.
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
    fn new(series: &Series<'_>, scores: &[f64]) -> Total {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_permutations_are_there_once_and_the_one_that_was_made_is_first() {
        for (base, new) in [(1, 1), (2, 3), (5, 5), (6, 3)] {
            let permutations = Permutations::new(base, new);
            let mut found: Vec<Vec<u32>> = permutations.iter().map(<[u32]>::to_vec).collect();
            let made: Vec<u32> = (base as u32..(base + new) as u32).collect();
            assert_eq!(found[0], made);
            assert!(found.iter().all(|permutation| permutation.is_sorted_by(|a, b| a < b)));
            found.sort();
            found.dedup();
            let counts = (found.len(), permutations.len());
            assert_eq!(counts, (count(base, new) as usize, found.len()));
        }
        assert_eq!(count(5, 5) as u64, 252);
        assert_eq!((runs_for(0.025), runs_for(0.005)), (4, 5));
    }

    #[test]
    fn a_sample_assigns_every_run_equally_often() {
        let permutations = Permutations::new(10, 12);
        assert_eq!(permutations.len(), DRAWN);
        let mut assigned = [0; 22];
        for permutation in permutations.iter() {
            let mut runs = permutation.to_vec();
            runs.sort_unstable();
            runs.dedup();
            assert_eq!(runs.len(), 12);
            runs.iter().for_each(|run| assigned[*run as usize] += 1);
        }
        let is_usual = |times| (470..620).contains(times);
        assert!(assigned.iter().all(is_usual), "{assigned:?}");
    }
}
