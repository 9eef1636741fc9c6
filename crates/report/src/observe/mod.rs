//! What was measured, as rows: which of them count. It must not judge a figure, nor know how one is shown.

pub mod format;
pub mod metric;
pub mod setting_words;
pub mod standing;

pub use metric::Metric;
