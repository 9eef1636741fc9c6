//! What a handful of runs tells: medians, intervals of their ratio, exact tests of many questions together, the word
//! for it; and whether arrivals are those of a Poisson process. `docs/dev/statistics.md` has the reasons, the sources and
//! the proof by simulation.

mod arrivals;
mod distributions;
mod interim;
mod judgement;
mod permutations;
mod questions;
mod ratio;
mod robust;
mod shares;
#[cfg(test)]
mod tests;

pub use arrivals::{LEAST_GAPS, gaps_p_value};
pub use distributions::t_quantile;
pub use interim::{FEWEST_PAIRS, InterimAnalyses, Turn, goes_first, ratio_in_turns};
pub use judgement::{Answer, Judgement, Reach, Unsettled, Verdicts, judge, verdicts};
pub use permutations::Unit;
pub use questions::{Figures, LEAST_OBSERVATIONS, Pooled, Question};
pub use ratio::{RatioEstimate, Verdict, ratio, verdict};
pub use robust::{Scatter, median, reach, spread};
pub use shares::{Shares, is_starved, shares};
