//! How a lesson is shown: language, colours, columns, and which of its steps.

use super::style::Style;
use super::text::Language;

/// How a lesson is shown.
#[derive(Clone, Copy, Debug)]
pub struct Presentation {
    /// The language of its texts.
    pub language: Language,
    pub style: Style,
    /// Columns of a line; names, numbers and code that do not fit are longer.
    pub columns: usize,
    /// With a mistake: all steps, and not only those in which the lesson differs from one without it.
    pub has_all_steps: bool,
}
