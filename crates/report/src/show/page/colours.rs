//! The page's colours, light and dark. Contrast is at least WCAG AA: 4.5 for text, 3 for lines that tell.

use crate::show::plot::draw::colour::{Colour, colour};
use crate::show::plot::draw::palette;

/// The page's own; the figures have theirs.
pub const COLOURS: [Colour; 8] = [
    colour("--page-paper", "#ffffff", "#16181d"),
    colour("--page-panel", "#f3f5f7", "#20242b"),
    colour("--page-ink", "#1a1d20", "#e8eaed"),
    colour("--page-muted", "#52595f", "#a9b1b8"),
    colour("--page-line", "#c9ced3", "#3c444b"),
    colour("--page-link", "#0b57a4", "#8ab8f0"),
    colour("--page-focus", "#0b57a4", "#ffd24d"),
    colour("--page-warning", "#7a4100", "#ffc266"),
];

/// Declarations of one theme.
pub fn declarations(dark: bool) -> String {
    let all = COLOURS.into_iter().chain(palette::all());
    all.map(|colour| {
        let value = if dark { colour.dark } else { colour.light };
        format!("{}:{value};", colour.property)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::draw::colour::wcag::contrast;

    fn value(name: &str, dark: bool) -> &'static str {
        let colour = COLOURS.iter().find(|it| it.property == name).unwrap();
        if dark { colour.dark } else { colour.light }
    }

    #[test]
    fn text_can_be_read_on_what_it_stands_on() {
        for dark in [false, true] {
            for ink in ["ink", "muted", "link", "warning"] {
                let ink = value(&format!("--page-{ink}"), dark);
                for paper in ["--page-paper", "--page-panel"] {
                    let contrast = contrast(ink, value(paper, dark));
                    assert!(contrast >= 4.5, "{ink} on {paper}: {contrast:.2}");
                }
            }
            assert!(contrast(value("--page-focus", dark), value("--page-paper", dark)) >= 3.0);
        }
    }
}
