//! What a handful of runs tells: medians, bootstrap intervals of their ratio, exact rank tests corrected for
//! how many there are, and the word for it. Pure arithmetic; it must not know results, metrics or programs.
//! `docs/statistics.md` has the reasons, the sources and the proof by simulation.

mod family;
#[cfg(test)]
mod family_tests;
mod rank;
mod ratio;
mod special;
mod verdict;

pub use family::{Answer, LEAST_OBSERVATIONS, Question, Unsettled, judge};
pub use ratio::{RatioEstimate, median, paired_ratio, ratio};
pub use verdict::{Verdict, verdict};
