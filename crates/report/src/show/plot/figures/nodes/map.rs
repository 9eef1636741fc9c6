//! Figure: what each node moved to each other one, as a map of rows FROM and columns TO, coloured by how far a cell is
//! from the median of all.

use super::names::thinned;
use super::steps::{Steps, Told, fits, hatch};
use super::subject::Subject;
use crate::observe::Metric;
use crate::show::plot::draw::palette::{GROUND, INK, MUTED, WORSE};
use crate::show::plot::draw::text::{SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::figure::{number_column, text_column};
use crate::show::plot::naming::drawn;

const CELL_WIDTH_PX: f64 = 64.0;
const CELL_HEIGHT_PX: f64 = 26.0;
/// Most that names of nodes and of racks take at a side.
const NAMES_PX: f64 = 150.0;
const RACKS_PX: f64 = 110.0;
/// A line of small text.
const LINE_PX: f64 = 18.0;
/// Nodes up to which each cell has words for who points at it, and its figure in the table.
const MOST_SINGLE: usize = 64;
/// Rows of the table with more nodes: the worst cells.
const WORST_ROWS: usize = 100;

/// Whether a map tells more than the nodes' medians do.
pub(super) fn is_worth_a_map(subject: &Subject<'_>) -> bool {
    subject.matrix.cells.len() >= 2 * subject.matrix.nodes.len().max(2)
}

/// The map of a quantity; `None` where no flow has it.
pub(super) fn figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let median = subject.matrix.median(quantity);
    let steps = Steps::around(median, quantity)?;
    let told = Told::of(quantity, median?);
    let map = Map {
        subject,
        quantity,
        steps,
        told,
    };
    let what = quantity.title();
    let figure = Figure {
        id,
        title: subject.title(&format!("{what} from node to node ({})", told.unit)),
        subtitle: subject.subtitle.clone(),
        description: "Each row is a node that posts, each column one at the other end. The colour is the distance from the \
                      median of all."
            .to_owned(),
        tables: vec![map.table()],
        ..Figure::default()
    };
    Some(drawn(figure, |sheet| map.draw(sheet)))
}

struct Map<'m> {
    subject: &'m Subject<'m>,
    quantity: Metric,
    steps: Steps,
    told: Told,
}

/// Where the cells are.
struct Grid {
    left: f64,
    top: f64,
    cell: (f64, f64),
    count: usize,
}

impl Grid {
    fn rect(&self, row: usize, column: usize) -> Rect {
        Rect {
            x: self.left + column as f64 * self.cell.0,
            y: self.top + row as f64 * self.cell.1,
            width: self.cell.0,
            height: self.cell.1,
        }
    }

    /// All cells of some rows and columns.
    fn block(&self, rows: (usize, usize), columns: (usize, usize)) -> Rect {
        let first = self.rect(rows.0, columns.0);
        Rect {
            width: columns.1 as f64 * self.cell.0,
            height: rows.1 as f64 * self.cell.1,
            ..first
        }
    }

    fn all(&self) -> Rect {
        self.block((0, self.count), (0, self.count))
    }
}

