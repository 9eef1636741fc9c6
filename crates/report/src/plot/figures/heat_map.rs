//! Figure: share of the limit for each number of QPs and each size, a map for each layout of CQs.

use super::grid::{Grid, Grids, ShareOf, grids};
use super::naming::{head, slug};
use crate::plot::draw::colour::Colour;
use crate::plot::draw::palette::{GRID, GROUND, INK, MAP, MUTED};
use crate::plot::draw::text::{SMALL_PX, width_px};
use crate::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style};
use crate::plot::figure::{Cell, Column, Figure, Table};
use crate::results::load::Loaded;
use crate::results::number::human_size;

/// Between two maps, and between rows of them.
const GAP_PX: f64 = 28.0;
const CELL_WIDTH_PX: f64 = 58.0;
const CELL_HEIGHT_PX: f64 = 26.0;
/// Cells narrower or lower than this have no figure in them.
const LABELLED_WIDTH_PX: f64 = 30.0;
const LABELLED_HEIGHT_PX: f64 = 16.0;
/// Most that the cells of a map are high together.
const MAP_HEIGHT_PX: f64 = 520.0;
/// The steps of the map and their figures.
const LEGEND_PX: f64 = 32.0;
/// A line of small text.
const LINE_PX: f64 = 18.0;

/// The first step of the map on which text has the ground's colour instead of the ink's.
const DARK_STEP: usize = 6;

/// A map for each operation on each device.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let all = grids(results);
    let devices = all
        .iter()
        .map(|grids| &grids.device)
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    all.iter().map(|grids| figure(grids, devices > 1)).collect()
}

fn figure(grids: &Grids, name_device: bool) -> Figure {
    let of = match grids.share_of {
        ShareOf::Limit => "of what the link and the protocol allow".to_owned(),
        ShareOf::BestCell => format!("of the best cell’s {:.3} Gb/s", grids.best_gbit_per_s),
    };
    let mut id = format!("heat-map-{}", slug(&grids.op));
    if name_device {
        id = format!("{id}-{}", slug(&grids.device));
    }
    let share = match grids.share_of {
        ShareOf::Limit => "Share of the limit",
        ShareOf::BestCell => "Share of the best cell",
    };
    let title = format!("{share} by QPs and size: {} (%)", grids.op);
    let mut subtitle = format!(
        "{} on {}: Gb/s in percent {of}",
        grids.op,
        or_unknown(&grids.device)
    );
    if grids.share_of == ShareOf::BestCell {
        subtitle.push_str("; these results have no limit, as software devices have no link");
    }
    if grids.cases_a_cell > 1 {
        let most = grids.cases_a_cell;
        subtitle.push_str(&format!(
            "; each cell is the best of up to {most} cases (workers, depths, files)"
        ));
    }
    let mut figure = Figure {
        id,
        description: describe(grids, &of),
        svg: String::new(),
        title,
        subtitle,
        tables: vec![table(grids, &of)],
    };
    figure.svg = draw(grids, &figure);
    figure
}

fn or_unknown(device: &str) -> &str {
    if device.is_empty() {
        "an unknown device"
    } else {
        device
    }
}

fn describe(grids: &Grids, of: &str) -> String {
    let cells = || {
        grids.layouts.iter().flat_map(|grid| {
            grid.cells
                .iter()
                .map(move |(place, cell)| (grid, place, cell))
        })
    };
    let order = |a: &(&Grid, &(u32, u64), &super::grid::GridCell),
                 b: &(&Grid, &(u32, u64), &super::grid::GridCell)| {
        a.2.share.total_cmp(&b.2.share)
    };
    let told = |(grid, (qps, size), cell): (&Grid, &(u32, u64), &super::grid::GridCell)| {
        format!(
            "{:.1} % with {qps} QPs, {} and {} CQs",
            cell.share * 100.0,
            human_size(*size),
            grid.cq
        )
    };
    match (cells().max_by(order), cells().min_by(order)) {
        (Some(best), Some(least)) => format!(
            "Each cell is the throughput in percent {of}, for a number of QPs and a message size. Most: {}. Least: {}.",
            told(best),
            told(least)
        ),
        _ => String::new(),
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
    fn of(grid: &Grid, available_px: f64) -> Layout {
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
        let heading_px = width_px(&heading(grid), SMALL_PX, true);
        Layout {
            labels_px,
            cell,
            width_px: (labels_px + cell.0 * grid.sizes.len() as f64).max(heading_px),
            // Heading, cells, sizes.
            height_px: LINE_PX + cell.1 * grid.qps.len() as f64 + LINE_PX,
        }
    }
}

fn heading(grid: &Grid) -> String {
    format!("{} CQs", grid.cq)
}

fn draw(grids: &Grids, figure: &Figure) -> String {
    let mut sheet = Sheet::new(head(figure));
    let room = sheet.take(0.0);
    // Side by side, as many as have room.
    let mut places = Vec::new();
    let (mut x, mut y, mut row_px) = (0.0, 0.0, 0.0_f64);
    for grid in &grids.layouts {
        let layout = Layout::of(grid, room.width);
        if x > 0.0 && x + layout.width_px > room.width {
            (x, y, row_px) = (0.0, y + row_px + GAP_PX, 0.0);
        }
        let place = (x, y);
        x += layout.width_px + GAP_PX;
        row_px = row_px.max(layout.height_px);
        places.push((grid, layout, place));
    }
    let area = sheet.take(y + row_px + GAP_PX);
    for (grid, layout, (x, y)) in &places {
        map(&mut sheet.canvas, grid, layout, (area.x + x, area.y + y));
    }
    let area = sheet.take(LEGEND_PX);
    legend(&mut sheet.canvas, (area.x, area.y));
    sheet.finish()
}

fn map(canvas: &mut Canvas, grid: &Grid, layout: &Layout, (left, top): (f64, f64)) {
    let (cell_width, cell_height) = layout.cell;
    let bold = Style {
        bold: true,
        ..Style::default()
    };
    canvas.text(left, top + SMALL_PX, &heading(grid), bold);
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
    for (column, size) in grid.sizes.iter().enumerate().step_by(every) {
        let x = left + (column as f64 + 0.5) * cell_width;
        let style = Style {
            anchor: Anchor::Middle,
            colour: MUTED,
            ..Style::default()
        };
        canvas.text(x, top + SMALL_PX + 3.0, &human_size(*size), style);
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

fn table(grids: &Grids, of: &str) -> Table {
    let column = |name: &str, numeric| Column {
        name: name.to_owned(),
        numeric,
    };
    let rows = grids.layouts.iter().flat_map(|grid| {
        grid.qps.iter().flat_map(move |&qps| {
            grid.sizes.iter().map(move |&size| {
                let cell = grid.cells.get(&(qps, size));
                vec![
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
        caption: format!("{}: throughput, and in percent {of}", grids.op),
        columns: vec![
            column("CQ", false),
            column("QPs", true),
            column("size (B)", true),
            column("Gb/s", true),
            column("share (%)", true),
        ],
        rows: rows.collect(),
    }
}
