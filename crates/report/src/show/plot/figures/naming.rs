//! Names of figures, and their pictures in each width. It must not know what is drawn.

use crate::show::plot::draw::{Head, Sheet, Width};
use crate::show::plot::figure::Figure;

/// A part of a figure's name: lower case, digits and hyphens.
pub(super) fn slug(text: &str) -> String {
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

/// The first of so many words about lines, and how many more there are.
pub(super) fn some_of(told: &[String]) -> String {
    const TOLD: usize = 4;
    let first = told[..told.len().min(TOLD)].join("; ");
    match told.len().saturating_sub(TOLD) {
        0 => first,
        more => format!("{first}; {more} more in the table"),
    }
}

/// The figure with its pictures: the same in each width, below what it says of itself.
pub(super) fn drawn(figure: Figure, draw: impl Fn(&mut Sheet)) -> Figure {
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
