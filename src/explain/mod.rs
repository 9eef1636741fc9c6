//! Writes the facts of `lesson` as text in one of two languages. It makes no verbs calls.
//!
//! The texts are in `text/`: each has a [`text::Key`], and each language has all of them.

mod arrays;
mod calls;
pub mod columns;
mod dump;
mod layout;
mod lesson_writer;
mod packets;
mod presentation;
mod style;
pub mod text;
mod topics;
mod verdict;

pub use lesson_writer::LessonWriter;
pub use presentation::Presentation;
pub use style::Style;
pub use text::Language;
pub use verdict::Verdict;
