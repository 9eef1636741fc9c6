//! Figures of many nodes: maps of who moved how much to whom, coloured by how far a cell is from the median of all,
//! strips of nodes, and curves over how many send at once.

use std::collections::BTreeSet;
use std::ops::Range;

use results::load::Loaded;
use settings::{Pattern, Settings};

use crate::judge::{
    finding::Finding,
    mesh::{Matrix as MeshMatrix, Mesh, Outlier, Place, fans},
};
use crate::observe::Metric;
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale,
        palette::{DIVERGING, INK, Marker, SERIES, SeriesStyle, WORSE, style},
        text,
    },
    figure::{Cell, Figure, Picture, Section, Table},
    figures::node_names::{Names, Order, Rack},
    marks::{Axis, Chart, Dot, Fill, Mark, Matrix, MatrixCell, Rule, Shade, Shades, Tile},
    rows::{
        Sample,
        case_settings::Setting,
        groups::{joined, range},
    },
    spec::unit,
    specs,
};

pub use super::node_names::Racks;

const MOST_MATRICES: usize = 2;

/// All figures of nodes, what is slow and where to look, and what a fan says. `sums` are the results with the flows of each
/// case of a pattern as one.
pub(crate) fn section(results: &[Loaded], sums: &[Loaded], racks: &Racks) -> Section {
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
    let more = match subjects.len() {
        drawn if drawn < count => format!(
            " Give files with fewer cases to see all {count} matrices: the figure has {drawn}."
        ),
        _ => String::new(),
    };
    Section {
        intro: format!("{CAPTION} Strips have each node’s medians.{more}"),
        sentences: sentences.collect(),
        figures: of_subjects.chain(of_fans).collect(),
        ..Section::default()
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
    // Else it shows no more than the nodes' medians do.
    let is_map = subject.matrix.cells.len() >= 2 * subject.matrix.nodes.len().max(2);
    let has_late = is_map && is_closed && subject.slow(Metric::P99Ns).next().is_some();
    let drawn = [
        is_map.then(|| map_figure(subject, quantity, format!("nodes-map-{number}"))),
        has_late.then(|| map_figure(subject, Metric::P99Ns, format!("nodes-p99-map-{number}"))),
        Some(strip_figure(subject, quantity, format!("nodes-strip-{number}"))),
    ];
    drawn.into_iter().flatten().flatten().collect()
}

/// The matrices of all files, the newest file first; of equal ones the newest, and of a fan that with the most nodes.
fn matrices(results: &[Loaded]) -> Vec<(&Loaded, MeshMatrix)> {
    let mut newest: Vec<&Loaded> = results.iter().collect();
    newest.sort_by(|one, other| other.result.started_at.cmp(&one.result.started_at));
    let mut matrices: Vec<(&Loaded, MeshMatrix)> = Vec::new();
    for loaded in newest {
        for matrix in without_smaller_fans(MeshMatrix::of_file(&loaded.result)) {
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

fn without_smaller_fans(matrices: Vec<MeshMatrix>) -> Vec<MeshMatrix> {
    let mut kept: Vec<MeshMatrix> = Vec::new();
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

/// A matrix that is drawn.
struct Subject<'a> {
    loaded: &'a Loaded,
    /// Its nodes are in the order in which they are drawn.
    matrix: MeshMatrix,
    racks: Vec<Rack>,
    names: Names,
    outliers: Vec<Outlier>,
    findings: Vec<Finding>,
    /// Its difference from the other matrices.
    apart: String,
}

impl<'a> Subject<'a> {
    fn new(loaded: &'a Loaded, mut matrix: MeshMatrix, racks: &Racks) -> Subject<'a> {
        let order = Order::new(&matrix.nodes, &loaded.result, racks);
        let mut places = vec![0; order.nodes.len()];
        for (place, index) in order.nodes.iter().enumerate() {
            places[*index] = place;
        }
        matrix.nodes = order.nodes.iter().map(|index| matrix.nodes[*index].clone()).collect();
        matrix.cpu = order.nodes.iter().map(|index| matrix.cpu[*index]).collect();
        for cell in &mut matrix.cells {
            (cell.from, cell.to) = (places[cell.from], places[cell.to]);
        }
        matrix.cells.sort_by_key(|cell| (cell.from, cell.to));
        let Mesh { matrix, outliers, findings, .. } = Mesh::new(matrix);
        let names: Vec<&str> = matrix.nodes.iter().map(String::as_str).collect();
        let names = Names::new(&names);
        Subject {
            loaded,
            names,
            racks: order.racks,
            outliers,
            findings,
            matrix,
            apart: String::new(),
        }
    }

    /// The racks as parts of an axis on which nodes are 1 apart.
    fn parts(&self) -> impl Iterator<Item = (f64, f64, String)> {
        self.racks.iter().map(|rack| {
            let from = rack.start as f64 - 0.5;
            (from, from + rack.len as f64, rack.name.clone())
        })
    }

    /// What is slow by throughput, or by latency: rows and columns of a map.
    fn slow(&self, quantity: Metric) -> impl Iterator<Item = [Range<usize>; 2]> {
        let is_rate = quantity.higher_is_better();
        let outliers = self.outliers.iter();
        let of_kind = outliers.filter(move |it| it.quantity.higher_is_better() == is_rate);
        of_kind.flat_map(|outlier| {
            let whole = 0..self.matrix.nodes.len();
            let one = |node: usize| node..node + 1;
            let from = |node| [one(node), whole.clone()];
            let to = |node| [whole.clone(), one(node)];
            match outlier.place {
                Place::Node(node) => vec![from(node), to(node)],
                Place::From(node) => vec![from(node)],
                Place::To(node) => vec![to(node)],
                Place::Path(sender, other) => vec![[one(sender), one(other)]],
            }
        })
    }

    /// Of one side, rows or columns, the places whose names stand out.
    fn marked(&self, quantity: Metric, side: usize) -> BTreeSet<usize> {
        self.slow(quantity)
            .map(|block| block[side].clone())
            .filter(|it| it.len() == 1)
            .map(|it| it.start)
            .collect()
    }

    fn picture(&self) -> Picture {
        Picture { subtitle: subtitle(self.loaded, &self.matrix), ..Picture::default() }
    }

    fn title(&self, what: &str) -> String {
        let count = self.matrix.nodes.len();
        let pattern = self.matrix.pattern.word();
        joined([format!("{what}: {pattern}, {count} nodes"), self.apart.clone()])
    }
}

/// The settings of a matrix as words, of those settings that have some.
fn words(loaded: &Loaded, matrix: &MeshMatrix) -> Vec<(Setting, String)> {
    let id = matrix.cases.first();
    let case = loaded.result.cases.iter().find(|case| Some(&case.id) == id);
    let Some(flow) = case.and_then(|case| case.flows().next()) else {
        return Vec::new();
    };
    let sample = Sample::new(loaded, flow, false);
    Setting::each()
        .into_iter()
        .filter(|setting| ![Setting::Flow, Setting::Side].contains(setting))
        .map(|setting| (setting, sample.value(setting).words.clone()))
        .filter(|(_, words)| !words.is_empty())
        .collect()
}

fn subtitle(loaded: &Loaded, matrix: &MeshMatrix) -> String {
    let words = words(loaded, matrix).into_iter().map(|(_, words)| words);
    let runs: BTreeSet<usize> = matrix.cells.iter().map(|it| it.runs.len() + it.lost).collect();
    let runs = format!("{} a flow", range(&runs, ["run", "runs"]));
    words.chain([runs]).collect::<Vec<_>>().join("\u{a0}· ")
}

/// Says of each what it does not share with all others.
fn tell_apart(subjects: &mut [Subject<'_>]) {
    let all_words: Vec<_> = subjects.iter().map(|it| words(it.loaded, &it.matrix)).collect();
    for (subject, words_of_subject) in subjects.iter_mut().zip(&all_words) {
        let own = words_of_subject.iter().filter(|word| {
            let is_shared = all_words.iter().all(|other| other.contains(word));
            !is_shared && word.0 != Setting::from_flag("pattern")
        });
        subject.apart = joined(own.map(|(_, words)| words.clone()));
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

/// The map of a quantity; `None` where no flow has it.
fn map_figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let matrix = &subject.matrix;
    let norm = Norm::around(matrix.median(quantity), quantity)?;
    let is_single = matrix.nodes.len() <= MOST_SINGLE;
    let shades = shades(quantity);
    let parts = subject.parts().map(|(begin, end, name)| (-begin, -end, name));
    let [y, x] = ["from", "to"].map(|end| (subject.names.title(end), subject.names.labels.clone()));
    let map = Matrix {
        y: Axis {
            marked: subject.marked(quantity, 0),
            parts: parts.collect(),
            ..Axis::rows(y.0, y.1)
        },
        x: Axis {
            marked: subject.marked(quantity, 1),
            parts: subject.parts().collect(),
            ..Axis::columns(x.0, x.1)
        },
        shades: &shades,
        cell_px: (0.0, MOST_CELL_PX.0, MOST_CELL_PX.1.min(ROWS_PX / matrix.nodes.len() as f64)),
    };
    let mut chart = map.chart(|from, to| {
        if !matrix.has(from, to) {
            return None;
        }
        let value = value(matrix, quantity, from, to);
        let lost = match matrix.cell(from, to).map_or(0, |cell| cell.lost) {
            0 => String::new(),
            1 => "; 1 run does not count".to_owned(),
            many => format!("; {many} runs do not count"),
        };
        let words = value.map_or(UNKNOWN.to_owned(), |value| norm.with_share(value));
        let hint = format!("{} to {}: {words}{lost}", matrix.name(from), matrix.name(to));
        Some(MatrixCell {
            part: value.map(|value| norm.share(value)),
            text: value.map(|value| norm.plain(value)).unwrap_or_default(),
            hint: if is_single { hint } else { String::new() },
        })
    });
    let frames = subject
        .slow(quantity)
        .map(|[rows, columns]| Tile::block(rows, columns, Fill::Frame(INK), ""));
    chart.marks.push(Mark::Tiles(frames.collect()));
    let picture = Picture {
        keys: shades.keys(std::slice::from_ref(&chart), UNKNOWN),
        charts: vec![chart],
        notes: vec![format!(
            "Share of the median, {}: worse is orange, better is blue.",
            norm.with_unit(norm.median)
        )],
        tables: vec![map_table(matrix, quantity, &norm)],
        ..subject.picture()
    };
    let what = format!("{} from node to node ({})", quantity.title(), norm.unit);
    Some(picture.named(id, subject.title(&what), CAPTION))
}

fn value(matrix: &MeshMatrix, quantity: Metric, from: usize, to: usize) -> Option<f64> {
    matrix.cell(from, to)?.figures.of(quantity).filter(|it| it.is_finite())
}

fn map_table(matrix: &MeshMatrix, quantity: Metric, norm: &Norm) -> Table {
    let typical = norm.median / norm.divisor;
    let digits = (2.0 - typical.abs().max(1e-6).log10().floor()).clamp(0.0, 6.0) as usize;
    let (unit, count) = (norm.unit, matrix.nodes.len());
    let figure = |value: Option<f64>| Cell::number(value.map(|it| it / norm.divisor), digits);
    if count <= MOST_SINGLE {
        let names = ["from"].into_iter().chain(matrix.nodes.iter().map(String::as_str));
        let rows = (0..count).map(|from| {
            let cells = (0..count).map(|to| figure(value(matrix, quantity, from, to)));
            [Cell::text(matrix.name(from))].into_iter().chain(cells).collect()
        });
        let caption =
            format!("Medians over the runs that count, in {unit}: rows are from, columns to");
        return Table::new(caption, names, rows);
    }
    let cells = matrix.cells.iter();
    let mut worst: Vec<(usize, usize, f64)> = cells
        .filter_map(|cell| Some((cell.from, cell.to, value(matrix, quantity, cell.from, cell.to)?)))
        .collect();
    worst.sort_by(|one, other| one.2.total_cmp(&other.2));
    if !quantity.higher_is_better() {
        worst.reverse();
    }
    Table::from_rows(
        format!("The worst {WORST_ROWS} of {} cells; the CSV file has all", matrix.cells.len()),
        worst.into_iter().take(WORST_ROWS),
        &[
            ("from", &|it| Cell::text(matrix.name(it.0))),
            ("to", &|it| Cell::text(matrix.name(it.1))),
            (unit, &|it| figure(Some(it.2))),
            ("of the median (%)", &|it| Cell::number(norm.share(it.2) * 100.0, 1)),
        ],
    )
}

/// The flows that nodes post, or those to them.
struct Side {
    name: &'static str,
    style: SeriesStyle,
    /// How far its markers are from the node's place; 1 is from node to node.
    beside: f64,
    medians: Vec<Option<f64>>,
}

impl Side {
    /// The marker of a node.
    fn dot(&self, subject: &Subject<'_>, place: usize, norm: &Norm) -> Option<Dot> {
        let value = self.medians.get(place).copied().flatten()?;
        let name = format!("median of the flows {} the node", self.name);
        Some(Dot {
            at: (place as f64 + self.beside, value),
            style: self.style,
            hint: format!("{}: {name} {}", subject.matrix.name(place), norm.with_share(value)),
            name,
            ..Dot::default()
        })
    }
}

/// The strip of a quantity; `None` where no flow has it.
fn strip_figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let matrix = &subject.matrix;
    let norm = Norm::around(matrix.median(quantity), quantity)?;
    let up = SeriesStyle { marker: Marker::Up, ..style(0) };
    let ring = SeriesStyle { colour: SERIES[1], hollow: true, ..style(0) };
    let sides = [
        Side { name: "from", style: up, beside: -0.15, medians: matrix.sending(quantity) },
        Side { name: "to", style: ring, beside: 0.15, medians: matrix.receiving(quantity) },
    ];
    let count = matrix.nodes.len();
    let usual =
        sides.iter().flat_map(|side| (0..count).filter_map(|it| side.dot(subject, it, &norm)));
    let slow = sides.iter().enumerate().flat_map(|(number, side)| {
        let whole = subject.slow(quantity).filter(move |block| block[1 - number].len() == count);
        whole
            .filter_map(|block| {
                let place = block[number].start;
                let name = matrix.name(place);
                Some(Dot {
                    style: SeriesStyle { colour: WORSE, ..side.style },
                    ring: Some(false),
                    hint: format!("{name} is named above"),
                    label: format!("{} {name}", side.name),
                    ..side.dot(subject, place, &norm)?
                })
            })
            .collect::<Vec<_>>()
    });
    let dots: Vec<Dot> = usual.chain(slow).collect();
    let largest = dots.iter().map(|dot| dot.at.1).fold(norm.median, f64::max);
    let x = Axis {
        parts: subject.parts().collect(),
        ..Axis::columns(subject.names.title("node"), subject.names.labels.clone())
    };
    let y = Axis::new(quantity.axis(), Scale::from_zero(largest), unit(quantity));
    let rule = Rule { style: SeriesStyle::of_rule(1), at: norm.median, ..Rule::default() };
    let marks = std::iter::once(Mark::Rule(rule)).chain(dots.into_iter().map(Mark::Dot));
    let keys = sides.iter().map(|side| {
        let label = format!("median of the flows {} the node", side.name);
        Key::new(KeyMark::Marker, side.style, label)
    });
    let median = Key::new(KeyMark::Line, SeriesStyle::of_rule(1), "median of all flows");
    let picture = Picture {
        keys: keys.chain([median]).collect(),
        charts: vec![Chart::new(x, y, marks.collect())],
        tables: vec![strip_table(subject, &sides, &norm)],
        ..subject.picture()
    };
    Some(picture.named(
        id,
        subject.title(&format!("{} of each node ({})", quantity.title(), norm.unit)),
        "Medians of each node: of the flows that it posts, and of the flows to it.",
    ))
}

fn strip_table(subject: &Subject<'_>, sides: &[Side; 2], norm: &Norm) -> Table {
    let figure = |side: &Side, place: usize| {
        Cell::number(side.medians[place].map(|it| it / norm.divisor), 3)
    };
    let part = |side: &Side, place: usize| {
        Cell::number(side.medians[place].map(|it| norm.share(it) * 100.0), 1)
    };
    let rack = |place: usize| {
        let mut racks = subject.racks.iter();
        let rack = racks.find(|it| (it.start..it.start + it.len).contains(&place));
        rack.map_or(Cell::Missing, |rack| Cell::text(&rack.name))
    };
    let [from, to] = ["from", "to"].map(|end| format!("{end} the node ({})", norm.unit));
    let part_of_median = "of the median (%)";
    let mut table = Table::from_rows(
        "Medians of each node over its peers",
        0..subject.matrix.nodes.len(),
        &[
            ("node", &|place| Cell::text(subject.matrix.name(*place))),
            ("rack", &|place| rack(*place)),
            (&from, &|place| figure(&sides[0], *place)),
            (part_of_median, &|place| part(&sides[0], *place)),
            (&to, &|place| figure(&sides[1], *place)),
            (part_of_median, &|place| part(&sides[1], *place)),
        ],
    );
    if subject.racks.is_empty() {
        table.columns.remove(1);
        table.rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    table
}

/// Figures over the median at which a colour ends and the next begins, in percent. 100 is the median.
const BANDWIDTH: [u32; 8] = [50, 75, 90, 95, 98, 102, 105, 110];
/// Latencies scatter more, and there is no end to how long they can be.
const LATENCY: [u32; 8] = [67, 80, 90, 110, 125, 150, 200, 400];
/// Colours on which text has the ground's colour instead of the ink's.
const DARK_STEPS: usize = 3;

fn shades(quantity: Metric) -> Shades {
    let is_rate = quantity.higher_is_better();
    let ends = if is_rate { BANDWIDTH } else { LATENCY };
    let shades = (0..=ends.len()).map(|at| {
        // The first colour is the worst.
        let step = if is_rate { at } else { ends.len() - at };
        let (from, to) = (at.checked_sub(1).map(|at| ends[at]), ends.get(at));
        let label = match (from, to) {
            (Some(from), Some(to)) => format!("{from} to {to} %"),
            (Some(from), None) => format!("above {from} %"),
            (None, to) => format!("below {} %", to.unwrap_or(&0)),
        };
        let up_to = to.map_or(f64::INFINITY, |end| f64::from(*end) / 100.0);
        Shade::new(up_to, DIVERGING[step], step < DARK_STEPS, label)
    });
    Shades(shades.collect())
}

/// How the figures of a quantity are written: all in one unit, and as shares of their median.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Norm {
    unit: &'static str,
    /// What a figure is divided by to be in it.
    divisor: f64,
    median: f64,
}

impl Norm {
    /// `None` without a median to compare with.
    fn around(figure: Option<f64>, quantity: Metric) -> Option<Norm> {
        let median = figure.filter(|figure| figure.is_finite() && *figure > 0.0)?;
        let (unit, divisor) = match quantity.unit() {
            "ns" => {
                let unit = text::time_unit(median);
                (unit.name, unit.ns)
            }
            unit => (unit, 1.0),
        };
        Some(Norm { unit, divisor, median })
    }

    fn share(&self, value: f64) -> f64 {
        value / self.median
    }

    fn plain(&self, value: f64) -> String {
        text::short(value / self.divisor)
    }

    fn with_unit(&self, value: f64) -> String {
        format!("{}\u{a0}{}", self.plain(value), self.unit)
    }

    fn with_share(&self, value: f64) -> String {
        let (value, percent) = (self.with_unit(value), self.share(value) * 100.0);
        format!("{value}, {percent:.1}\u{a0}% of the median")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::marks::matrix::tests::can_be_read;

    #[test]
    fn worse_is_a_lower_step_whichever_way_is_worse() {
        let steps = |quantity, values: [f64; 7]| {
            let norm = Norm::around(Some(10.0), quantity).unwrap();
            let shades = shades(quantity);
            can_be_read(&shades);
            values
                .map(|value| shades.at(norm.share(value)).colour)
                .map(|colour| DIVERGING.iter().position(|it| *it == colour).unwrap())
        };
        let rates = [0.0, 6.0, 9.7, 10.0, 10.1, 10.3, 99.0];
        assert_eq!(steps(Metric::GbitPerS, rates), [0, 1, 4, 5, 5, 6, 8]);
        let times = [99.0, 21.0, 11.5, 10.0, 9.5, 8.5, 1.0];
        assert_eq!(steps(Metric::P99Ns, times), [0, 1, 4, 5, 5, 6, 8]);
        for missing in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(Norm::around(missing, Metric::P99Ns), None);
        }
    }
}
