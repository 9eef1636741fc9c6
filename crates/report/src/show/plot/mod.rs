//! Results as pictures: SVG figures and one page with all of them. It reads result files only; it must not
//! know verbs, sockets or how to run anything.

mod charts;
pub mod draw;
mod engine;
pub mod figure;
pub mod figures;
pub mod formats;
pub mod marks;
mod naming;
mod picture;
pub(crate) mod rows;
pub mod sections;
pub mod sides;
pub mod spec;
pub mod specs;
pub mod sums;

pub use figure::{Cell, Column, Figure, Section, Table};
pub use sides::Sides;
