//! What a figure shows: a legend, charts, notes below them, and tables. It must not know what is drawn.

use super::draw::Key;
use super::figure::{Figure, Table};
use super::marks::{Chart, facets};
use super::naming::drawn;

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
        let figure = Figure {
            id: id.into(),
            title: title.into(),
            subtitle: self.subtitle,
            description: description.into(),
            tables: self.tables,
            ..Figure::default()
        };
        drawn(figure, |sheet| {
            sheet.legend(&self.keys);
            facets::draw(sheet, &self.charts);
            self.notes.iter().for_each(|note| sheet.note(note));
        })
    }
}
