//! What the runs of a pattern say of nodes and of the paths between them: flows without a figure, nodes and paths that are slow
//! with where to look, how alike the others are, and curves over fan-in. All of it is made from a result file; nothing is stored.

mod lock_step;
mod matrix;
mod outliers;

use std::collections::BTreeSet;

use settings::{Pattern, PollMode, Settings, listed};

use super::finding::{Finding, Subject, add_command, figure, number, percent, than, with_unit};
use crate::observe::{
    Metric,
    format::{NOT_MEASURED, counted, plural, some_of},
    standing,
};
use matrix::median_of;
use results::model::{CaseResult, FlowConfig, FlowResult, Latency, ResultFile, Run};
use statistics::median;

pub(crate) use lock_step::NodeInSteps;
pub use matrix::{Cell, Figures, Matrix, groups, title};
pub use outliers::{Lossy, Outlier, Place, floor};
pub(super) use outliers::{Observed, PATH_RUNS, Rule, paths, tail};

/// Most slow paths that are named one by one.
const MOST_PATHS: usize = 5;
/// Most flows and nodes without a figure that a sentence names.
const MOST_NAMED: usize = 5;
/// Workers with less than this part of their cores, and of what those of other nodes had, were kept from them.
const LITTLE_CPU: f64 = 0.9;
/// Flows that are within this part of the median are alike; of two, within half of it.
const ALIKE: f64 = 0.1;

/// A matrix, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    pub matrix: Matrix,
    /// What in it is slower than the others.
    pub outliers: Vec<Outlier>,
    /// What in it loses packets.
    pub lossy: Vec<Lossy>,
    pub findings: Vec<Finding>,
}

impl Mesh {
    /// Each matrix of a file.
    pub fn of_file(file: &ResultFile) -> Vec<Mesh> {
        let mut meshes: Vec<Mesh> = Matrix::of_file(file).into_iter().map(Mesh::new).collect();
        for mesh in &mut meshes {
            add_command(&mut mesh.findings, file);
        }
        meshes
    }

    pub fn new(matrix: Matrix) -> Mesh {
        if matrix.settings.lock_step {
            // Flows in lock-step are equally fast, whoever of them is slow: steps show it.
            let mut findings = matrix.without_figures();
            findings.extend(matrix.of_steps());
            let outliers = matrix.straggler().into_iter().collect();
            return Mesh { findings, outliers, lossy: Vec::new(), matrix };
        }
        let (outliers, lossy) = (matrix.outliers(), matrix.lossy());
        Mesh { findings: matrix.findings(&outliers, &lossy), outliers, lossy, matrix }
    }
}

impl Lossy {
    /// What is said of its place.
    fn words(&self) -> String {
        let packets = match self.place {
            Place::Node(_) | Place::Path(..) => "packets",
            Place::From(_) => "packets of flows that it posts",
            Place::To(_) => "packets of flows that go to it",
        };
        format!("loses {packets}, in {} of {} runs", self.losing, self.runs)
    }

    fn add_to(&self, finding: Finding) -> Finding {
        finding.with("losing_runs", self.losing).with("runs", self.runs)
    }
}

/// All nodes, and as many paths as are named; then how many paths are left.
fn nodes_first<T>(found: &[T], place: fn(&T) -> Place) -> (Vec<&T>, usize) {
    let (paths, mut named): (Vec<&T>, Vec<&T>) =
        found.iter().partition(|it| matches!(place(it), Place::Path(..)));
    named.extend(paths.iter().take(MOST_PATHS));
    (named, paths.len().saturating_sub(MOST_PATHS))
}

