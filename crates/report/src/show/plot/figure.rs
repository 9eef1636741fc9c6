//! What a figure is to the page that shows it: a picture with legend, charts and notes, words for those who do not see
//! it, and the same figures as tables.

use crate::observe::{Metric, Spread};
use crate::show::plot::{
    draw::{Key, Sheet, Width},
    marks::{self, Chart},
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Name of its file and of its place on the page: lower case, digits and hyphens; unique.
    pub id: String,
    /// What is shown, with its unit.
    pub title: String,
    /// What was measured on what, with which settings.
    pub subtitle: String,
    /// What the picture shows, in a sentence or two, for those who do not see it.
    pub description: String,
    /// The picture: a whole SVG document of [`Width::Page`], usable by itself. Its colours are attributes for light with
    /// classes, so that a page can darken them.
    pub svg: String,
    /// The same picture in [`Width::Column`], for one column of a paper.
    pub narrow_svg: String,
    pub tables: Vec<Table>,
}

impl Figure {
    pub fn picture(&self, width: Width) -> &str {
        match width {
            Width::Page => &self.svg,
            Width::Column => &self.narrow_svg,
        }
    }
}

/// Figures of one kind under one heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its place on the page: lower case and hyphens; unique.
    pub id: &'static str,
    /// What the figures show, in a few words.
    pub heading: &'static str,
    pub intro: &'static str,
    /// What the results say, in sentences that are read before the figures.
    pub sentences: Vec<String>,
    /// The figures; empty where the results have nothing to draw.
    pub figures: Vec<Figure>,
    /// Whether figures of it were taken because the page has too many.
    pub is_capped: bool,
    /// What results need to have for a figure of this kind.
    pub needs: &'static str,
}

/// Figures of a section, and what they say.
pub(crate) struct Drawn {
    pub(crate) figures: Vec<Figure>,
    pub(crate) sentences: Vec<String>,
}

impl From<Vec<Figure>> for Drawn {
    fn from(figures: Vec<Figure>) -> Drawn {
        Drawn { figures, sentences: Vec::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, with the unit where there is one: `Gb/s`, `p99 (µs)`.
    pub name: String,
    /// Figures, which stand at the right.
    pub numeric: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    /// A figure, and how many digits stand after its point.
    Number(f64, usize),
    Missing,
}

impl Cell {
    pub(crate) fn text(words: impl Into<String>) -> Cell {
        Cell::Text(words.into())
    }

    pub(crate) fn number(value: impl Into<Option<f64>>, digits: usize) -> Cell {
        value.into().map_or(Cell::Missing, |value| Cell::Number(value, digits))
    }

    /// Median, lowest and highest of a metric, as its column has them.
    pub(crate) fn of_spread(metric: Metric, spread: Option<Spread>) -> [Cell; 3] {
        let (_, digits, factor) = metric.column();
        spread.map_or([Cell::Missing, Cell::Missing, Cell::Missing], |spread| {
            [spread.median, spread.low, spread.high]
                .map(|value| Cell::Number(value / factor, digits))
        })
    }
}

/// A column: its name, and what it has of a row.
pub(crate) type CellsOf<'c, R> = (&'c str, &'c dyn Fn(&R) -> Cell);

impl Table {
    /// A row for each of `rows`.
    pub(crate) fn from_rows<R>(
        caption: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
        columns: &[CellsOf<'_, R>],
    ) -> Table {
        let cells =
            rows.into_iter().map(|row| columns.iter().map(|(_, cell)| cell(&row)).collect());
        Table::new(caption, columns.iter().map(|(name, _)| *name), cells)
    }

    /// Rows below names; columns without words are of figures.
    pub(crate) fn new<N: Into<String>>(
        caption: impl Into<String>,
        names: impl IntoIterator<Item = N>,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Table {
        let cells: Vec<Vec<Cell>> = rows.into_iter().collect();
        let columns = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| {
                let mut column = cells.iter().filter_map(|row| row.get(at));
                let has_words = column.any(|cell| matches!(cell, Cell::Text(_)));
                Column { name: name.into(), numeric: !has_words }
            })
            .collect();
        Table { caption: caption.into(), columns, rows: cells }
    }
}

#[derive(Default)]
pub(crate) struct Picture {
    pub(crate) subtitle: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) charts: Vec<Chart>,
    pub(crate) notes: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

impl Picture {
    /// The figure, with its picture in each width: its name, its title, and words for those who do not see it.
    pub(crate) fn named(
        self,
        id: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
    ) -> Figure {
        let (id, title, description) = (id.into(), title.into(), description.into());
        let [svg, narrow_svg] = Width::ALL.map(|width| {
            let mut sheet = Sheet::new(&title, &self.subtitle, width);
            sheet.legend(&self.keys);
            marks::draw_charts(&mut sheet, &self.charts);
            self.notes.iter().for_each(|note| sheet.note(note));
            sheet.finish(&id, &title, &description)
        });
        Figure {
            id,
            title,
            subtitle: self.subtitle,
            description,
            svg,
            narrow_svg,
            tables: self.tables,
        }
    }
}
