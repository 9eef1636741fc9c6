//! Writes the facts of `lesson` as text in one of two languages. It makes no verbs calls.
//!
//! The texts are in `text/`: each has a [`text::Key`], and each language has all of them.

mod lesson_writer;
pub mod page;
mod parts;
pub mod text;
mod topics;

pub use lesson_writer::{LessonWriter, Verdict};
pub use page::{Presentation, Style};
pub use text::Language;