impl Matrix {
    /// Its findings and those of its outliers. Only the fan says that its flows are alike.
    fn findings(&self, outliers: &[Outlier], lossy: &[Lossy]) -> Vec<Finding> {
        let (slow, more_slow) = nodes_first(outliers, |outlier| outlier.place);
        let (losing, more_losing) = nodes_first(lossy, |it| it.place);
        // What is slow and loses packets is named once.
        let (both, losing): (Vec<&Lossy>, Vec<&Lossy>) = losing
            .into_iter()
            .partition(|one| slow.iter().any(|outlier| outlier.place == one.place));
        let mut found = self.without_figures();
        found.extend(slow.into_iter().map(|outlier| {
            let loss = both.iter().find(|one| one.place == outlier.place);
            let also = loss.map_or_else(String::new, |one| format!(", and {}", one.words()));
            let finding = match outlier.place {
                Place::Path(from, to) => self.slow_path(outlier, [from, to], &also),
                Place::Node(node) | Place::From(node) | Place::To(node) => {
                    self.slow_node(outlier, node, &also)
                }
            };
            match loss {
                Some(one) => one.add_to(finding),
                None => finding,
            }
        }));
        found.extend(self.more_paths("more_slow_paths", more_slow, ["is slow", "are slow"]));
        found.extend(losing.into_iter().map(|it| self.loses(it)));
        let lose = ["loses packets", "lose packets"];
        found.extend(self.more_paths("more_lossy_paths", more_losing, lose));
        if !(self.is_fan() && outliers.is_empty()) {
            found.extend(self.rest(outliers));
        }
        found
    }

    /// The matrix' own case, and a node, or the two ends of a path.
    fn subject(&self, nodes: &[usize]) -> Subject {
        let names = nodes.iter().map(|node| self.name(*node).to_owned());
        Subject { nodes: names.collect(), ..Subject::case(&self.title) }
    }

    fn slow_path(&self, outlier: &Outlier, ends: [usize; 2], also: &str) -> Finding {
        let Outlier { quantity: metric, value, usual, .. } = *outlier;
        let ([from, to], look) = (ends.map(|end| self.name(end)), self.look_at_path(ends));
        let path = match self.pattern {
            Pattern::Loop => format!("{from} is slow by itself"),
            _ => format!("{from}>{to} is slow"),
        };
        let [own, median] = [value, usual].map(|value| figure(metric, value));
        let than = than(metric, outlier.ratio());
        let text = format!("{path}: {own}, {than} the median {median}{also}. Look at {look}.");
        Finding::problem("slow_path", self.subject(&ends), text)
            .with(metric.name(), value)
            .with(format!("usual_{}", metric.name()), usual)
    }

