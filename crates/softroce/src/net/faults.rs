//! Faults on purpose.

/// What goes wrong, in each direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {}
