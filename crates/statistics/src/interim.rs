//! Two programs measured in turns, in pairs of which half begin with the one and half with the other, until the ratio is
//! clear: when to look, and what the pairs say at a look.

use super::permutations::Permutations;
use super::questions::LEAST_OBSERVATIONS;
use super::ratio::{RatioEstimate, Shift};
use super::robust::median;

/// Fewer pairs decide nothing: four that begin with the one and four with the other can be assigned in 70 ways.
pub const FEWEST_PAIRS: u32 = 8;

/// Chance of error on either side, all looks together. At most 5 % are promised on both, and are to hold in a count of
/// 1,000 comparisons too.
const TAIL: f64 = 0.02;

/// The part of it that the first look has. Most comparisons end there, and 8 pairs tell nothing with less.
const PART_OF_FIRST_LOOK: f64 = 0.72;

/// Launches a side at the first look: six and six can be assigned in 924 ways, enough for a quarter of the chance that a
/// metric over all cases has.
const FIRST_LAUNCHES: f64 = 6.0;

/// Looks at launches. A fifth of that chance is less than one permutation of a sample.
const MOST_LOOKS: f64 = 4.0;

/// How many times as many launches there are at a look as at the one before it, at least.
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

/// After how many pairs, or launches a side, it is looked whether it is clear, chosen beforehand: whoever looks more often
/// finds more by chance. Each look has its part of the chance of error (Bonferroni).
#[derive(Clone, Debug, PartialEq)]
pub struct InterimAnalyses {
    planned: Vec<u32>,
    fewest: u32,
    part_of_first: f64,
}

impl InterimAnalyses {
    /// Looks after `first` pairs, after `last`, and once between; all are even.
    pub fn planned(first: u32, last: u32) -> InterimAnalyses {
        let earliest = first.max(FEWEST_PAIRS);
        let middle = u32::midpoint(earliest, last).next_multiple_of(2);
        let mut planned = vec![earliest, middle, last - last % 2];
        planned.retain(|pairs| (earliest..=last).contains(pairs));
        planned.dedup();
        InterimAnalyses { planned, fewest: FEWEST_PAIRS, part_of_first: PART_OF_FIRST_LOOK }
    }

    /// Looks at launches, of which there are at most `last` a side, all with the same part.
    pub fn of_launches(last: u32) -> InterimAnalyses {
        let times = f64::from(last) / FIRST_LAUNCHES;
        let steps = (times.ln() / GROWTH.ln()).clamp(0.0, MOST_LOOKS - 1.0).floor();
        let before_last = (0..steps as u32)
            .map(|step| (FIRST_LAUNCHES * times.powf(f64::from(step) / steps)).round() as u32);
        InterimAnalyses {
            planned: before_last.chain([last]).collect(),
            fewest: LEAST_OBSERVATIONS as u32,
            part_of_first: 1.0 / (steps + 1.0),
        }
    }

    /// Whether it is looked after so many. The end is a look whenever it comes, but not before the fewest.
    pub fn is_due(&self, count: u32, is_last: bool) -> bool {
        count >= self.fewest && (is_last || self.planned.contains(&count))
    }

    /// The part of the chance of error that a look after so many has: that of the next one that was planned.
    pub fn part(&self, count: u32) -> f64 {
        let next = self.planned.iter().position(|look| *look >= count);
        match (next, self.planned.len()) {
            (_, 0 | 1) => 1.0,
            (Some(0), _) => self.part_of_first,
            (_, looks) => (1.0 - self.part_of_first) / (looks - 1) as f64,
        }
    }

    /// Chance of error on either side that a look after so many pairs has.
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
        let permutations = Permutations::new(base_first.len(), new_first.len());
        let shift = Shift::new(&base_first, &new_first, &permutations, tail)?;
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
    fn looks_are_planned_and_share_the_chance_of_error() {
        let looks = InterimAnalyses::planned(8, 24);
        let planned: Vec<u32> = (1..=24).filter(|pairs| looks.is_due(*pairs, false)).collect();
        assert_eq!(planned, [8, 16, 24]);
        let sum: f64 = planned.iter().map(|pairs| looks.tail(*pairs)).sum();
        assert!((sum - TAIL).abs() < 1e-12);
        assert!(looks.is_due(10, true) && !looks.is_due(6, true));
        assert_eq!(looks.tail(10), looks.tail(16));
        assert_eq!(InterimAnalyses::planned(12, 12).tail(12), TAIL);
        assert!(!InterimAnalyses::planned(2, 6).is_due(6, true));
        let early = InterimAnalyses::planned(2, 24);
        assert!(!early.is_due(2, false) && early.is_due(8, false));
    }
}
