//! All answers of one comparison: a word for each question, found together so that chance seldom makes a difference out of
//! none; its figures and reasons; and what the runs could settle at all.

use std::collections::BTreeMap;

use super::deals::{Chance, DealsBySize, Series, Unit, launches_for, least_chance};
use super::ratio::{LEAST_OBSERVATIONS, Logs, RatioEstimate, Shift, Verdict};

/// How often a comparison without any change may call one, for the worse or for the better.
const ALARMS: f64 = 0.05;

/// Chance of error on either side of an interval of 95 %.
const TAIL: f64 = 0.025;

/// What does not matter over all cases is this part of what does not matter in one. Single cases move by chance of
/// layout and placement; their mean hardly does.
const PART_OF_MARGIN: f64 = 0.5;

/// Above this many runs a side nobody is told to make as many.
const MOST_RUNS: f64 = 200.0;

/// A change that the runs should settle, in margins.
const MARGINS_TO_SETTLE: f64 = 2.0;

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

/// The words alone, without intervals and reasons, which take longer.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    /// Each metric over all cases, in order of their numbers; none of a single case.
    pub over_all: Vec<Verdict>,
    pub by_case: Vec<Verdict>,
}

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
    /// Probability that chance sets the sides apart so clearly in any of the questions asked together; `None` when there
    /// were too few figures to test.
    pub p_corrected: Option<f64>,
    pub unsettled: Option<Unsettled>,
}

/// What the runs can settle: that a figure is worse by twice its margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Questions that were asked.
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

/// Figures on each side with which a comparison can tell a change from chance at all, however large it is; `part` as of
/// [`verdicts`].
pub fn fewest_a_side(part: f64) -> usize {
    launches_for(ALARMS * part).max(LEAST_OBSERVATIONS)
}

/// Whether so many figures on the two sides can tell any change from chance; `part` as of [`verdicts`].
pub fn can_tell(base: usize, new: usize, part: f64) -> bool {
    base.min(new) >= LEAST_OBSERVATIONS && least_chance(base, new) <= ALARMS * part
}

