//! Figures that are more than lines over an axis, one kind a file.

pub(crate) mod comparison;
pub(crate) mod heat_map;
mod intervals;
pub mod nodes;
mod qp_shares;
pub(crate) mod qp_time;
mod ratios;
mod shades;
pub(crate) mod shares;
mod steps;
mod time_axis;
pub(crate) mod timeline;
pub(crate) mod trend;

#[cfg(test)]
mod tests;
