//! A throughput that each flow of a sweep must reach (`--fail-below`), and the sweep as a report of tests (`--junit`). It
//! must not know how anything is run.

mod asked;
mod judged;
pub mod junit;

pub use asked::{Threshold, ThresholdError};
pub use judged::{Judged, Suite, failing, judge};
