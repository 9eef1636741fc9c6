//! Figures that are more than lines over an axis, one kind a file.

pub(crate) mod comparison;
mod node_names;
mod node_state;
mod node_trend;
pub mod nodes;
pub(crate) mod queue_pairs;
pub(crate) mod timeline;
pub(crate) mod trend;
pub(crate) mod why;

#[cfg(test)]
mod tests;
