//! The page's colours, light and dark. Contrast is at least WCAG AA: 4.5 for text, 3 for lines that tell.

use crate::plot::draw::palette;

/// A custom property and its two values.
pub struct Colour {
    /// Name, without `--`.
    pub name: &'static str,
    /// On light paper.
    pub light: &'static str,
    /// On dark paper.
    pub dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// The page's own; the figures have theirs.
pub const COLOURS: [Colour; 8] = [
    colour("page-paper", "#ffffff", "#16181d"),
    colour("page-panel", "#f3f5f7", "#20242b"),
    colour("page-ink", "#1a1d20", "#e8eaed"),
    colour("page-muted", "#52595f", "#a9b1b8"),
    colour("page-line", "#c9ced3", "#3c444b"),
    colour("page-link", "#0b57a4", "#8ab8f0"),
    colour("page-focus", "#0b57a4", "#ffd24d"),
    colour("page-warning", "#7a4100", "#ffc266"),
];

/// Declarations of one theme.
pub fn declarations(dark: bool) -> String {
    // The figures' own are light.
    let figures = palette::all()
        .filter(|_| dark)
        .map(|colour| format!("{}:{};", colour.property, colour.dark));
    COLOURS
        .iter()
        .map(|colour| {
            let value = if dark { colour.dark } else { colour.light };
            format!("--{}:{value};", colour.name)
        })
        .chain(figures)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.2.
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn value(name: &str, dark: bool) -> &'static str {
        let colour = COLOURS.iter().find(|colour| colour.name == name).unwrap();
        if dark { colour.dark } else { colour.light }
    }

    #[test]
    fn contrast_is_as_known_for_black_on_white() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        assert!((contrast("#767676", "#ffffff") - 4.54).abs() < 0.01);
    }

    #[test]
    fn text_can_be_read_on_what_it_stands_on() {
        for dark in [false, true] {
            for ink in ["page-ink", "page-muted", "page-link", "page-warning"] {
                for paper in ["page-paper", "page-panel"] {
                    let contrast = contrast(value(ink, dark), value(paper, dark));
                    assert!(
                        contrast >= 4.5,
                        "{ink} on {paper}, dark {dark}: {contrast:.2}"
                    );
                }
            }
            assert!(contrast(value("page-focus", dark), value("page-paper", dark)) >= 3.0);
        }
    }
}
