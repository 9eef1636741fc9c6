//! Words of perftest's programs as words of this one. They must not know what a sweep is.

pub mod options;
pub mod program;
