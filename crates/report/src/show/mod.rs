//! Where results are shown: terminal, CSV, JUnit, pages, figures. It decides nothing: what counts, what a metric is and what
//! is better or worse is said by `observe` and `judge`.

pub mod check;
pub mod compare;
pub mod csv;
pub mod json;
pub mod junit;
pub mod mesh;
pub mod page;
pub mod perftest;
pub mod plot;
pub mod terminal;
pub mod why;

pub use terminal::Table;

#[cfg(test)]
mod one_number_tests;