/// Finds the word for each question of one comparison. `part` is the part of all chances of error that this analysis has: 1 of the
/// only one, less where launches are added until it is clear ([`InterimAnalyses`](super::InterimAnalyses)).
pub fn verdicts(questions: &[Question<'_>], part: f64) -> Verdicts {
    let cases: Vec<Prepared> = questions.iter().copied().map(Prepared::new).collect();
    let pooled = Pooled::new(&cases);
    let family = Family::new(&pooled, cases, part);
    let mut deals = DealsBySize::default();
    let mut words = family.prepared.iter().map(|one| family.word(one, &mut deals));
    let over_all = words.by_ref().take(pooled.len()).collect();
    Verdicts { over_all, by_case: words.collect() }
}

/// Answers all questions of one comparison; `part` as of [`verdicts`].
pub fn judge(questions: &[Question<'_>], part: f64) -> Judgement {
    let cases: Vec<Prepared> = questions.iter().copied().map(Prepared::new).collect();
    let pooled = Pooled::new(&cases);
    let family = Family::new(&pooled, cases, part);
    let mut deals = DealsBySize::default();
    let answers: Vec<Answer> =
        family.prepared.iter().map(|one| family.answer(one, &mut deals)).collect();
    let (over_all, by_case) = answers.split_at(pooled.len());
    let (of_metrics, of_cases) = family.prepared.split_at(pooled.len());
    Judgement {
        reach_over_all: family.reach(of_metrics, over_all),
        reach_by_case: family.reach(of_cases, by_case),
        by_case: by_case.to_vec(),
        over_all: pooled.iter().cloned().zip(over_all.iter().copied()).collect(),
    }
}

/// A question with what its tests need.
#[derive(Clone, Debug)]
struct Prepared<'a> {
    question: Question<'a>,
    /// `None` where there is no ratio.
    logs: Option<Logs>,
    /// `None` where there are too few figures to be judged.
    series: Option<Series<'a>>,
}

impl<'a> Prepared<'a> {
    fn new(question: Question<'a>) -> Prepared<'a> {
        let sides = [question.base, question.new];
        let logs = Logs::new(question.base.values, question.new.values);
        let is_enough = sides.iter().all(|side| side.values.len() >= LEAST_OBSERVATIONS);
        let series = logs.as_ref().filter(|_| is_enough).map(|logs| {
            Series::new(
                sides.map(|side| side.units),
                [&logs.base, &logs.new],
                question.margin.ln_1p(),
            )
        });
        Prepared { question, logs, series }
    }

    /// Ends of what does not matter, as logarithms.
    fn margins(&self) -> [f64; 2] {
        [(-self.question.margin).ln_1p(), self.question.margin.ln_1p()]
    }

    /// Whether any launch has both.
    fn shares_launches(&self, other: &Prepared<'_>) -> bool {
        let pairs =
            [(self.question.base, other.question.base), (self.question.new, other.question.new)];
        pairs.iter().any(|(own, its)| own.units.iter().any(|unit| its.units.contains(unit)))
    }
}

/// All questions of a comparison, which are tested together.
struct Family<'a> {
    /// Those over all cases first.
    prepared: Vec<Prepared<'a>>,
    chance: Chance,
    /// Chance of any false alarm.
    level: f64,
    /// Chance of error on either side of an interval.
    tail: f64,
}

impl<'a> Family<'a> {
    fn new(pooled: &'a [Pooled], cases: Vec<Prepared<'a>>, part: f64) -> Family<'a> {
        let prepared: Vec<Prepared> =
            pooled.iter().map(|one| Prepared::new(one.question())).chain(cases).collect();
        let series: Vec<&Series> = prepared.iter().filter_map(|one| one.series.as_ref()).collect();
        let chance = Chance::new(&series);
        Family { prepared, chance, level: ALARMS * part, tail: TAIL * part }
    }

    fn shift<'b>(&self, logs: &'b Logs, deals: &'b mut DealsBySize) -> Shift<'b> {
        let sized = deals.get(logs.base.len(), logs.new.len());
        Shift::new(&logs.base, &logs.new, sized, self.tail)
    }

    fn word(&self, one: &Prepared<'_>, deals: &mut DealsBySize) -> Verdict {
        let (Some(logs), Some(series)) = (&one.logs, &one.series) else {
            return Verdict::Unclear;
        };
        let shift = self.shift(logs, deals);
        let change = logs.ratio() - 1.0;
        let [least, most] = one.margins();
        let is_up = change > 0.0;
        if change.abs() <= one.question.margin {
            let is_equal = shift.is_above(least) && shift.is_below(most);
            return if is_equal { Verdict::Equal } else { Verdict::Unclear };
        }
        let is_apart = if is_up { shift.is_above(0.0) } else { shift.is_below(0.0) };
        if !is_apart || self.chance.p(series.statistic().0) > self.level {
            Verdict::Unclear
        } else if is_up == one.question.higher_is_better {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    fn answer(&self, one: &Prepared<'_>, deals: &mut DealsBySize) -> Answer {
        let verdict = self.word(one, deals);
        let estimate = one.logs.as_ref().map(|logs| {
            let shift = self.shift(logs, deals);
            logs.estimate(&shift, &one.margins())
        });
        let statistic = one.series.as_ref().map(|series| series.statistic().0);
        Answer {
            estimate,
            verdict,
            p_corrected: statistic.map(|statistic| self.chance.p(statistic)),
            unsettled: (verdict == Verdict::Unclear).then(|| match (estimate, statistic) {
                (Some(estimate), Some(statistic)) => self.unsettled(one, &estimate, statistic),
                _ => Unsettled::TooFew { needed: launches_for(self.level) },
            }),
        }
    }

    fn unsettled(&self, one: &Prepared<'_>, estimate: &RatioEstimate, statistic: f64) -> Unsettled {
        let question = &one.question;
        let counts = [question.base, question.new].map(|side| side.values.len());
        let runs = counts[0].min(counts[1]);
        let change = (estimate.ratio - 1.0).abs();
        let is_beyond = change > question.margin;
        if is_beyond && (estimate.low > 1.0 || estimate.high < 1.0) {
            if least_chance(counts[0], counts[1]) > self.level {
                return Unsettled::TooFew { needed: launches_for(self.level) };
            }
            let times = self.chance.reached(self.level) / statistic.abs();
            return Unsettled::TooMany {
                questions: self.prepared.len(),
                about: more_runs(runs, times),
            };
        }
        // Beyond the margin the interval must leave out 1, within it the margin.
        let wanted = if is_beyond { estimate.ratio.ln().abs() } else { question.margin - change };
        let width = (estimate.high / estimate.low).ln() / 2.0;
        Unsettled::Noise { about: more_runs(runs, width / wanted) }
    }

    /// What can be settled of some questions, which have these answers.
    fn reach(&self, prepared: &[Prepared<'_>], answers: &[Answer]) -> Reach {
        let mut reach = Reach::default();
        let mut needed = Some(0);
        for (one, answer) in prepared.iter().zip(answers).filter(|(one, _)| one.logs.is_some()) {
            reach.questions += 1;
            match self.settled_with(one) {
                Some(0) => reach.settled += 1,
                _ if answer.verdict != Verdict::Unclear => reach.settled += 1,
                more => needed = needed.zip(more).map(|(needed, more)| needed.max(more)),
            }
        }
        reach.needed = needed.filter(|needed| *needed > 0);
        reach
    }

    /// About how many figures on each side would settle that the question's figure is worse by some margins: 0
    /// when those that there are would.
    fn settled_with(&self, one: &Prepared<'_>) -> Option<usize> {
        let counts = [one.question.base, one.question.new].map(|side| side.values.len());
        let Some(series) =
            one.series.as_ref().filter(|_| least_chance(counts[0], counts[1]) <= self.level)
        else {
            return Some(launches_for(self.level));
        };
        let change = (MARGINS_TO_SETTLE * one.question.margin).ln_1p();
        let times = self.chance.reached(self.level) * series.statistic().1 / change;
        if times <= 1.0 { Some(0) } else { more_runs(counts[0].min(counts[1]), times) }
    }
}

/// About how many runs narrow what is so many times too wide, which goes with the root of their number; `None` when no
/// sensible number does.
fn more_runs(runs: usize, times_too_wide: f64) -> Option<usize> {
    let about = runs as f64 * times_too_wide.powi(2);
    (about <= MOST_RUNS).then(|| (about.ceil() as usize).max(runs + 1))
}

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
    /// Pools each metric over the cases that share launches with its first one. Nothing where that is the only one.
    fn new(cases: &[Prepared<'_>]) -> Vec<Pooled> {
        let mut by_metric: BTreeMap<usize, Vec<&Prepared<'_>>> = BTreeMap::new();
        for one in cases.iter().filter(|one| one.series.is_some()) {
            let parts = by_metric.entry(one.question.metric).or_default();
            if parts.first().is_none_or(|first| first.shares_launches(one)) {
                parts.push(one);
            }
        }
        by_metric.into_values().filter_map(|parts| Pooled::one(&parts)).collect()
    }

    fn one(parts: &[&Prepared<'_>]) -> Option<Pooled> {
        let first = parts.first().filter(|_| parts.len() > 1)?.question;
        let mut sums: [BTreeMap<Unit, (f64, f64)>; 2] = Default::default();
        for part in parts {
            let logs = part.logs.as_ref()?;
            let sides = [(part.question.base, &logs.base), (part.question.new, &logs.new)];
            let count = logs.base.len() + logs.new.len();
            let centre = logs.base.iter().chain(&logs.new).sum::<f64>() / count as f64;
            for (of_side, (figures, own_logs)) in sums.iter_mut().zip(sides) {
                for (unit, log) in figures.units.iter().zip(own_logs) {
                    let (sum, number) = of_side.entry(*unit).or_default();
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

    fn question(&self) -> Question<'_> {
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
