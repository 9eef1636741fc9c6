//! All answers of one comparison: the words, found together so that chance seldom makes a difference out of none (first each metric
//! over all cases, then case by case); their figures and reasons; and what the runs could settle at all.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::distributions::median;
use super::permutations::{
    PermutationsBySize, Series, Tested, Unit, count, critical, joint_tests, runs_for,
};
use super::ratio::{LEAST_OBSERVATIONS, Logs, RatioEstimate, Shift, Verdict, students_p_above};

/// How often a comparison without any change may call one for the worse over all cases, and how often one for the better.
const ALARMS_OVER_ALL: f64 = 0.005;

/// The same case by case. At most 5 % are promised in all, and are to hold in a count of 1,000 comparisons too.
const ALARMS_BY_CASE: f64 = 0.025;

/// Chance of error on either side of an interval of 95 %.
const TAIL: f64 = 0.025;

/// The words alone, without intervals and reasons, which take longer.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    /// Each metric over all cases, in order of their numbers; none of a single case.
    pub over_all: Vec<Verdict>,
    pub by_case: Vec<Verdict>,
}

/// Finds the word for each question of one comparison. `part` is the part of all chances of error that this analysis has: 1 of the
/// only one, less where launches are added until it is clear ([`InterimAnalyses`](super::InterimAnalyses)).
pub fn verdicts(questions: &[Question<'_>], part: f64) -> Verdicts {
    let mut permutations = PermutationsBySize::default();
    let prepared = prepare(questions.to_vec());
    let pooled = Pooled::new(&prepared);
    let over_all = Family::over_all(&pooled, part, &mut permutations);
    let by_case = Family::by_case(prepared, &over_all, part, &mut permutations);
    Verdicts { over_all: over_all.verdicts, by_case: by_case.verdicts }
}

/// Questions that are tested together.
pub(super) struct Family<'a> {
    pub(super) prepared: Vec<Prepared<'a>>,
    /// Chance of any false alarm, by direction.
    pub(super) levels: [f64; 2],
    /// Chance of error on either side of an interval.
    pub(super) tail: f64,
    /// Each question's tests, by direction; `None` where it cannot come out.
    pub(super) tested: Vec<[Option<Tested>; 2]>,
    pub(super) verdicts: Vec<Verdict>,
}

impl<'a> Family<'a> {
    /// Two tests must agree, the exact one and Student's with Bonferroni's correction: five and five runs can be
    /// assigned in 252 ways only, so that the exact one alone would be wrong as often as it may.
    pub(super) fn over_all(
        pooled: &'a [Pooled],
        part: f64,
        permutations: &mut PermutationsBySize,
    ) -> Family<'a> {
        let prepared = prepare(pooled.iter().map(Pooled::question).collect());
        let mut tested = tests(&prepared, permutations);
        for (one, tests) in prepared.iter().zip(&mut tested) {
            for (direction, test) in Direction::BOTH.into_iter().zip(tests) {
                if let (Some([base, new]), Some(test)) = (one.enough(), test) {
                    let p = if one.is_upwards(direction) {
                        students_p_above(base, new)
                    } else {
                        students_p_above(new, base)
                    };
                    test.p = test.p.max((p * prepared.len() as f64).min(1.0));
                }
            }
        }
        Family::new(prepared, [ALARMS_OVER_ALL; 2], tested, part, permutations)
    }

    /// Where something was found over all cases, or nothing was asked there, that chance of error is to spare.
    pub(super) fn by_case(
        prepared: Vec<Prepared<'a>>,
        over_all: &Family<'_>,
        part: f64,
        permutations: &mut PermutationsBySize,
    ) -> Family<'a> {
        let found = &over_all.verdicts;
        let levels = Direction::BOTH.map(|direction| {
            let is_to_spare = found.is_empty() || found.contains(&direction.word());
            ALARMS_BY_CASE + if is_to_spare { ALARMS_OVER_ALL } else { 0.0 }
        });
        let tested = tests(&prepared, permutations);
        Family::new(prepared, levels, tested, part, permutations)
    }

    fn new(
        prepared: Vec<Prepared<'a>>,
        levels: [f64; 2],
        tested: Vec<[Option<Tested>; 2]>,
        part: f64,
        permutations: &mut PermutationsBySize,
    ) -> Family<'a> {
        let (levels, tail) = (levels.map(|level| level * part), TAIL * part);
        let verdicts = prepared
            .iter()
            .zip(&tested)
            .map(|(one, tests)| word(one, tests, (levels, tail), permutations))
            .map(|it| it.unwrap_or(Verdict::Unclear))
            .collect();
        Family { prepared, levels, tail, tested, verdicts }
    }

    /// What chance alone reaches, in one direction, among those questions that are not found to have changed.
    pub(super) fn critical(
        &self,
        direction: Direction,
        permutations: &mut PermutationsBySize,
    ) -> Option<f64> {
        let level = self.levels[direction as usize];
        let series: Vec<Series> = self
            .prepared
            .iter()
            .zip(&self.tested)
            .filter(|(_, tests)| tests[direction as usize].is_none_or(|test| test.p > level))
            .filter_map(|(one, _)| one.series(direction))
            .collect();
        critical(&series, LEAST_OBSERVATIONS, level, permutations)
    }
}

