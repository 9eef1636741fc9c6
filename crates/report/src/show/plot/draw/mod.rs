//! Drawing of figures as SVG: text that is measured before it is set, scales and their ticks, and the sheet that
//! carries them with its title, legend and notes, filled from the top down.

pub(crate) mod canvas;
pub(crate) mod palette;
pub(crate) mod scale;
pub(crate) mod text;

use maud::html;

use crate::show::plot::draw::{
    canvas::px,
    palette::rules_of_file,
    text::{ASCENT, LINE_HEIGHT, SMALL_PX, SUBTITLE_PX, TITLE_PX, printable, width_px, wrapped},
};

pub(crate) use canvas::{Anchor, Canvas, Labels, Paint, Rect, Style, hatch};
pub(crate) use palette::{
    BETTER, Colour, DIVERGING, GRID, GROUND, INK, MAP, MUTED, Marker, SERIES, SeriesStyle, WORSE,
    style,
};
pub(crate) use scale::{Scale, Tick, Unit};

const FONTS: &str = "Arial, Helvetica, Liberation Sans, DejaVu Sans, sans-serif";

const BETWEEN: f64 = 14.0;

/// How wide a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// For a screen, a sheet of A4, or both columns of a paper.
    #[default]
    Page,
    /// For a phone, or a column of a paper.
    Column,
}

impl Width {
    pub const ALL: [Width; 2] = [Width::Page, Width::Column];

    /// In pixels of a 96th of an inch.
    pub fn px(self) -> f64 {
        match self {
            Width::Page => 720.0,
            Width::Column => 360.0,
        }
    }

    fn margin_px(self) -> f64 {
        match self {
            Width::Page => 16.0,
            Width::Column => 8.0,
        }
    }
}

#[derive(Debug)]
pub struct Sheet {
    pub canvas: Canvas,
    pub(crate) width: Width,
    y: f64,
}

impl Sheet {
    /// A sheet with what is shown and what was measured on what above.
    pub fn new(title: &str, subtitle: &str, width: Width) -> Sheet {
        let mut sheet = Sheet { canvas: Canvas::default(), width, y: width.margin_px() };
        let size_px = match width {
            Width::Page => TITLE_PX,
            Width::Column => SUBTITLE_PX + 2.0,
        };
        sheet.paragraph(title, Style { size_px, bold: true, ..Style::default() });
        sheet.y += 2.0;
        let muted = Style { size_px: SUBTITLE_PX, colour: MUTED, ..Style::default() };
        sheet.paragraph(subtitle, muted);
        sheet.y += 10.0;
        sheet
    }

    /// Width between the left and the right margin, in pixels.
    pub fn room_px(&self) -> f64 {
        self.width.px() - 2.0 * self.width.margin_px()
    }

    pub fn paragraph(&mut self, text: &str, style: Style) {
        let lines = wrapped(&printable(text), style.size_px, style.bold, self.room_px());
        for line in lines {
            let foot = self.y + style.size_px * ASCENT;
            self.canvas.text(self.width.margin_px(), foot, &line, style);
            self.y += style.size_px * LINE_HEIGHT;
        }
    }

    /// The legend, below what most of its lines have in common.
    pub fn legend(&mut self, keys: &[Key]) {
        let (left, width) = (self.width.margin_px(), self.room_px());
        let (common, labels) = said_once(keys);
        self.paragraph(&common, Style { colour: MUTED, ..Style::default() });
        let entries: Vec<_> = keys.iter().zip(labels).collect();
        self.y += draw_legend(&mut self.canvas, left, self.y, width, &entries) + 8.0;
    }

    /// The next `height` pixels for a chart.
    pub fn take(&mut self, height: f64) -> Rect {
        let area = Rect::new(self.width.margin_px(), self.y, self.room_px(), height);
        self.y += height + 8.0;
        area
    }

    pub fn width_beside(&self, count: usize) -> f64 {
        let columns = count.max(1) as f64;
        (self.room_px() - BETWEEN * (columns - 1.0)) / columns
    }

    pub fn take_beside(&mut self, count: usize, height: f64) -> Vec<Rect> {
        let width = self.width_beside(count);
        let Rect { x, y, .. } = self.take(height);
        (0..count.max(1))
            .map(|index| x + index as f64 * (width + BETWEEN))
            .map(|left| Rect::new(left, y, width, height))
            .collect()
    }

    /// Small text over the whole width: what to know about the figures.
    pub fn note(&mut self, text: &str) {
        let style = Style { size_px: SMALL_PX, colour: MUTED, ..Style::default() };
        self.paragraph(text, style);
        self.y += 3.0;
    }

    /// The document: its name, with which ids within it begin, its title, and words for those who do not see it.
    pub fn finish(self, id: &str, title: &str, description: &str) -> String {
        let width = self.width.px();
        let height = (self.y + self.width.margin_px() - 8.0).ceil();
        // A page has both widths.
        let narrow = match self.width {
            Width::Page => "",
            Width::Column => "-narrow",
        };
        let [title_id, description_id] = ["title", "desc"].map(|it| format!("{id}{narrow}-{it}"));
        let mut ground = Canvas::default();
        ground.rect(Rect::new(0.0, 0.0, width, height), Paint::area(GROUND), None);
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="rb-figure" viewBox=(format!("0 0 {width} {height}"))
                width=(px(width)) height=(px(height)) font-family=(FONTS) role="img"
                aria-labelledby=(format!("{title_id} {description_id}")) {
                title id=(title_id) { (printable(title)) }
                desc id=(description_id) { (printable(description)) }
                (ground.into_markup())
                (self.canvas.into_markup())
            }
        }
        .into_string()
    }
}

