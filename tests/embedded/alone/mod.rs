//! Tests that have the machine alone, [`alone`](crate::program::alone): they measure, or lose packets. In one place,
//! for tests start in the order of their names: so the others are not kept waiting between them.

mod counters;
mod cpu_time;
mod drift;
mod losses;
mod omission;
mod search;
mod truth;
mod window;