    /// Of a node that is slow in both directions each has its figure; `also` is what else is said of it.
    fn slow_node(&self, outlier: &Outlier, node: usize, also: &str) -> Finding {
        let Outlier { quantity: metric, usual, slow, flows, .. } = *outlier;
        let (key, name) = (metric.name(), self.name(node));
        let [sent, received] = [Place::From(node), Place::To(node)].map(|side| {
            let cells = self.cells.iter().filter(|cell| side.has(cell.from, cell.to));
            median_of(cells.map(|cell| &cell.figures), metric).unwrap_or(outlier.value)
        });
        let [sends, receives] = if self.settings.op.profile().fetches {
            ["reads", "is read"]
        } else {
            ["sends", "receives"]
        };
        let (id, keys, values) = match outlier.place {
            Place::From(_) => ("slow_sender", vec![key.to_owned()], vec![outlier.value]),
            Place::To(_) => ("slow_receiver", vec![key.to_owned()], vec![outlier.value]),
            _ => {
                let keys = ["sent", "received"].map(|side| format!("{side}_{key}"));
                ("slow_node", keys.to_vec(), vec![sent, received])
            }
        };
        let than = than(metric, values.last().map_or(1.0, |value| value / usual));
        let what = match (outlier.place, metric.higher_is_better()) {
            (Place::From(_), true) => format!("{name} {sends} {than}"),
            (Place::To(_), true) => format!("{name} {receives} {than}"),
            (_, true) => {
                let less = percent(1.0 - sent / usual);
                format!("{name} {sends} {less} and {receives} {than}")
            }
            (Place::From(_), false) => format!("Messages from {name} take {than} those of"),
            (Place::To(_), false) => format!("Messages to {name} take {than} those of"),
            (_, false) => format!("Messages from and to {name} take {than} those of"),
        };
        let peers: BTreeSet<usize> = self
            .cells
            .iter()
            .filter(|cell| Place::Node(node).has(cell.from, cell.to))
            .map(|cell| cell.from + cell.to - node)
            .collect();
        let few =
            if slow == flows { String::new() } else { format!(" in {slow} of {flows} flows") };
        let own: Vec<String> = values.iter().map(|value| number(metric, *value)).collect();
        let numbers = format!("{} of {}", own.join(" and "), number(metric, usual));
        let shares = self.little_cpu(node);
        let look = match shares {
            None if self.is_embedded => "its CPUs".to_owned(),
            _ if self.settings.poll != PollMode::Busy => "its port, cable or CPU".to_owned(),
            None => "its port or cable".to_owned(),
            Some(shares) => {
                let [here, others] = shares.map(percent);
                format!(
                    "other programs on it: its workers had {here} of their cores, others {others}"
                )
            }
        };
        let text = format!(
            "{what} its {}{few} ({}){also}. Look at {look}.",
            counted(peers.len(), "peer"),
            with_unit(metric, &numbers)
        );
        let mut finding = Finding::problem(id, self.subject(&[node]), text)
            .with(format!("usual_{key}"), usual)
            .with("slow_flows", slow)
            .with("flows", flows)
            .with("peers", peers.len());
        for (figure, value) in keys.into_iter().zip(values) {
            finding = finding.with(figure, value);
        }
        match shares {
            Some([here, others]) => {
                finding.with("cpu_share", here).with("others_cpu_share", others)
            }
            None => finding,
        }
    }

    fn look_at_path(&self, ends: [usize; 2]) -> String {
        let [from, to] = ends.map(|end| self.name(end));
        match self.pattern {
            Pattern::Loop if self.is_embedded => "its CPUs and memory".to_owned(),
            Pattern::Loop => "its CPU, memory and PCIe slot".to_owned(),
            Pattern::Incast(_) => format!("{from} and its path to {to}"),
            Pattern::Outcast(_) => format!("{to} and its path from {from}"),
            Pattern::Ring | Pattern::Bisection => {
                "both nodes and the path between them; --pattern pairs separates them".to_owned()
            }
            Pattern::Pairs | Pattern::AllToAll => "the path".to_owned(),
        }
    }

    /// The CPU time of a node's workers over the length of their windows, and the median of the other nodes, where its workers
    /// had less. Only of workers that never sleep it is known whether they were kept from their cores.
    fn little_cpu(&self, node: usize) -> Option<[f64; 2]> {
        let of_others: Vec<f64> = self
            .cpu
            .iter()
            .enumerate()
            .filter_map(|(other, share)| share.filter(|_| other != node))
            .collect();
        let (own, others) = (self.cpu.get(node).copied().flatten()?, median(&of_others)?);
        let is_little = own < LITTLE_CPU && own < others * LITTLE_CPU;
        (is_little && self.settings.poll == PollMode::Busy).then_some([own, others])
    }

    fn more_paths(&self, id: &'static str, more: usize, what: [&str; 2]) -> Option<Finding> {
        let [is, are] = what;
        let text = match more {
            0 => return None,
            1 => format!("1 other path {is} too."),
            more => format!("{more} other paths {are} too."),
        };
        Some(Finding::note(id, Subject::case(&self.title), text).with("paths", more))
    }

    fn loses(&self, lossy: &Lossy) -> Finding {
        let (id, nodes) = match lossy.place {
            Place::Node(node) => ("lossy_node", vec![node]),
            Place::From(node) => ("lossy_sender", vec![node]),
            Place::To(node) => ("lossy_receiver", vec![node]),
            Place::Path(from, to) => ("lossy_path", vec![from, to]),
        };
        let look = match lossy.place {
            Place::Path(from, to) => self.look_at_path([from, to]),
            _ if self.is_embedded => "its CPUs".to_owned(),
            _ => "its port or cable".to_owned(),
        };
        let subject = self.subject(&nodes);
        let name = subject.nodes.join(">");
        let text = format!("{name} {}. Look at {look}.", lossy.words());
        lossy.add_to(Finding::problem(id, subject, text))
    }

