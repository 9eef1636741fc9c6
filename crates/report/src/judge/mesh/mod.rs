//! What the runs of a pattern say of nodes and of the paths between them: flows without a figure, nodes and paths that are slow
//! with where to look, how alike the others are, and curves over fan-in. All of it is made from a result file; nothing is stored.

mod matrix;
mod outliers;

use std::collections::BTreeSet;

use serde::Serialize;
use settings::{Pattern, PollMode, Settings};

use crate::observe::{Metric, standing};
use matrix::median_of;
use results::model::{CaseResult, FlowConfig, FlowResult, Latency, ResultFile, Run};
use statistics::median;

pub use matrix::{Cell, Figures, Matrix, groups, title};
pub use outliers::{Lossy, Outlier, Place, floor};

/// Most slow paths that are named one by one.
const MOST_PATHS: usize = 5;
/// Workers with less than this part of their cores, and of what those of other nodes had, were kept from them.
const LITTLE_CPU: f64 = 0.9;
/// Flows that are within this part of the median are alike; of two, within half of it.
const ALIKE: f64 = 0.1;

/// One thing that the runs of a pattern say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum NodesFinding {
    NoFigure {
        why: Why,
        /// Which: each as `from>to`, or the node all of whose flows they are (where they are doubtful, all that it posts);
        /// none of those that were not begun.
        of: Vec<String>,
        /// How many flows they are.
        flows: usize,
    },
    /// A node or a path between two is slower than the others.
    Slow(Slow),
    MoreSlow {
        paths: usize,
    },
    /// A node or a path between two loses packets.
    Lossy {
        /// Which part of the node's traffic.
        part: Part,
        /// The node, or the two ends of the path.
        nodes: Vec<String>,
        /// Runs of its flows in which packets were lost.
        losing: usize,
        runs: usize,
        /// Where the cause may lie.
        look: Suspect,
    },
    MoreLossy {
        paths: usize,
    },
    /// How alike the remaining flows are.
    Rest {
        metric: Metric,
        flows: usize,
        kind: Rest,
        /// The least, the median, and the most.
        range: [f64; 3],
    },
    /// What an incast or an outcast moves.
    Fan(Fan),
}

/// Why flows have no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Each run failed or was stopped.
    Lost,
    Doubtful,
    NotBegun,
}

/// A node or a path that is slow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slow {
    pub metric: Metric,
    /// Which part of the node's traffic.
    pub part: Part,
    /// The node, or the two ends of the path.
    pub nodes: Vec<String>,
    /// The median over its flows; of a node in both directions of those that it posts, and of those that go to it.
    pub values: Vec<f64>,
    /// The median over the remaining flows.
    pub usual: f64,
    /// Its flows that are slow.
    pub slow: usize,
    pub flows: usize,
    /// Nodes that it has flows with.
    pub peers: usize,
    /// The flows read, so that what a node posts comes to it.
    pub is_read: bool,
    /// Where the cause may lie.
    pub look: Suspect,
}

/// Which part of a node's traffic is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What it posts and what goes to it.
    Node,
    Sends,
    Receives,
    /// What goes from it to one other node.
    Path,
}

/// Where to look for the cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspect {
    /// The node's port or cable.
    Port,
    /// Its port, cable or CPU: its workers slept, so that it is not known whether they were kept from their cores.
    PortOrCpu,
    /// What else runs on it.
    Cpu {
        /// CPU time of its workers over the length of their windows.
        own: f64,
        /// The median of the same over the other nodes.
        others: f64,
    },
    /// A node's CPU, memory and PCIe slot.
    Host,
    /// The path between two nodes.
    Path,
    /// The node that posts, and its path.
    Sender,
    /// The node at the other end, and its path.
    Receiver,
    /// Both nodes and the path between them.
    All,
}

/// What the remaining flows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// Too few to judge nodes, and alike.
    Few,
    /// So few that it is not known which of them is usual, and they are not alike.
    Apart,
    /// All, and they are alike.
    Alike,
    Scattered,
    Others,
}

