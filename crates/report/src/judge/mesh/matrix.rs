//! Node × node: what each flow of a pattern moved, over all cases and runs of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use settings::{Pattern, Settings};

use crate::observe::Metric;
use crate::observe::standing::{self, Standing};
use results::model::{
    CaseResult, FlowResult, LockStep, NodeResult, PathEventKind, ResultFile, Run,
};
use statistics::median;

/// The flows of all cases of a pattern whose settings are equal: one case, or the rounds of `pairs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Its title in the file: the id of its case, or of its rounds.
    pub title: String,
    /// Ids of its cases, in the file's order.
    pub cases: Vec<String>,
    pub settings: Settings,
    pub pattern: Pattern,
    /// Names of the nodes that have flows, in the file's order.
    pub nodes: Vec<String>,
    /// The flows, ordered by `from` and then by `to`.
    pub cells: Vec<Cell>,
    /// CPU time of each node's workers over the length of their windows, 0 to 1, the median over the runs: with `poll busy`
    /// less than 1 was taken by others. `None` where it is not known.
    pub cpu: Vec<Option<f64>>,
    /// The steps of each run that counts, in lock-step.
    pub steps: Vec<LockStep>,
    /// Whether nodes have the embedded device, whose figures are those of their CPUs.
    pub is_embedded: bool,
}

/// All flows from one node to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The node that posts, as an index in [`Matrix::nodes`].
    pub from: usize,
    /// The node at the other end; `from` itself with the pattern `loop`.
    pub to: usize,
    /// Medians over the runs that count.
    pub figures: Figures,
    pub runs: Vec<Figures>,
    /// Runs that do not count: they failed, were stopped, or are doubtful.
    pub lost: usize,
    /// Those of them that are complete, but something makes their figures doubtful.
    pub doubtful: usize,
    /// Runs with figures, doubtful or not, in which an end of it told of lost packets, while it had no other flow: what was
    /// lost was lost however long the window was.
    pub losing: usize,
}

impl Matrix {
    /// The matrix of each group of cases that are of one pattern and equal in all settings, in the file's order.
    pub fn of_file(file: &ResultFile) -> Vec<Matrix> {
        groups(file)
            .into_iter()
            .filter(|cases| cases.iter().any(|it| it.config.pattern.is_some()))
            .map(|cases| Matrix::new(file, &cases))
            .collect()
    }

