//! Figure: what each node of a pattern sends and receives, from one result file to the next. A node's steps are those of its share
//! of the median of all nodes, so that a slow night of the whole network is one step of the median and none of a node.

use statistics::median;

use crate::judge::mesh::Matrix;
use crate::observe::{Metric, format::each_once};
use crate::show::plot::{
    draw::{Key, KeyMark, style},
    figure::{Cell, Figure, Picture, Table},
    figures::trend::{Found, Moments, Step, change_in_percent, percent, scale, step_keys},
    marks::{self, Axis, Chart, Mark, Point, Series},
    spec::{extent, unit},
};

/// Nodes with a line of their own.
const MOST_NODES: usize = 5;
/// Of fewer the median is not that of the others.
const LEAST_NODES: usize = 3;
const MEDIAN: &str = "median of all nodes";
const CAPTION: &str = "Each node’s median over its peers, file by file: what it sends and what it receives. The area is from the lowest \
    to the highest node; lines are nodes that stepped.";

/// The nodes of the pattern that the last file has, in all files that have it with the same settings.
pub(super) struct NodeTrend {
    title: String,
    metric: Metric,
    files: Vec<f64>,
    nodes: Vec<String>,
    sides: [Side; 2],
}

/// What nodes send, or what they receive.
struct Side {
    /// For a rate, and for a latency.
    words: [&'static str; 2],
    /// Of each file, of each node.
    figures: Vec<Vec<Option<f64>>>,
    /// The median of all nodes, file by file.
    medians: Vec<Option<f64>>,
    steps: Vec<Step>,
    /// Of nodes' shares of the median, by the node's number, the largest first.
    of_nodes: Vec<(usize, Step)>,
}

type OfNodes = fn(&Matrix, Metric) -> Vec<Option<f64>>;

impl NodeTrend {
    /// `None` where the pattern is in one file alone.
    pub(super) fn new(moments: &Moments<'_>) -> Option<NodeTrend> {
        let files = moments.files.iter();
        let of_files: Vec<(f64, Vec<Matrix>)> =
            files.map(|(place, loaded)| (*place, Matrix::of_file(&loaded.result))).collect();
        let (_, last) = of_files.last()?;
        let newest =
            last.iter().filter(|it| !it.is_fan()).max_by_key(|matrix| matrix.nodes.len())?;
        let (places, alike): (Vec<f64>, Vec<&Matrix>) = of_files
            .iter()
            .filter_map(|(place, of_file)| {
                let same = of_file.iter().find(|matrix| matrix.settings == newest.settings)?;
                Some((*place, same))
            })
            .unzip();
        let names = newest.nodes.iter().chain(alike.iter().flat_map(|matrix| &matrix.nodes));
        let nodes: Vec<String> = each_once(names.cloned());
        let metric = newest.quantity();
        let sides: [([&str; 2], OfNodes); 2] =
            [(["sends", "from"], Matrix::sending), (["receives", "to"], Matrix::receiving)];
        (alike.len() > 1).then(|| NodeTrend {
            title: newest.title.clone(),
            metric,
            sides: sides.map(|(words, of)| {
                let figures =
                    alike.iter().map(|matrix| by_node(matrix, &nodes, &of(matrix, metric)));
                Side::new(words, figures.collect())
            }),
            files: places,
            nodes,
        })
    }

    /// How many series are judged.
    pub(super) fn series(&self) -> usize {
        self.sides.len() * (1 + self.nodes.len())
    }

    pub(super) fn find_steps(&mut self, together: usize) {
        for side in &mut self.sides {
            side.find_steps(self.metric, self.nodes.len(), together);
        }
    }

    pub(super) fn found(&self, moments: &Moments<'_>) -> impl Iterator<Item = Found> {
        self.sides.iter().flat_map(move |side| {
            let whole = side.steps.iter().map(|step| (None, step));
            let of_nodes = side.of_nodes.iter().map(|(node, step)| (Some(*node), step));
            whole.chain(of_nodes).map(move |(node, step)| {
                let (place, ratio) = (self.files[step.at], step.estimate.ratio);
                let change = percent(ratio - 1.0);
                let (who, others) = match node {
                    Some(node) if self.nodes.len() < LEAST_NODES => (self.nodes[node].as_str(), ""),
                    Some(node) => (self.nodes[node].as_str(), ", beside the other nodes"),
                    None => ("the median node", ""),
                };
                let what = match (self.metric.higher_is_better(), ratio < 1.0) {
                    (true, true) => format!("{who} {} {change} less", side.words[0]),
                    (true, false) => format!("{who} {} {change} more", side.words[0]),
                    (false, true) => format!("messages {} {who} take {change} less", side.words[1]),
                    (false, false) => {
                        format!("messages {} {who} take {change} longer", side.words[1])
                    }
                };
                let (since, interval) = (moments.since(place), step.interval());
                let text = format!("Since {since} {what}{others}; 95 % interval {interval}");
                let rank = (usize::from(node.is_some()), self.metric);
                Found { place, rank, size: step.size(), text }
            })
        })
    }

