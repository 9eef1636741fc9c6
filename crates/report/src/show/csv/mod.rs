//! A result as three CSV files: cases, QPs and histograms, so that none has totals and parts in one column. Cells
//! are the JSON's values under its names, those of nested objects joined with `_`.

mod cases;
mod histograms;
mod qps;
mod rows;

pub use cases::write_to as cases;
pub use histograms::write_to as histograms;
pub use qps::write_to as qps;

#[cfg(test)]
mod tests;
