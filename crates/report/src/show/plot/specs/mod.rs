//! Figures of lines, one a file. Each is a value; a new one is a file and its line here and in `sections`.

pub mod bandwidth_by_size;
pub mod fan;
pub mod latency;
pub mod latency_by_load;
pub mod latency_by_throughput;
pub mod rate_by_qps;
mod searches;
pub mod set_up;
mod set_up_steps;
pub mod workers;