    /// How alike the remaining flows are.
    fn rest(&self, outliers: &[Outlier]) -> Option<Finding> {
        let metric = self.quantity();
        let mut values: Vec<f64> = self
            .cells
            .iter()
            .filter(|cell| !outliers.iter().any(|it| it.place.has(cell.from, cell.to)))
            .filter_map(|cell| cell.figures.of(metric))
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = median(&values).filter(|middle| *middle > 0.0)?;
        let [least, .., most] = values[..] else {
            return None;
        };
        let within = (middle - least).max(most - middle) / middle;
        let (flows, range) = (values.len(), metric.range(least, most));
        let usual = figure(metric, middle);
        let alike = format!("{flows} flows are within {} of the median {usual}", percent(within));
        let (id, text) = match outliers {
            // So few that it is not known which of them is usual.
            [] if !self.can_tell() && within > ALIKE / 2.0 => (
                "flows_differ",
                format!(
                    "{flows} flows differ: {range}. Look at both nodes and the path between them: the flows do not show \
                     which is normal."
                ),
            ),
            [] if !self.can_tell() => ("few_flows", format!("{alike}.")),
            [] if within <= ALIKE => ("flows_alike", format!("Nothing is slow: {alike}.")),
            [] => (
                "flows_scatter",
                format!(
                    "Nothing stands out, but {flows} flows scatter: {range}, the median {usual}. Measure longer (-D)."
                ),
            ),
            _ => ("other_flows", format!("The other {alike}.")),
        };
        let key = metric.name();
        Some(
            Finding::note(id, Subject::case(&self.title), text)
                .with("flows", flows)
                .with(format!("low_{key}"), least)
                .with(key, middle)
                .with(format!("high_{key}"), most),
        )
    }

    /// Flows that have no figure.
    fn without_figures(&self) -> Vec<Finding> {
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
        let mut found = Vec::new();
        if !lost.is_empty() {
            let flows = lost.len();
            let (subject, names) = self.flows(lost, Place::Node);
            let text = format!("No figure for {names}: each run failed or was stopped.");
            found.push(Finding::note("lost_flows", subject, text).with("flows", flows));
        }
        if !doubtful.is_empty() {
            let flows = doubtful.len();
            let (subject, names) = self.flows(doubtful, Place::From);
            let mut text = format!("No figure for {names}: each run is doubtful.");
            // Where all are, no node stands out.
            if !subject.nodes.is_empty() && flows < self.cells.len() {
                text += &format!(" Look for other programs on {}.", some_names(&subject.nodes));
            }
            found.push(Finding::note("doubtful_flows", subject, text).with("flows", flows));
        }
        if let flows @ 1.. = not_begun.len() + absent {
            let text = format!("{} did not start.", counted(flows, "flow"));
            let subject = Subject::case(&self.title);
            found.push(Finding::note("flows_not_begun", subject, text).with("flows", flows));
        }
        found
    }

    /// The nodes all of whose flows are among these, then the other flows as `from>to`; and some of their names.
    fn flows(&self, mut left: Vec<&Cell>, of: fn(usize) -> Place) -> (Subject, String) {
        let mut subject = Subject::case(&self.title);
        for (node, name) in self.nodes.iter().enumerate() {
            let place = of(node);
            let flows = self.cells.iter().filter(|cell| place.has(cell.from, cell.to)).count();
            let own = left.iter().filter(|cell| place.has(cell.from, cell.to)).count();
            if own == flows && own > 2 {
                subject.nodes.push(name.clone());
                left.retain(|cell| !place.has(cell.from, cell.to));
            }
        }
        subject.flows = left
            .into_iter()
            .map(|cell| format!("{}>{}", self.name(cell.from), self.name(cell.to)))
            .collect();
        let names: Vec<&String> = subject.nodes.iter().chain(&subject.flows).collect();
        let text = some_names(&names);
        (subject, text)
    }
}