/// A matrix, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    pub matrix: Matrix,
    /// What in it is slower than the others.
    pub outliers: Vec<Outlier>,
    /// What in it loses packets.
    pub lossy: Vec<Lossy>,
    pub findings: Vec<NodesFinding>,
}

impl Mesh {
    /// Each matrix of a file.
    pub fn of_file(file: &ResultFile) -> Vec<Mesh> {
        Matrix::of_file(file).into_iter().map(Mesh::new).collect()
    }

    pub fn new(matrix: Matrix) -> Mesh {
        let (outliers, lossy) = (matrix.outliers(), matrix.lossy());
        Mesh { findings: matrix.findings(&outliers, &lossy), outliers, lossy, matrix }
    }
}

impl NodesFinding {
    /// Whether something is to be done about it.
    pub fn is_wrong(&self) -> bool {
        matches!(self, NodesFinding::Slow(_) | NodesFinding::Lossy { .. })
    }
}

impl Matrix {
    /// Its findings and those of its outliers. Only the fan says that its flows are alike.
    fn findings(&self, outliers: &[Outlier], lossy: &[Lossy]) -> Vec<NodesFinding> {
        let (slow_paths, slow_nodes): (Vec<&Outlier>, Vec<&Outlier>) =
            outliers.iter().partition(|outlier| matches!(outlier.place, Place::Path(..)));
        let slow = slow_nodes.into_iter().chain(slow_paths.iter().copied().take(MOST_PATHS));
        let mut found = self.without_figures();
        found.extend(slow.map(|outlier| NodesFinding::Slow(self.slow(outlier))));
        if let more @ 1.. = slow_paths.len().saturating_sub(MOST_PATHS) {
            found.push(NodesFinding::MoreSlow { paths: more });
        }
        let (lossy_paths, lossy_nodes): (Vec<&Lossy>, Vec<&Lossy>) =
            lossy.iter().partition(|lossy| matches!(lossy.place, Place::Path(..)));
        let more = lossy_paths.len().saturating_sub(MOST_PATHS);
        let named = lossy_nodes.into_iter().chain(lossy_paths.into_iter().take(MOST_PATHS));
        found.extend(named.map(|outlier| self.loses(outlier)));
        if more > 0 {
            found.push(NodesFinding::MoreLossy { paths: more });
        }
        if !(self.is_fan() && outliers.is_empty()) {
            found.extend(self.rest(outliers));
        }
        found
    }

    fn slow(&self, outlier: &Outlier) -> Slow {
        let metric = outlier.quantity;
        let (part, node, nodes) = self.part(outlier.place);
        let values = match part {
            Part::Node => [Place::From(node), Place::To(node)]
                .map(|side| {
                    let cells = self.cells.iter().filter(|cell| side.has(cell.from, cell.to));
                    median_of(cells.map(|cell| &cell.figures), metric).unwrap_or(outlier.value)
                })
                .to_vec(),
            _ => vec![outlier.value],
        };
        let look = match part {
            Part::Path => self.look_at_path(),
            _ => self.look_at(node),
        };
        let peers: BTreeSet<usize> = self
            .cells
            .iter()
            .filter(|cell| Place::Node(node).has(cell.from, cell.to))
            .map(|cell| cell.from + cell.to - node)
            .collect();
        Slow {
            metric,
            part,
            nodes,
            values,
            usual: outlier.usual,
            slow: outlier.slow,
            flows: outlier.flows,
            peers: peers.len(),
            is_read: self.settings.op.profile().fetches,
            look,
        }
    }

    fn loses(&self, lossy: &Lossy) -> NodesFinding {
        let (part, _, nodes) = self.part(lossy.place);
        NodesFinding::Lossy {
            part,
            nodes,
            losing: lossy.losing,
            runs: lossy.runs,
            look: match part {
                Part::Path => self.look_at_path(),
                _ => Suspect::Port,
            },
        }
    }

    /// Which part of a node's traffic it is, the node, and the names of its nodes.
    fn part(&self, place: Place) -> (Part, usize, Vec<String>) {
        let (part, node, other) = match place {
            Place::Node(node) => (Part::Node, node, None),
            Place::From(node) => (Part::Sends, node, None),
            Place::To(node) => (Part::Receives, node, None),
            Place::Path(from, to) => (Part::Path, from, Some(to)),
        };
        let names =
            [Some(node), other].into_iter().flatten().map(|node| self.name(node).to_owned());
        (part, node, names.collect())
    }

