//! For tests: is a drawn figure well-formed, and does no text leave the frame or touch another?

use roxmltree::{Document, Node};

use crate::show::plot::draw::{
    Key, KeyMark, SeriesStyle,
    canvas::Rect,
    said_once,
    text::{ASCENT, DESCENT, width_px},
};

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn label<'t>(node: &Node<'t, '_>) -> (&'t str, Rect) {
    let text = node.text().unwrap_or_default();
    let size = number(node, "font-size");
    assert!(size >= 12.0, "`{text}` is too small");
    let width = width_px(text, size, node.attribute("font-weight") == Some("bold"));
    let (x, y) = (number(node, "x"), number(node, "y"));
    let left = match node.attribute("text-anchor") {
        None => x,
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        other => panic!("anchor {other:?}"),
    };
    let height = (ASCENT + DESCENT) * size;
    (text, Rect::new(left, y - ASCENT * size, width, height))
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
        assert!(root.children().any(|node| node.attribute("id") == Some(id)), "{id}");
    }
    for node in root.descendants() {
        assert!(!node.has_tag_name("script"));
        // Words may be anything; places and lengths are numbers.
        for value in node
            .attributes()
            .filter(|it| !it.name().starts_with("data-"))
            .map(|attribute| attribute.value())
        {
            assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
        }
    }
    for node in root.descendants().filter(|it| it.has_attribute("class")) {
        // A renderer that knows no style sheet draws the same.
        let [has_fill, has_stroke] = ["fill", "stroke"]
            .map(|what| node.attribute(what).unwrap_or_default())
            .map(|colour| colour == "none" || colour.starts_with('#'));
        let classes = node.attribute("class").unwrap_or_default();
        let is_shape = ["path", "rect", "text"].contains(&node.tag_name().name());
        assert!(!is_shape || has_fill, "{node:?}");
        assert!(!classes.contains("s-") || has_stroke, "{node:?}");
    }
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    let labels: Vec<(&str, Rect)> =
        root.descendants().filter(|it| it.has_tag_name("text")).map(|node| label(&node)).collect();
    let mut faults = Vec::new();
    for (index, (text, one)) in labels.iter().enumerate() {
        let (left, right) = (one.x, one.right());
        if left < -0.1 || right > width + 0.1 || one.y < 0.0 || one.bottom() > height {
            let place = format!("{left:.1} to {right:.1}");
            faults.push(format!("`{text}` leaves the frame: {place}"));
        }
        for (other_text, other) in labels.iter().take(index) {
            let apart = right <= other.x + 0.1
                || other.right() <= left + 0.1
                || one.bottom() <= other.y + 0.5
                || other.bottom() <= one.y + 0.5;
            if !apart {
                faults.push(format!("`{text}` lies over `{other_text}`"));
            }
        }
    }
    faults
}

#[test]
fn what_lines_share_is_said_once() {
    let said = |labels: Vec<String>| {
        let keys = labels.into_iter();
        said_once(&Vec::from_iter(
            keys.map(|it| Key::new(KeyMark::Line, SeriesStyle::default(), it)),
        ))
    };
    let nine = said((1..=9).map(|qps| format!("write, 4 KiB, -q {qps}, depth 128")).collect());
    assert_eq!(nine.0, "All: write, 4 KiB, depth 128");
    assert_eq!((&*nine.1[0], &*nine.1[8]), ("-q 1", "-q 9"));
    let most = ["p99", "1 QP, send depth 128", "2 QPs, send depth 128", "4 QPs, send depth 1"];
    let own = ["p99", "1 QP", "2 QPs", "4 QPs, send depth 1"].map(str::to_owned).to_vec();
    let expected = ("Unless named: send depth 128".to_owned(), own);
    assert_eq!(said(most.map(str::to_owned).to_vec()), expected);
    // What has other parts could be misread.
    let other = ["1 QP, send depth 128", "2 QPs, send depth 128, base"].map(str::to_owned);
    assert_eq!(said(other.to_vec()), (String::new(), other.to_vec()));
}