/// Each question's tests, by direction. Where no figure is beyond its margin there is nothing to test.
fn tests(
    prepared: &[Prepared<'_>],
    permutations: &mut PermutationsBySize,
) -> Vec<[Option<Tested>; 2]> {
    let mut tested = vec![[None; 2]; prepared.len()];
    for direction in Direction::BOTH {
        if prepared.iter().all(|one| one.beyond() != Some(direction)) {
            continue;
        }
        let (places, series): (Vec<usize>, Vec<Series>) = prepared
            .iter()
            .enumerate()
            .filter_map(|(place, one)| Some((place, one.series(direction)?)))
            .unzip();
        for (place, test) in
            places.into_iter().zip(joint_tests(&series, LEAST_OBSERVATIONS, permutations))
        {
            tested[place][direction as usize] = Some(test);
        }
    }
    tested
}

/// The word for a question; `None` where there are too few figures for any.
fn word(
    one: &Prepared<'_>,
    tests: &[Option<Tested>; 2],
    (levels, tail): ([f64; 2], f64),
    permutations: &mut PermutationsBySize,
) -> Option<Verdict> {
    let [base, new] = one.enough()?;
    let sized = permutations.get(base.len(), new.len());
    let shift = Shift::new(base, new, &sized, tail)?;
    let Some(direction) = one.beyond() else {
        let [least, most] = one.margins();
        let is_equal = shift.is_above(least) && shift.is_below(most);
        return is_equal.then_some(Verdict::Equal);
    };
    let test = tests[direction as usize]?;
    let is_apart =
        if one.is_upwards(direction) { shift.is_above(0.0) } else { shift.is_below(0.0) };
    (test.p <= levels[direction as usize] && is_apart).then_some(direction.word())
}

/// Above this many runs a side nobody is told to make as many.
const MOST_RUNS: f64 = 200.0;

/// A change that the runs should settle, in margins.
const MARGINS_TO_SETTLE: f64 = 2.0;

/// Why a question is open still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// So few figures tell nothing; with `needed` on each side they could.
    TooFew { needed: usize },
    /// The sides lie apart, but among so many questions chance does that.
    TooMany {
        /// Questions that were asked together.
        questions: usize,
        /// About how many figures on each side would do; `None` when no sensible number would.
        about: Option<usize>,
    },
    /// The figures scatter too much.
    Noise {
        /// About how many on each side would do; `None` when no sensible number would.
        about: Option<usize>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Ratio and its interval of 95 %, or more where an interim analysis has a part of the chance of error; `None` when one of the sides is empty or not positive.
    pub estimate: Option<RatioEstimate>,
    pub verdict: Verdict,
    /// Probability that chance sets the sides apart so clearly in any of the questions asked together, in the
    /// direction in which they differ; `None` when there were too few figures to test.
    pub p_corrected: Option<f64>,
    pub unsettled: Option<Unsettled>,
}

/// What the runs can settle: that a figure is worse by twice its margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Questions that were asked together.
    pub questions: usize,
    /// Those that were settled, or would be if they had changed so.
    pub settled: usize,
    /// About how many figures on each side would settle all; `None` when no sensible number would.
    pub needed: Option<usize>,
}

/// All answers of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Each metric over all cases, in order of their numbers; none of a single case.
    pub over_all: Vec<(Pooled, Answer)>,
    /// What can be settled over all cases.
    pub reach_over_all: Reach,
    pub by_case: Vec<Answer>,
    /// What can be settled case by case.
    pub reach_by_case: Reach,
}

