//! The page's colours, light and dark. Contrast is at least WCAG AA: 4.5 for text, 3 for lines that tell.

use crate::show::plot::draw::palette::{self, Colour, colour};

/// The page's own, beside those of the figures.
const OWN: [Colour; 5] = [
    colour("--page-panel", "#f3f5f7", "#20242b"),
    colour("--page-line", "#c9ced3", "#3c444b"),
    colour("--page-link", "#0b57a4", "#8ab8f0"),
    colour("--page-focus", "#0b57a4", "#ffd24d"),
    colour("--page-warning", "#7a4100", "#ffc266"),
];

/// All of them as custom properties: which value they have follows from the property `color-scheme`.
pub fn declarations() -> String {
    OWN.into_iter()
        .chain(palette::colours())
        .map(|it| format!("{}:light-dark({},{});", it.property, it.light, it.dark))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::draw::palette::wcag::contrast;

    #[test]
    fn text_can_be_read_on_what_it_stands_on() {
        let [panel, _, link, focus, warning] = OWN;
        for of in [|it: Colour| it.light, |it: Colour| it.dark] {
            for ink in [palette::INK, palette::MUTED, link, warning] {
                for paper in [palette::GROUND, panel] {
                    let contrast = contrast(of(ink), of(paper));
                    assert!(contrast >= 4.5, "{ink:?} on {paper:?}: {contrast:.2}");
                }
            }
            assert!(contrast(of(focus), of(palette::GROUND)) >= 3.0);
        }
    }
}
