//! Figures and where they come from: clock, histograms, device counters, protocol limits.

pub mod clock;
pub mod counters;
pub mod drift;
pub mod histogram;
pub mod limits;
#[cfg(test)]
mod noise;
pub mod qp_timeline;
pub mod steady;
pub mod timeline;

pub use clock::Clock;
pub use histogram::{Digits, IntervalLatency, Recorder, Samples, digits_for};
pub use qp_timeline::QpTimeline;
pub use timeline::Timeline;
