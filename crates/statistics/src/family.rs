//! The words for all questions of one sitting, found together so that chance seldom makes a difference out of none:
//! first each metric over all cases, then case by case.

use super::asked::{Asked, Direction, LEAST_OBSERVATIONS, Question};
use super::deals::DealsBySize;
use super::joint::{self, Series, Tested};
use super::pooled::Pooled;
use super::shift::{Shift, students_p_above};
use super::verdict::Verdict;

/// How often a sitting without any change may call one for the worse over all cases, and how often one for the better.
const ALARMS_OVER_ALL: f64 = 0.005;

/// The same case by case. At most 5 % are promised in all, and are to hold in a count of 1,000 sittings too.
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

/// Finds the word for each question of one sitting. `part` is the part of all chances of error that this look has: 1 of the
/// only one, less where launches are added until it is clear ([`Looks`](super::Looks)).
pub fn verdicts(questions: &[Question<'_>], part: f64) -> Verdicts {
    let mut deals = DealsBySize::default();
    let asked = Asked::all(questions.to_vec());
    let pooled = Pooled::of(&asked);
    let over_all = Family::over_all(&pooled, part, &mut deals);
    let by_case = Family::by_case(asked, &over_all, part, &mut deals);
    Verdicts { over_all: over_all.verdicts, by_case: by_case.verdicts }
}

/// Questions that are tested together.
pub(super) struct Family<'a> {
    pub(super) asked: Vec<Asked<'a>>,
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
    /// dealt in 252 ways only, so that the exact one alone would be wrong as often as it may.
    pub(super) fn over_all(pooled: &'a [Pooled], part: f64, deals: &mut DealsBySize) -> Family<'a> {
        let asked = Asked::all(pooled.iter().map(Pooled::question).collect());
        let mut tested = tests(&asked, deals);
        for (one, tests) in asked.iter().zip(&mut tested) {
            for (direction, test) in Direction::BOTH.into_iter().zip(tests) {
                if let (Some([base, new]), Some(test)) = (one.enough(), test) {
                    let p = if one.is_upwards(direction) {
                        students_p_above(base, new)
                    } else {
                        students_p_above(new, base)
                    };
                    test.p = test.p.max((p * asked.len() as f64).min(1.0));
                }
            }
        }
        Family::of(asked, [ALARMS_OVER_ALL; 2], tested, part, deals)
    }

    /// Where something was found over all cases, or nothing was asked there, that chance of error is to spare.
    pub(super) fn by_case(
        asked: Vec<Asked<'a>>,
        over_all: &Family<'_>,
        part: f64,
        deals: &mut DealsBySize,
    ) -> Family<'a> {
        let found = &over_all.verdicts;
        let levels = Direction::BOTH.map(|direction| {
            let is_to_spare = found.is_empty() || found.contains(&direction.word());
            ALARMS_BY_CASE + if is_to_spare { ALARMS_OVER_ALL } else { 0.0 }
        });
        let tested = tests(&asked, deals);
        Family::of(asked, levels, tested, part, deals)
    }

    fn of(
        asked: Vec<Asked<'a>>,
        levels: [f64; 2],
        tested: Vec<[Option<Tested>; 2]>,
        part: f64,
        deals: &mut DealsBySize,
    ) -> Family<'a> {
        let (levels, tail) = (levels.map(|level| level * part), TAIL * part);
        let verdicts = asked
            .iter()
            .zip(&tested)
            .map(|(one, tests)| word(one, tests, (levels, tail), deals))
            .map(|it| it.unwrap_or(Verdict::Unclear))
            .collect();
        Family { asked, levels, tail, tested, verdicts }
    }

    /// What chance alone reaches, in one direction, among those questions that are not found to have changed.
    pub(super) fn critical(&self, direction: Direction, deals: &mut DealsBySize) -> Option<f64> {
        let level = self.levels[direction as usize];
        let is_found = |tests: &[Option<Tested>; 2]| {
            tests[direction as usize].is_some_and(|test| test.p <= level)
        };
        let series: Vec<Series> = self
            .asked
            .iter()
            .zip(&self.tested)
            .filter(|(_, tests)| !is_found(tests))
            .filter_map(|(one, _)| one.series(direction))
            .collect();
        joint::critical(&series, LEAST_OBSERVATIONS, level, deals)
    }
}

/// Each question's tests, by direction. Where no figure is beyond its margin there is nothing to test.
fn tests(asked: &[Asked<'_>], deals: &mut DealsBySize) -> Vec<[Option<Tested>; 2]> {
    let mut tested = vec![[None; 2]; asked.len()];
    for direction in Direction::BOTH {
        if asked.iter().all(|one| one.beyond() != Some(direction)) {
            continue;
        }
        let (places, series): (Vec<usize>, Vec<Series>) = asked
            .iter()
            .enumerate()
            .filter_map(|(place, one)| Some((place, one.series(direction)?)))
            .unzip();
        for (place, test) in places.into_iter().zip(joint::test(&series, LEAST_OBSERVATIONS, deals))
        {
            tested[place][direction as usize] = Some(test);
        }
    }
    tested
}

/// The word for a question; `None` where there are too few figures for any.
fn word(
    one: &Asked<'_>,
    tests: &[Option<Tested>; 2],
    (levels, tail): ([f64; 2], f64),
    deals: &mut DealsBySize,
) -> Option<Verdict> {
    let [base, new] = one.enough()?;
    let deals = deals.of(base.len(), new.len());
    let shift = Shift::of(base, new, &deals, tail)?;
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
