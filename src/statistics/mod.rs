//! What a handful of runs tells: medians, bootstrap intervals of their ratio, and the word for it. Pure
//! arithmetic; it must not know results, metrics or programs.

mod ratio;
mod verdict;

pub use ratio::{RatioEstimate, median, paired_ratio, ratio};
pub use verdict::{Verdict, verdict};
