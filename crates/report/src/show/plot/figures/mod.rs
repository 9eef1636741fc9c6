//! Figures that are more than lines over an axis, one kind a file. They must not know where they are shown or written.

pub mod comparison;
pub mod heat_map;
mod intervals;
pub mod nodes;
mod qp_shares;
pub mod qp_time;
mod ratios;
mod shades;
pub mod shares;
mod steps;
mod time_axis;
pub mod timeline;
pub mod trend;

#[cfg(test)]
mod tests;
