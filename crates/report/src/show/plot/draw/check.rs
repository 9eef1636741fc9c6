//! For tests: is a drawn figure well-formed, and does no text leave the frame or touch another? It reads the
//! document and must not know how it was made.

use roxmltree::{Document, Node};

use super::text::{ASCENT, DESCENT, width_px};

struct Label {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn label(node: &Node<'_, '_>) -> Label {
    let text = node.text().unwrap_or_default().to_owned();
    let size = number(node, "font-size");
    assert!(size >= 12.0, "`{text}` is too small");
    let width = width_px(&text, size, node.attribute("font-weight") == Some("bold"));
    let (x, y) = (number(node, "x"), number(node, "y"));
    let left = match node.attribute("text-anchor") {
        None => x,
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        other => panic!("anchor {other:?}"),
    };
    Label {
        text,
        left,
        right: left + width,
        top: y - ASCENT * size,
        bottom: y + DESCENT * size,
    }
}

/// Everything wrong with the text of a figure.
///
/// # Panics
/// When it is not an SVG document as every figure is one.
pub fn faults(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let root = document.root_element();
    assert!(root.has_tag_name(("http://www.w3.org/2000/svg", "svg")));
    assert_eq!(root.attribute("role"), Some("img"));
    for id in root.attribute("aria-labelledby").unwrap().split(' ') {
        let named = |node: &Node<'_, '_>| node.attribute("id") == Some(id);
        assert!(root.children().any(|node| named(&node)), "{id}");
    }
    for node in root.descendants() {
        assert!(!node.has_tag_name("script"));
        // Words may be anything; places and lengths are numbers.
        let places = node
            .attributes()
            .filter(|it| !it.name().starts_with("data-"));
        for value in places.map(|attribute| attribute.value()) {
            assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
        }
    }
    for node in root
        .descendants()
        .filter(|node| node.has_attribute("class"))
    {
        // A renderer that knows no style sheet draws the same.
        let coloured = |what| {
            node.attribute(what)
                .is_some_and(|it| it == "none" || it.starts_with('#'))
        };
        let classes = node.attribute("class").unwrap_or_default();
        let is_shape = ["path", "rect", "text"].contains(&node.tag_name().name());
        assert!(!is_shape || coloured("fill"), "{node:?}");
        assert!(!classes.contains("s-") || coloured("stroke"), "{node:?}");
    }
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    let is_text = |node: &Node<'_, '_>| node.tag_name().name() == "text";
    let labels: Vec<_> = root
        .descendants()
        .filter(is_text)
        .map(|node| label(&node))
        .collect();
    let mut faults = Vec::new();
    for (index, one) in labels.iter().enumerate() {
        if one.left < -0.1 || one.right > width + 0.1 || one.top < 0.0 || one.bottom > height {
            faults.push(format!(
                "`{}` leaves the frame: {:.1} to {:.1}",
                one.text, one.left, one.right
            ));
        }
        for other in labels.iter().take(index) {
            let apart = one.right <= other.left + 0.1
                || other.right <= one.left + 0.1
                || one.bottom <= other.top + 0.5
                || other.bottom <= one.top + 0.5;
            if !apart {
                faults.push(format!("`{}` lies over `{}`", one.text, other.text));
            }
        }
    }
    faults
}
