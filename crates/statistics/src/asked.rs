//! A question with what is always needed of it: its logarithms, the runs that it shares with others, and how it is
//! tested in a direction.

use std::collections::HashMap;

use super::joint::{Series, Unit};
use super::median::median;
use super::ratio::Logs;
use super::verdict::Verdict;

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

/// A question that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Asked<'a> {
    pub(super) question: Question<'a>,
    /// `None` where there is no ratio.
    pub(super) logs: Option<Logs>,
    /// Questions whose cases share runs have the same number.
    pub(super) block: usize,
}

impl<'a> Asked<'a> {
    pub(super) fn all(questions: Vec<Question<'a>>) -> Vec<Asked<'a>> {
        let blocks = blocks(&questions);
        questions
            .into_iter()
            .zip(blocks)
            .map(|(question, block)| Asked {
                question,
                logs: Logs::of(question.base.values, question.new.values),
                block,
            })
            .collect()
    }

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

    /// How it is tested for a change in a direction; `None` where no deal of its figures gives medians that
    /// differ by more than the margin. Which side a figure is of does not enter into that, so that the choice
    /// does not spoil the test.
    pub(super) fn series(&self, direction: Direction) -> Option<Series<'_>> {
        let logs = self.enough()?;
        let upwards = self.is_upwards(direction);
        let mut all = logs.concat();
        all.sort_unstable_by(f64::total_cmp);
        let [least, most] = self.margins();
        let (low, high) = all.split_at(logs[usize::from(!upwards)].len());
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
