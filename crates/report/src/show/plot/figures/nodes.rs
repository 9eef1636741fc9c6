//! Figures of many nodes: maps of who moved how much to whom, coloured by how far a cell is from the median of all,
//! strips of nodes, and curves over how many send at once.

use results::load::Loaded;
use settings::{Pattern, Settings};

use crate::judge::mesh::{Matrix, fans};
use crate::observe::Metric;
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale,
        palette::{INK, Marker, SERIES, SeriesStyle, WORSE, style},
    },
    figure::{Cell, Figure, Picture, Table},
    figures::{
        heat_map::Shade,
        node_matrix::{Norm, Subject, shades, words},
    },
    marks::{Axis, Chart, Dot, Fill, Mark, Rule, Tile},
    rows::case_settings::Setting,
    spec::unit,
    specs,
};

pub use super::node_matrix::Racks;

const MOST_MATRICES: usize = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    /// What is slow and where to look, and what a fan says.
    pub sentences: Vec<String>,
    pub figures: Vec<Figure>,
    /// How many matrices there are, and how many of them are drawn.
    pub matrices: (usize, usize),
}

/// All figures of nodes. `sums` are the results with the flows of each case of a pattern as one.
pub(crate) fn figures(results: &[Loaded], sums: &[Loaded], racks: &Racks) -> Nodes {
    let matrices = matrices(results);
    let count = matrices.len();
    let mut subjects: Vec<Subject<'_>> = matrices
        .into_iter()
        .take(MOST_MATRICES)
        .map(|(loaded, matrix)| Subject::new(loaded, matrix, racks))
        .collect();
    tell_apart(&mut subjects);
    let is_one = subjects.len() == 1;
    let sentences = subjects.iter().flat_map(|it| sentences(it, is_one));
    let of_subjects =
        (1..).zip(&subjects).flat_map(|(number, subject)| of_subject(subject, number));
    let of_fans = specs::FANS.iter().flat_map(|spec| spec.figures(sums));
    Nodes {
        matrices: (count, subjects.len()),
        sentences: sentences.collect(),
        figures: of_subjects.chain(of_fans).collect(),
    }
}

/// What a matrix says; of one among others with its title.
fn sentences(subject: &Subject<'_>, is_one: bool) -> Vec<String> {
    let matrix = &subject.matrix;
    let mut of_fans = fans(&subject.loaded.result);
    of_fans.retain(|finding| finding.case() == Some(&matrix.title));
    let title = if is_one { String::new() } else { format!("{}: ", matrix.title) };
    subject.findings.iter().chain(&of_fans).map(|finding| title.clone() + &finding.text).collect()
}

fn of_subject(subject: &Subject<'_>, number: usize) -> Vec<Figure> {
    // In an open loop all have the rate that they were offered.
    let is_closed = subject.matrix.settings.is_closed_loop();
    let quantity = if is_closed { Metric::GbitPerS } else { Metric::P99Ns };
    let is_map = is_worth_a_map(subject);
    let has_late = is_map && is_closed && subject.has_slow(Metric::P99Ns);
    let drawn = [
        is_map.then(|| map_figure(subject, quantity, format!("nodes-map-{number}"))),
        has_late.then(|| map_figure(subject, Metric::P99Ns, format!("nodes-p99-map-{number}"))),
        Some(strip_figure(subject, quantity, format!("nodes-strip-{number}"))),
    ];
    drawn.into_iter().flatten().flatten().collect()
}

/// The matrices of all files, the newest file first; of equal ones the newest, and of a fan that with the most nodes.
fn matrices(results: &[Loaded]) -> Vec<(&Loaded, Matrix)> {
    let mut newest: Vec<&Loaded> = results.iter().collect();
    newest.sort_by(|one, other| other.result.started_at.cmp(&one.result.started_at));
    let mut matrices: Vec<(&Loaded, Matrix)> = Vec::new();
    for loaded in newest {
        for matrix in without_smaller_fans(Matrix::of_file(&loaded.result)) {
            let has_figures = matrix.cells.iter().any(|cell| !cell.runs.is_empty());
            let has_newer = matrices
                .iter()
                .any(|(_, newer)| newer.settings == matrix.settings && newer.nodes == matrix.nodes);
            if has_figures && !has_newer {
                matrices.push((loaded, matrix));
            }
        }
    }
    matrices
}

