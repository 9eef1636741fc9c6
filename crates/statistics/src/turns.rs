//! Two programs measured in turns, in pairs of which half begin with the one and half with the other, until the ratio is
//! clear: what the pairs say at a look.

use super::deals::Deals;
use super::median::median;
use super::ratio::RatioEstimate;
use super::shift::Shift;

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

/// The ratio of two programs, new over base, with the interval that leaves out a chance of `tail` on either side; `None`
/// without a pair, or with a figure that is not positive.
///
/// What going first gives is the same in all pairs, so it is how much the pairs that begin with the one differ from
/// those that begin with the other which tells, twice over, how the programs differ.
pub fn ratio_in_turns(turns: &[Turn], tail: f64) -> Option<RatioEstimate> {
    let positive = |turn: &Turn| {
        [turn.base, turn.new]
            .iter()
            .all(|it| it.is_finite() && *it > 0.0)
    };
    if turns.is_empty() || !turns.iter().all(positive) {
        return None;
    }
    let figures = |of: fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let (base_median, new_median) = (
        median(&figures(|it| it.base))?,
        median(&figures(|it| it.new))?,
    );
    let first_over_second = |new_first: bool| -> Vec<f64> {
        let of = turns.iter().filter(|turn| turn.new_first == new_first);
        of.map(|turn| (turn.new / turn.base).ln() * if new_first { 1.0 } else { -1.0 })
            .collect()
    };
    let (base_first, new_first) = (first_over_second(false), first_over_second(true));
    let (log, low, high) = if base_first.is_empty() || new_first.is_empty() {
        let log = median(&figures(|it| (it.new / it.base).ln()))?;
        (log, f64::NEG_INFINITY, f64::INFINITY)
    } else {
        let deals = Deals::of(base_first.len(), new_first.len());
        let shift = Shift::of(&base_first, &new_first, &deals, tail)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs in which the new program is so many times as fast, and going first is worth 10 %.
    fn turns(pairs: u32, times: f64) -> Vec<Turn> {
        let turn = |pair: u32| {
            let luck = 10.0 + 0.1 * f64::from(pair * 7 % 10);
            let (own, other) = if goes_first(pair) {
                (1.1, 1.0)
            } else {
                (1.0, 1.1)
            };
            Turn {
                new_first: goes_first(pair),
                base: luck * other,
                new: luck * own * times,
            }
        };
        (1..=pairs).map(turn).collect()
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
        let stopped = Turn {
            new_first: true,
            base: 1.0,
            new: 0.0,
        };
        assert_eq!(ratio_in_turns(&[stopped], 0.02), None);
    }
}