    fn look_at_path(&self) -> Suspect {
        match self.pattern {
            Pattern::Loop => Suspect::Host,
            Pattern::Incast(_) => Suspect::Sender,
            Pattern::Outcast(_) => Suspect::Receiver,
            Pattern::Ring | Pattern::Bisection => Suspect::All,
            Pattern::Pairs | Pattern::AllToAll => Suspect::Path,
        }
    }

    /// Where to look when a node is slow: at its CPU, where its workers had less of it than the others'. Only of workers
    /// that never sleep it is known whether they were kept from it.
    fn look_at(&self, node: usize) -> Suspect {
        if self.settings.poll != PollMode::Busy {
            return Suspect::PortOrCpu;
        }
        let of_others: Vec<f64> = self
            .cpu
            .iter()
            .enumerate()
            .filter_map(|(other, share)| share.filter(|_| other != node))
            .collect();
        match (self.cpu.get(node).copied().flatten(), median(&of_others)) {
            (Some(own), Some(others)) if own < LITTLE_CPU && own < others * LITTLE_CPU => {
                Suspect::Cpu { own, others }
            }
            _ => Suspect::Port,
        }
    }

    /// How alike the remaining flows are.
    fn rest(&self, outliers: &[Outlier]) -> Option<NodesFinding> {
        let metric = self.quantity();
        let mut values: Vec<f64> = self
            .cells
            .iter()
            .filter(|cell| !outliers.iter().any(|it| it.place.has(cell.from, cell.to)))
            .filter_map(|cell| cell.figures.of(metric))
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = median(&values).filter(|middle| *middle > 0.0)?;
        let [least, .., most] = &values[..] else {
            return None;
        };
        let within = (middle - least).max(most - middle) / middle;
        let kind = match outliers {
            [] if !self.can_tell() && within > ALIKE / 2.0 => Rest::Apart,
            [] if !self.can_tell() => Rest::Few,
            [] if within <= ALIKE => Rest::Alike,
            [] => Rest::Scattered,
            _ => Rest::Others,
        };
        Some(NodesFinding::Rest {
            metric,
            flows: values.len(),
            kind,
            range: [*least, middle, *most],
        })
    }

    /// Flows that have no figure.
    fn without_figures(&self) -> Vec<NodesFinding> {
        let metric = self.quantity();
        let lacking = self.cells.iter().filter(|cell| cell.figures.of(metric).is_none());
        let [mut lost, mut doubtful, mut not_begun] = [(); 3].map(|()| Vec::new());
        for cell in lacking {
            match (cell.doubtful, cell.lost, cell.runs.len()) {
                (1.., ..) => doubtful.push(cell),
                (0, 0, 0) => not_begun.push(cell),
                _ => lost.push(cell),
            }
        }
        let expected = self.nodes.len() * self.nodes.len().saturating_sub(1);
        let absent = if self.is_full() { expected.saturating_sub(self.cells.len()) } else { 0 };
        let found = [
            (Why::Lost, lost.len(), self.names(lost, Place::Node)),
            (Why::Doubtful, doubtful.len(), self.names(doubtful, Place::From)),
            (Why::NotBegun, not_begun.len() + absent, Vec::new()),
        ];
        found
            .into_iter()
            .filter(|(_, flows, _)| *flows > 0)
            .map(|(why, flows, of)| NodesFinding::NoFigure { why, of, flows })
            .collect()
    }

    /// The nodes all of whose flows are among these, then the other flows as `from>to`.
    fn names(&self, mut left: Vec<&Cell>, of: fn(usize) -> Place) -> Vec<String> {
        let mut names = Vec::new();
        for (node, name) in self.nodes.iter().enumerate() {
            let place = of(node);
            let flows = self.cells.iter().filter(|cell| place.has(cell.from, cell.to)).count();
            let own = left.iter().filter(|cell| place.has(cell.from, cell.to)).count();
            if own == flows && own > 2 {
                names.push(name.clone());
                left.retain(|cell| !place.has(cell.from, cell.to));
            }
        }
        names.extend(
            left.into_iter().map(|cell| format!("{}>{}", self.name(cell.from), self.name(cell.to))),
        );
        names
    }
}

