//! Results as pictures: SVG figures and one page with all of them, from result files only.

mod charts;
pub mod draw;
mod engine;
pub(crate) mod figure;
pub mod figures;
pub mod formats;
pub(crate) mod marks;
mod picture;
pub(crate) mod rows;
pub mod sections;
mod sides;
pub(crate) mod spec;
pub(crate) mod specs;
pub mod sums;

pub use sides::Sides;
