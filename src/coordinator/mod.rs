//! Steers a sweep, case by case and run by run: each step is a message to all nodes and an answer from each. It has no
//! QPs.

mod against;
mod assemble;
mod beside;
pub(crate) mod check;
pub mod interface;
mod links;
mod lock_step;
mod nodes;
mod quick;
pub mod ranks;
mod report_check;
mod run;
mod search;
mod search_bounds;
pub mod session;
pub mod soak;
mod stages;
pub mod sweep;
pub mod sweeper;
mod why;
