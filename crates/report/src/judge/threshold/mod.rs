//! What is demanded of each flow of a sweep (`--fail-below`, `--fail-if`), and which flows do not keep it.

mod condition;
mod demands;
mod judged;

pub use condition::{Condition, ConditionError, Limit, Relation};
pub use demands::Demands;
pub use judged::{Failure, Judged, Suite, judge};
