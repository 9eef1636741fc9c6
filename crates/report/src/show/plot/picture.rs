//! What a figure shows: a legend, charts, notes below them, and tables, the same in each width.

use super::draw::{Key, Sheet, Width};
use super::figure::{Figure, Table};
use super::marks::{Chart, facets};

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
            facets::draw(&mut sheet, &self.charts);
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
