//! Words of perftest's programs as words of this one.

pub mod options;
pub mod program;