/// Answers all questions of one comparison; `part` as of [`verdicts`](super::verdicts).
pub fn judge(questions: &[Question<'_>], part: f64) -> Judgement {
    let mut permutations = PermutationsBySize::default();
    let prepared = prepare(questions.to_vec());
    let pooled = Pooled::new(&prepared);
    let over_all = Family::over_all(&pooled, part, &mut permutations);
    let by_case = Family::by_case(prepared, &over_all, part, &mut permutations);
    let (answers, reach_over_all) = over_all.answers(&mut permutations);
    let (by_case, reach_by_case) = by_case.answers(&mut permutations);
    Judgement {
        over_all: pooled.iter().cloned().zip(answers).collect(),
        reach_over_all,
        by_case,
        reach_by_case,
    }
}

impl Family<'_> {
    fn answers(&self, permutations: &mut PermutationsBySize) -> (Vec<Answer>, Reach) {
        let critical = Direction::BOTH.map(|direction| self.critical(direction, permutations));
        let mut answers = Vec::new();
        let mut reach = Reach::default();
        let mut needed = Some(0);
        for ((one, tests), verdict) in self.prepared.iter().zip(&self.tested).zip(&self.verdicts) {
            let answer = self.answer(one, tests, *verdict, critical, permutations);
            if answer.estimate.is_some() {
                reach.questions += 1;
                match self.settled_with(one, critical[0]) {
                    Some(0) => reach.settled += 1,
                    _ if *verdict != Verdict::Unclear => reach.settled += 1,
                    more => needed = needed.zip(more).map(|(needed, more)| needed.max(more)),
                }
            }
            answers.push(answer);
        }
        reach.needed = needed.filter(|needed| *needed > 0);
        (answers, reach)
    }

    fn answer(
        &self,
        one: &Prepared<'_>,
        tests: &[Option<Tested>; 2],
        verdict: Verdict,
        critical: [Option<f64>; 2],
        permutations: &mut PermutationsBySize,
    ) -> Answer {
        let too_few = Unsettled::TooFew { needed: runs_for(self.levels[0]) };
        let mut answer = Answer {
            estimate: None,
            verdict,
            p_corrected: None,
            unsettled: (verdict == Verdict::Unclear).then_some(too_few),
        };
        let (Some(logs), Some(direction)) = (&one.logs, one.direction()) else {
            return answer;
        };
        let sized = permutations.get(logs.base.len(), logs.new.len());
        let Some(shift) = Shift::new(&logs.base, &logs.new, &sized, self.tail) else {
            return answer;
        };
        let [least, most] = one.margins();
        let estimate = logs.estimate(&shift, &[least, most]);
        answer.estimate = Some(estimate);
        let Some([base, new]) = one.enough() else {
            return answer;
        };
        let test = tests[direction as usize];
        answer.p_corrected = Some(test.map_or(1.0, |test| test.p));
        let runs = base.len().min(new.len());
        let is_apart = estimate.low > 1.0 || estimate.high < 1.0;
        if answer.unsettled.is_none() {
            return answer;
        }
        answer.unsettled = Some(match (one.beyond(), test) {
            (Some(_), Some(test)) if is_apart => {
                if count(base.len(), new.len()) * self.levels[direction as usize] < 1.0 {
                    too_few
                } else {
                    let reached = critical[direction as usize].unwrap_or(test.statistic);
                    Unsettled::TooMany {
                        questions: self.prepared.len(),
                        about: more_runs(runs, reached / test.statistic),
                    }
                }
            }
            (beyond, _) => {
                // Beyond the margin the interval must leave out 1, within it the margin.
                let wanted = match beyond {
                    Some(_) => estimate.ratio.ln().abs(),
                    None => one.question.margin - (estimate.ratio - 1.0).abs(),
                };
                let width = (estimate.high / estimate.low).ln() / 2.0;
                Unsettled::Noise { about: more_runs(runs, width / wanted) }
            }
        });
        answer
    }

    /// About how many figures on each side would settle that the question's figure is worse by some margins: 0
    /// when those that there are would.
    fn settled_with(&self, one: &Prepared<'_>, critical: Option<f64>) -> Option<usize> {
        let Some([base, new]) = one.enough() else {
            return Some(runs_for(self.levels[0]));
        };
        if count(base.len(), new.len()) * self.levels[0] < 1.0 {
            return Some(runs_for(self.levels[0]));
        }
        // What cannot come out hardly scatters.
        let (Some(series), Some(critical)) = (one.series(Direction::Worse), critical) else {
            return Some(0);
        };
        let change = (1.0 + MARGINS_TO_SETTLE * one.question.margin).ln();
        let times = critical * series.shift().1 / change;
        if times <= 1.0 {
            return Some(0);
        }
        more_runs(base.len().min(new.len()), times)
    }
}

/// About how many runs narrow what is so many times too wide, which goes with the root of their number; `None` when no
/// sensible number does.
fn more_runs(runs: usize, times_too_wide: f64) -> Option<usize> {
    let about = runs as f64 * times_too_wide.powi(2);
    (about <= MOST_RUNS).then(|| (about.ceil() as usize).max(runs + 1))
}

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
            for ((own_sums, side), own_logs) in sums.iter_mut().zip(figures).zip(logs) {
                for (unit, log) in side.units.iter().zip(own_logs) {
                    let (sum, number) = own_sums.entry(*unit).or_default();
                    *sum += log - centre;
                    *number += 1.0;
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
