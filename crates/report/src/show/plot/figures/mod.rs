//! The figures, one kind a file. They must not know where they are shown or written.

pub mod bandwidth_by_size;
pub mod comparison;
mod curves;
mod distribution;
mod facets;
mod fan;
pub mod grid;
mod grouping;
mod groups;
pub mod heat_map;
mod intervals;
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
pub mod qp_time;
pub mod rate_by_qps;
mod ratio_scale;
pub mod ratios;
mod sample;
pub mod set_up;
mod set_up_steps;
mod settings;
pub mod shares;
mod steadiness;
mod steps;
mod telling;
mod time_axis;
pub mod timeline;
pub mod trend;
pub mod workers;

#[cfg(test)]
mod tests;
