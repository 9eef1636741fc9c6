//! Names of figures and the heads of their sheets. It must not know what is drawn.

use crate::plot::draw::Head;
use crate::plot::figure::Figure;

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

/// What the sheet of a figure says above the drawing.
pub(super) fn head(figure: &Figure) -> Head {
    Head {
        id: figure.id.clone(),
        title: figure.title.clone(),
        subtitle: figure.subtitle.clone(),
        description: figure.description.clone(),
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
