//! Small multiples: the charts of one figure beside each other, each under what tells it from the others. It must not know
//! what the charts show.

use super::line::hollow;
use super::{Chart, Series};
use crate::show::plot::draw::palette::look;
use crate::show::plot::draw::text::{ASCENT, SMALL_PX, printable, shortened, wrapped};
use crate::show::plot::draw::{Key, KeyMark, Rect, Sheet, Style, Width};

/// Charts that a figure has at most.
pub const MOST_CHARTS: usize = 9;

/// A line of a heading, and lines that it has at most.
const HEADING_PX: f64 = 16.0;
const HEADING_LINES: usize = 3;
const HEIGHT_PX: f64 = 200.0;

/// Where a chart is drawn.
pub struct Place {
    /// All of it.
    pub area: Rect,
    /// At the left, where the title of the vertical axis stands.
    pub is_left: bool,
    /// Nothing is below it but the title of the horizontal axis.
    pub is_lowest: bool,
}

fn columns(width: Width, count: usize) -> usize {
    match (width, count) {
        (Width::Column, _) | (_, 0 | 1) => 1,
        (Width::Page, 2 | 4) => 2,
        (Width::Page, _) => 3,
    }
}

/// Places for charts, with their headings; one alone is `alone_px` high.
pub fn places(sheet: &mut Sheet, headings: &[String], alone_px: f64) -> Vec<Place> {
    let count = headings.len();
    if count == 1 && headings[0].is_empty() {
        let area = sheet.take(alone_px);
        return vec![Place {
            area,
            is_left: true,
            is_lowest: true,
        }];
    }
    let columns = columns(sheet.width(), count);
    let height = if count == 1 { alone_px } else { HEIGHT_PX };
    let mut places = Vec::new();
    for (row, headings) in headings.chunks(columns).enumerate() {
        let width = sheet.width_beside(columns);
        let lines: Vec<Vec<String>> = headings.iter().map(|it| lines(it, width)).collect();
        let most = lines.iter().map(Vec::len).max().unwrap_or(0);
        let above = most as f64 * HEADING_PX + 2.0;
        let rects = sheet.take_beside(columns, above + height);
        for (column, ((lines, heading), rect)) in lines.iter().zip(headings).zip(rects).enumerate()
        {
            let style = Style {
                bold: true,
                ..Style::default()
            };
            sheet.canvas.begin_heading(heading);
            for (line, text) in lines.iter().enumerate() {
                let foot = rect.y + line as f64 * HEADING_PX + SMALL_PX * ASCENT;
                sheet.canvas.text(rect.x, foot, text, style);
            }
            sheet.canvas.end_group();
            places.push(Place {
                area: Rect {
                    y: rect.y + above,
                    height,
                    ..rect
                },
                is_left: column == 0,
                is_lowest: (row + 1) * columns + column >= count,
            });
        }
    }
    places
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

/// Draws charts at their places; one alone is `alone_px` high.
pub fn draw(sheet: &mut Sheet, charts: &[Chart], alone_px: f64) {
    let headings: Vec<String> = charts.iter().map(|it| it.heading.clone()).collect();
    let places = places(sheet, &headings, alone_px);
    let same_y = charts.iter().all(|it| it.y.title == charts[0].y.title);
    let same_x = charts.iter().all(|it| it.x.title == charts[0].x.title);
    for (chart, place) in charts.iter().zip(&places) {
        let mut chart = chart.clone();
        if !place.is_left && same_y {
            chart.y.title.clear();
        }
        if !place.is_lowest && same_x {
            chart.x.title.clear();
        }
        chart.draw(&mut sheet.canvas, place.area);
    }
}

/// Keys of all charts, each name once, in the order of `names`, then the rest.
pub fn keys(charts: &[Chart], names: &[String]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for key in charts.iter().flat_map(Chart::keys) {
        if !key.label.is_empty() && !keys.iter().any(|known| known.label == key.label) {
            keys.push(key);
        }
    }
    let rank = |label: &str| names.iter().position(|name| name == label);
    keys.sort_by_key(|key| rank(&key.label).unwrap_or(names.len()));
    if keys.len() < 2 {
        // Nothing to tell apart.
        keys.clear();
    }
    let is_hollow = |series: &Series| !series.hollow.is_empty();
    if charts.iter().flat_map(Chart::series).any(is_hollow) {
        keys.push(Key {
            look: hollow(look(0)),
            mark: KeyMark::Marker,
            label: "a run that does not count".to_owned(),
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_stand_beside_each_other_where_there_is_room() {
        let rows = |width, count: usize| {
            let mut sheet = Sheet::new("", "", width);
            let headings: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let places = places(&mut sheet, &headings, 300.0);
            let lefts = places.iter().filter(|place| place.is_left).count();
            let lowest = places.iter().filter(|place| place.is_lowest).count();
            (lefts, lowest)
        };
        assert_eq!(rows(Width::Page, 4), (2, 2));
        assert_eq!(rows(Width::Page, 5), (2, 3));
        assert_eq!(rows(Width::Page, 9), (3, 3));
        assert_eq!(rows(Width::Column, 4), (4, 1));
    }
}