    fn new(file: &ResultFile, cases: &[&CaseResult]) -> Matrix {
        let configs = cases.iter().flat_map(|case| &case.config.flows);
        let ends: BTreeSet<&str> =
            configs.clone().flat_map(|flow| [&*flow.from, &*flow.to]).collect();
        let in_file: Vec<&str> = file.nodes.iter().map(|node| &*node.name).collect();
        let listed = in_file.iter().filter(|name| ends.contains(*name));
        let others = ends.iter().filter(|name| !in_file.contains(name));
        let nodes: Vec<&str> = listed.chain(others).copied().collect();
        let index: HashMap<&str, usize> = nodes.iter().copied().zip(0..).collect();
        let mut cells: BTreeMap<(usize, usize), Cell> = BTreeMap::new();
        for (from, to) in configs.filter_map(|flow| place(&index, &flow.from, &flow.to)) {
            let cell = cells.entry((from, to)).or_default();
            (cell.from, cell.to) = (from, to);
        }
        let is_pairs = cases.iter().all(|case| case.config.pattern == Some(Pattern::Pairs));
        let mut cpu = vec![Vec::new(); nodes.len()];
        for run in cases.iter().flat_map(|case| &case.runs) {
            // A node's CPU time is that of all its flows.
            let mut spoilt: HashSet<&str> = HashSet::new();
            // Without figures where a flow does not count: whether it is just doubtful.
            let mut of_run: BTreeMap<(usize, usize), Result<Figures, bool>> = BTreeMap::new();
            for flow in &run.flows {
                let figures = match standing::of_flow(run, flow) {
                    Standing::Counts => Ok(Figures::of_flow(run, flow)),
                    other => {
                        spoilt.extend([&*flow.from, &flow.to]);
                        Err(other.has_figures())
                    }
                };
                if let Some(place) = place(&index, &flow.from, &flow.to) {
                    of_run
                        .entry(place)
                        .and_modify(|known| *known = known.and_then(|it| Ok(it.and(figures?))))
                        .or_insert(figures);
                }
            }
            for node in run.nodes.iter().filter(|it| !spoilt.contains(&*it.name)) {
                if let Some(place) = index.get(&*node.name) {
                    cpu[*place].extend(cpu_share(node));
                }
            }
            let losing = if run.path_events.is_empty() || !is_pairs {
                HashSet::new()
            } else {
                losing(run, of_run.keys().copied(), &nodes)
            };
            for (place, figures) in of_run {
                let Some(cell) = cells.get_mut(&place) else {
                    continue;
                };
                let has_figures = !matches!(figures, Err(false));
                cell.losing += usize::from(has_figures && losing.contains(&place));
                match figures {
                    Ok(figures) => cell.runs.push(figures),
                    Err(is_doubtful) => {
                        cell.lost += 1;
                        cell.doubtful += usize::from(is_doubtful);
                    }
                }
            }
        }
        for cell in cells.values_mut() {
            cell.figures = Figures::median(&cell.runs);
        }
        let settings = cases.first().map(|case| case.config.settings.clone()).unwrap_or_default();
        Matrix {
            title: title(cases),
            cases: cases.iter().map(|case| case.id.clone()).collect(),
            pattern: settings.pattern.clone().unwrap_or(Pattern::Pairs),
            settings,
            nodes: nodes.into_iter().map(str::to_owned).collect(),
            cells: cells.into_values().collect(),
            cpu: cpu.iter().map(|shares| median(shares)).collect(),
            steps: cases
                .iter()
                .flat_map(|case| &case.runs)
                .filter(|run| standing::of_run(run).has_figures())
                .filter_map(|run| run.lock_step.clone())
                .collect(),
            is_embedded: cases.iter().any(|case| case.runs.iter().any(Run::is_on_embedded_device)),
        }
    }

    /// The flows from one node to another; `None` where there were none.
    pub fn cell(&self, from: usize, to: usize) -> Option<&Cell> {
        let found =
            self.cells.binary_search_by_key(&(from, to), |cell: &Cell| (cell.from, cell.to));
        found.ok().and_then(|at| self.cells.get(at))
    }

    /// Whether the pattern has a flow from one node to another; it may not have been begun.
    pub fn has(&self, from: usize, to: usize) -> bool {
        if self.is_full() { from != to } else { self.cell(from, to).is_some() }
    }

    /// Whether it is full: each node has a flow to each other one.
    pub fn is_full(&self) -> bool {
        matches!(self.pattern, Pattern::Pairs | Pattern::AllToAll)
    }

    /// Whether one node has all flows of it: an incast or an outcast.
    pub fn is_fan(&self) -> bool {
        matches!(self.pattern, Pattern::Incast(_) | Pattern::Outcast(_))
    }

    /// What the runs are compared by: bandwidth of closed loops. In an open loop all have the rate that they were
    /// offered, and p50 shows it.
    pub fn quantity(&self) -> Metric {
        if self.settings.is_closed_loop() { Metric::GbitPerS } else { Metric::P50Ns }
    }

    /// The median over all cells; `None` where none has the figure.
    pub fn median(&self, quantity: Metric) -> Option<f64> {
        median_of(self.cells.iter().map(|cell| &cell.figures), quantity)
    }

    /// The median of each node over its peers, in the order of the nodes, of the flows that it posts.
    pub fn sending(&self, quantity: Metric) -> Vec<Option<f64>> {
        self.of_nodes(|cell| cell.from, quantity)
    }

    /// The median of each node over its peers, in the order of the nodes, of the flows that go to it.
    pub fn receiving(&self, quantity: Metric) -> Vec<Option<f64>> {
        self.of_nodes(|cell| cell.to, quantity)
    }

    fn of_nodes(&self, node: fn(&Cell) -> usize, quantity: Metric) -> Vec<Option<f64>> {
        let mut values = vec![Vec::new(); self.nodes.len()];
        for cell in &self.cells {
            values[node(cell)].extend(cell.figures.of(quantity));
        }
        values.iter().map(|values| median(values)).collect()
    }

