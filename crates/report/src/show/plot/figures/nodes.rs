//! Figures of many nodes: maps of who moved how much to whom, coloured by how far a cell is from the median of all,
//! strips of nodes, and curves over how many send at once.

use std::collections::BTreeSet;
use std::ops::Range;

use results::load::Loaded;
use settings::Settings;

use crate::judge::{
    finding::Finding,
    mesh::{Matrix as MeshMatrix, Mesh, NodeInSteps, Outlier, Place, fans},
};
use crate::observe::Metric;
use crate::show::plot::{
    draw::{
        DIVERGING, INK, Key, KeyMark, Marker, SERIES, Scale, SeriesStyle, Unit, WORSE, style, text,
    },
    figure::{Cell, CellsOf, Drawn, Figure, Picture, Table},
    figures::node_names::{Names, Order},
    marks::{Axis, Chart, Dot, Fill, Mark, Matrix, MatrixCell, Rule, Shade, Shades, Tile},
    rows::{Sample, Setting, joined, range},
    spec::unit,
    specs,
};

pub use super::node_names::Racks;

const MOST_MATRICES: usize = 2;

/// All figures of nodes, what is slow and where to look, and what a fan says. `sums` are the results with the flows of each
/// case of a pattern as one.
pub(crate) fn drawn(results: &[Loaded], sums: &[Loaded], racks: &Racks) -> Drawn {
    let matrices = matrices(results);
    let count = matrices.len();
    let mut subjects: Vec<Subject<'_>> = matrices
        .into_iter()
        .take(MOST_MATRICES)
        .map(|(loaded, matrix)| Subject::new(loaded, matrix, racks))
        .collect();
    tell_apart(&mut subjects);
    let is_one = subjects.len() == 1;
    let sentences = subjects.iter().flat_map(|it| it.sentences(is_one));
    let more = (subjects.len() < count).then(|| {
        let drawn = subjects.len();
        format!("Give files with fewer cases to see all {count} matrices: the figure has {drawn}.")
    });
    let of_subjects = (1..).zip(&subjects).flat_map(|(number, it)| it.figures(number));
    let of_fans = specs::FANS.iter().flat_map(|spec| spec.figures(sums));
    Drawn {
        sentences: sentences.chain(more).collect(),
        figures: of_subjects.chain(of_fans).collect(),
    }
}

/// The matrices of all files, the newest file first; of equal ones the newest, and of a fan that with the most nodes.
fn matrices(results: &[Loaded]) -> Vec<(&Loaded, MeshMatrix)> {
    let mut newest: Vec<&Loaded> = results.iter().collect();
    newest.sort_by(|one, other| other.result.started_at.cmp(&one.result.started_at));
    let but_for_fan =
        |settings: &Settings| Settings { fan_in: None, fan_out: None, ..settings.clone() };
    let mut matrices: Vec<(&Loaded, MeshMatrix)> = Vec::new();
    for loaded in newest {
        for matrix in MeshMatrix::of_file(&loaded.result) {
            let alike = matrices.iter_mut().find(|(_, other)| {
                but_for_fan(&other.settings) == but_for_fan(&matrix.settings)
                    && (matrix.is_fan() || other.nodes == matrix.nodes)
            });
            match alike {
                _ if matrix.cells.iter().all(|cell| cell.runs.is_empty()) => {}
                Some(known) if known.1.nodes.len() < matrix.nodes.len() => {
                    *known = (loaded, matrix);
                }
                Some(_) => {}
                None => matrices.push((loaded, matrix)),
            }
        }
    }
    matrices
}

/// A matrix that is drawn.
struct Subject<'a> {
    loaded: &'a Loaded,
    /// Its nodes are in the order in which they are drawn.
    matrix: MeshMatrix,
    /// The racks as parts of an axis on which nodes are 1 apart; none where no rack is known.
    racks: Vec<(f64, f64, String)>,
    names: Names,
    outliers: Vec<Outlier>,
    findings: Vec<Finding>,
    /// Its settings in words, of those that have some.
    words: Vec<(Setting, String)>,
    /// Its difference from the other matrices.
    apart: String,
}