impl Map<'_> {
    /// The figure of the flows from one place of the order to another.
    fn value(&self, row: usize, column: usize) -> Option<f64> {
        let cell = self.subject.cell(row, column)?;
        cell.figures.of(self.quantity).filter(|it| it.is_finite())
    }

    fn hint(&self, row: usize, column: usize) -> String {
        let [from, to] = [row, column].map(|place| self.subject.name(place));
        let lost = self.subject.cell(row, column).map_or(0, |cell| cell.lost);
        let lost = match lost {
            0 => String::new(),
            1 => "; 1 run does not count".to_owned(),
            many => format!("; {many} runs do not count"),
        };
        match self.value(row, column) {
            Some(value) => {
                let share = self.steps.share(value) * 100.0;
                let value = self.told.with_unit(value);
                format!("{from} to {to}: {value}, {share:.1}\u{a0}% of the median{lost}")
            }
            None => format!("{from} to {to}: no run that counts{lost}"),
        }
    }

    fn draw(&self, sheet: &mut Sheet) {
        let subject = self.subject;
        let count = subject.matrix.nodes.len();
        let room = sheet.take(0.0);
        let widest = subject.names.labels.iter();
        let widest = widest
            .map(|name| width_px(name, SMALL_PX, true))
            .fold(0.0, f64::max);
        let names_px = widest.min(NAMES_PX).min(room.width / 4.0) + 10.0;
        let racks = subject.order.racks.iter();
        let racks_px = racks
            .map(|rack| width_px(&rack.name, SMALL_PX, false) + 10.0)
            .fold(0.0, f64::max)
            .min(RACKS_PX.min(room.width / 6.0));
        let width = ((room.width - names_px - racks_px) / count as f64).min(CELL_WIDTH_PX);
        let cell = (width, width.min(CELL_HEIGHT_PX));
        // The title of the rows and the racks above; names of columns and their title below.
        let above = LINE_PX * if racks_px > 0.0 { 2.0 } else { 1.0 } + 4.0;
        let height = cell.1 * count as f64;
        let area = sheet.take(above + height + 2.0 * LINE_PX + 6.0);
        let grid = Grid {
            left: area.x + names_px,
            top: area.y + above,
            cell,
            count,
        };
        let missing = self.cells(&mut sheet.canvas, &grid);
        self.racks(&mut sheet.canvas, &grid, racks_px);
        self.marks(&mut sheet.canvas, &grid);
        self.row_names(&mut sheet.canvas, &grid, area, names_px);
        self.column_names(&mut sheet.canvas, &grid, area);
        self.steps.legend(sheet, missing > 0);
    }

    /// Draws the cells; returns how many have no figure.
    fn cells(&self, canvas: &mut Canvas, grid: &Grid) -> usize {
        let is_single = grid.count <= MOST_SINGLE;
        let mut by_step: Vec<Vec<Rect>> = vec![Vec::new(); 9];
        let mut missing = Vec::new();
        for row in 0..grid.count {
            for column in 0..grid.count {
                if !self.subject.has(row, column) {
                    continue;
                }
                let rect = grid.rect(row, column);
                let Some(value) = self.value(row, column) else {
                    if is_single {
                        let hint = self.hint(row, column);
                        canvas.rect(rect, Paint::area(GROUND), Some(&hint));
                    }
                    missing.push(rect);
                    continue;
                };
                let step = self.steps.of(value);
                if !is_single {
                    by_step[step].push(rect);
                    continue;
                }
                let paint = Paint {
                    stroke: Some(GROUND),
                    width: 1.0,
                    ..Paint::area(Steps::colour(step))
                };
                canvas.rect(rect, paint, Some(&self.hint(row, column)));
                let text = self.told.plain(value);
                if fits(&text, rect) {
                    let style = Style {
                        anchor: Anchor::Middle,
                        colour: Steps::ink(step),
                        ..Style::default()
                    };
                    let middle = rect.x + rect.width / 2.0;
                    canvas.text(middle, rect.y + rect.height / 2.0 + 4.0, &text, style);
                }
            }
        }
        for (step, rects) in by_step.iter().enumerate() {
            canvas.rects(rects, Paint::area(Steps::colour(step)));
        }
        hatch(canvas, &missing);
        canvas.rect(grid.all(), Paint::line(MUTED, 1.0), None);
        missing.len()
    }

    /// Borders between racks, and their names above and at the right.
    fn racks(&self, canvas: &mut Canvas, grid: &Grid, names_px: f64) {
        let all = grid.all();
        let mut free_below = all.y;
        for rack in &self.subject.order.racks {
            let columns = grid.block((0, grid.count), (rack.start, rack.len));
            let rows = grid.block((rack.start, rack.len), (0, grid.count));
            if rack.start > 0 {
                let borders = [
                    [(columns.x, all.y), (columns.x, all.bottom())],
                    [(all.x, rows.y), (all.right(), rows.y)],
                ];
                canvas.lines(&borders, Paint::line(INK, 1.5));
            }
            let muted = Style {
                colour: MUTED,
                ..Style::default()
            };
            if let Some(name) = with_room(&rack.name, columns.width - 4.0) {
                let style = Style {
                    anchor: Anchor::Middle,
                    ..muted
                };
                canvas.text(columns.x + columns.width / 2.0, all.y - 6.0, &name, style);
            }
            let middle = rows.y + rows.height / 2.0;
            if let Some(name) = with_room(&rack.name, names_px - 8.0)
                && middle - LINE_PX / 2.0 >= free_below
            {
                canvas.text(all.right() + 8.0, middle + 4.0, &name, muted);
                free_below = middle + LINE_PX / 2.0;
            }
        }
    }

    /// Frames around what is slow.
    fn marks(&self, canvas: &mut Canvas, grid: &Grid) {
        let marks = self.subject.marks(self.quantity);
        let paint = Paint::line(INK, 2.0);
        for row in marks.from {
            canvas.rect(grid.block((row, 1), (0, grid.count)), paint, None);
        }
        for column in marks.to {
            canvas.rect(grid.block((0, grid.count), (column, 1)), paint, None);
        }
        for (row, column) in marks.paths {
            canvas.rect(grid.rect(row, column), paint, None);
        }
    }

    fn row_names(&self, canvas: &mut Canvas, grid: &Grid, area: Rect, names_px: f64) {
        let names = &self.subject.names;
        let muted = Style {
            colour: MUTED,
            ..Style::default()
        };
        let title = shortened(&names.title("from"), SMALL_PX, false, area.width);
        canvas.text(area.x, area.y + SMALL_PX, &title, muted);
        let extents = vec![SMALL_PX * 1.25; grid.count];
        let marked = self.subject.marks(self.quantity).rows();
        for row in thinned(&extents, grid.cell.1, 0.0, &marked) {
            let style = Style {
                anchor: Anchor::End,
                ..name_style(marked.contains(&row))
            };
            let name = shortened(&names.labels[row], SMALL_PX, style.bold, names_px - 10.0);
            let rect = grid.rect(row, 0);
            canvas.text(
                grid.left - 7.0,
                rect.y + rect.height / 2.0 + 4.0,
                &name,
                style,
            );
        }
    }

    fn column_names(&self, canvas: &mut Canvas, grid: &Grid, area: Rect) {
        let names = &self.subject.names;
        let marked = self.subject.marks(self.quantity).columns();
        let labels: Vec<String> = (names.labels.iter().enumerate())
            .map(|(column, name)| shortened(name, SMALL_PX, marked.contains(&column), NAMES_PX))
            .collect();
        let widths: Vec<f64> = (labels.iter().enumerate())
            .map(|(column, name)| width_px(name, SMALL_PX, marked.contains(&column)))
            .collect();
        let foot = grid.all().bottom() + SMALL_PX + 5.0;
        let mut columns: Vec<usize> = thinned(&widths, grid.cell.0, 8.0, &marked)
            .into_iter()
            .collect();
        // What is marked has its name before others.
        columns.sort_by_key(|column| !marked.contains(column));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for column in columns {
            let rect = grid.rect(0, column);
            let half = widths[column] / 2.0;
            let middle = rect.x + rect.width / 2.0;
            let middle = middle.min(area.right() - half).max(area.x + half);
            let (from, to) = (middle - half - 4.0, middle + half + 4.0);
            if taken.iter().any(|other| from < other.1 && other.0 < to) {
                continue;
            }
            taken.push((from, to));
            let style = Style {
                anchor: Anchor::Middle,
                ..name_style(marked.contains(&column))
            };
            canvas.text(middle, foot, &labels[column], style);
        }
        let title = shortened(&names.title("to"), SMALL_PX, false, area.width);
        let style = Style {
            anchor: Anchor::Middle,
            colour: MUTED,
            ..Style::default()
        };
        let half = width_px(&title, SMALL_PX, false) / 2.0;
        let all = grid.all();
        let middle = (all.x + all.width / 2.0).max(area.x + half);
        canvas.text(middle, foot + LINE_PX, &title, style);
    }

    /// All cells with figures, the worst first.
    fn sorted(&self) -> Vec<(usize, usize, f64)> {
        let count = self.subject.matrix.nodes.len();
        let places = (0..count).flat_map(|row| (0..count).map(move |column| (row, column)));
        let mut all: Vec<(usize, usize, f64)> = places
            .filter_map(|(row, column)| Some((row, column, self.value(row, column)?)))
            .collect();
        all.sort_by(|one, other| match self.quantity.higher_is_better() {
            true => one.2.total_cmp(&other.2),
            false => other.2.total_cmp(&one.2),
        });
        all
    }

    fn table(&self) -> Table {
        let count = self.subject.matrix.nodes.len();
        let typical = self.subject.matrix.median(self.quantity).unwrap_or(1.0) / self.told.divisor;
        let digits = (2.0 - typical.abs().max(1e-6).log10().floor()).clamp(0.0, 6.0) as usize;
        let cell = |value: f64| Cell::Number(value / self.told.divisor, digits);
        let unit = self.told.unit;
        if count <= MOST_SINGLE {
            let name = |place: usize| self.subject.name(place).to_owned();
            let row = |from: usize| {
                let cells = (0..count).map(|to| self.value(from, to).map_or(Cell::Missing, cell));
                std::iter::once(Cell::Text(name(from)))
                    .chain(cells)
                    .collect()
            };
            let columns = (0..count).map(|place| number_column(name(place)));
            return Table {
                caption: format!(
                    "Medians over the runs that count, in {unit}: rows are from, columns to"
                ),
                columns: std::iter::once(text_column("from"))
                    .chain(columns)
                    .collect(),
                rows: (0..count).map(row).collect(),
            };
        }
        let rows = self.sorted().into_iter().take(WORST_ROWS);
        let rows = rows.map(|(from, to, value)| {
            let [from, to] = [from, to].map(|it| Cell::Text(self.subject.name(it).to_owned()));
            let share = Cell::Number(self.steps.share(value) * 100.0, 1);
            vec![from, to, cell(value), share]
        });
        Table {
            caption: format!(
                "The worst {WORST_ROWS} of {} cells; the CSV file has all",
                self.subject.matrix.cells.len()
            ),
            columns: vec![
                text_column("from"),
                text_column("to"),
                number_column(unit),
                number_column("of the median (%)"),
            ],
            rows: rows.collect(),
        }
    }
}

/// A name, shortened to a width; `None` where nothing of it has room.
fn with_room(name: &str, width: f64) -> Option<String> {
    let least = width_px("mm…", SMALL_PX, false);
    let name = match width_px(name, SMALL_PX, false) <= width || width >= least {
        true => shortened(name, SMALL_PX, false, width),
        false => String::new(),
    };
    (!name.is_empty()).then_some(name)
}

fn name_style(is_marked: bool) -> Style {
    Style {
        bold: is_marked,
        colour: if is_marked { WORSE } else { INK },
        ..Style::default()
    }
}
