//! What is demanded of each flow of a sweep (`--fail-below`, `--fail-if`), and the sweep as a report of tests
//! (`--junit`). It must not know how anything is run.

mod asked;
mod condition;
mod demands;
mod judged;

pub use asked::{Threshold, ThresholdError};
pub use condition::{Condition, ConditionError};
pub use demands::Demands;
pub use judged::{Judged, Suite, failing, judge};
