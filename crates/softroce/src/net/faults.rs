//! Faults made on purpose.

/// What goes wrong on purpose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {}
