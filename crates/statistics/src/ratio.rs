//! The ratio of two medians, its interval, and the word for it. The interval comes from exact tests of permutation for how far one
//! sample lies above another: they suppose no distribution, and a figure that lies far off counts no more than the next.
//!
//! Also of two programs measured in turns, in pairs of which half begin with the one and half with the other, until the ratio is
//! clear: when to judge, and what the pairs say then.

use super::deals::{Deals, count};
use super::distributions::{median, t_quantile, winsorise};

/// Fewer figures on a side are not judged.
pub const LEAST_OBSERVATIONS: usize = 3;

/// A figure of nothing counts as this part of the base's median, since it has no logarithm.
const LEAST_PART: f64 = 1e-6;

/// A ratio of medians, new over base, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    pub base_median: f64,
    /// Median of what is compared with it.
    pub new_median: f64,
    /// How many times the base's median the new side's is: 1 where both are the same.
    pub ratio: f64,
    /// Lower end of the interval; 0 when there are too few runs for one.
    pub low: f64,
    /// Upper end of the interval; infinite when there are too few runs for one.
    pub high: f64,
}

/// Ratio of the medians of independent runs, with an interval of the given confidence (0.95); `None`
/// when a side has no run, a figure is no number, or the base's median is not positive.
pub fn ratio(base: &[f64], new: &[f64], confidence: f64) -> Option<RatioEstimate> {
    let logs = Logs::new(base, new)?;
    let deals = Deals::new(base.len(), new.len());
    let shift = Shift::new(&logs.base, &logs.new, &deals, (1.0 - confidence) / 2.0);
    Some(logs.estimate(&shift, &[]))
}

/// Logarithms of both sides' figures.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    base_median: f64,
    new_median: f64,
    pub(super) base: Vec<f64>,
    pub(super) new: Vec<f64>,
}

impl Logs {
    pub(super) fn new(base: &[f64], new: &[f64]) -> Option<Logs> {
        if base.iter().chain(new).any(|value| !value.is_finite()) {
            return None;
        }
        let (base_median, new_median) = (median(base)?, median(new)?);
        let least = base_median * LEAST_PART;
        if base_median <= 0.0 {
            return None;
        }
        let [base, new] =
            [base, new].map(|values| values.iter().map(|value| value.max(least).ln()).collect());
        Some(Logs { base_median, new_median, base, new })
    }

    pub(super) fn ratio(&self) -> f64 {
        self.new_median / self.base_median
    }

    /// The ratio with the interval of `shift`, which agrees with what is said of the shifts in `thresholds`.
    pub(super) fn estimate(&self, shift: &Shift<'_>, thresholds: &[f64]) -> RatioEstimate {
        let (low, high) = shift.interval(thresholds);
        let ratio = self.ratio();
        RatioEstimate {
            base_median: self.base_median,
            new_median: self.new_median,
            ratio,
            low: low.exp().min(ratio),
            high: high.exp().max(ratio),
        }
    }
}

/// What a ratio says of the new figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Better than the base, by more than the margin.
    Better,
    /// Within the margin, and certain to be.
    Equal,
    /// Worse than the base, by more than the margin.
    Worse,
    /// The runs do not tell.
    Unclear,
}

/// The word for an estimate. `margin` (0.03 for 3 %) is how much does not matter.
pub fn verdict(estimate: &RatioEstimate, margin: f64, higher_is_better: bool) -> Verdict {
    let (lowest, highest) = (1.0 - margin, 1.0 + margin);
    if estimate.low > lowest && estimate.high < highest {
        return Verdict::Equal;
    }
    let up = if higher_is_better { Verdict::Better } else { Verdict::Worse };
    let down = if higher_is_better { Verdict::Worse } else { Verdict::Better };
    if estimate.ratio > highest && estimate.low > 1.0 {
        up
    } else if estimate.ratio < lowest && estimate.high < 1.0 {
        down
    } else {
        Verdict::Unclear
    }
}

/// Halvings that find an end of an interval.
const HALVINGS: usize = 24;

/// Sums that differ by less are the same figures added in another order.
const ROUNDING: f64 = 1e-9;

