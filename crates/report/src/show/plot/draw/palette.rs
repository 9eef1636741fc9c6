//! Colours, line patterns and markers. A colour is a CSS custom property with a value for light and one for dark
//! ground. Colours are attributes with classes, so that a page, or a reader of the file, can have others for dark;
//! series differ by marker and pattern as well, for readers who cannot distinguish the colours.

pub const GROUND: Colour = colour("--rb-bg", "#ffffff", "#16181d");
/// Colour of text and axes.
pub const INK: Colour = colour("--rb-fg", "#222222", "#e8e8e8");
/// Colour of ticks, notes and what is unclear.
pub const MUTED: Colour = colour("--rb-muted", "#565656", "#b0b3b8");
pub const GRID: Colour = colour("--rb-grid", "#dddddd", "#383c44");
/// Limits and other lines to hold figures against.
pub const RULE: Colour = colour("--rb-rule", "#767676", "#8f949c");
pub const BETTER: Colour = colour("--rb-better", "#0072b2", "#56b4e9");
pub const WORSE: Colour = colour("--rb-worse", "#b34700", "#ff9a4d");
/// Colours of series, after Okabe and Ito's, with those darkened that stand out too little from white.
pub const SERIES: [Colour; 8] = [
    colour("--rb-1", "#0072b2", "#4aa3e0"),
    colour("--rb-2", "#d55e00", "#ff8330"),
    colour("--rb-3", "#00875f", "#2ec4a0"),
    colour("--rb-4", "#b0559a", "#e08fc8"),
    colour("--rb-5", "#222222", "#f2f2f2"),
    colour("--rb-6", "#3d9bd1", "#9fd8ff"),
    colour("--rb-7", "#a67c00", "#f0dc50"),
    colour("--rb-8", "#7a4a2a", "#c99a78"),
];
/// Steps of a map from nothing (0) to all (1), which differ in lightness alone.
pub const MAP: [Colour; 9] = [
    colour("--rb-map-0", "#f7f9fc", "#1d2230"),
    colour("--rb-map-1", "#e9eef6", "#1f2d45"),
    colour("--rb-map-2", "#d0dff0", "#213a5c"),
    colour("--rb-map-3", "#abc9e6", "#244a76"),
    colour("--rb-map-4", "#7fb0da", "#2a5c91"),
    colour("--rb-map-5", "#5595ca", "#336aa0"),
    colour("--rb-map-6", "#3278b4", "#5a92c6"),
    colour("--rb-map-7", "#185a96", "#8ab5dd"),
    colour("--rb-map-8", "#083d70", "#c8dff5"),
];
/// Steps from much worse than usual (0) over what is usual (5) to better (8). The darkest, on dark ground the lightest, is
/// always the worst, so lightness alone shows it.
pub const DIVERGING: [Colour; 9] = [
    colour("--rb-div-0", "#6e2200", "#ffd0a8"),
    colour("--rb-div-1", "#a03c00", "#ffa863"),
    colour("--rb-div-2", "#bf5405", "#f28327"),
    colour("--rb-div-3", "#f2a562", "#8f480c"),
    colour("--rb-div-4", "#fad9b8", "#5a3512"),
    colour("--rb-div-5", "#f0f0ee", "#2b2e34"),
    colour("--rb-div-6", "#d3e4f3", "#1f3a55"),
    colour("--rb-div-7", "#a5cbe9", "#22507c"),
    colour("--rb-div-8", "#74b1de", "#2a659e"),
];

/// All colours, for a page that darkens them.
pub fn colours() -> impl Iterator<Item = Colour> {
    [GROUND, INK, MUTED, GRID, RULE, BETTER, WORSE]
        .into_iter()
        .chain(SERIES)
        .chain(MAP)
        .chain(DIVERGING)
}

/// A rule for each class: `f…` fills with its colour, `s…` strokes.
fn rules(value: impl Fn(Colour) -> String) -> String {
    colours()
        .map(|colour| {
            let (name, value) = (colour.name(), value(colour));
            format!(".rb-figure .f-{name}{{fill:{value}}}.rb-figure .s-{name}{{stroke:{value}}}")
        })
        .collect()
}

/// For a page, which says what the properties are in each of its themes.
pub fn rules_of_page() -> String {
    rules(|colour| format!("var({})", colour.property))
}

