//! All answers of one sitting with their figures and reasons, and what the runs could settle at all.

use super::asked::{Asked, Direction, Question};
use super::deals::{DealsBySize, count, runs_for};
use super::family::Family;
use super::joint::Tested;
use super::pooled::Pooled;
use super::ratio::RatioEstimate;
use super::shift::Shift;
use super::verdict::Verdict;

/// Above this many runs a side nobody is told to make as many.
const MOST_RUNS: f64 = 200.0;

/// A change that the runs should settle, in margins.
const MARGINS_TO_SETTLE: f64 = 2.0;

/// Why a question is open still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// So few figures tell nothing; with `needed` on each side they could.
    TooFew {
        needed: usize,
    },
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
    /// Ratio and its interval of 95 %, or more where the look has a part of the chance of error; `None` when one of the sides is empty or not positive.
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

/// All answers of a sitting.
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

/// Answers all questions of one sitting; `part` as of [`verdicts`](super::verdicts).
pub fn judge(questions: &[Question<'_>], part: f64) -> Judgement {
    let mut deals = DealsBySize::default();
    let asked = Asked::all(questions.to_vec());
    let pooled = Pooled::of(&asked);
    let over_all = Family::over_all(&pooled, part, &mut deals);
    let by_case = Family::by_case(asked, &over_all, part, &mut deals);
    let (answers, reach_over_all) = over_all.answers(&mut deals);
    let (by_case, reach_by_case) = by_case.answers(&mut deals);
    Judgement {
        over_all: pooled.iter().cloned().zip(answers).collect(),
        reach_over_all,
        by_case,
        reach_by_case,
    }
}

impl Family<'_> {
    fn answers(&self, deals: &mut DealsBySize) -> (Vec<Answer>, Reach) {
        let critical = Direction::BOTH.map(|direction| self.critical(direction, deals));
        let mut answers = Vec::new();
        let mut reach = Reach::default();
        let mut needed = Some(0);
        for ((one, tests), verdict) in self.asked.iter().zip(&self.tested).zip(&self.verdicts) {
            let answer = self.answer(one, tests, *verdict, critical, deals);
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
        one: &Asked<'_>,
        tests: &[Option<Tested>; 2],
        verdict: Verdict,
        critical: [Option<f64>; 2],
        deals: &mut DealsBySize,
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
        let sized = deals.of(logs.base.len(), logs.new.len());
        let Some(shift) = Shift::of(&logs.base, &logs.new, &sized, self.tail) else {
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
                    let critical = critical[direction as usize].unwrap_or(test.statistic);
                    Unsettled::TooMany {
                        questions: self.asked.len(),
                        about: more_runs(runs, critical / test.statistic),
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
    fn settled_with(&self, one: &Asked<'_>, critical: Option<f64>) -> Option<usize> {
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
