//! The pictures of a figure in each width. It must not know what is drawn.

use crate::show::plot::draw::{Sheet, Width};
use crate::show::plot::figure::Figure;

/// The figure with its pictures: the same in each width, below its title.
pub(crate) fn drawn(figure: Figure, draw: impl Fn(&mut Sheet)) -> Figure {
    let [svg, narrow_svg] = Width::ALL.map(|width| {
        let mut sheet = Sheet::new(&figure.title, &figure.subtitle, width);
        draw(&mut sheet);
        sheet.finish(&figure.id, &figure.title, &figure.description)
    });
    Figure {
        svg,
        narrow_svg,
        ..figure
    }
}
