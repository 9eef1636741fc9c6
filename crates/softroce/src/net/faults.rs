//! Faults on purpose.

/// What goes wrong, in each direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {}

impl std::str::FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Faults, String> {
        Err(format!("`{text}`: no such fault"))
    }
}
