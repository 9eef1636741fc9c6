//! Figure: what more QPs bring at each size, a map for each operation and layout of CQs.

use std::collections::BTreeSet;

use super::grid::{Grid, grids};
use crate::observe::format::human_size;
use crate::results::load::Loaded;
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::{GRID, GROUND, INK, MAP, MUTED};
use crate::show::plot::draw::text::{SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::naming::drawn;

/// Maps that are drawn; of more, those whose cells differ most.
const MOST_MAPS: usize = 9;
/// Between two maps, and between rows of them.
const GAP_PX: f64 = 28.0;
const CELL_WIDTH_PX: f64 = 46.0;
const CELL_HEIGHT_PX: f64 = 22.0;
/// Cells narrower or lower than this have no figure in them.
const LABELLED_WIDTH_PX: f64 = 30.0;
const LABELLED_HEIGHT_PX: f64 = 16.0;
/// Most that the cells of a map are high together.
const MAP_HEIGHT_PX: f64 = 320.0;
/// The steps of the map and their figures.
const LEGEND_PX: f64 = 32.0;
/// A line of small text.
const LINE_PX: f64 = 18.0;

/// The first step of the map on which text has the ground's colour instead of the ink's.
const DARK_STEP: usize = 6;

/// The figure; none without two numbers of QPs at a size.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    figure(grids(results)).into_iter().collect()
}

fn figure(all: Vec<Grid>) -> Option<Figure> {
    let count = all.len();
    let table = table(&all);
    let mut all: Vec<(usize, Grid)> = all.into_iter().enumerate().collect();
    let least = |grid: &Grid| {
        let shares = grid.cells.values().map(|cell| cell.share);
        shares.fold(1.0, f64::min)
    };
    all.sort_by(|one, other| least(&one.1).total_cmp(&least(&other.1)));
    all.truncate(MOST_MAPS);
    all.sort_by_key(|(index, _)| *index);
    let grids: Vec<Grid> = all.into_iter().map(|(_, grid)| grid).collect();
    let devices: BTreeSet<&str> = grids.iter().map(|grid| grid.device.as_str()).collect();
    let devices: Vec<&str> = devices.iter().map(|device| or_unknown(device)).collect();
    let headings: Vec<String> = grids
        .iter()
        .map(|grid| match devices.len() {
            1 => format!("{}, {} CQs", grid.op, grid.cq),
            _ => format!("{}, {} CQs, {}", grid.op, grid.cq, or_unknown(&grid.device)),
        })
        .collect();
    grids.first()?;
    let mut subtitle = format!(
        "Percent of the best of each size, on {}",
        devices.join(", ")
    );
    let most = grids.iter().map(|grid| grid.cases_a_cell).max();
    if let Some(most @ 2..) = most {
        subtitle.push_str(&format!("; each cell is the best of up to {most} cases"));
    }
    let figure = Figure {
        id: "heat-map".to_owned(),
        title: "Effect of more QPs at each size (%)".to_owned(),
        subtitle,
        description: "Each cell: Gb/s of a number of QPs, in percent of the best of its size."
            .to_owned(),
        tables: vec![table],
        ..Figure::default()
    };
    let left_out = count - grids.len();
    Some(drawn(figure, |sheet| {
        draw(sheet, &grids, &headings);
        if left_out > 0 {
            sheet.note(&format!(
                "The figure has the {MOST_MAPS} maps whose cells differ most; {left_out} more are in the table."
            ));
        }
    }))
}

fn or_unknown(device: &str) -> &str {
    if device.is_empty() {
        "an unknown device"
    } else {
        device
    }
}

/// The step of the map that stands for a share.
fn step(share: f64) -> usize {
    let steps = MAP.len();
    ((share.clamp(0.0, 1.0) * steps as f64) as usize).min(steps - 1)
}

fn ink_on(step: usize) -> Colour {
    if step < DARK_STEP { INK } else { GROUND }
}

/// Where a map's parts are, from its upper left corner.
struct Layout {
    labels_px: f64,
    cell: (f64, f64),
    width_px: f64,
    height_px: f64,
}

