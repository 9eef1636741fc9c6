//! A question with what is always needed of it (its logarithms, the runs that it shares with others, and how it is tested
//! in a direction), and the questions of a metric pooled over all cases: the geometric mean of its figures, launch by
//! launch.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::permutations::{Series, Unit};
use super::ratio::{Logs, Verdict};
use super::robust::median;

/// Fewer figures on a side are not judged.
pub const LEAST_OBSERVATIONS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// Which runs they are of, each once.
    pub units: &'a [Unit],
    /// The figures of those runs.
    pub values: &'a [f64],
}

/// Has one figure of one case changed?
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub case: usize,
    pub metric: usize,
    pub base: Figures<'a>,
    pub new: Figures<'a>,
    /// How much does not matter: 0.03 for 3 %.
    pub margin: f64,
    pub higher_is_better: bool,
}

/// A direction in which a figure may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Worse,
    Better,
}

impl Direction {
    pub(super) const BOTH: [Direction; 2] = [Direction::Worse, Direction::Better];

    pub(super) fn word(self) -> Verdict {
        match self {
            Direction::Worse => Verdict::Worse,
            Direction::Better => Verdict::Better,
        }
    }
}

/// A question with its logarithms and its block.
#[derive(Clone, Debug)]
pub(super) struct Prepared<'a> {
    pub(super) question: Question<'a>,
    /// `None` where there is no ratio.
    pub(super) logs: Option<Logs>,
    /// Questions whose cases share runs have the same number.
    pub(super) block: usize,
}

pub(super) fn prepare<'a>(questions: Vec<Question<'a>>) -> Vec<Prepared<'a>> {
    let blocks = blocks(&questions);
    questions
        .into_iter()
        .zip(blocks)
        .map(|(question, block)| Prepared {
            question,
            logs: Logs::new(question.base.values, question.new.values),
            block,
        })
        .collect()
}

impl Prepared<'_> {
    /// The logarithms of both sides, where there are enough to be judged.
    pub(super) fn enough(&self) -> Option<[&[f64]; 2]> {
        let logs = self.logs.as_ref()?;
        let sides = [logs.base.as_slice(), logs.new.as_slice()];
        let enough = sides.iter().all(|side| side.len() >= LEAST_OBSERVATIONS);
        enough.then_some(sides)
    }

    /// Ends of what does not matter, as logarithms.
    pub(super) fn margins(&self) -> [f64; 2] {
        let margin = self.question.margin;
        [(1.0 - margin).ln(), (1.0 + margin).ln()]
    }

    /// Whether the figure goes up where it changes in this direction.
    pub(super) fn is_upwards(&self, direction: Direction) -> bool {
        self.question.higher_is_better == (direction == Direction::Better)
    }

    /// In which direction the medians differ; `None` without a ratio.
    pub(super) fn direction(&self) -> Option<Direction> {
        let is_up = self.logs.as_ref()?.ratio() > 1.0;
        Some(if is_up == self.question.higher_is_better {
            Direction::Better
        } else {
            Direction::Worse
        })
    }

    /// In which direction they differ by more than the margin.
    pub(super) fn beyond(&self) -> Option<Direction> {
        let change = (self.logs.as_ref()?.ratio() - 1.0).abs();
        self.direction().filter(|_| change > self.question.margin)
    }

    /// How it is tested for a change in a direction; `None` where no permutation of its figures gives medians that
    /// differ by more than the margin. Which side a figure is of does not enter into that, so that the choice
    /// does not spoil the test.
    pub(super) fn series(&self, direction: Direction) -> Option<Series<'_>> {
        let logs = self.enough()?;
        let upwards = self.is_upwards(direction);
        let mut sorted = logs.concat();
        sorted.sort_unstable_by(f64::total_cmp);
        let [least, most] = self.margins();
        let (low, high) = sorted.split_at(logs[usize::from(!upwards)].len());
        let apart = median(high)? - median(low)?;
        let can_come_out = apart > if upwards { most } else { -least };
        can_come_out.then_some(Series {
            units: [self.question.base.units, self.question.new.units],
            logs,
            margin: most,
            downwards: !upwards,
            block: self.block,
        })
    }
}