fn some_names(names: &[impl AsRef<str>]) -> String {
    if names.len() > MOST_NAMED { some_of(names, MOST_NAMED) } else { listed(names) }
}

/// Throughput that is lower by less than this part falls by chance.
const FALL: f64 = 0.05;
/// Whoever has less than this part of an even share is worth a look.
const LITTLE: f64 = 0.75;

/// The cases of an incast (or outcast) whose settings are equal, all but how many nodes send (or receive).
struct Fan {
    /// Several nodes to one; otherwise one to several.
    is_in: bool,
    settings: Settings,
    /// The node that all of them send to, or that sends to all of them.
    node: String,
    /// Each case with a run that counts, by the number of nodes.
    points: Vec<FanPoint>,
}

/// One case of a fan. Figures are medians over the runs in which all flows count.
struct FanPoint {
    case: String,
    /// Nodes that send (or receive).
    fan: usize,
    /// Payload throughput of all flows together, in 10^9 bits a second.
    gbit_per_s: Option<f64>,
    /// 99th percentile of the latency of all flows' messages, in nanoseconds; `None` where a flow has no histogram.
    p99_ns: Option<f64>,
    /// Jain's index over the nodes' throughput: 1 is even, 1/n is one node alone.
    jain: Option<f64>,
    /// The node with the least.
    worst: Option<Share>,
}

/// A node's part of a fan.
struct Share {
    /// The node that sends (or receives).
    node: String,
    /// Its throughput over an even share: 1 is even, 0 is starved.
    of_even: f64,
    /// Its throughput, in 10^9 bits a second.
    gbit_per_s: f64,
}

/// What all fans of a file say that have a run that counts, in its order.
pub fn fans(file: &ResultFile) -> Vec<Finding> {
    let mut fans: Vec<Fan> = Vec::new();
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
            .find(|fan| fan.is_in == is_in && fan.node == *node && fan.settings == settings);
        match known {
            Some(fan) => fan.points.push(point),
            None => fans.push(Fan { is_in, settings, node: node.clone(), points: vec![point] }),
        }
    }
    for fan in &mut fans {
        fan.points.sort_by_key(|point| point.fan);
    }
    fans.iter().flat_map(|fan| [fan.curve(), fan.fall(), fan.worst_share()]).flatten().collect()
}