/// Throughput that is lower by less than this part falls by chance.
const FALL: f64 = 0.05;
/// Whoever has less than this part of an even share is worth a look.
const LITTLE: f64 = 0.75;

/// The cases of an incast (or outcast) whose settings are equal, all but how many nodes send (or receive).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fan {
    /// Several nodes to one; otherwise one to several.
    pub is_in: bool,
    /// The node that all of them send to, or that sends to all of them.
    pub node: String,
    /// Each case with a run that counts, by the number of nodes.
    pub points: Vec<FanPoint>,
    /// Between which two points, by their places, throughput falls most; `None` where it does not.
    pub fall: Option<[usize; 2]>,
}

/// One case of a fan. Figures are medians over the runs in which all flows count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FanPoint {
    pub case: String,
    /// Nodes that send (or receive).
    pub fan: usize,
    /// Payload throughput of all flows together, in 10^9 bits a second.
    pub gbit_per_s: Option<f64>,
    /// 99th percentile of the latency of all flows' messages, in nanoseconds; `None` where a flow has no histogram.
    pub p99_ns: Option<f64>,
    /// Jain's index over the nodes' throughput: 1 is even, 1/n is one node alone.
    pub jain: Option<f64>,
    /// The node with the least.
    pub worst: Option<Share>,
}

/// A node's part of a fan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// The node that sends (or receives).
    pub node: String,
    /// Its throughput over an even share: 1 is even, 0 is starved.
    pub of_even: f64,
    /// Its throughput, in 10^9 bits a second.
    pub gbit_per_s: f64,
}

impl Share {
    /// Whether it is so little that the node is worth a look.
    pub fn is_little(&self) -> bool {
        self.of_even < LITTLE
    }
}

impl Fan {
    /// All fans of a file that have a run that counts, in its order.
    pub fn of_file(file: &ResultFile) -> Vec<Fan> {
        let mut fans: Vec<(Settings, Fan)> = Vec::new();
        for case in &file.cases {
            let is_in = match case.config.pattern {
                Some(Pattern::Incast(_)) => true,
                Some(Pattern::Outcast(_)) => false,
                _ => continue,
            };
            let Some((first, point)) = case.config.flows.first().zip(point(case, is_in)) else {
                continue;
            };
            let node = if is_in { &first.to } else { &first.from };
            let settings = Settings { fan_in: None, fan_out: None, ..case.config.settings.clone() };
            let known = fans
                .iter_mut()
                .rev()
                .find(|(known, fan)| fan.is_in == is_in && fan.node == *node && *known == settings);
            match known {
                Some((_, fan)) => fan.points.push(point),
                None => {
                    let fan = Fan { is_in, node: node.clone(), points: vec![point], fall: None };
                    fans.push((settings, fan));
                }
            }
        }
        for (_, fan) in &mut fans {
            fan.points.sort_by_key(|point| point.fan);
            fan.fall = fall(&fan.points);
        }
        fans.into_iter().map(|(_, fan)| fan).collect()
    }
}

/// The point with the most throughput, and that with the least of more nodes; `None` where it may be chance.
fn fall(points: &[FanPoint]) -> Option<[usize; 2]> {
    let known: Vec<(f64, usize)> = points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((point.gbit_per_s?, place)))
        .collect();
    let (most, best) = known.iter().max_by(|(one, _), (two, _)| one.total_cmp(two))?;
    let (least, worst) = known
        .iter()
        .filter(|(_, place)| points[*place].fan > points[*best].fan)
        .min_by(|(one, _), (two, _)| one.total_cmp(two))?;
    (*least < (1.0 - FALL) * most).then_some([*best, *worst])
}

