//! Results as pictures: SVG figures and one page with all of them. It reads result files only; it must not
//! know verbs, sockets or how to run anything.

pub mod draw;
pub mod figure;

pub use figure::{Cell, Column, Figure, Table};
