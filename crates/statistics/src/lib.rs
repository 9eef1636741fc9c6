//! What a handful of runs tells: medians, intervals of their ratio, exact tests of many questions together, the word
//! for it; steps in a series of figures; and whether arrivals are those of a Poisson process. `docs/dev/statistics.md` has the
//! reasons, the sources and the proof by simulation.

mod arrivals;
mod deals;
mod distributions;
mod judgement;
mod ratio;
mod steps;
#[cfg(test)]
mod tests;

pub use arrivals::{LEAST_GAPS, Shares, gaps_p_value, is_starved, poisson_at_most, shares};
pub use deals::Unit;
pub use distributions::{Scatter, binomial_at_least, median, reach, spread, t_quantile};
pub use judgement::{
    Answer, Figures, Judgement, Pooled, Question, Reach, Unsettled, Verdicts, can_tell,
    fewest_a_side, judge, verdicts,
};
pub use ratio::{
    FEWEST_PAIRS, InterimAnalyses, LEAST_OBSERVATIONS, RatioEstimate, Turn, Verdict, goes_first,
    ratio, ratio_in_turns, verdict,
};
pub use steps::{Step, fewest_for_a_step, steps};