/// A case, if one of its runs counts.
fn point(case: &CaseResult, is_in: bool) -> Option<FanPoint> {
    let flows = &case.config.flows;
    let runs: Vec<&Run> = case
        .runs
        .iter()
        .filter(|run| run.flows.len() == flows.len() && standing::run_counts(run))
        .collect();
    runs.first()?;
    let together: Vec<FlowResult> =
        (runs.iter()).map(|run| FlowResult::together(&run.flows)).collect();
    let rates: Vec<f64> = together.iter().filter_map(FlowResult::gbit_per_s).collect();
    let jains: Vec<f64> =
        together.iter().filter_map(|sum| Some(sum.fairness.as_ref()?.jain)).collect();
    let p99: Vec<f64> = runs
        .iter()
        .filter_map(|run| Latency::merged(&run.flows, |flow| flow.latency_ns.as_ref())?.p99)
        .map(|ns| ns as f64)
        .collect();
    let shares =
        flows.iter().enumerate().filter_map(|(index, flow)| share(index, flow, &runs, is_in));
    Some(FanPoint {
        case: case.id.clone(),
        fan: flows.len(),
        gbit_per_s: median(&rates),
        p99_ns: median(&p99),
        jain: median(&jains),
        worst: shares.min_by(|one, two| one.of_even.total_cmp(&two.of_even)),
    })
}

