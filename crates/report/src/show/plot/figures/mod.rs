//! Figures that are more than lines over an axis, one kind a file.

pub(crate) mod comparison;
pub(crate) mod heat_map;
mod node_matrix;
pub mod nodes;
pub(crate) mod queue_pairs;
pub(crate) mod timeline;
pub(crate) mod trend;

#[cfg(test)]
mod tests;