impl Layout {
    fn of(grid: &Grid, heading: &str, available_px: f64) -> Layout {
        let widest = grid
            .qps
            .iter()
            .map(|qps| width_px(&qps.to_string(), SMALL_PX, false))
            .fold(0.0, f64::max);
        let labels_px = widest.max(width_px("QPs", SMALL_PX, false)) + 8.0;
        let cell = (
            ((available_px - labels_px) / grid.sizes.len() as f64).min(CELL_WIDTH_PX),
            (MAP_HEIGHT_PX / grid.qps.len() as f64).min(CELL_HEIGHT_PX),
        );
        let heading_px = width_px(heading, SMALL_PX, true).min(available_px);
        Layout {
            labels_px,
            cell,
            width_px: (labels_px + cell.0 * grid.sizes.len() as f64).max(heading_px),
            // Heading, cells, sizes.
            height_px: LINE_PX + cell.1 * grid.qps.len() as f64 + LINE_PX,
        }
    }
}

fn draw(sheet: &mut Sheet, grids: &[Grid], headings: &[String]) {
    let room = sheet.take(0.0);
    // Side by side, as many as have room.
    let mut places = Vec::new();
    let (mut x, mut y, mut row_px) = (0.0, 0.0, 0.0_f64);
    for (grid, heading) in grids.iter().zip(headings) {
        let layout = Layout::of(grid, heading, room.width);
        if x > 0.0 && x + layout.width_px > room.width {
            (x, y, row_px) = (0.0, y + row_px + GAP_PX, 0.0);
        }
        let place = (x, y);
        x += layout.width_px + GAP_PX;
        row_px = row_px.max(layout.height_px);
        places.push((grid, heading, layout, place));
    }
    let area = sheet.take(y + row_px + GAP_PX);
    for (grid, heading, layout, (x, y)) in &places {
        let corner = (area.x + x, area.y + y);
        map(&mut sheet.canvas, grid, heading, layout, corner);
    }
    let area = sheet.take(LEGEND_PX);
    legend(&mut sheet.canvas, (area.x, area.y));
}

fn map(canvas: &mut Canvas, grid: &Grid, heading: &str, layout: &Layout, (left, top): (f64, f64)) {
    let (cell_width, cell_height) = layout.cell;
    let bold = Style {
        bold: true,
        ..Style::default()
    };
    let heading = shortened(heading, SMALL_PX, true, layout.width_px);
    canvas.text(left, top + SMALL_PX, &heading, bold);
    let cells_left = left + layout.labels_px;
    let cells_top = top + LINE_PX;
    let labelled = cell_width >= LABELLED_WIDTH_PX && cell_height >= LABELLED_HEIGHT_PX;
    let every_row = (LINE_PX / cell_height).ceil().max(1.0) as usize;
    for (row, &qps) in grid.qps.iter().rev().enumerate() {
        let y = cells_top + row as f64 * cell_height;
        if row % every_row == 0 {
            let style = Style {
                anchor: Anchor::End,
                colour: MUTED,
                ..Style::default()
            };
            canvas.text(
                cells_left - 6.0,
                y + cell_height / 2.0 + 4.0,
                &qps.to_string(),
                style,
            );
        }
        for (column, &size) in grid.sizes.iter().enumerate() {
            let rect = Rect {
                x: cells_left + column as f64 * cell_width,
                y,
                width: cell_width,
                height: cell_height,
            };
            cell(canvas, grid, (qps, size), rect, labelled);
        }
    }
    sizes(
        canvas,
        grid,
        (cells_left, cells_top + cell_height * grid.qps.len() as f64),
        cell_width,
    );
    let style = Style {
        anchor: Anchor::End,
        colour: MUTED,
        ..Style::default()
    };
    let foot = cells_top + cell_height * grid.qps.len() as f64 + SMALL_PX + 3.0;
    canvas.text(cells_left - 6.0, foot, "QPs", style);
}