impl Fan {
    /// One of two words, by whether nodes send or receive.
    fn word(&self, is_in: &'static str, is_out: &'static str) -> &'static str {
        if self.is_in { is_in } else { is_out }
    }

    fn subject(&self, node: &str) -> Subject {
        let cases = self.points.iter().map(|point| point.case.clone());
        Subject { cases: cases.collect(), nodes: vec![node.to_owned()], ..Subject::default() }
    }

    /// What the most nodes reach; throughput and p99 over how many there are.
    fn curve(&self) -> Option<Finding> {
        let (node, points) = (&self.node, self.points.iter());
        let fan_words: Vec<String> = points.clone().map(|point| point.fan.to_string()).collect();
        let nodes = plural(self.points.last()?.fan, self.word("sender", "receiver"));
        let [rates, times]: [Vec<Option<f64>>; 2] = [
            points.clone().map(|point| point.gbit_per_s).collect(),
            points.clone().map(|point| point.p99_ns).collect(),
        ];
        let (fan_list, way) = (fan_words.join(", "), self.word("to", "from"));
        let whole = format!(
            "{fan_list} {nodes} {way} {node}: together {} Gb/s",
            series(Metric::GbitPerS, &rates)
        );
        let mut text = match (self.lead(), points.len()) {
            (Some(lead), 1) => lead,
            (Some(lead), _) => format!("{lead}. {whole}"),
            (None, _) => whole,
        };
        if times.iter().any(Option::is_some) {
            text += &format!("; p99 {} µs", series(Metric::P99Ns, &times));
        }
        let id = self.word("incast", "outcast");
        let fans: Vec<usize> = points.map(|point| point.fan).collect();
        Some(
            Finding::note(id, self.subject(node), text + ".")
                .with("fan", fans)
                .with(Metric::GbitPerS.name(), rates)
                .with(Metric::P99Ns.name(), times),
        )
    }

    /// What the most nodes reach, also beside one alone, and how little one of them gets.
    fn lead(&self) -> Option<String> {
        let point = self.points.last().filter(|point| point.fan > 1)?;
        let (rate, sender) = (point.gbit_per_s?, self.word("sender", "receiver"));
        let alone = self.points.first().filter(|first| first.fan == 1);
        let beside = alone.and_then(|first| first.gbit_per_s).filter(|one| *one > 0.0);
        let of_one = beside.map_or_else(String::new, |one| {
            format!(", {} of one {sender} alone", percent(rate / one))
        });
        let slowest = point.worst.as_ref().map_or_else(String::new, |worst| {
            format!("; the slowest gets {} of an even share", percent(worst.of_even))
        });
        let (nodes, way, node) = (counted(point.fan, sender), self.word("to", "from"), &self.node);
        let own = figure(Metric::GbitPerS, rate);
        Some(format!("{nodes} {way} {node} reach {own} together{of_one}{slowest}"))
    }

    /// From the point with the most throughput to that with the least of more nodes; `None` where it may be chance.
    fn fall(&self) -> Option<Finding> {
        let known: Vec<(f64, &FanPoint)> =
            self.points.iter().filter_map(|point| Some((point.gbit_per_s?, point))).collect();
        let (most, best) = known.iter().max_by(|(one, _), (two, _)| one.total_cmp(two))?;
        let (least, worst) = known
            .iter()
            .filter(|(_, point)| point.fan > best.fan)
            .min_by(|(one, _), (two, _)| one.total_cmp(two))?;
        if *least >= (1.0 - FALL) * most {
            return None;
        }
        let (share, to) = (1.0 - least / most, worst.fan);
        let from = counted(best.fan, self.word("sender", "receiver"));
        let text = format!("Throughput falls by {} from {from} to {to}.", percent(share));
        let id = self.word("incast_falls", "outcast_falls");
        let finding = Finding::note(id, self.subject(&self.node), text).with("fall", share);
        Some(finding.with("from_fan", best.fan).with("to_fan", to))
    }

    /// Who has least of the most nodes.
    fn worst_share(&self) -> Option<Finding> {
        let point = self.points.last().filter(|point| point.fan > 1)?;
        let (jain, worst) = (point.jain?, point.worst.as_ref()?);
        let nodes = counted(point.fan, self.word("sender", "receiver"));
        let (name, of_even) = (&worst.node, worst.of_even);
        let rate = figure(Metric::GbitPerS, worst.gbit_per_s);
        let mut text = format!("{name} has least of {nodes}: {rate}; Jain's index is {jain:.3}.");
        if of_even < LITTLE {
            let (way, node) = (self.word("to", "from"), &self.node);
            text += &format!(" Look at {name} and its path {way} {node}.");
        }
        let id = self.word("incast_shares", "outcast_shares");
        Some(
            Finding::note(id, self.subject(name), text)
                .with("of_even_share", of_even)
                .with(Metric::GbitPerS.name(), worst.gbit_per_s)
                .with(Metric::Fairness.name(), jain),
        )
    }
}

fn series(metric: Metric, values: &[Option<f64>]) -> String {
    let texts = values
        .iter()
        .map(|value| value.map_or_else(|| NOT_MEASURED.to_owned(), |value| number(metric, value)));
    texts.collect::<Vec<_>>().join(", ")
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