/// A node's part, the median over the runs.
fn share(index: usize, flow: &FlowConfig, runs: &[&Run], is_in: bool) -> Option<Share> {
    let (own, of_even): (Vec<f64>, Vec<f64>) = runs
        .iter()
        .filter_map(|run| {
            let rates: Vec<f64> =
                run.flows.iter().map(FlowResult::gbit_per_s).collect::<Option<_>>()?;
            let even = rates.iter().sum::<f64>() / rates.len() as f64;
            Some((*rates.get(index)?, even))
        })
        .filter(|(_, even)| *even > 0.0)
        .map(|(own, even)| (own, own / even))
        .unzip();
    Some(Share {
        node: if is_in { &flow.from } else { &flow.to }.clone(),
        of_even: median(&of_even)?,
        gbit_per_s: median(&own)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::model::DoubtKind;
    use results::sample;
    use results::sample::mesh::{Mesh as Made, Slow as Slowed};

    /// What the only matrix of a file says first.
    fn first(file: &ResultFile) -> NodesFinding {
        Mesh::of_file(file)[0].findings[0].clone()
    }

    #[track_caller]
    fn slow(file: &ResultFile) -> Slow {
        match first(file) {
            NodesFinding::Slow(slow) => slow,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_slow_node_has_its_figures_and_where_to_look() {
        let both = Made::quiet(8).with(Slowed::Sends(0, 0.5));
        let both = slow(&both.with(Slowed::Receives(0, 0.75)).pairs());
        assert_eq!((both.part, &*both.nodes[0]), (Part::Node, "node1"));
        assert_eq!((both.slow, both.flows, both.peers), (14, 14, 7));
        assert_eq!((both.look, both.is_read), (Suspect::Port, false));
        let shares = both.values.iter().map(|it| (it / both.usual * 1e3).round());
        assert!(shares.eq([500.0, 750.0]));
        let read = Made::quiet(4).with(Slowed::Sends(1, 0.5));
        let read = slow(&read.flag("op", "read").pairs());
        assert_eq!((read.part, read.is_read), (Part::Sends, true));
        let open = Made::quiet(8).with(Slowed::Sends(2, 0.5));
        let open = slow(&open.flag("rate", "20%").pairs());
        assert_eq!((open.metric, open.part), (Metric::P50Ns, Part::Sends));
        assert!(open.values[0] > 1.8 * open.usual, "{open:?}");
    }

    #[test]
    fn workers_that_were_kept_from_their_cores_are_told() {
        let mut file = Made::quiet(4).with(Slowed::Sends(2, 0.5)).pairs();
        for node in
            file.cases.iter_mut().flat_map(|case| &mut case.runs).flat_map(|run| &mut run.nodes)
        {
            if node.name == "node3" {
                node.workers[0].cpu_seconds = Some(0.52);
            }
        }
        let [own, others] = [0.52, 0.99];
        assert_eq!(slow(&file).look, Suspect::Cpu { own, others });
        for case in &mut file.cases {
            case.config.settings.poll = PollMode::Event;
        }
        assert_eq!(slow(&file).look, Suspect::PortOrCpu);
    }

    #[test]
    fn paths_are_told_each_with_where_to_look() {
        let made = |nodes: usize| Made::quiet(nodes).with(Slowed::Pair(2, 3, 0.33));
        let found = Mesh::of_file(&made(8).with(Slowed::Pair(3, 2, 0.5)).pairs());
        let paths = found[0].findings.iter().filter_map(|it| match it {
            NodesFinding::Slow(slow) => Some((slow.nodes.join(">"), slow.look)),
            _ => None,
        });
        let wanted = ["node3>node4", "node4>node3"].map(|path| (path.to_owned(), Suspect::Path));
        assert!(paths.eq(wanted));
        assert_eq!(slow(&made(8).ring()).look, Suspect::All);
    }

    #[track_caller]
    fn rest(finding: &NodesFinding) -> (Rest, usize) {
        match finding {
            NodesFinding::Rest { kind, flows, .. } => (*kind, *flows),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn others_are_told_as_alike_scattered_or_too_few() {
        let wild = Made::new(8).noise(0.3).runs(1).pairs();
        assert_eq!(rest(&first(&wild)), (Rest::Scattered, 56));
        let two = Made::quiet(2);
        assert_eq!(rest(&first(&two.pairs())), (Rest::Few, 2));
        let two = two.with(Slowed::Pair(0, 1, 0.5));
        assert_eq!(rest(&first(&two.pairs())), (Rest::Apart, 2));
    }

    #[test]
    fn what_has_no_figure_is_told_first() {
        let none = |why, of: &str, flows| NodesFinding::NoFigure {
            why,
            of: of.split_whitespace().map(str::to_owned).collect(),
            flows,
        };
        let gone = (1..4).flat_map(|node| [(0, node), (node, 0)]);
        let gone = first(&Made::quiet(4).failing(gone).pairs());
        let others = "node2>node3 node2>node4 node3>node2 node3>node4 node4>node2 node4>node3";
        assert_eq!(gone, none(Why::Lost, &format!("node1 {others}"), 12));
        let doubt = |doubted: fn(&str, &str) -> bool| {
            let mut file = Made::quiet(4).pairs();
            for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
                for flow in run.flows.iter_mut().filter(|it| doubted(&it.from, &it.to)) {
                    flow.window.doubts = vec![sample::doubt(DoubtKind::EdgeMissed)];
                }
            }
            first(&file)
        };
        let one = doubt(|from, to| from == "node1" && to == "node4");
        assert_eq!(one, none(Why::Doubtful, "node1>node4", 1));
        let node2 = doubt(|from, _| from == "node2");
        assert_eq!(node2, none(Why::Doubtful, "node2", 3));
        let mut file = Made::quiet(4).pairs();
        file.cases.truncate(4);
        let found = Mesh::of_file(&file).remove(0).findings;
        assert_eq!(found[0], none(Why::NotBegun, "", 4));
        assert_eq!(rest(&found[1]), (Rest::Alike, 8));
    }

    #[test]
    fn an_incast_has_a_point_a_fan_in_and_tells_where_it_falls_and_who_has_least() {
        let mut fans = Fan::of_file(&Made::quiet(9).incast(&[8, 1, 2]));
        assert_eq!(fans.len(), 1);
        let points = &mut fans[0].points;
        assert!(points.iter().map(|it| it.fan).eq([1, 2, 8]));
        let near = |figure: Option<f64>, known: f64| (figure.unwrap() / known - 1.0).abs() < 0.01;
        assert!(points.iter().all(|it| near(it.gbit_per_s, 9.41)));
        assert!(points[2].p99_ns.is_some() && near(points[2].jain, 1.0));
        assert_eq!(fall(points), None);
        points[2].gbit_per_s = Some(6.0);
        assert_eq!(fall(points).unwrap()[1], 2);
        let slow = Made::quiet(9).with(Slowed::Sends(3, 0.6)).incast(&[8]);
        let worst = Fan::of_file(&slow)[0].points[0].worst.clone().unwrap();
        assert_eq!((&*worst.node, worst.is_little()), ("node4", true));
    }
}
