//! From an interval to a word.

use super::RatioEstimate;

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
