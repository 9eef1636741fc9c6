//! Small multiples: the charts of one figure beside each other, each under its own heading.

use super::Chart;
use crate::show::plot::draw::palette::style;
use crate::show::plot::draw::text::{ASCENT, SMALL_PX, printable, shortened, wrapped};
use crate::show::plot::draw::{Key, KeyMark, Rect, Sheet, Style, Width};
use crate::show::plot::marks::shapes::hollow;

/// A line of a heading, and lines that it has at most.
const HEADING_PX: f64 = 16.0;
const HEADING_LINES: usize = 3;
/// Height of a chart among others, and of one alone.
const HEIGHT_PX: f64 = 200.0;
const ALONE_PX: f64 = 320.0;

/// Charts beside each other: as many as have the width that they need; on a column only those that need little.
fn columns(sheet: &Sheet, charts: &[Chart]) -> usize {
    let least_px = charts.iter().map(|chart| chart.width_px.0).fold(0.0, f64::max);
    let most = match (sheet.width, charts.len()) {
        (Width::Column, _) if least_px > 0.0 => 2,
        (Width::Column, _) | (_, 0 | 1) => 1,
        (Width::Page, 2 | 4) => 2,
        (Width::Page, _) => 3,
    };
    (1..=most.min(charts.len().max(1)))
        .rev()
        .find(|columns| sheet.width_beside(*columns) >= least_px)
        .unwrap_or(1)
}

/// Draws charts beside and below each other. Inner ones have no titles at their axes where all have the same.
pub fn draw(sheet: &mut Sheet, charts: &[Chart]) {
    let columns = columns(sheet, charts);
    let width = sheet.width_beside(columns);
    let usual = if charts.len() == 1 { ALONE_PX } else { HEIGHT_PX };
    let same_y = charts.iter().all(|it| it.y.title == charts[0].y.title);
    let same_x = charts.iter().all(|it| it.x.title == charts[0].x.title);
    for (row, of_row) in charts.chunks(columns).enumerate() {
        let headings: Vec<Vec<String>> =
            of_row.iter().map(|it| lines(&it.heading, width)).collect();
        let above = match headings.iter().map(Vec::len).max() {
            None | Some(0) => 0.0,
            Some(most) => most as f64 * HEADING_PX + 2.0,
        };
        let height =
            of_row.iter().map(|chart| chart.height_px.unwrap_or(usual)).fold(0.0, f64::max);
        let rects = sheet.take_beside(columns, above + height);
        for (column, ((lines, chart), rect)) in headings.iter().zip(of_row).zip(rects).enumerate() {
            let style = Style { bold: true, ..Style::default() };
            sheet.canvas.begin_heading(&chart.heading);
            for (line, text) in lines.iter().enumerate() {
                let foot = rect.y + line as f64 * HEADING_PX + SMALL_PX * ASCENT;
                sheet.canvas.text(rect.x, foot, text, style);
            }
            sheet.canvas.end_group();
            let mut chart = chart.clone();
            if column > 0 && same_y {
                chart.y.title.clear();
            }
            if (row + 1) * columns + column < charts.len() && same_x {
                chart.x.title.clear();
            }
            let area = Rect {
                x: rect.x,
                y: rect.y + above,
                width: rect.width.min(chart.width_px.1),
                height: chart.height_px.unwrap_or(usual),
            };
            chart.draw(&mut sheet.canvas, area);
        }
    }
}

/// A heading in as many lines as it takes, the last one shortened where they are too many.
fn lines(heading: &str, width: f64) -> Vec<String> {
    let mut lines = wrapped(&printable(heading), SMALL_PX, true, width);
    if lines.len() > HEADING_LINES {
        let rest = lines.split_off(HEADING_LINES - 1).join(" ");
        lines.push(shortened(&rest, SMALL_PX, true, width));
    }
    lines
}

/// Keys of all charts, each name once, in the order of `names`, then the rest.
pub fn keys(charts: &[Chart], names: &[String]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for key in charts.iter().flat_map(Chart::keys) {
        if !key.label.is_empty() && !keys.iter().any(|known| known.label == key.label) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| names.iter().position(|name| *name == key.label).unwrap_or(names.len()));
    if keys.len() < 2 {
        // Nothing to distinguish.
        keys.clear();
    }
    if charts.iter().flat_map(Chart::series).any(|series| !series.hollow.is_empty()) {
        let style = hollow(style(0));
        keys.push(Key::new(KeyMark::Marker, style, "a run that does not count"));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;
    use crate::show::plot::draw::{Scale, Unit};

    #[test]
    fn charts_stand_beside_each_other_where_there_is_room() {
        let rows = |width, count: usize, least_px| {
            let mut sheet = Sheet::new("", "", width);
            let axis = |title| Axis::new(title, Scale::linear(0.0, 1.0), Unit::Plain);
            let chart = Chart {
                width_px: (least_px, f64::INFINITY),
                ..Chart::new(axis("below"), axis("left"), Vec::new())
            };
            draw(&mut sheet, &vec![chart; count]);
            let svg = sheet.finish("", "", "");
            // Titles are at the left, and where nothing is below.
            [">left<", ">below<"].map(|title| svg.matches(title).count())
        };
        assert_eq!(rows(Width::Page, 4, 0.0), [2, 2]);
        assert_eq!(rows(Width::Page, 5, 0.0), [2, 3]);
        assert_eq!(rows(Width::Page, 9, 0.0), [3, 3]);
        assert_eq!(rows(Width::Column, 4, 0.0), [4, 1]);
        assert_eq!(rows(Width::Column, 4, 100.0), [2, 2]);
        assert_eq!(rows(Width::Page, 5, 300.0), [3, 2]);
        assert_eq!(rows(Width::Page, 2, f64::INFINITY), [2, 1]);
    }
}
