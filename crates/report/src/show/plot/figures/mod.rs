//! Figures that are more than lines over an axis, one kind a file.

pub(crate) mod comparison;
pub(crate) mod heat_map;
pub mod nodes;
pub(crate) mod qp_time;
pub(crate) mod shares;
pub(crate) mod timeline;
pub(crate) mod trend;

#[cfg(test)]
mod tests;
