//! One experiment: sides are measured in rounds, in turns, until it is clear at a planned look whether one is better, or the
//! stop rule ends it. A side is whatever the caller can measure: a case, a process, another program, a case with one setting
//! changed. Time is the caller's.
//!
//! [`run`] is the loop, over any [`Measurer`]. [`InTurns`] is one whose rounds are compared pair by pair, a base with any
//! number of others. [`judge_together`] finds the words for figures that were measured in launches.

mod judge;
mod rounds;
mod turns;

pub use judge::{Units, judge_together};
pub use rounds::{LaunchPlan, Measurer, Round, Stop, run, turn};
pub use turns::{Bench, InTurns, Measured, Question};
