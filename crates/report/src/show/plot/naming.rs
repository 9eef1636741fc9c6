//! Names of figures, and their pictures in each width. It must not know what is drawn.

use crate::show::plot::draw::{Head, Sheet, Width};
use crate::show::plot::figure::Figure;

/// A part of a figure's name: lower case, digits and hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars().map(|letter| letter.to_ascii_lowercase()) {
        if letter.is_ascii_lowercase() || letter.is_ascii_digit() {
            slug.push(letter);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The figure with its pictures: the same in each width, below its title.
pub(crate) fn drawn(figure: Figure, draw: impl Fn(&mut Sheet)) -> Figure {
    let picture = |width| {
        let head = Head {
            id: figure.id.clone(),
            title: figure.title.clone(),
            subtitle: figure.subtitle.clone(),
            description: figure.description.clone(),
        };
        let mut sheet = Sheet::new(head, width);
        draw(&mut sheet);
        sheet.finish()
    };
    let [svg, narrow_svg] = Width::ALL.map(picture);
    Figure {
        svg,
        narrow_svg,
        ..figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!(slug("send-per-qp-q4-64KiB"), "send-per-qp-q4-64kib");
        assert_eq!(slug("../mlx5_0: p99.9 /"), "mlx5-0-p99-9");
        assert_eq!(slug("µ"), "");
    }
}