impl<'a> Subject<'a> {
    fn new(loaded: &'a Loaded, mut given: MeshMatrix, racks: &Racks) -> Subject<'a> {
        let order = Order::new(&given.nodes, &loaded.result, racks);
        let mut places = vec![0; order.nodes.len()];
        for (place, index) in order.nodes.iter().enumerate() {
            places[*index] = place;
        }
        given.nodes = order.nodes.iter().map(|index| given.nodes[*index].clone()).collect();
        given.cpu = order.nodes.iter().map(|index| given.cpu[*index]).collect();
        for cell in &mut given.cells {
            (cell.from, cell.to) = (places[cell.from], places[cell.to]);
        }
        given.cells.sort_by_key(|cell| (cell.from, cell.to));
        let Mesh { matrix, outliers, findings, .. } = Mesh::new(given);
        let names: Vec<&str> = matrix.nodes.iter().map(String::as_str).collect();
        Subject {
            loaded,
            names: Names::new(&names),
            racks: order.racks,
            outliers,
            findings,
            words: words(loaded, &matrix),
            matrix,
            apart: String::new(),
        }
    }

    /// What it says, first where to look; of one among others with its title.
    fn sentences(&self, is_one: bool) -> Vec<String> {
        let title = &self.matrix.title;
        let mut of_fans = fans(&self.loaded.result);
        of_fans.retain(|finding| finding.case() == Some(title));
        let begin = if is_one { String::new() } else { format!("{title}: ") };
        let mut found: Vec<&Finding> = self.findings.iter().chain(&of_fans).collect();
        found.sort_by_key(|finding| !finding.names_place());
        found.into_iter().map(|it| begin.clone() + &it.text).collect()
    }

    fn figures(&self, number: usize) -> Vec<Figure> {
        // In an open loop all have the rate that they were offered.
        let is_closed = self.matrix.settings.is_closed_loop();
        let usual = if is_closed { Metric::GbitPerS } else { Metric::P99Ns };
        // Else it shows no more than the nodes' medians do.
        let is_map = self.matrix.cells.len() >= 2 * self.matrix.nodes.len().max(2);
        let has_late = is_map && is_closed && self.slow(Metric::P99Ns).next().is_some();
        let map = |metric, id: &str| {
            Some(map_figure(&Norm::new(self, metric)?, format!("{id}-{number}")))
        };
        // In lock-step all have one rate.
        let strip = Norm::new(self, usual).filter(|_| !self.matrix.settings.lock_step);
        let drawn = [
            is_map.then(|| map(usual, "nodes-map")).flatten(),
            has_late.then(|| map(Metric::P99Ns, "nodes-p99-map")).flatten(),
            strip.map(|norm| strip_figure(&norm, format!("nodes-strip-{number}"))),
            steps_figure(self, format!("nodes-steps-{number}")),
        ];
        drawn.into_iter().flatten().collect()
    }

    /// What is slow by throughput, or by latency: rows and columns of a map.
    fn slow(&self, metric: Metric) -> impl Iterator<Item = [Range<usize>; 2]> {
        let is_rate = metric.higher_is_better();
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
    fn marked(&self, metric: Metric, side: usize) -> BTreeSet<usize> {
        let sides = self.slow(metric).map(|block| block[side].clone());
        sides.filter(|it| it.len() == 1).map(|it| it.start).collect()
    }

    fn picture(&self) -> Picture {
        let runs: BTreeSet<usize> =
            self.matrix.cells.iter().map(|it| it.runs.len() + it.lost).collect();
        let runs = format!("{} a flow", range(&runs, ["run", "runs"]));
        let words = self.words.iter().map(|(_, words)| words.clone()).chain([runs]);
        let subtitle = words.collect::<Vec<_>>().join("\u{a0}· ");
        Picture { subtitle, ..Picture::default() }
    }

    fn title(&self, what: &str) -> String {
        let count = self.matrix.nodes.len();
        let pattern = self.matrix.pattern.word();
        joined([format!("{what}: {pattern}, {count} nodes"), self.apart.clone()])
    }
}

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

/// Says of each what it does not share with all others.
fn tell_apart(subjects: &mut [Subject<'_>]) {
    let all_words: Vec<_> = subjects.iter().map(|it| it.words.clone()).collect();
    for subject in subjects {
        let own = subject.words.iter().filter(|word| {
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

fn map_figure(norm: &Norm<'_>, id: String) -> Figure {
    let Norm { subject, metric, .. } = *norm;
    let shades = shades(metric);
    let map = map_of_nodes(norm, &shades);
    let mut chart = map.chart(|from, to| subject.matrix.has(from, to).then(|| norm.cell(from, to)));
    let blocks = subject.slow(metric);
    let frames = blocks.map(|[rows, columns]| Tile::block(rows, columns, Fill::Frame(INK), ""));
    chart.marks.push(Mark::Tiles(frames.collect()));
    let median = norm.with_unit(norm.median);
    let picture = Picture {
        keys: shades.keys(std::slice::from_ref(&chart), UNKNOWN),
        charts: vec![chart],
        notes: vec![format!("Share of the median, {median}: worse is orange, better is blue.")],
        tables: vec![map_table(norm)],
        ..subject.picture()
    };
    let what = format!("{} from node to node ({})", metric.title(), norm.unit);
    picture.named(id, subject.title(&what), CAPTION)
}

fn map_of_nodes<'m>(norm: &Norm<'_>, shades: &'m Shades) -> Matrix<'m> {
    let Subject { names, racks, matrix, .. } = norm.subject;
    let parts = racks.iter().map(|(begin, end, name)| (-begin, -end, name.clone()));
    let [y, x] = ["from", "to"].map(|end| (names.title(end), names.labels.clone()));
    let [rows, columns] = [0, 1].map(|side| norm.subject.marked(norm.metric, side));
    Matrix {
        y: Axis { marked: rows, parts: parts.collect(), ..Axis::rows(y.0, y.1) },
        x: Axis { marked: columns, parts: racks.clone(), ..Axis::columns(x.0, x.1) },
        shades,
        cell_px: (0.0, MOST_CELL_PX.0, MOST_CELL_PX.1.min(ROWS_PX / matrix.nodes.len() as f64)),
    }
}

fn map_table(norm: &Norm<'_>) -> Table {
    let matrix = &norm.subject.matrix;
    let typical = norm.median / norm.divisor;
    let digits = (2.0 - typical.abs().max(1e-6).log10().floor()).clamp(0.0, 6.0) as usize;
    let (unit, count) = (norm.unit, matrix.nodes.len());
    if count <= MOST_SINGLE {
        let names = ["from"].into_iter().chain(matrix.nodes.iter().map(String::as_str));
        let rows = (0..count).map(|from| {
            let cells = (0..count).map(|to| norm.in_table(norm.value(from, to), digits));
            [Cell::text(matrix.name(from))].into_iter().chain(cells).collect()
        });
        let caption =
            format!("Medians over the runs that count, in {unit}: rows are from, columns to");
        return Table::new(caption, names, rows);
    }
    let cells = matrix.cells.iter();
    let mut worst: Vec<(usize, usize, f64)> = cells
        .filter_map(|cell| Some((cell.from, cell.to, norm.value(cell.from, cell.to)?)))
        .collect();
    worst.sort_by(|one, other| one.2.total_cmp(&other.2));
    if !norm.metric.higher_is_better() {
        worst.reverse();
    }
    Table::from_rows(
        format!("The worst {WORST_ROWS} of {} cells; the CSV file has all", matrix.cells.len()),
        worst.into_iter().take(WORST_ROWS),
        &[
            ("from", &|it| Cell::text(matrix.name(it.0))),
            ("to", &|it| Cell::text(matrix.name(it.1))),
            (unit, &|it| norm.in_table(Some(it.2), digits)),
            (OF_MEDIAN, &|it| norm.percent(Some(it.2))),
        ],
    )
}

const RACK: &str = "rack";
const OF_MEDIAN: &str = "of the median (%)";

/// The flows that nodes post, or those to them.
struct Side {
    name: &'static str,
    style: SeriesStyle,
    /// How far its markers are from the node's place; 1 is from node to node.
    beside: f64,
    medians: Vec<Option<f64>>,
}

impl Side {
    fn label(&self) -> String {
        format!("median of the flows {} the node", self.name)
    }

    /// The marker of a node.
    fn dot(&self, norm: &Norm<'_>, place: usize) -> Option<Dot> {
        let value = self.medians.get(place).copied().flatten()?;
        let (node, label) = (norm.subject.matrix.name(place), self.label());
        let hint = format!("{node}: {label} {}", norm.with_share(value));
        Some(Dot::new(label, (place as f64 + self.beside, value), self.style, hint))
    }
}

/// A ring and the name at each node that is slow: of the side that has that number.
fn rings<'n>(norm: &'n Norm<'_>, side: &'n Side, number: usize) -> impl Iterator<Item = Dot> {
    let count = norm.subject.matrix.nodes.len();
    let slow = norm.subject.slow(norm.metric);
    slow.filter(move |block| block[1 - number].len() == count).filter_map(move |block| {
        let place = block[number].start;
        let name = norm.subject.matrix.name(place);
        Some(Dot {
            style: SeriesStyle { colour: WORSE, ..side.style },
            ring: Some(false),
            hint: format!("{name} is named above"),
            label: format!("{} {name}", side.name),
            ..side.dot(norm, place)?
        })
    })
}

fn strip_figure(norm: &Norm<'_>, id: String) -> Figure {
    let Norm { subject, metric, .. } = *norm;
    let Subject { matrix, names, .. } = subject;
    let up = SeriesStyle { marker: Marker::Up, ..style(0) };
    let ring = SeriesStyle { colour: SERIES[1], hollow: true, ..style(0) };
    let sides = [
        Side { name: "from", style: up, beside: -0.15, medians: matrix.sending(metric) },
        Side { name: "to", style: ring, beside: 0.15, medians: matrix.receiving(metric) },
    ];
    let count = matrix.nodes.len();
    let usual = sides.iter().flat_map(|side| (0..count).filter_map(|it| side.dot(norm, it)));
    let slow = (0..).zip(&sides).flat_map(|(number, side)| rings(norm, side, number));
    let dots: Vec<Dot> = usual.chain(slow).collect();
    let largest = dots.iter().map(|dot| dot.at.1).fold(norm.median, f64::max);
    let x = Axis {
        parts: subject.racks.clone(),
        ..Axis::columns(names.title("node"), names.labels.clone())
    };
    let y = Axis::new(metric.axis(), Scale::from_zero(largest), unit(metric));
    let rule = Mark::Rule(Rule::across(1, norm.median));
    let marks = std::iter::once(rule).chain(dots.into_iter().map(Mark::Dot));
    let keys = sides.iter().map(|side| Key::new(KeyMark::Marker, side.style, side.label()));
    let median = Key::new(KeyMark::Line, SeriesStyle::of_rule(1), "median of all flows");
    let picture = Picture {
        keys: keys.chain([median]).collect(),
        charts: vec![Chart::new(x, y, marks.collect())],
        tables: vec![strip_table(norm, &sides)],
        ..subject.picture()
    };
    let what = format!("{} of each node ({})", metric.title(), norm.unit);
    let caption = "Medians of each node: of the flows that it posts, and of the flows to it.";
    picture.named(id, subject.title(&what), caption)
}

fn strip_table(norm: &Norm<'_>, [from, to]: &[Side; 2]) -> Table {
    let matrix = &norm.subject.matrix;
    let racks = &norm.subject.racks;
    let rack = |place: &usize| {
        let rack = racks.iter().find(|(begin, end, _)| (*begin..*end).contains(&(*place as f64)));
        rack.map_or(Cell::Missing, |(.., name)| Cell::text(name))
    };
    let names = [from, to].map(|side| format!("{} the node ({})", side.name, norm.unit));
    let columns: [CellsOf<'_, usize>; 6] = [
        ("node", &|place| Cell::text(matrix.name(*place))),
        (RACK, &rack),
        (&names[0], &|place| norm.in_table(from.medians[*place], 3)),
        (OF_MEDIAN, &|place| norm.percent(from.medians[*place])),
        (&names[1], &|place| norm.in_table(to.medians[*place], 3)),
        (OF_MEDIAN, &|place| norm.percent(to.medians[*place])),
    ];
    let shown = columns.into_iter().filter(|(name, _)| *name != RACK || !racks.is_empty());
    let nodes = 0..matrix.nodes.len();
    Table::from_rows("Medians of each node over its peers", nodes, &shown.collect::<Vec<_>>())
}

/// In lock-step: how often each node was last, and how long its flows took.
fn steps_figure(subject: &Subject<'_>, id: String) -> Option<Figure> {
    let Subject { matrix, names, .. } = subject;
    let mut nodes = matrix.nodes_in_steps();
    nodes.sort_by_key(|node| matrix.nodes.iter().position(|name| name == node.name));
    let steps = Some(matrix.compared_steps() as f64).filter(|steps| *steps > 0.0)?;
    let percent = |node: &NodeInSteps<'_>| 100.0 * node.last_in as f64 / steps;
    let dots = (0..).zip(&nodes).map(|(place, node)| {
        let (share, time) = (percent(node), Metric::P50Ns.text(node.ns));
        let hint =
            format!("{}: last in {share:.0} % of the steps, its flows took {time}", node.name);
        Mark::Dot(Dot::new("last", (f64::from(place), share), style(0), hint))
    });
    let x = Axis {
        parts: subject.racks.clone(),
        ..Axis::columns(names.title("node"), names.labels.clone())
    };
    let y = Axis::new("last in % of the steps", Scale::linear(0.0, 100.0), Unit::Plain);
    let columns: [CellsOf<'_, &NodeInSteps<'_>>; 4] = [
        ("node", &|node| Cell::text(node.name)),
        ("last in (steps)", &|node| Cell::number(Some(node.last_in as f64), 0)),
        ("of the steps (%)", &|node| Cell::number(Some(percent(node)), 1)),
        ("its flows (µs)", &|node| Cell::number(Some(node.ns / 1e3), 2)),
    ];
    let picture = Picture {
        charts: vec![Chart::new(x, y, dots.collect())],
        tables: vec![Table::from_rows("Steps of each node", &nodes, &columns)],
        ..subject.picture()
    };
    let caption = "How often a node's flows, to it and from it, took longest together, of the last steps of each run.";
    Some(picture.named(id, subject.title("Who was last"), caption))
}

/// Figures over the median at which a colour ends and the next begins, in percent. 100 is the median.
const BANDWIDTH: [u32; 8] = [50, 75, 90, 95, 98, 102, 105, 110];
/// Latencies scatter more, and there is no end to how long they can be.
const LATENCY: [u32; 8] = [67, 80, 90, 110, 125, 150, 200, 400];
/// Colours on which text has the ground's colour instead of the ink's.
const DARK_STEPS: usize = 3;

fn shades(metric: Metric) -> Shades {
    let is_rate = metric.higher_is_better();
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

/// A metric of a matrix, written in one unit and as shares of the median of all.
#[derive(Clone, Copy)]
struct Norm<'s> {
    subject: &'s Subject<'s>,
    metric: Metric,
    unit: &'static str,
    /// What a figure is divided by to be in it.
    divisor: f64,
    median: f64,
}

impl<'s> Norm<'s> {
    /// `None` without a median to compare with.
    fn new(subject: &'s Subject<'s>, metric: Metric) -> Option<Norm<'s>> {
        let figure = subject.matrix.median(metric);
        let median = figure.filter(|figure| figure.is_finite() && *figure > 0.0)?;
        let (unit, divisor) = match metric.unit() {
            "ns" => text::time_unit(median),
            unit => (unit, 1.0),
        };
        Some(Norm { subject, metric, unit, divisor, median })
    }

    fn value(&self, from: usize, to: usize) -> Option<f64> {
        let cell = self.subject.matrix.cell(from, to)?;
        cell.figures.of(self.metric).filter(|it| it.is_finite())
    }

    fn cell(&self, from: usize, to: usize) -> MatrixCell {
        let matrix = &self.subject.matrix;
        let value = self.value(from, to);
        let lost = match matrix.cell(from, to).map_or(0, |cell| cell.lost) {
            0 => String::new(),
            1 => "; 1 run does not count".to_owned(),
            many => format!("; {many} runs do not count"),
        };
        let words = value.map_or(UNKNOWN.to_owned(), |value| self.with_share(value));
        let hint = format!("{} to {}: {words}{lost}", matrix.name(from), matrix.name(to));
        MatrixCell {
            part: value.map(|value| value / self.median),
            texts: value.map(|value| text::shorter(value / self.divisor)).unwrap_or_default(),
            hint: if matrix.nodes.len() <= MOST_SINGLE { hint } else { String::new() },
        }
    }

    fn in_table(&self, value: Option<f64>, digits: usize) -> Cell {
        Cell::number(value.map(|value| value / self.divisor), digits)
    }

    /// What part of the median it is, in percent.
    fn percent(&self, value: Option<f64>) -> Cell {
        Cell::number(value.map(|value| value / self.median * 100.0), 1)
    }

    fn with_unit(&self, value: f64) -> String {
        format!("{}\u{a0}{}", text::short(value / self.divisor), self.unit)
    }

    fn with_share(&self, value: f64) -> String {
        let (words, percent) = (self.with_unit(value), value / self.median * 100.0);
        format!("{words}, {percent:.1}\u{a0}% of the median")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::marks::matrix::tests::can_be_read;

    #[test]
    fn worse_is_a_lower_step_whichever_way_is_worse() {
        let steps = |metric, parts: [f64; 7]| {
            let shades = shades(metric);
            can_be_read(&shades);
            parts
                .map(|part| shades.at(part).colour)
                .map(|colour| DIVERGING.iter().position(|it| *it == colour).unwrap())
        };
        let rates = [0.0, 0.6, 0.97, 1.0, 1.01, 1.03, 9.9];
        assert_eq!(steps(Metric::GbitPerS, rates), [0, 1, 4, 5, 5, 6, 8]);
        let times = [9.9, 2.1, 1.15, 1.0, 0.95, 0.85, 0.1];
        assert_eq!(steps(Metric::P99Ns, times), [0, 1, 4, 5, 5, 6, 8]);
    }
}
