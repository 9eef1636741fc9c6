//! The sheet of a figure: title and subtitle above, then what is put on it from the top down, notes below,
//! and all of it as one SVG document. It must not know charts or results.

use maud::{PreEscaped, html};

use super::canvas::{Canvas, Paint, Rect, Style, px};
use super::legend::{self, Key};
use super::palette::{GROUND, MUTED, style_sheet};
use super::text::{ASCENT, LINE_HEIGHT, SMALL_PX, SUBTITLE_PX, TITLE_PX, printable, wrapped};

/// Width of a sheet, in pixels.
pub const WIDTH: f64 = 960.0;
/// Width of a sheet whose text is to be read where there is little room, as in a README on a phone.
pub const NARROW: f64 = 560.0;
const MARGIN: f64 = 20.0;

/// What every figure says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Unique name; ids within the document begin with it.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// What was measured on what.
    pub subtitle: String,
    /// For those who do not see it.
    pub description: String,
}

/// A figure that is being drawn.
#[derive(Debug)]
pub struct Sheet {
    head: Head,
    /// Where shapes and text go.
    pub canvas: Canvas,
    width: f64,
    y: f64,
}

impl Sheet {
    /// A sheet with its head.
    pub fn new(head: Head) -> Sheet {
        Sheet::of_width(head, WIDTH)
    }

    /// A sheet of that width, with its head.
    pub fn of_width(head: Head, width: f64) -> Sheet {
        let mut sheet = Sheet {
            canvas: Canvas::default(),
            width,
            y: MARGIN,
            head,
        };
        let (title, subtitle) = (sheet.head.title.clone(), sheet.head.subtitle.clone());
        sheet.paragraph(
            &title,
            Style {
                size_px: TITLE_PX,
                bold: true,
                ..Style::default()
            },
        );
        sheet.y += 2.0;
        sheet.paragraph(
            &subtitle,
            Style {
                size_px: SUBTITLE_PX,
                colour: MUTED,
                ..Style::default()
            },
        );
        sheet.y += 10.0;
        sheet
    }

    /// Text over the whole width, in as many lines as it takes.
    pub fn paragraph(&mut self, text: &str, style: Style) {
        let lines = wrapped(
            &printable(text),
            style.size_px,
            style.bold,
            self.width - 2.0 * MARGIN,
        );
        for line in lines {
            let foot = self.y + style.size_px * ASCENT;
            self.canvas.text(MARGIN, foot, &line, style);
            self.y += style.size_px * LINE_HEIGHT;
        }
    }

    /// A legend.
    pub fn legend(&mut self, keys: &[Key]) {
        let printable: Vec<_> = keys
            .iter()
            .map(|key| Key {
                label: printable(&key.label),
                ..key.clone()
            })
            .collect();
        let width = self.width - 2.0 * MARGIN;
        self.y += legend::draw(&mut self.canvas, MARGIN, self.y, width, &printable) + 8.0;
    }

    /// The next `height` pixels for a chart.
    pub fn take(&mut self, height: f64) -> Rect {
        let area = Rect {
            x: MARGIN,
            y: self.y,
            width: self.width - 2.0 * MARGIN,
            height,
        };
        self.y += height + 8.0;
        area
    }

    /// Small text over the whole width: what to know about the figures.
    pub fn note(&mut self, text: &str) {
        let style = Style {
            size_px: SMALL_PX,
            colour: MUTED,
            ..Style::default()
        };
        self.paragraph(text, style);
        self.y += 3.0;
    }

    /// The document.
    pub fn finish(self) -> String {
        let Sheet {
            head,
            canvas,
            width,
            y,
        } = self;
        let height = (y + MARGIN - 8.0).ceil();
        let (title_id, description_id) =
            (format!("{}-title", head.id), format!("{}-desc", head.id));
        let mut ground = Canvas::default();
        let all = Rect {
            x: 0.0,
            y: 0.0,
            width,
            height,
        };
        ground.rect(all, Paint::area(GROUND), None);
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="rb-figure" viewBox=(format!("0 0 {width} {height}"))
                width=(px(width)) height=(px(height)) role="img"
                aria-labelledby=(format!("{title_id} {description_id}")) {
                title id=(title_id) { (printable(&head.title)) }
                desc id=(description_id) { (printable(&head.description)) }
                style { (PreEscaped(style_sheet())) }
                (ground.into_markup())
                (canvas.into_markup())
            }
        }
        .into_string()
    }
}
