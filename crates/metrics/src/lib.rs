//! Figures and where they come from: clock, histograms, device counters, protocol limits.

pub mod clock;
pub mod counters;
pub mod drift;
pub mod histogram;
pub mod interval;
pub mod limits;
#[cfg(test)]
mod noise;
pub mod qp_timeline;
pub mod steady;
pub mod timeline;
mod trend;

pub use clock::Clock;
pub use histogram::{Digits, Recorder, Samples, digits_for};
pub use interval::IntervalLatency;
pub use qp_timeline::QpTimeline;
pub use timeline::Timeline;