fn without_smaller_fans(matrices: Vec<Matrix>) -> Vec<Matrix> {
    let mut kept: Vec<Matrix> = Vec::new();
    for matrix in matrices {
        let is_fan = matches!(matrix.pattern, Pattern::Incast(_) | Pattern::Outcast(_));
        let alike = kept
            .iter_mut()
            .find(|other| is_fan && but_for_fan(&other.settings) == but_for_fan(&matrix.settings));
        match alike {
            Some(other) if other.nodes.len() < matrix.nodes.len() => *other = matrix,
            Some(_) => {}
            None => kept.push(matrix),
        }
    }
    kept
}

fn but_for_fan(settings: &Settings) -> Settings {
    Settings { fan_in: None, fan_out: None, ..settings.clone() }
}

/// Says of each what it does not share with all others.
fn tell_apart(subjects: &mut [Subject<'_>]) {
    let all_words: Vec<_> = subjects.iter().map(|it| words(it.loaded, &it.matrix)).collect();
    for (subject, words_of_subject) in subjects.iter_mut().zip(&all_words) {
        let own = words_of_subject.iter().filter(|word| {
            let is_shared = all_words.iter().all(|other| other.contains(word));
            !is_shared && word.0 != Setting::from_flag("pattern")
        });
        subject.apart = own.map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(", ");
    }
}

const CAPTION: &str = "Rows are nodes that post, columns the other ends. Colour shows how far a cell is from the median of \
    all.";

const MOST_CELL_PX: (f64, f64) = (64.0, 26.0);
/// Most that all rows are high together.
const ROWS_PX: f64 = 540.0;
/// Nodes up to which each cell has words for who points at it, and its figure in the table.
const MOST_SINGLE: usize = 64;
/// Rows of the table with more nodes: the worst cells.
const WORST_ROWS: usize = 100;
const UNKNOWN: &str = "no run that counts";

/// Whether a map shows more than the nodes' medians do.
fn is_worth_a_map(subject: &Subject<'_>) -> bool {
    subject.matrix.cells.len() >= 2 * subject.matrix.nodes.len().max(2)
}

/// The map of a quantity; `None` where no flow has it.
fn map_figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let map = Map {
        subject,
        quantity,
        count: subject.matrix.nodes.len(),
        norm: Norm::around(subject.matrix.median(quantity), quantity)?,
    };
    let (what, shades) = (quantity.title(), shades(quantity));
    let tiles = map.tiles(&shades);
    let mut keys = Shade::keys(&shades);
    if tiles.iter().any(|tile| tile.fill == Fill::Hatched) {
        keys.push(Key::new(KeyMark::Hatched, SeriesStyle::default(), UNKNOWN));
    }
    let picture = Picture {
        subtitle: subject.subtitle.clone(),
        keys,
        charts: vec![map.chart(tiles)],
        notes: vec![format!(
            "Share of the median, {}: worse is orange, better is blue.",
            map.norm.with_unit(map.norm.median)
        )],
        tables: vec![map.table()],
    };
    Some(picture.named(
        id,
        subject.title(&format!("{what} from node to node ({})", map.norm.unit)),
        CAPTION,
    ))
}

struct Map<'m> {
    subject: &'m Subject<'m>,
    quantity: Metric,
    count: usize,
    norm: Norm,
}

