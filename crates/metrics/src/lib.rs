//! Figures and where they come from: clock, histograms, device counters, protocol limits.

mod convergence;
pub mod counters;
mod driver_counters;
pub mod latency;
pub mod limits;
pub mod node_state;
pub mod steady;
pub mod timeline;

pub use convergence::convergence;
pub use driver_counters::{
    CNPS_IGNORED, CNPS_OBEYED, CNPS_SENT, ECN_MARKED, EMBEDDED_DRIVER, concerns_rdma, counts_pauses,
};
pub use latency::{Clock, Digits, IntervalLatency, Recorder, SampleCounters, Samples, digits_for};
pub use node_state::StateTimeline;
pub use timeline::{QpTimeline, Timeline};
