//! Rows of figures: flows of cases, put together into lines and charts.

pub mod groups;
pub mod sample;
pub mod settings;