impl Map<'_> {
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.count;
        (0..count).flat_map(move |row| (0..count).map(move |column| (row, column)))
    }

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
        let value = (self.value(row, column))
            .map_or(UNKNOWN.to_owned(), |value| self.norm.with_share(value));
        format!("{from} to {to}: {value}{lost}")
    }

    fn tiles(&self, shades: &[Shade]) -> Vec<Tile> {
        let is_single = self.count <= MOST_SINGLE;
        self.places()
            .filter(|it| self.subject.has(it.0, it.1))
            .map(|(row, column)| {
                let value =
                    self.value(row, column).map(|it| (it, Shade::at(shades, self.norm.share(it))));
                let fill = value.map_or(Fill::Hatched, |(_, shade)| Fill::Plain(shade.colour));
                let hint = if is_single { self.hint(row, column) } else { String::new() };
                let text = value.filter(|_| is_single);
                Tile {
                    within: text.map(|(figure, shade)| (self.norm.plain(figure), shade.ink)),
                    ..block((row, 1), (column, 1), fill, hint)
                }
            })
            .collect()
    }

    /// The cells, with frames around what is slow.
    fn chart(&self, tiles: Vec<Tile>) -> Chart {
        let subject = self.subject;
        let marks = subject.marks(self.quantity);
        let [y_title, x_title] = ["from", "to"].map(|what| subject.names.title(what));
        let labels = &subject.names.labels;
        let flipped = subject.order.parts().map(|(begin, end, name)| (-begin, -end, name));
        let y = Axis {
            marked: marks.rows(),
            parts: flipped.collect(),
            ..Axis::rows(y_title, labels.clone())
        };
        let x = Axis {
            marked: marks.columns(),
            parts: subject.order.parts().collect(),
            ..Axis::columns(x_title, labels.clone())
        };
        let (line, frame) = ((0, self.count), Fill::Frame(INK));
        let from = marks.from.iter().map(|row| block((*row, 1), line, frame, ""));
        let to = marks.to.iter().map(|column| block(line, (*column, 1), frame, ""));
        let paths =
            marks.paths.iter().map(|(row, column)| block((*row, 1), (*column, 1), frame, ""));
        let frames = Mark::Tiles(from.chain(to).chain(paths).collect());
        let row_px = MOST_CELL_PX.1.min(ROWS_PX / self.count as f64);
        let width_px = (0.0, MOST_CELL_PX.0);
        Chart::of_cells(width_px, row_px, (x, y), vec![Mark::Tiles(tiles), frames])
    }

    fn table(&self) -> Table {
        let typical = self.norm.median / self.norm.divisor;
        let digits = (2.0 - typical.abs().max(1e-6).log10().floor()).clamp(0.0, 6.0) as usize;
        let unit = self.norm.unit;
        if self.count <= MOST_SINGLE {
            let names = (0..self.count).map(|place| self.subject.name(place));
            return Table::new(
                format!("Medians over the runs that count, in {unit}: rows are from, columns to"),
                ["from"].into_iter().chain(names),
                (0..self.count).map(|from| {
                    let to = 0..self.count;
                    let values = to.map(|to| self.value(from, to));
                    let cells =
                        values.map(|it| Cell::number(it.map(|it| it / self.norm.divisor), digits));
                    [Cell::text(self.subject.name(from))].into_iter().chain(cells).collect()
                }),
            );
        }
        let mut worst: Vec<(usize, usize, f64)> = self
            .places()
            .filter_map(|(row, column)| Some((row, column, self.value(row, column)?)))
            .collect();
        worst.sort_by(|one, other| {
            if self.quantity.higher_is_better() {
                one.2.total_cmp(&other.2)
            } else {
                other.2.total_cmp(&one.2)
            }
        });
        let rows = worst.into_iter().take(WORST_ROWS).map(|(from, to, value)| {
            vec![
                Cell::text(self.subject.name(from)),
                Cell::text(self.subject.name(to)),
                Cell::Number(value / self.norm.divisor, digits),
                Cell::Number(self.norm.share(value) * 100.0, 1),
            ]
        });
        let count = self.subject.matrix.cells.len();
        Table::new(
            format!("The worst {WORST_ROWS} of {count} cells; the CSV file has all"),
            ["from", "to", unit, "of the median (%)"],
            rows,
        )
    }
}

/// Some rows and columns, each from its first one.
fn block(
    rows: (usize, usize),
    columns: (usize, usize),
    fill: Fill,
    hint: impl Into<String>,
) -> Tile {
    let [(row, height), (column, width)] = [rows, columns].map(|it| (it.0 as f64, it.1 as f64));
    let ends = (column - 0.5, column - 0.5 + width);
    Tile { height, ..Tile::new(0.5 - row - height / 2.0, ends, fill, hint) }
}

/// The strip of a quantity; `None` where no flow has it.
fn strip_figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let norm = Norm::around(subject.matrix.median(quantity), quantity)?;
    let strip = Strip::new(subject, quantity, norm);
    let what = quantity.title();
    let sides = strip.sides.iter().map(|side| Key::new(KeyMark::Marker, side.style, side.label()));
    let rule = Key::new(KeyMark::Line, SeriesStyle::of_rule(1), "median of all flows");
    let picture = Picture {
        subtitle: subject.subtitle.clone(),
        keys: sides.chain([rule]).collect(),
        charts: vec![strip.chart()],
        tables: vec![strip.table()],
        ..Picture::default()
    };
    Some(picture.named(
        id,
        subject.title(&format!("{what} of each node ({})", strip.norm.unit)),
        "Medians of each node: of the flows that it posts, and of the flows to it.",
    ))
}

