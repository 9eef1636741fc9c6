//! Results as pictures: SVG figures and one page with all of them. It reads result files only; it must not
//! know verbs, sockets or how to run anything.

pub mod draw;
pub mod figure;
pub mod figures;
pub mod formats;
pub mod section;
pub mod sections;
pub mod sides;
pub mod sums;

pub use figure::{Cell, Column, Figure, Table};
pub use section::Section;
pub use sides::Sides;
