//! Figures of lines, one a file. Each is a value; a new one is a file and its line here and in `sections`.

pub(crate) mod bandwidth_by_size;
pub(crate) mod fan;
pub(crate) mod latency;
pub(crate) mod latency_by_load;
pub(crate) mod latency_by_throughput;
pub(crate) mod rate_by_qps;
mod searches;
pub(crate) mod set_up;
mod set_up_steps;
pub(crate) mod workers;
