//! The figures, one kind a file. They must not know where they are shown or written.

pub mod bandwidth_by_size;
pub mod comparison;
mod curves;
mod distribution;
mod fan;
pub mod grid;
mod groups;
pub mod heat_map;
pub mod latency;
pub mod latency_by_load;
pub mod latency_by_throughput;
mod load_chart;
mod load_lines;
mod load_words;
mod naming;
pub mod nodes;
mod panels;
pub mod qp_shares;
pub mod rate_by_qps;
mod ratio_scale;
pub mod ratios;
pub mod set_up;
mod settings;
pub mod shares;
mod steadiness;
mod steps;
mod time_axis;
pub mod timeline;
pub mod trend;
pub mod workers;

#[cfg(test)]
mod tests;
