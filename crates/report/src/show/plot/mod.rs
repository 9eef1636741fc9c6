//! Results as pictures: SVG figures and one page with all of them, from result files only.

pub mod draw;
pub(crate) mod figure;
pub mod figures;
pub mod formats;
pub(crate) mod marks;
pub(crate) mod rows;
pub mod sections;
pub(crate) mod spec;
pub(crate) mod specs;
pub mod sums;

pub use sums::Sides;