/// For a file of its own, which is dark where its reader is. Nothing outside of `@media`, and no custom property: some
/// renderers know neither.
pub(super) fn rules_of_file() -> String {
    let dark = rules(|colour| colour.dark.to_owned());
    format!("@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
    Plus,
    Cross,
    Bar,
    /// A circle with a stroke through it, which no series has: what does not count.
    Crossed,
}

/// How a series looks: three differences from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStyle {
    pub colour: Colour,
    pub marker: Marker,
    /// `stroke-dasharray` of its line; empty for a solid one.
    pub dash: &'static str,
    /// Markers are rings instead of filled.
    pub hollow: bool,
    /// Its line has half the width.
    pub thin: bool,
}

pub const STYLES: usize = SERIES.len();

/// The style of the series with that number in its figure; they come again after [`STYLES`].
pub fn style(index: usize) -> SeriesStyle {
    const SHAPES: [(Marker, &str); STYLES] = [
        (Marker::Circle, ""),
        (Marker::Square, "8 3"),
        (Marker::Up, "12 3 2 3"),
        (Marker::Diamond, "5 3"),
        (Marker::Down, "16 4"),
        (Marker::Plus, "9 3 2 3 2 3"),
        (Marker::Cross, "3 3"),
        (Marker::Bar, "12 3 5 3"),
    ];
    let (marker, dash) = SHAPES[index % STYLES];
    SeriesStyle::new(SERIES[index % STYLES], marker, dash)
}

impl Default for SeriesStyle {
    fn default() -> SeriesStyle {
        style(0)
    }
}

impl SeriesStyle {
    fn new(colour: Colour, marker: Marker, dash: &'static str) -> SeriesStyle {
        SeriesStyle { colour, marker, dash, hollow: false, thin: false }
    }

    /// The same series of another program: a dotted line.
    pub fn of_peer(self) -> SeriesStyle {
        self.with_dash("1.5 3.5")
    }

    /// The same series of the results that others are compared with: a thin dashed line.
    pub fn of_base(self) -> SeriesStyle {
        SeriesStyle { thin: true, ..self.with_dash("4 4") }
    }

    pub fn with_dash(self, dash: &'static str) -> SeriesStyle {
        SeriesStyle { dash, ..self }
    }

    /// A line to hold others against, the `index`th of its figure.
    pub fn of_rule(index: usize) -> SeriesStyle {
        const DASHES: [&str; 4] = ["14 4", "6 4", "2 4", "14 4 2 4"];
        SeriesStyle::new(RULE, Marker::Bar, DASHES[index % DASHES.len()])
    }

    pub fn width(self) -> f64 {
        if self.thin { 1.0 } else { 2.0 }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::draw::palette::wcag::{contrast, luminance};

    #[test]
    fn text_and_marks_stand_out_from_the_ground() {
        let text = [INK, MUTED].map(|colour| (colour, 4.5));
        let marks = SERIES.into_iter().chain([RULE, BETTER, WORSE]);
        for (colour, least) in text.into_iter().chain(marks.map(|colour| (colour, 3.0))) {
            assert!(contrast(colour.light, GROUND.light) >= least, "{colour:?}");
            assert!(contrast(colour.dark, GROUND.dark) >= least, "{colour:?}");
        }
    }

    #[test]
    fn no_two_looks_share_anything() {
        for a in 0..STYLES {
            for b in 0..a {
                let (a, b) = (style(a), style(b));
                assert!(a.colour != b.colour && a.marker != b.marker && a.dash != b.dash);
            }
        }
    }

    #[test]
    fn the_map_goes_one_way() {
        assert!(MAP.is_sorted_by(|a, b| luminance(a.light) > luminance(b.light)));
        assert!(MAP.is_sorted_by(|a, b| luminance(a.dark) < luminance(b.dark)));
    }

    #[test]
    fn what_is_usual_stands_out_least_and_the_worst_most() {
        let far = |of: fn(Colour) -> &'static str| {
            DIVERGING.iter().map(|step| contrast(of(*step), of(GROUND))).collect::<Vec<f64>>()
        };
        for steps in [far(|it| it.light), far(|it| it.dark)] {
            assert!(steps[..=5].is_sorted_by(|a, b| a > b), "{steps:?}");
            assert!(steps[5..].is_sorted(), "{steps:?}");
            // Shades of better are never as dark as those of much worse.
            assert!(steps[8] < steps[2], "{steps:?}");
        }
    }

    #[test]
    fn properties_are_unique() {
        let names: std::collections::BTreeSet<_> = colours().map(|it| it.property).collect();
        assert_eq!(names.len(), colours().count());
    }
}