    /// The name of a node; empty where there is none.
    pub fn name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("", |name| name)
    }
}

fn place(index: &HashMap<&str, usize>, from: &str, to: &str) -> Option<(usize, usize)> {
    Some((*index.get(from)?, *index.get(to)?))
}

/// The links of a round of pairs at whose ends packets were lost. A device's counters do not tell which of a node's flows
/// lost them, and there a node has one peer alone; nor which followed from a receiver that was not ready.
fn losing(
    run: &Run,
    links: impl Iterator<Item = (usize, usize)>,
    nodes: &[&str],
) -> HashSet<(usize, usize)> {
    links
        .filter(|(from, to)| {
            let ends = [from, to].map(|end| nodes.get(*end).copied());
            let events: Vec<PathEventKind> = run
                .path_events
                .iter()
                .filter(|event| event.count > 0 && ends.contains(&Some(&*event.node)))
                .map(|event| event.kind)
                .collect();
            events.iter().any(|kind| kind.is_loss())
                && !events.contains(&PathEventKind::ReceiverNotReady)
        })
        .collect()
}

/// The CPU time that a node's workers had, of what they would have with a core each.
fn cpu_share(node: &NodeResult) -> Option<f64> {
    let windows: f64 =
        node.workers.iter().map(|worker| worker.window_seconds).sum::<Option<f64>>()?;
    (windows > 0.0).then_some(node.cpu_seconds()? / windows)
}

/// The cases of a file in its order, those of a pattern with equal settings together.
pub fn groups(file: &ResultFile) -> Vec<Vec<&CaseResult>> {
    let mut groups: Vec<Vec<&CaseResult>> = Vec::new();
    // Rounds of a check are no matrix.
    for case in file.cases.iter().filter(|case| case.config.check.is_none()) {
        let settings = &case.config.settings;
        let alike = groups.iter_mut().rev().find(|group| {
            settings.pattern.is_some() && group.iter().any(|it| it.config.settings == *settings)
        });
        match alike {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups
}

/// The title of a group in its file: the id of its case, or of its rounds.
pub fn title(cases: &[&CaseResult]) -> String {
    let first = cases.first().map_or("", |case| &case.id);
    match (first.rsplit_once("-round"), cases.len()) {
        (Some((id, _)), rounds) if rounds > 1 => format!("{id}, {rounds} rounds"),
        _ => first.to_owned(),
    }
}

/// The metrics of which they are.
const OF_FLOWS: [Metric; 3] = [Metric::GbitPerS, Metric::P50Ns, Metric::P99Ns];

/// Throughput, p50 and p99 of a flow; `None` for what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; OF_FLOWS.len()]);

impl Figures {
    /// What `of` says of each metric.
    pub fn new(of: impl Fn(Metric) -> Option<f64>) -> Figures {
        Figures(OF_FLOWS.map(of))
    }

    pub fn of(&self, metric: Metric) -> Option<f64> {
        let place = OF_FLOWS.iter().position(|it| *it == metric)?;
        self.0[place]
    }

    pub(super) fn of_flow(run: &Run, flow: &FlowResult) -> Figures {
        Figures::new(|metric| metric.of(run, Some(flow)))
    }

    /// Those of two flows that ran at once between the same two nodes: what they move together, and the longer latency.
    pub(super) fn and(self, other: Figures) -> Figures {
        Figures::new(|metric| {
            let (one, two) = (self.of(metric)?, other.of(metric)?);
            Some(if metric.higher_is_better() { one + two } else { one.max(two) })
        })
    }

    /// The median of each, over the runs that have it.
    pub fn median(runs: &[Figures]) -> Figures {
        Figures::new(|metric| median_of(runs, metric))
    }
}

/// The median of one of them; `None` where none has it.
pub(super) fn median_of<'a>(
    figures: impl IntoIterator<Item = &'a Figures>,
    metric: Metric,
) -> Option<f64> {
    let values = figures.into_iter().filter_map(|it| it.of(metric));
    median(&values.collect::<Vec<f64>>())
}