/// Two samples on a scale on which a change is a shift, such as logarithms.
#[derive(Clone, Debug)]
pub(super) struct Shift<'a> {
    base: &'a [f64],
    new: &'a [f64],
    /// `None` where there are too few for a test at this chance of error.
    deals: Option<&'a Deals>,
    /// Chance of error on either side.
    tail: f64,
    /// The difference of the medians.
    pub(super) estimate: f64,
}

impl<'a> Shift<'a> {
    /// `deals` are those of the two sizes, which are not 0.
    pub(super) fn new(base: &'a [f64], new: &'a [f64], deals: &'a Deals, tail: f64) -> Shift<'a> {
        let is_enough = count(base.len(), new.len()) * tail >= 1.0;
        let medians = [base, new].map(|side| median(side).unwrap_or(f64::NAN));
        Shift {
            base,
            new,
            deals: is_enough.then_some(deals),
            tail,
            estimate: medians[1] - medians[0],
        }
    }

    /// Whether the shift is above `by`, but for the chance of error.
    pub(super) fn is_above(&self, by: f64) -> bool {
        self.is_beyond(by, 1.0)
    }

    /// Whether the shift is below `by`, but for the chance of error.
    pub(super) fn is_below(&self, by: f64) -> bool {
        self.is_beyond(by, -1.0)
    }

    /// The test of permutation: how many deals give the side that is shifted back as large a sum.
    fn is_beyond(&self, by: f64, sign: f64) -> bool {
        let Some(deals) = self.deals else {
            return sign * (self.estimate - by) > self.students_width();
        };
        let base = self.base.iter().map(|value| sign * value);
        let new = self.new.iter().map(|value| sign * (value - by));
        let mut scores: Vec<f64> = base.chain(new).collect();
        winsorise(&mut scores);
        // Sums about the middle are small, and so is their rounding.
        let centre = scores.iter().sum::<f64>() / scores.len() as f64;
        let mut largest: f64 = 0.0;
        for score in &mut scores {
            *score -= centre;
            largest = largest.max(score.abs());
        }
        let allowed = (deals.len() as f64 * self.tail) as usize;
        let mut sums =
            deals.iter().map(|deal| deal.iter().map(|place| scores[*place as usize]).sum::<f64>());
        let real = sums.next().unwrap_or_default() - ROUNDING * largest;
        let mut as_large = 1;
        as_large <= allowed
            && sums.all(|sum| {
                as_large += usize::from(sum >= real);
                as_large <= allowed
            })
    }

    /// Half the width of Student's interval, for so few figures that deals do not tell.
    fn students_width(&self) -> f64 {
        let (error, degrees) = students_error(self.base, self.new);
        if degrees < 1.0 {
            return f64::INFINITY;
        }
        t_quantile(self.tail, degrees) * error
    }

    /// The interval of what the tests do not refuse. It agrees with what they say of no shift, and of those in
    /// `thresholds`.
    pub(super) fn interval(&self, thresholds: &[f64]) -> (f64, f64) {
        if self.deals.is_none() {
            let width = self.students_width();
            return (self.estimate - width, self.estimate + width);
        }
        // Beyond these one side lies wholly above the other.
        let lowest = minimum(self.new) - maximum(self.base);
        let highest = maximum(self.new) - minimum(self.base);
        let beyond = 0.01 * (highest - lowest);
        let (lowest, highest) = (lowest - beyond, highest + beyond);
        let low = end(lowest, highest, thresholds, |by| self.is_above(by));
        let high = end(highest, lowest, thresholds, |by| self.is_below(by));
        (low.min(self.estimate), high.max(self.estimate))
    }
}

/// Where refusal ends between `far`, which is refused, and `near`, which is not.
fn end(mut far: f64, mut near: f64, thresholds: &[f64], is_refused: impl Fn(f64) -> bool) -> f64 {
    if far == near {
        return far;
    }
    for at in thresholds.iter().chain(&[0.0]) {
        if (at - far) * (at - near) < 0.0 {
            *(if is_refused(*at) { &mut far } else { &mut near }) = *at;
        }
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(far, near);
        *(if is_refused(middle) { &mut far } else { &mut near }) = middle;
    }
    f64::midpoint(far, near)
}

/// Standard error of the difference of two means, with one variance for both, and its degrees of freedom.
fn students_error(base: &[f64], new: &[f64]) -> (f64, f64) {
    let counts = [base, new].map(|values| values.len() as f64);
    let degrees = counts[0] + counts[1] - 2.0;
    let variance = (squares_about_mean(base) + squares_about_mean(new)) / degrees;
    ((variance * (1.0 / counts[0] + 1.0 / counts[1])).sqrt(), degrees)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares_about_mean(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn maximum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Fewer pairs decide nothing: four that begin with the one and four with the other can be dealt in 70 ways.
pub const FEWEST_PAIRS: u32 = 8;

/// Chance of error on either side, all analyses together. At most 5 % are promised on both, and are to hold in a count of
/// 1,000 comparisons too.
const TAIL: f64 = 0.02;

/// The part of it that the first analysis has. Most comparisons end there, and 8 pairs tell nothing with less.
const PART_OF_FIRST: f64 = 0.72;

/// Launches a side at the first analysis: six and six can be dealt in 924 ways, enough for a quarter of the chance of error.
const FIRST_LAUNCHES: f64 = 6.0;

/// Analyses of launches. More of them would leave each so little that the first ones find nothing.
const MOST_ANALYSES: f64 = 4.0;

/// How many times as many launches there are at an analysis as at the one before it, at least.
const GROWTH: f64 = 1.5;

/// One run of each program, one right after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Whether the new program went first.
    pub new_first: bool,
    /// Figure of the program that is compared with.
    pub base: f64,
    /// Figure of the new program.
    pub new: f64,
}

/// Whether the new program goes first in a pair: A B, B A, B A, A B, and so on. In each block of two pairs either does, and
/// what drifts or comes and goes slowly meets both alike.
pub fn goes_first(pair: u32) -> bool {
    matches!(pair % 4, 0 | 1)
}

/// After how many pairs, or launches a side, it is judged whether it is clear, chosen beforehand: whoever judges more often
/// finds more by chance. Each analysis has its part of the chance of error (Bonferroni).
#[derive(Clone, Debug, PartialEq)]
pub struct InterimAnalyses {
    planned: Vec<u32>,
    fewest: u32,
    part_of_first: f64,
}

impl InterimAnalyses {
    /// Analyses after `first` pairs, after `last`, and once between; all are even.
    pub fn planned(first: u32, last: u32) -> InterimAnalyses {
        let earliest = first.max(FEWEST_PAIRS);
        let middle = u32::midpoint(earliest, last).next_multiple_of(2);
        let mut planned = vec![earliest, middle, last - last % 2];
        planned.retain(|pairs| (earliest..=last).contains(pairs));
        planned.dedup();
        InterimAnalyses { planned, fewest: FEWEST_PAIRS, part_of_first: PART_OF_FIRST }
    }

    /// Analyses of launches, of which there are at most `last` a side, all with the same part.
    pub fn of_launches(last: u32) -> InterimAnalyses {
        let times = f64::from(last) / FIRST_LAUNCHES;
        let steps = (times.ln() / GROWTH.ln()).clamp(0.0, MOST_ANALYSES - 1.0).floor();
        let before_last = (0..steps as u32)
            .map(|step| (FIRST_LAUNCHES * times.powf(f64::from(step) / steps)).round() as u32);
        InterimAnalyses {
            planned: before_last.chain([last]).collect(),
            fewest: LEAST_OBSERVATIONS as u32,
            part_of_first: 1.0 / (steps + 1.0),
        }
    }

    /// Whether one is due after so many. The end is one whenever it comes, but not before the fewest.
    pub fn is_due(&self, count: u32, is_last: bool) -> bool {
        count >= self.fewest && (is_last || self.planned.contains(&count))
    }

    /// The part of the chance of error that an analysis after so many has: that of the next one that was planned.
    pub fn part(&self, count: u32) -> f64 {
        let next = self.planned.iter().position(|planned| *planned >= count);
        match (next, self.planned.len()) {
            (_, 0 | 1) => 1.0,
            (Some(0), _) => self.part_of_first,
            (_, planned) => (1.0 - self.part_of_first) / (planned - 1) as f64,
        }
    }

    /// Chance of error on either side that an analysis after so many pairs has.
    pub fn tail(&self, pairs: u32) -> f64 {
        TAIL * self.part(pairs)
    }
}

/// The ratio of two programs, new over base, with the interval that leaves out a chance of `tail` on either side; `None`
/// without a pair, or with a figure that is not positive.
///
/// What going first gives is the same in all pairs, so it is how much the pairs that begin with the one differ from
/// those that begin with the other which tells, twice over, how the programs differ.
pub fn ratio_in_turns(turns: &[Turn], tail: f64) -> Option<RatioEstimate> {
    if turns.is_empty()
        || !turns
            .iter()
            .all(|turn| [turn.base, turn.new].iter().all(|it| it.is_finite() && *it > 0.0))
    {
        return None;
    }
    let base_median = median_of(turns, |turn| turn.base)?;
    let new_median = median_of(turns, |turn| turn.new)?;
    let [base_first, new_first] =
        [false, true].map(|new_first| first_over_second(turns, new_first));
    let (log, low, high) = if base_first.is_empty() || new_first.is_empty() {
        let log = median_of(turns, |turn| (turn.new / turn.base).ln())?;
        (log, f64::NEG_INFINITY, f64::INFINITY)
    } else {
        let deals = Deals::new(base_first.len(), new_first.len());
        let shift = Shift::new(&base_first, &new_first, &deals, tail);
        let (low, high) = shift.interval(&[]);
        (shift.estimate / 2.0, low / 2.0, high / 2.0)
    };
    Some(RatioEstimate {
        base_median,
        new_median,
        ratio: log.exp(),
        low: low.exp(),
        high: high.exp(),
    })
}

fn median_of(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> Option<f64> {
    median(&turns.iter().map(figure).collect::<Vec<f64>>())
}

/// Logarithms of the first program's figure over the second's, of the pairs in this order.
fn first_over_second(turns: &[Turn], new_first: bool) -> Vec<f64> {
    let sign = if new_first { 1.0 } else { -1.0 };
    turns
        .iter()
        .filter(|turn| turn.new_first == new_first)
        .map(|turn| (turn.new / turn.base).ln() * sign)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [9.8, 10.0, 10.1, 10.3, 9.9];
    const NEW: [f64; 5] = [9.1, 9.0, 9.3, 8.8, 9.05];

    #[test]
    fn an_interval_holds_its_estimate_and_widens_with_confidence() {
        let narrow = ratio(&BASE, &NEW, 0.95).unwrap();
        let wide = ratio(&BASE, &NEW, 0.99).unwrap();
        assert!((narrow.ratio - 0.905).abs() < 1e-9);
        assert!(wide.low < narrow.low && narrow.low < narrow.ratio);
        assert!(narrow.ratio < narrow.high && narrow.high < wide.high);
        assert!(narrow.high < 1.0, "{narrow:?}");
    }

    #[test]
    fn swapped_sides_give_the_inverse() {
        let there = ratio(&BASE, &NEW, 0.95).unwrap();
        let back = ratio(&NEW, &BASE, 0.95).unwrap();
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((there.low * back.high - 1.0).abs() < 1e-6);
    }

    #[test]
    fn figures_of_nothing_and_too_few() {
        assert_eq!(ratio(&[], &[1.0], 0.95), None);
        assert_eq!(ratio(&[0.0, 0.0], &[1.0, 1.0], 0.95), None);
        assert_eq!(ratio(&[f64::NAN, 1.0], &[1.0, 1.0], 0.95), None);
        let one = ratio(&[2.0], &[1.0], 0.95).unwrap();
        assert_eq!((one.ratio, one.low, one.high), (0.5, 0.0, f64::INFINITY));
        let stopped = ratio(&[2.0, 2.1, 1.9, 2.0], &[0.0; 4], 0.95).unwrap();
        assert_eq!((stopped.ratio, stopped.low), (0.0, 0.0));
        assert!(stopped.high < 2e-6);
        let same = ratio(&[2.0; 5], &[2.0; 5], 0.95).unwrap();
        assert_eq!((same.ratio, same.low, same.high), (1.0, 1.0, 1.0));
    }

    const CENTRED: [f64; 5] = [0.9, -0.4, 0.1, -1.1, 0.3];

    fn interval(base: &[f64], new: &[f64]) -> (f64, f64) {
        Shift::new(base, new, &Deals::new(base.len(), new.len()), 0.025).interval(&[])
    }

    #[test]
    fn the_interval_is_where_the_tests_turn_round() {
        let new = CENTRED.map(|value| 2.0 * value + 1.0);
        let deals = Deals::new(5, 5);
        let shift = Shift::new(&CENTRED, &new, &deals, 0.025);
        let (low, high) = shift.interval(&[]);
        assert!(low < shift.estimate && shift.estimate < high);
        for (at, above, below) in [(low, true, false), (high, false, true)] {
            let (under, over) = (at - 1e-5, at + 1e-5);
            let found = [under, over].map(|near| (shift.is_above(near), shift.is_below(near)));
            assert_eq!(found, [(above, false), (false, below)]);
        }
    }

    #[test]
    fn full_separation_of_five_and_five_is_one_deal_of_252() {
        let deals = Deals::new(5, 5);
        let new = CENTRED.map(|value| value + 3.0);
        let shift = Shift::new(&CENTRED, &new, &deals, 1.0 / 251.0);
        assert!(shift.is_above(0.0));
        let one_back = [-0.3, 2.6, 3.1, 1.9, 3.3];
        let less_clear = Shift::new(&CENTRED, &one_back, &deals, 1.0 / 251.0);
        assert!(!less_clear.is_above(0.0));
    }

    #[test]
    fn figures_that_do_not_scatter_have_no_width_and_three_have_students() {
        let (low, high) = interval(&[1.0; 5], &[1.5; 5]);
        assert!((low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9);
        let (least, most) = interval(&[-1.0, 0.0, 1.0], &[-1.0, 0.0, 1.0]);
        // 2.776 x sqrt(2/3)
        assert!((most - 2.2666).abs() < 1e-3 && (least + most).abs() < 1e-12);
        assert_eq!(interval(&[1.0], &[2.0]), (f64::NEG_INFINITY, f64::INFINITY));
    }

    /// Pairs in which the new program is so many times as fast, and going first is worth 10 %.
    fn turns(pairs: u32, times: f64) -> Vec<Turn> {
        (1..=pairs)
            .map(|pair| {
                let luck = 10.0 + 0.1 * f64::from(pair * 7 % 10);
                let (own, other) = if goes_first(pair) { (1.1, 1.0) } else { (1.0, 1.1) };
                Turn { new_first: goes_first(pair), base: luck * other, new: luck * own * times }
            })
            .collect()
    }

    #[test]
    fn either_goes_first_once_in_every_block_of_two() {
        let first: Vec<bool> = (1..=8).map(goes_first).collect();
        assert_eq!(first, [true, false, false, true, true, false, false, true]);
    }

    #[test]
    fn going_first_does_not_count() {
        for times in [0.8, 1.0, 1.2] {
            let found = ratio_in_turns(&turns(8, times), 0.015).unwrap();
            assert!((found.ratio / times - 1.0).abs() < 1e-9, "{found:?}");
            let is_narrow = found.low / times > 0.999 && found.high / times < 1.001;
            assert!(is_narrow, "{found:?}");
        }
    }

    #[test]
    fn one_order_only_has_a_ratio_and_no_interval() {
        let found = ratio_in_turns(&turns(1, 1.2), 0.02).unwrap();
        assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
        assert_eq!(ratio_in_turns(&[], 0.02), None);
        let stopped = Turn { new_first: true, base: 1.0, new: 0.0 };
        assert_eq!(ratio_in_turns(&[stopped], 0.02), None);
    }

    #[test]
    fn analyses_are_planned_and_share_the_chance_of_error() {
        let analyses = InterimAnalyses::planned(8, 24);
        let planned: Vec<u32> = (1..=24).filter(|pairs| analyses.is_due(*pairs, false)).collect();
        assert_eq!(planned, [8, 16, 24]);
        let sum: f64 = planned.iter().map(|pairs| analyses.tail(*pairs)).sum();
        assert!((sum - TAIL).abs() < 1e-12);
        assert!(analyses.is_due(10, true) && !analyses.is_due(6, true));
        assert_eq!(analyses.tail(10), analyses.tail(16));
        assert_eq!(InterimAnalyses::planned(12, 12).tail(12), TAIL);
        assert!(!InterimAnalyses::planned(2, 6).is_due(6, true));
        let early = InterimAnalyses::planned(2, 24);
        assert!(!early.is_due(2, false) && early.is_due(8, false));
    }
}
