//! Colours of cells by how large a share is.

use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::{GROUND, INK, Look};
use crate::show::plot::draw::{Key, KeyMark};

/// The colour of shares up to one.
pub(super) struct Shade {
    up_to: f64,
    pub(super) colour: Colour,
    /// That of words on it.
    pub(super) ink: Colour,
    label: String,
}

impl Shade {
    pub(super) fn new(up_to: f64, colour: Colour, is_dark: bool, label: String) -> Shade {
        Shade { up_to, colour, ink: if is_dark { GROUND } else { INK }, label }
    }

    /// That of a share; the last one for all that is larger.
    pub(super) fn of(shades: &[Shade], share: f64) -> &Shade {
        let found = shades.iter().find(|shade| share <= shade.up_to);
        found.unwrap_or(&shades[shades.len() - 1])
    }

    pub(super) fn keys(shades: &[Shade]) -> Vec<Key> {
        shades
            .iter()
            .map(|shade| {
                let look = Look { colour: shade.colour, ..Look::default() };
                Key::new(KeyMark::Area, look, &shade.label)
            })
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::show::plot::draw::colour::wcag::contrast;

    pub(in super::super) fn can_be_read(shades: &[Shade]) {
        for Shade { colour, ink, label, .. } in shades {
            assert!(contrast(colour.light, ink.light) >= 4.5, "{label}");
            assert!(contrast(colour.dark, ink.dark) >= 4.5, "{label}");
        }
    }
}