fn cell(canvas: &mut Canvas, grid: &Grid, place: (u32, u64), rect: Rect, labelled: bool) {
    let (qps, size) = place;
    let centre = Style {
        anchor: Anchor::Middle,
        ..Style::default()
    };
    let (x, y) = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0 + 4.0);
    let Some(cell) = grid.cells.get(&place) else {
        canvas.rect(rect, Paint::line(GRID, 1.0), Some("not measured"));
        if labelled {
            canvas.text(
                x,
                y,
                "–",
                Style {
                    colour: MUTED,
                    ..centre
                },
            );
        }
        return;
    };
    let step = step(cell.share);
    let hint = format!(
        "{qps} QPs, {}: {:.1} %, {:.3} Gb/s",
        human_size(size),
        cell.share * 100.0,
        cell.gbit_per_s
    );
    let paint = Paint {
        stroke: Some(GROUND),
        width: 1.0,
        ..Paint::area(MAP[step])
    };
    canvas.rect(rect, paint, Some(&hint));
    if labelled {
        canvas.text(
            x,
            y,
            &percent(cell.share),
            Style {
                colour: ink_on(step),
                ..centre
            },
        );
    }
}

/// Whole percents, with a digit after the point below ten.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}

/// Names below the columns, as many as have room.
fn sizes(canvas: &mut Canvas, grid: &Grid, (left, top): (f64, f64), cell_width: f64) {
    let widest = grid
        .sizes
        .iter()
        .map(|size| width_px(&human_size(*size), SMALL_PX, false))
        .fold(0.0, f64::max);
    let every = ((widest + 6.0) / cell_width).ceil().max(1.0) as usize;
    let right = left + cell_width * grid.sizes.len() as f64;
    let mut free_from = left;
    for (column, size) in grid.sizes.iter().enumerate().step_by(every) {
        let text = human_size(*size);
        let half = width_px(&text, SMALL_PX, false) / 2.0;
        let middle = left + (column as f64 + 0.5) * cell_width;
        let middle = middle.min(right - half).max(left + half);
        if middle - half < free_from {
            continue;
        }
        free_from = middle + half + 4.0;
        let style = Style {
            anchor: Anchor::Middle,
            colour: MUTED,
            ..Style::default()
        };
        canvas.text(middle, top + SMALL_PX + 3.0, &text, style);
    }
}

/// What the colours stand for.
fn legend(canvas: &mut Canvas, (left, top): (f64, f64)) {
    let steps = MAP.len();
    let width = 36.0;
    for (index, colour) in MAP.into_iter().enumerate() {
        let rect = Rect {
            x: left + index as f64 * width,
            y: top,
            width,
            height: 12.0,
        };
        let paint = Paint {
            stroke: Some(GRID),
            width: 1.0,
            ..Paint::area(colour)
        };
        canvas.rect(rect, paint, None);
    }
    for (index, anchor) in [
        (0, Anchor::Start),
        (3, Anchor::Middle),
        (6, Anchor::Middle),
        (steps, Anchor::Start),
    ] {
        let style = Style {
            anchor,
            colour: MUTED,
            ..Style::default()
        };
        let unit = if index == steps { " %" } else { "" };
        let x = left + index as f64 * width - if index == steps { 18.0 } else { 0.0 };
        let text = format!("{:.0}{unit}", index as f64 / steps as f64 * 100.0);
        canvas.text(x, top + 28.0, &text, style);
    }
}

fn table(grids: &[Grid]) -> Table {
    let rows = grids.iter().flat_map(|grid| {
        grid.qps.iter().flat_map(move |&qps| {
            grid.sizes.iter().map(move |&size| {
                let cell = grid.cells.get(&(qps, size));
                vec![
                    Cell::Text(grid.op.clone()),
                    Cell::Text(grid.device.clone()),
                    Cell::Text(grid.cq.clone()),
                    Cell::Number(f64::from(qps), 0),
                    Cell::Number(size as f64, 0),
                    cell.map_or(Cell::Missing, |cell| Cell::Number(cell.gbit_per_s, 3)),
                    cell.map_or(Cell::Missing, |cell| Cell::Number(cell.share * 100.0, 1)),
                ]
            })
        })
    });
    Table {
        caption: "Throughput, and in percent of the best number of QPs of the same size".to_owned(),
        columns: vec![
            text_column("op"),
            text_column("device"),
            text_column("CQ"),
            number_column("QPs"),
            number_column("size (B)"),
            number_column("Gb/s"),
            number_column("share (%)"),
        ],
        rows: rows.collect(),
    }
}