struct Strip<'s> {
    subject: &'s Subject<'s>,
    quantity: Metric,
    norm: Norm,
    /// By place of the order.
    sides: [Side; 2],
}

struct Side {
    name: &'static str,
    style: SeriesStyle,
    /// How far its markers are from the node's place; 1 is from node to node.
    beside: f64,
    medians: Vec<Option<f64>>,
}

impl Side {
    fn label(&self) -> String {
        format!("median of the flows {}", self.name)
    }

    fn median(&self, place: usize) -> Option<f64> {
        self.medians.get(place).copied().flatten()
    }
}

impl Strip<'_> {
    fn new<'s>(subject: &'s Subject<'s>, quantity: Metric, norm: Norm) -> Strip<'s> {
        let matrix = &subject.matrix;
        let [from, to] = [matrix.sending(quantity), matrix.receiving(quantity)].map(|medians| {
            let order = subject.order.nodes.iter();
            order.map(|index| medians.get(*index).copied().flatten()).collect()
        });
        let up = SeriesStyle { marker: Marker::Up, ..style(0) };
        let ring = SeriesStyle { colour: SERIES[1], hollow: true, ..style(0) };
        Strip {
            subject,
            quantity,
            norm,
            sides: [
                Side { name: "from the node", style: up, beside: -0.15, medians: from },
                Side { name: "to the node", style: ring, beside: 0.15, medians: to },
            ],
        }
    }

    fn chart(&self) -> Chart {
        let subject = self.subject;
        let largest = (self.sides.iter())
            .flat_map(|side| side.medians.iter().flatten())
            .copied()
            .fold(self.norm.median, f64::max);
        let x = Axis {
            parts: subject.order.parts().collect(),
            ..Axis::columns(subject.names.title("node"), subject.names.labels.clone())
        };
        let y = Scale::from_zero(largest);
        let y = Axis::new(self.quantity.axis(), y, unit(self.quantity));
        let rule = Mark::Rule(Rule {
            style: SeriesStyle::of_rule(1),
            y: self.norm.median,
            ..Rule::default()
        });
        let count = subject.matrix.nodes.len();
        let dots = (self.sides.iter())
            .flat_map(|side| (0..count).filter_map(|place| self.dot(side, place)));
        // What is slow.
        let marks = subject.marks(self.quantity);
        let slow = self.sides.iter().zip([("from", marks.from), ("to", marks.to)]).flat_map(
            |(side, (end, places))| {
                places
                    .into_iter()
                    .filter_map(|place| {
                        let (dot, name) = (self.dot(side, place)?, subject.name(place));
                        Some(Dot {
                            style: SeriesStyle { colour: WORSE, ..side.style },
                            ring: Some(false),
                            hint: format!("{name} is named above"),
                            label: format!("{end} {name}"),
                            ..dot
                        })
                    })
                    .collect::<Vec<_>>()
            },
        );
        let drawn = [rule].into_iter().chain(dots.chain(slow).map(Mark::Dot));
        Chart::new(x, y, drawn.collect())
    }

    fn dot(&self, side: &Side, place: usize) -> Option<Dot> {
        let value = side.median(place)?;
        let (node, label) = (self.subject.name(place), side.label());
        Some(Dot {
            name: side.label(),
            at: (place as f64 + side.beside, value),
            style: side.style,
            hint: format!("{node}: {label} {}", self.norm.with_share(value)),
            ..Dot::default()
        })
    }

    fn table(&self) -> Table {
        let subject = self.subject;
        let racks = &subject.order.racks;
        let mut names = vec!["node".to_owned()];
        names.extend((!racks.is_empty()).then(|| "rack".to_owned()));
        for side in &self.sides {
            names.push(format!("{} ({})", side.name, self.norm.unit));
            names.push("of the median (%)".to_owned());
        }
        let rows = (0..subject.matrix.nodes.len()).map(|place| {
            let mut row = vec![Cell::text(subject.name(place))];
            let rack = racks.iter().find(|it| (it.start..it.start + it.len).contains(&place));
            row.extend(rack.map(|rack| Cell::text(&rack.name)));
            for side in &self.sides {
                let value = side.median(place);
                row.push(Cell::number(value.map(|it| it / self.norm.divisor), 3));
                row.push(Cell::number(value.map(|it| self.norm.share(it) * 100.0), 1));
            }
            row
        });
        Table::new("Medians of each node over its peers", names, rows)
    }
}
