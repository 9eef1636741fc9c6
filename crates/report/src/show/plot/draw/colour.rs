//! A colour as a CSS custom property with a value for light and one for dark ground, and how well two can be told
//! apart.

/// A colour: its CSS custom property and what it is on light and on dark ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Name of the property, with its hyphens.
    pub property: &'static str,
    pub light: &'static str,
    pub dark: &'static str,
}

pub const fn colour(property: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { property, light, dark }
}

impl Colour {
    /// The part of its classes' names that is its own.
    pub(super) fn name(self) -> &'static str {
        self.property.trim_start_matches("--rb-")
    }
}

/// For tests of what can be read: WCAG 2.2.
#[cfg(test)]
pub mod wcag {
    /// Relative luminance of `#rrggbb`.
    pub fn luminance(hex: &str) -> f64 {
        let part = |range| f64::from(u8::from_str_radix(&hex[range], 16).unwrap()) / 255.0;
        let linear = |value: f64| {
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(part(1..3)) + 0.7152 * linear(part(3..5)) + 0.0722 * linear(part(5..7))
    }

    /// Contrast ratio, 1 to 21.
    pub fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn contrast_is_as_known_for_black_on_white() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        assert!((contrast("#767676", "#ffffff") - 4.54).abs() < 0.01);
    }
}
