//! What a handful of runs tells: medians, intervals of their ratio, exact tests of many questions together, the word
//! for it; and whether arrivals are those of a Poisson process. Pure arithmetic; it must not know results, metrics or
//! programs. `docs/dev/statistics.md` has the reasons, the sources and the proof by simulation.

mod arrivals;
mod asked;
mod deals;
mod family;
mod gamma;
mod joint;
#[cfg(test)]
mod joint_tests;
mod judgement;
#[cfg(test)]
mod judgement_tests;
mod median;
mod pooled;
mod ratio;
mod reach;
mod shares;
mod shift;
mod special;
mod turns;
mod verdict;

pub use arrivals::{LEAST_GAPS, gaps_p_value};
pub use asked::{Figures, LEAST_OBSERVATIONS, Question};
pub use family::{Verdicts, verdicts};
pub use joint::Unit;
pub use judgement::{Answer, Judgement, Reach, Unsettled, judge};
pub use median::median;
pub use pooled::Pooled;
pub use ratio::{RatioEstimate, ratio};
pub use reach::{Scatter, reach, spread};
pub use shares::{Shares, is_starved, shares};
pub use special::t_quantile;
pub use turns::{FEWEST_PAIRS, Looks, Turn, goes_first, ratio_in_turns};
pub use verdict::{Verdict, verdict};
