//! How far one sample lies above another, by exact tests of permutation: they suppose no distribution, and a figure that
//! lies far off counts no more than the next. It must not know that there are other questions.

use super::deals::{Deals, count};
use super::median::median;
use super::special::{t_above, t_quantile};

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

/// Pulls extremes in: at either end one of ten becomes as far out as the next.
pub(super) fn winsorise(values: &mut [f64]) {
    let pulled = (values.len() + 5) / 10;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mirrored = sorted.len().checked_sub(pulled + 1);
    let Some((low, high)) = sorted.get(pulled).zip(mirrored.map(|at| sorted[at])) else {
        return;
    };
    // Of two values both are pulled.
    if *low <= high {
        for value in values {
            *value = value.clamp(*low, high);
        }
    }
}

impl<'a> Shift<'a> {
    /// `None` of an empty side. `deals` are those of the two sizes.
    pub(super) fn of(
        base: &'a [f64],
        new: &'a [f64],
        deals: &'a Deals,
        tail: f64,
    ) -> Option<Shift<'a>> {
        let enough = count(base.len(), new.len()) * tail >= 1.0;
        Some(Shift {
            base,
            new,
            deals: enough.then_some(deals),
            tail,
            estimate: median(new)? - median(base)?,
        })
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
        let sum = |runs: &[u32]| runs.iter().map(|run| scores[*run as usize]).sum::<f64>();
        let allowed = (deals.len() as f64 * self.tail) as usize;
        let mut sums = deals.iter().map(sum);
        let made = sums.next().unwrap_or_default() - ROUNDING * largest;
        let mut as_large = 1;
        as_large <= allowed
            && sums.all(|sum| {
                as_large += usize::from(sum >= made);
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
    /// `asked`.
    pub(super) fn interval(&self, asked: &[f64]) -> (f64, f64) {
        if self.deals.is_none() {
            let width = self.students_width();
            return (self.estimate - width, self.estimate + width);
        }
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Beyond these one side lies wholly above the other.
        let lowest = least(self.new) - most(self.base);
        let highest = most(self.new) - least(self.base);
        let beyond = 0.01 * (highest - lowest);
        let (lowest, highest) = (lowest - beyond, highest + beyond);
        let low = end(lowest, highest, asked, |by| self.is_above(by));
        let high = end(highest, lowest, asked, |by| self.is_below(by));
        (low.min(self.estimate), high.max(self.estimate))
    }
}

/// Where refusal ends between `far`, which is refused, and `near`, which is not.
fn end(mut far: f64, mut near: f64, asked: &[f64], is_refused: impl Fn(f64) -> bool) -> f64 {
    if far == near {
        return far;
    }
    let look = |at: f64, far: &mut f64, near: &mut f64| {
        *(if is_refused(at) { far } else { near }) = at;
    };
    for at in asked.iter().chain(&[0.0]) {
        if (at - far) * (at - near) < 0.0 {
            look(*at, &mut far, &mut near);
        }
    }
    for _ in 0..HALVINGS {
        look(f64::midpoint(far, near), &mut far, &mut near);
    }
    f64::midpoint(far, near)
}

/// Standard error of the difference of two means, with one variance for both, and its degrees of freedom.
fn students_error(base: &[f64], new: &[f64]) -> (f64, f64) {
    let squares = |values: &[f64]| {
        let centre = mean(values);
        values.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
    };
    let counts = [base, new].map(|values| values.len() as f64);
    let degrees = counts[0] + counts[1] - 2.0;
    let variance = (squares(base) + squares(new)) / degrees;
    ((variance * (1.0 / counts[0] + 1.0 / counts[1])).sqrt(), degrees)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Student's probability that `new` lies so far above `base` by chance; 1 where it lies below.
pub(super) fn students_p_above(base: &[f64], new: &[f64]) -> f64 {
    let (error, degrees) = students_error(base, new);
    let above = mean(new) - mean(base);
    if above <= 0.0 || degrees < 1.0 {
        return 1.0;
    }
    t_above(above / error, degrees)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [0.9, -0.4, 0.1, -1.1, 0.3];

    fn interval(base: &[f64], new: &[f64]) -> (f64, f64) {
        let deals = Deals::of(base.len(), new.len());
        let shift = Shift::of(base, new, &deals, 0.025).unwrap();
        shift.interval(&[])
    }

    #[test]
    fn the_interval_is_where_the_tests_turn_round() {
        let new = BASE.map(|value| 2.0 * value + 1.0);
        let deals = Deals::of(5, 5);
        let shift = Shift::of(&BASE, &new, &deals, 0.025).unwrap();
        let (low, high) = shift.interval(&[]);
        assert!(low < shift.estimate && shift.estimate < high);
        for (at, above, below) in [(low, true, false), (high, false, true)] {
            let (under, over) = (at - 1e-5, at + 1e-5);
            let found = [under, over].map(|at| (shift.is_above(at), shift.is_below(at)));
            assert_eq!(found, [(above, false), (false, below)]);
        }
    }

    #[test]
    fn full_separation_of_five_and_five_is_one_deal_of_252() {
        let deals = Deals::of(5, 5);
        let new = BASE.map(|value| value + 3.0);
        let shift = Shift::of(&BASE, &new, &deals, 1.0 / 251.0).unwrap();
        assert!(shift.is_above(0.0));
        let one_back = [-0.3, 2.6, 3.1, 1.9, 3.3];
        let shift = Shift::of(&BASE, &one_back, &deals, 1.0 / 251.0).unwrap();
        assert!(!shift.is_above(0.0));
    }

    #[test]
    fn one_outlier_does_not_blow_it_up() {
        let new = [0.2, -0.7, 0.5, 1.0, -0.2];
        let (low, high) = interval(&BASE, &new);
        for outlier in [30.0, -30.0, 1e6] {
            for side in 0..2 {
                let mut sides = [BASE, new];
                sides[side][0] = outlier;
                let (l, h) = interval(&sides[0], &sides[1]);
                assert!(h - l < 2.0 * (high - low), "{outlier}: {l}..{h}");
            }
        }
    }

    #[test]
    fn figures_that_do_not_scatter_have_no_width_and_three_have_students() {
        let (low, high) = interval(&[1.0; 5], &[1.5; 5]);
        assert!((low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9);
        let (low, high) = interval(&[-1.0, 0.0, 1.0], &[-1.0, 0.0, 1.0]);
        // 2.776 x sqrt(2/3)
        assert!((high - 2.2666).abs() < 1e-3 && (low + high).abs() < 1e-12);
        assert_eq!(interval(&[1.0], &[2.0]), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
