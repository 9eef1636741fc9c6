//! Maps: cells in rows and columns, coloured by what part they are of what is usual, or of the best.

use crate::show::plot::{
    draw::{Colour, GROUND, INK, Key, KeyMark, SeriesStyle},
    marks::{Axis, Chart, Fill, Mark, Tile},
};

/// The colour of parts up to one.
pub(crate) struct Shade {
    up_to: f64,
    pub(crate) colour: Colour,
    /// That of words on it.
    pub(crate) ink: Colour,
    pub(crate) label: String,
}

impl Shade {
    pub(crate) fn new(
        up_to: f64,
        colour: Colour,
        is_dark: bool,
        label: impl Into<String>,
    ) -> Shade {
        Shade { up_to, colour, ink: if is_dark { GROUND } else { INK }, label: label.into() }
    }
}

/// Colours in the order of their parts.
pub(crate) struct Shades(pub(crate) Vec<Shade>);

impl Shades {
    /// That of a part; the last one for all that are larger.
    pub(crate) fn at(&self, part: f64) -> &Shade {
        let found = self.0.iter().find(|shade| part <= shade.up_to);
        found.unwrap_or(&self.0[self.0.len() - 1])
    }

    /// The legend of such maps: colours that cells have; `unknown` are the words for cells without a figure.
    pub(crate) fn keys(&self, charts: &[Chart], unknown: &str) -> Vec<Key> {
        let tiles = charts.iter().flat_map(|chart| &chart.marks).flat_map(|mark| match mark {
            Mark::Tiles(tiles) => tiles.as_slice(),
            _ => &[],
        });
        let is_used = |fill| tiles.clone().any(|tile| tile.fill == fill);
        let used = self.0.iter().filter(|shade| is_used(Fill::Plain(shade.colour)));
        let shades = used.map(|shade| {
            let style = SeriesStyle { colour: shade.colour, ..SeriesStyle::default() };
            Key::new(KeyMark::Area, style, &shade.label)
        });
        let hatched = is_used(Fill::Hatched)
            .then(|| Key::new(KeyMark::Hatched, SeriesStyle::default(), unknown));
        shades.chain(hatched).collect()
    }
}

pub(crate) struct MatrixCell {
    /// What part it is; `None` where nothing is known of it.
    pub(crate) part: Option<f64>,
    /// Of these the first that has room.
    pub(crate) texts: Vec<String>,
    /// Words for who points at it. Cells without are drawn as one shape, and have no words.
    pub(crate) hint: String,
}

/// Rows and columns with names.
pub(crate) struct Matrix<'m> {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) shades: &'m Shades,
    /// Least and most width of a cell, and its height.
    pub(crate) cell_px: (f64, f64, f64),
}

impl Matrix<'_> {
    /// The map of its cells, which are none where nothing was to be measured.
    pub(crate) fn chart(self, cell: impl Fn(usize, usize) -> Option<MatrixCell>) -> Chart {
        let [rows, columns] = [&self.y, &self.x].map(|axis| axis.names().len());
        let tiles = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .filter_map(|(row, column)| {
                let MatrixCell { part, texts, hint } = cell(row, column)?;
                let shade = part.map(|part| self.shades.at(part));
                let fill = shade.map_or(Fill::Hatched, |shade| Fill::Plain(shade.colour));
                Some(Tile {
                    within: shade.filter(|_| !hint.is_empty()).map(|shade| (texts, shade.ink)),
                    ..Tile::block(row..row + 1, column..column + 1, fill, hint)
                })
            });
        let marks = vec![Mark::Tiles(tiles.collect())];
        let (least_px, most_px, height_px) = self.cell_px;
        Chart::of_cells((least_px, most_px), height_px, (self.x, self.y), marks)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::show::plot::draw::palette::wcag::contrast;

    /// Checks that words can be read on their colours, on light and on dark ground.
    pub(crate) fn can_be_read(shades: &Shades) {
        for Shade { colour, ink, label, .. } in &shades.0 {
            assert!(contrast(colour.light, ink.light) >= 4.5, "{label}");
            assert!(contrast(colour.dark, ink.dark) >= 4.5, "{label}");
        }
    }
}