/// The document as a file of its own, which is dark where its reader is.
pub fn as_file(svg: &str) -> String {
    const END: &str = "</desc>";
    let at = svg.find(END).map_or(svg.len(), |at| at + END.len());
    let (before, behind) = svg.split_at(at);
    format!("{before}<style>{}</style>{behind}", rules_of_file())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMark {
    LineAndMarker,
    Line,
    Marker,
    Area,
    /// A patch of strokes aslant.
    Hatched,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub style: SeriesStyle,
    pub mark: KeyMark,
    pub label: String,
}

impl Key {
    pub fn new(mark: KeyMark, style: SeriesStyle, label: impl Into<String>) -> Key {
        Key { style, mark, label: label.into() }
    }
}

const SAMPLE: f64 = 40.0;
const GAP: f64 = 6.0;
const BETWEEN_KEYS: f64 = 20.0;
const ROW: f64 = 18.0;

/// What is said once is so long at least.
const LEAST_COMMON: usize = 12;

/// What most labels of lines have in common, in words, and all labels without it. Their parts, with commas between, are of
/// the same settings in the same order; those in which they differ most stay.
fn said_once(keys: &[Key]) -> (String, Vec<String>) {
    let split = keys.iter().map(|key| match key.mark {
        KeyMark::Line | KeyMark::LineAndMarker => key.label.split(", ").collect(),
        _ => vec![&*key.label],
    });
    let labels: Vec<Vec<&str>> = split.collect();
    let lines: Vec<&Vec<&str>> = labels.iter().filter(|parts| parts.len() > 1).collect();
    let places = lines.first().map_or(0, |parts| parts.len());
    let is_alike = lines.iter().all(|parts| parts.len() == places);
    let columns = (0..places).map(|place| {
        let mut column: Vec<&str> = lines.iter().filter_map(|it| it.get(place)).copied().collect();
        column.sort_unstable();
        let kinds = column.chunk_by(|one, next| one == next).count();
        // What more than half have is in the middle.
        let middle = column[column.len() / 2];
        let count = column.iter().filter(|part| **part == middle).count();
        (kinds, (2 * count > column.len()).then_some(middle))
    });
    let mut usual: Vec<(usize, Option<&str>)> = columns.collect();
    let most_kinds = usual.iter().map(|it| it.0).max();
    if let Some(telling) = usual.iter_mut().find(|it| Some(it.0) == most_kinds) {
        telling.1 = None;
    }
    let common = usual.iter().filter_map(|it| it.1).collect::<Vec<_>>().join(", ");
    if !is_alike || lines.len() < 2 || common.len() < LEAST_COMMON {
        return (String::new(), keys.iter().map(|key| key.label.clone()).collect());
    }
    let own = labels.iter().map(|parts| {
        let kept =
            parts.iter().zip(&usual).filter(|(part, it)| parts.len() == 1 || it.1 != Some(**part));
        kept.map(|(part, _)| *part).collect::<Vec<_>>().join(", ")
    });
    let is_of_all = usual.iter().all(|(kinds, part)| part.is_none() || *kinds == 1);
    (format!("{}: {common}", if is_of_all { "All" } else { "Unless named" }), own.collect())
}

/// With its label's own words.
type Entry<'k> = (&'k Key, String);

/// Draws the entries below `top` in at most `width` pixels from `left`, and returns their height.
fn draw_legend(canvas: &mut Canvas, left: f64, top: f64, width: f64, keys: &[Entry<'_>]) -> f64 {
    let (mut x, mut y) = (left, top);
    let widest = width - SAMPLE - GAP;
    for (key, label) in keys {
        let lines = wrapped(&printable(label), SMALL_PX, false, widest);
        let needed = lines.iter().map(|line| width_px(line, SMALL_PX, false)).fold(0.0, f64::max);
        let entry = SAMPLE + GAP + needed;
        if x > left && x + entry > left + width {
            (x, y) = (left, y + ROW);
        }
        canvas.begin("rb-key", &[("series", &key.label)]);
        sample(canvas, (x, y + ROW / 2.0), key);
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                y += ROW;
            }
            let foot = y + ROW / 2.0 + SMALL_PX * 0.36;
            canvas.text(x + SAMPLE + GAP, foot, line, Style::default());
        }
        canvas.end_group();
        x += entry + BETWEEN_KEYS;
    }
    if keys.is_empty() { 0.0 } else { y + ROW - top }
}

fn sample(canvas: &mut Canvas, (x, y): (f64, f64), key: &Key) {
    let style = key.style;
    if matches!(key.mark, KeyMark::Line | KeyMark::LineAndMarker) {
        let paint = Paint::line(style.colour, style.width()).dashed(style.dash);
        canvas.line((x, y), (x + SAMPLE, y), paint);
    }
    if matches!(key.mark, KeyMark::Marker | KeyMark::LineAndMarker) {
        canvas.marker((x + SAMPLE / 2.0, y), style, None);
    }
    let patch = Rect::new(x + 8.0, y - 6.0, SAMPLE - 16.0, 12.0);
    match key.mark {
        KeyMark::Area => canvas.rect(patch, Paint::area(style.colour), None),
        KeyMark::Hatched => hatch(canvas, patch),
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