/// Numbers of the questions' blocks: cases that share a run on either side are in one.
fn blocks(questions: &[Question<'_>]) -> Vec<usize> {
    // A case's block, by the case's place.
    let mut block_of: Vec<usize> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut first_with: HashMap<(usize, Unit), usize> = HashMap::new();
    for question in questions {
        let place = *places.entry(question.case).or_insert_with(|| {
            block_of.push(block_of.len());
            block_of.len() - 1
        });
        for (side, figures) in [question.base, question.new].iter().enumerate() {
            for unit in figures.units {
                let other = *first_with.entry((side, *unit)).or_insert(place);
                let (here, there) = (block_of[place], block_of[other]);
                if here != there {
                    block_of
                        .iter_mut()
                        .filter(|block| **block == here)
                        .for_each(|block| *block = there);
                }
            }
        }
    }
    questions.iter().map(|question| block_of[places[&question.case]]).collect()
}

/// What does not matter over all cases is this part of what does not matter in one. Single cases move by chance of
/// layout and placement; their mean hardly does.
const PART_OF_MARGIN: f64 = 0.5;

/// A metric's figures over all cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    pub metric: usize,
    /// Cases that are in it.
    pub cases: usize,
    /// What does not matter: 0.015 for 1.5 %.
    pub margin: f64,
    pub higher_is_better: bool,
    /// Figures of the base, by launch: the geometric mean over cases of the case's figure over the case's
    /// geometric mean on both sides.
    pub base: Vec<f64>,
    /// Figures of the new side.
    pub new: Vec<f64>,
    units: [Vec<Unit>; 2],
}

impl Pooled {
    /// Pools each metric over the cases that were measured in the same launches: over the largest number of
    /// cases of which that is so. Nothing where it is one.
    pub(super) fn new(prepared: &[Prepared<'_>]) -> Vec<Pooled> {
        let mut cases: HashMap<usize, HashSet<usize>> = HashMap::new();
        for one in prepared {
            cases.entry(one.block).or_default().insert(one.question.case);
        }
        let Some((_, std::cmp::Reverse(block))) =
            cases.into_iter().map(|(block, cases)| (cases.len(), std::cmp::Reverse(block))).max()
        else {
            return Vec::new();
        };
        let mut by_metric: BTreeMap<usize, Vec<&Prepared<'_>>> = BTreeMap::new();
        for one in prepared.iter().filter(|one| one.block == block && one.enough().is_some()) {
            by_metric.entry(one.question.metric).or_default().push(one);
        }
        by_metric.into_values().filter_map(|parts| Pooled::one(&parts)).collect()
    }

    fn one(parts: &[&Prepared<'_>]) -> Option<Pooled> {
        let first = parts.first().filter(|_| parts.len() > 1)?.question;
        let mut sums: [BTreeMap<Unit, (f64, f64)>; 2] = Default::default();
        for part in parts {
            let logs = part.enough()?;
            let count: usize = logs.iter().map(|side| side.len()).sum();
            let centre = logs.iter().copied().flatten().sum::<f64>() / count as f64;
            let figures = [part.question.base, part.question.new];
            for ((sums, figures), logs) in sums.iter_mut().zip(figures).zip(logs) {
                for (unit, log) in figures.units.iter().zip(logs) {
                    let (sum, count) = sums.entry(*unit).or_default();
                    *sum += log - centre;
                    *count += 1.0;
                }
            }
        }
        let [base, new] = sums
            .each_ref()
            .map(|sums| sums.values().map(|(sum, count)| (sum / count).exp()).collect());
        Some(Pooled {
            metric: first.metric,
            cases: parts.len(),
            margin: first.margin * PART_OF_MARGIN,
            higher_is_better: first.higher_is_better,
            base,
            new,
            units: sums.map(|sums| sums.into_keys().collect()),
        })
    }

    pub(super) fn question(&self) -> Question<'_> {
        let [base, new] = &self.units;
        Question {
            case: 0,
            metric: self.metric,
            base: Figures { units: base, values: &self.base },
            new: Figures { units: new, values: &self.new },
            margin: self.margin,
            higher_is_better: self.higher_is_better,
        }
    }
}
