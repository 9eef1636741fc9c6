//! Figures and where they come from: clock, histograms, fairness, CPU time, device counters, protocol
//! limits. It must not know cases' transport or how results are written.

mod cgroup;
pub mod clock;
pub mod core_locks;
pub mod counters;
pub mod cpu;
pub mod drift;
pub mod fairness;
pub mod histogram;
pub mod limits;
pub mod memory;
#[cfg(test)]
mod noise;
pub mod steady;
pub mod timeline;
mod trend;

pub use clock::Clock;
pub use histogram::{Digits, Recorder, Samples, digits_for};
pub use timeline::Timeline;