    pub(super) fn figure(&self, moments: &Moments<'_>) -> Option<Figure> {
        let charts: Vec<Chart> =
            self.sides.iter().filter_map(|side| self.chart(side, moments)).collect();
        charts.first()?;
        let area = Key::new(KeyMark::Area, style(5), "lowest to highest node");
        let picture = Picture {
            subtitle: format!(
                "{}\u{a0}· {} nodes, {} files",
                self.title,
                self.nodes.len(),
                self.files.len()
            ),
            keys: [marks::keys_of_charts(&charts, &[]), vec![area], step_keys(&charts)].concat(),
            tables: self.sides.iter().map(|side| self.table(side, moments)).collect(),
            notes: vec!["Axes need not begin at 0.".to_owned()],
            charts,
        };
        Some(picture.named("trend-of-nodes", format!("Nodes over {}", moments.kind), CAPTION))
    }

    fn chart(&self, side: &Side, moments: &Moments<'_>) -> Option<Chart> {
        let points = self.files.iter().zip(&side.medians).zip(&side.figures);
        let all_nodes = Series {
            name: MEDIAN.to_owned(),
            style: style(0),
            points: points.map(|((x, y), figures)| point(*x, *y, figures)).collect(),
            area: Some(style(5)),
            ..Series::default()
        };
        let stepped = each_once(side.of_nodes.iter().map(|(node, _)| *node));
        let lines = (1..).zip(stepped.into_iter().take(MOST_NODES)).map(|(number, node)| Series {
            name: self.nodes[node].clone(),
            style: style(number),
            points: (self.files.iter().zip(&side.figures))
                .map(|(x, figures)| Point { x: *x, y: figures[node], ..Point::default() })
                .collect(),
            markers: true,
            ..Series::default()
        });
        let series: Vec<Series> = std::iter::once(all_nodes).chain(lines).collect();
        let (least, most) = extent(series.iter())?;
        let of_median = side.steps.iter().map(|step| (MEDIAN, side.medians[step.at], step));
        let of_nodes =
            side.of_nodes.iter().take(MOST_NODES).map(|(node, step)| {
                (self.nodes[*node].as_str(), side.figures[step.at][*node], step)
            });
        let rings = of_median.chain(of_nodes).filter_map(|(name, y, step)| {
            Some(step.ring(name, (self.files[step.at], y?), self.metric))
        });
        let y = Axis::new(self.metric.axis(), scale(self.metric, least, most), unit(self.metric));
        let lines_and_rings = series.into_iter().map(Mark::Line).chain(rings);
        let marks = moments.rules().chain(lines_and_rings).collect();
        let heading = side.words[usize::from(!self.metric.higher_is_better())].to_owned();
        Some(Chart { heading, ..Chart::new(moments.axis(), y, marks) })
    }

    fn table(&self, side: &Side, moments: &Moments<'_>) -> Table {
        let (heading, digits, _) = self.metric.column();
        let cell = |figures: &[Option<f64>], node: usize| {
            Cell::number(figures[node].map(|value| self.metric.in_column(value)), digits)
        };
        let ends = [side.figures.first(), side.figures.last()];
        let [first, last] = ends.map(|file| file.map_or(&[][..], Vec::as_slice));
        Table::from_rows(
            format!("{}: each node’s median, {heading}", side.words[0]),
            // Those that stepped stand first.
            each_once(side.of_nodes.iter().map(|(node, _)| *node).chain(0..self.nodes.len())),
            &[
                ("Node", &|node| Cell::text(&self.nodes[*node])),
                ("first file", &|node| cell(first, *node)),
                ("last file", &|node| cell(last, *node)),
                ("Largest step", &|node| {
                    let own = side.of_nodes.iter().find(|(other, _)| other == node);
                    own.map_or(Cell::Missing, |(_, step)| {
                        let since = moments.since(self.files[step.at]);
                        let change = change_in_percent(step.estimate.ratio);
                        Cell::Text(format!("{change} since {since}"))
                    })
                }),
            ],
        )
    }
}

impl Side {
    fn new(words: [&'static str; 2], figures: Vec<Vec<Option<f64>>>) -> Side {
        let medians = figures.iter().map(|of_nodes| {
            let known: Vec<f64> = of_nodes.iter().flatten().copied().collect();
            median(&known)
        });
        Side { words, medians: medians.collect(), figures, steps: Vec::new(), of_nodes: Vec::new() }
    }

    fn find_steps(&mut self, metric: Metric, nodes: usize, together: usize) {
        self.steps = Step::find(&self.medians, metric, together);
        for node in 0..nodes {
            let files = self.figures.iter().zip(&self.medians);
            let shares: Vec<Option<f64>> = files
                .map(|(figures, usual)| {
                    let beside = if nodes < LEAST_NODES { 1.0 } else { (*usual)? };
                    Some(figures[node]? / beside)
                })
                .collect();
            let found = Step::find(&shares, metric, together);
            self.of_nodes.extend(found.into_iter().map(|step| (node, step)));
        }
        self.of_nodes.sort_by(|(_, one), (_, other)| other.size().total_cmp(&one.size()));
    }
}

/// A file's figures in the order of these nodes.
fn by_node(matrix: &Matrix, nodes: &[String], figures: &[Option<f64>]) -> Vec<Option<f64>> {
    let places = nodes.iter().map(|name| matrix.nodes.iter().position(|own| own == name));
    places.map(|place| figures.get(place?).copied().flatten()).collect()
}

/// The median with the lowest and the highest figure.
fn point(x: f64, y: Option<f64>, figures: &[Option<f64>]) -> Point {
    let known: Vec<f64> = figures.iter().flatten().copied().collect();
    let interval = (
        known.iter().copied().fold(f64::INFINITY, f64::min),
        known.iter().copied().fold(0.0, f64::max),
    );
    Point { x, y, interval: y.map(|_| interval), ..Point::default() }
}
