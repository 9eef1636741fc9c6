//! Nodes and paths of a matrix that are slower than the others, by a rule that docs/dev/statistics.md has with its proof, or that
//! lose packets, though their rates may be as they should: the fewest causes that explain it.

use super::matrix::{Cell, Matrix, median_of};
use crate::observe::Metric;
use statistics::{Scatter, median, reach, spread};

/// Chance of naming a node although all are alike: by the figure that shows most, and by each other one.
pub(super) const CHANCES: [f64; 2] = [0.002, 0.001];
/// A flow that moves nothing counts as this share of the median.
const LEAST: f64 = 1e-4;

/// A node or a path that is slower than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// The figure that shows it.
    pub quantity: Metric,
    /// What is slow, by indices in [`Matrix::nodes`].
    pub place: Place,
    /// The median over its flows.
    pub value: f64,
    /// The median over the remaining flows.
    pub usual: f64,
    /// Its flows that are slow.
    pub slow: usize,
    /// Its flows that have the figure.
    pub flows: usize,
}

impl Outlier {
    /// Its figure over the usual one: below 1 for less, above 1 for longer.
    pub fn ratio(&self) -> f64 {
        self.value / self.usual
    }
}

/// Smaller differences never make an outlier: a share of the usual figure.
pub fn floor(metric: Metric) -> f64 {
    match metric {
        Metric::P99Ns => 0.25,
        rate if rate.higher_is_better() => 0.05,
        _ => 0.1,
    }
}

/// Runs that a path must have to be called slow by it: one moment in which a process is held up decides p99 of a run.
fn path_runs(metric: Metric) -> usize {
    match metric {
        Metric::P99Ns => 3,
        _ => 1,
    }
}

impl Matrix {
    /// What is slower than the others, whole nodes first; each cause once. Closed loops are asked for bandwidth first, then
    /// for p50 and p99 of what bandwidth did not show; open loops have the rate that they were offered, and only latency differs.
    pub fn outliers(&self) -> Vec<Outlier> {
        let quantities = [Metric::GbitPerS, Metric::P50Ns, Metric::P99Ns]
            .into_iter()
            .skip_while(|metric| *metric != self.quantity());
        let mut found: Vec<Outlier> = Vec::new();
        for (quantity, number) in quantities.zip(0..) {
            let left: Vec<&Cell> = self
                .cells
                .iter()
                .filter(|cell| !found.iter().any(|it| it.place.has(cell.from, cell.to)))
                .collect();
            let chance = CHANCES[usize::from(number > 0)];
            found.extend(of_quantity(self.nodes.len(), &left, quantity, chance));
        }
        found
    }

    /// Whether flows can be judged at all: two flows in one run do not show which is normal.
    pub fn can_tell(&self) -> bool {
        self.cells.iter().filter(|cell| cell.figures.of(self.quantity()).is_some()).count() > 2
    }
}

fn median_where(cells: &[&Cell], quantity: Metric, is_in: impl Fn(&Cell) -> bool) -> Option<f64> {
    median_of(cells.iter().filter(|cell| is_in(cell)).map(|cell| &cell.figures), quantity)
}

/// Logarithm of a value over the median.
fn log_over(value: f64, middle: f64) -> f64 {
    (value.max(middle * LEAST) / middle).ln()
}

fn of_quantity(nodes: usize, cells: &[&Cell], quantity: Metric, chance: f64) -> Vec<Outlier> {
    let Some(middle) = median_where(cells, quantity, |_| true).filter(|middle| *middle > 0.0)
    else {
        return Vec::new();
    };
    let sign = if quantity.higher_is_better() { 1.0 } else { -1.0 };
    let runs: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| {
            let values = cell.runs.iter().filter_map(|run| run.of(quantity));
            values.map(|value| sign * log_over(value, middle)).collect()
        })
        .collect();
    let flows: Vec<Observed<'_>> = cells
        .iter()
        .zip(&runs)
        .filter_map(|(cell, runs)| {
            Some(Observed {
                from: cell.from,
                to: cell.to,
                value: sign * log_over(cell.figures.of(quantity)?, middle),
                runs,
            })
        })
        .collect();
    let floor = if quantity.higher_is_better() {
        -(1.0 - floor(quantity)).ln()
    } else {
        (1.0 + floor(quantity)).ln()
    };
    let most = runs.iter().map(Vec::len).max().unwrap_or(0);
    let rule = Rule {
        floor,
        chance,
        scatter: scatter(cells, quantity),
        // What looked slow once is measured again before it is told, where others were.
        path_runs: path_runs(quantity).max(most.div_ceil(2)),
    };
    let causes = causes(nodes, &flows, rule);
    let Some(usual) = median_where(cells, quantity, |cell| {
        !causes.iter().any(|cause| cause.place.has(cell.from, cell.to))
    }) else {
        return Vec::new();
    };
    causes
        .iter()
        .filter_map(|cause| {
            Some(Outlier {
                quantity,
                place: cause.place,
                value: median_where(cells, quantity, |cell| cause.place.has(cell.from, cell.to))?,
                usual,
                slow: cause.slow,
                flows: cause.flows,
            })
        })
        .collect()
}

/// What the runs of each cell say of how much a cell's median scatters, and of its tail.
fn scatter(cells: &[&Cell], quantity: Metric) -> Scatter {
    let mut away = Vec::new();
    let mut counts = Vec::new();
    for cell in cells {
        let Some(middle) = cell.figures.of(quantity).filter(|middle| *middle > 0.0) else {
            continue;
        };
        let runs: Vec<f64> = cell
            .runs
            .iter()
            .filter_map(|run| run.of(quantity))
            .filter(|value| *value > 0.0)
            .collect();
        counts.push(runs.len() as f64);
        away.extend(runs.iter().flat_map(|value| {
            let log = (value / middle).ln();
            [log, -log]
        }));
    }
    let runs = median(&counts).unwrap_or(1.0);
    let tail = tail(runs);
    let least = if runs >= 2.0 {
        // A median scatters by √(π/2n) of what it is of, and what is around it by √((n-1)/n).
        let of_run = spread(&away).unwrap_or(0.0) * (runs / (runs - 1.0)).sqrt();
        of_run * (std::f64::consts::FRAC_PI_2 / runs).sqrt()
    } else {
        0.0
    };
    Scatter { least, tail }
}

/// Runs that a path must have to be told: a packet is lost now and then on the best of networks.
pub const PATH_RUNS: usize = 3;

/// A node or a path that loses packets in most runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lossy {
    /// What loses them, by indices in [`Matrix::nodes`].
    pub place: Place,
    /// Runs of its flows in which packets were lost.
    pub losing: usize,
    pub runs: usize,
}

impl Cell {
    /// Whether packets were lost in most of its runs.
    pub fn is_lossy(&self) -> bool {
        self.losing > 0 && self.losing * 2 >= self.finished()
    }

    /// Its runs with figures, doubtful or not.
    fn finished(&self) -> usize {
        self.runs.len() + self.doubtful
    }
}

impl Matrix {
    /// The fewest nodes and paths that explain where packets are lost, each once.
    pub fn lossy(&self) -> Vec<Lossy> {
        // Where CPUs were too busy for any figure, the embedded device loses packets everywhere.
        let is_nowhere = self.is_embedded && self.cells.iter().all(|cell| cell.runs.is_empty());
        if is_nowhere || self.cells.iter().all(|cell| cell.losing == 0) {
            return Vec::new();
        }
        let measured: Vec<&Cell> = self.cells.iter().filter(|cell| cell.finished() > 0).collect();
        let runs: Vec<Vec<f64>> = measured
            .iter()
            .map(|cell| (0..cell.finished()).map(|number| loss(number < cell.losing)).collect())
            .collect();
        let flows = measured.iter().zip(&runs).map(|(cell, runs)| Observed {
            from: cell.from,
            to: cell.to,
            value: loss(cell.is_lossy()),
            runs,
        });
        let rule = Rule {
            floor: 0.5,
            chance: CHANCES[0],
            scatter: Scatter { least: 0.0, tail: tail(1.0) },
            path_runs: PATH_RUNS,
        };
        let found = causes(self.nodes.len(), &flows.collect::<Vec<_>>(), rule);
        found
            .into_iter()
            .map(|Cause { place, .. }| {
                let own = measured.iter().filter(|cell| place.has(cell.from, cell.to));
                Lossy {
                    place,
                    losing: own.clone().map(|cell| cell.losing).sum(),
                    runs: own.map(|cell| cell.finished()).sum(),
                }
            })
            .collect()
    }
}

/// A run as a value of which more is better.
fn loss(is_lost: bool) -> f64 {
    if is_lost { -1.0 } else { 0.0 }
}

/// Of so many flows one at most is a slow path, beside a second one.
const MOST_PATHS: usize = 10;

/// How heavy the tail of one run's figures may be: as heavy as that of Student's t with 3 degrees of freedom.
const TAIL: f64 = 1.0 / 3.0;

/// How heavy the tail of a median of so many runs may be: for half of them to lie far off takes as many independent chances.
pub fn tail(runs: f64) -> f64 {
    TAIL / ((runs + 1.0) / 2.0).floor().max(1.0)
}

/// A flow between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed<'a> {
    pub from: usize,
    /// The node at the other end.
    pub to: usize,
    /// Logarithm of its figure; more is better.
    pub value: f64,
    /// The same of each run, of which `value` is the median.
    pub runs: &'a [f64],
}

impl Observed<'_> {
    fn runs_below(&self, limit: f64) -> usize {
        self.runs.iter().filter(|run| **run < limit).count()
    }
}

/// Where the cause of slow flows lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A node, in both directions.
    Node(usize),
    /// A node, in the flows that it posts.
    From(usize),
    /// A node, in the flows that go to it.
    To(usize),
    /// The way from one node to another.
    Path(usize, usize),
}

/// A cause, and what it explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    pub place: Place,
    /// Logarithm of the figure of its flows over that of the others, below 0; of a node in both directions, of the one that
    /// is less slow.
    pub effect: f64,
    /// Its flows that are slow.
    pub slow: usize,
    pub flows: usize,
}

/// Conditions for naming a cause.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Logarithm; smaller differences never matter.
    pub floor: f64,
    /// Chance of naming a cause although all flows are alike.
    pub chance: f64,
    /// What is known of a flow's scatter.
    pub scatter: Scatter,
    /// Runs that a flow needs before it is named as a slow path.
    pub path_runs: usize,
}

/// The causes, that which explains most first.
pub fn causes(nodes: usize, flows: &[Observed<'_>], rule: Rule) -> Vec<Cause> {
    let mut left = flows.to_vec();
    let mut found = Vec::new();
    while let Some(cause) = next_node(nodes, &left, rule) {
        left.retain(|flow| !cause.place.has_flow(flow));
        found.push(cause);
    }
    found.extend(paths(nodes, &left, rule));
    found
}

impl Place {
    /// Whether the flow between these two nodes is part of it.
    pub fn has(self, from: usize, to: usize) -> bool {
        match self {
            Place::Node(node) => from == node || to == node,
            Place::From(node) => from == node,
            Place::To(node) => to == node,
            Place::Path(own_from, own_to) => (from, to) == (own_from, own_to),
        }
    }

    fn has_flow(self, flow: &Observed<'_>) -> bool {
        self.has(flow.from, flow.to)
    }
}

/// The values of each node's flows: those that it posts, and those that go to it.
struct Sides {
    from: Vec<Vec<f64>>,
    to: Vec<Vec<f64>>,
}

impl Sides {
    fn new<'a>(nodes: usize, flows: impl Iterator<Item = &'a Observed<'a>>) -> Sides {
        let mut sides = Sides { from: vec![Vec::new(); nodes], to: vec![Vec::new(); nodes] };
        for flow in flows {
            sides.from[flow.from].push(flow.value);
            sides.to[flow.to].push(flow.value);
        }
        sides
    }

    /// What a healthy flow has: the median over the nodes of each node's better side. With three nodes, one of which is
    /// slow both ways, four of six flows are slow, but not the better side of two nodes.
    fn level(&self) -> Option<f64> {
        let better = self.from.iter().zip(&self.to).filter_map(|(from, to)| {
            match (upper(from), upper(to)) {
                (Some(from), Some(to)) => Some(from.max(to)),
                (from, to) => from.or(to),
            }
        });
        median(&better.collect::<Vec<_>>())
    }
}

/// The median; the better one of two, so that one slow flow of two is no slow node.
fn upper(values: &[f64]) -> Option<f64> {
    match values {
        [one, two] => Some(one.max(*two)),
        _ => median(values),
    }
}

/// The node that explains most of what is slow.
fn next_node(nodes: usize, flows: &[Observed<'_>], rule: Rule) -> Option<Cause> {
    let sides = Sides::new(nodes, flows.iter());
    let level = sides.level()?;
    let mut possible: Vec<(f64, Cause)> = Vec::new();
    for node in 0..nodes {
        let (from, to) = (&sides.from[node], &sides.to[node]);
        let [sends, receives] =
            [from, to].map(|values| effect(values, level).filter(|it| *it < -rule.floor));
        if let (Some(sends), Some(receives)) = (sends, receives)
            && has_peers(flows, node)
        {
            let gain = gain(from, level, sends) + gain(to, level, receives);
            let both = [from.as_slice(), to].concat();
            possible.push((gain, cause(Place::Node(node), sends.max(receives), level, &both)));
        }
        if let Some(effect) = sends.filter(|_| from.len() > 1) {
            let cause = cause(Place::From(node), effect, level, from);
            possible.push((gain(from, level, effect), cause));
        }
        if let Some(effect) = receives.filter(|_| to.len() > 1) {
            let cause = cause(Place::To(node), effect, level, to);
            possible.push((gain(to, level, effect), cause));
        }
    }
    possible.sort_by(|(one, _), (two, _)| two.total_cmp(one));
    let mut causes = possible.into_iter().map(|(_, cause)| cause);
    causes.find(|cause| stands_out(nodes, flows, *cause, rule))
}

/// How far the flows of a node's side are from the level; `None` without flows.
fn effect(values: &[f64], level: f64) -> Option<f64> {
    Some(upper(values).filter(|_| !values.is_empty())? - level)
}

/// How much nearer to the level flows are, once the cause of this effect is known.
fn gain(values: &[f64], level: f64, effect: f64) -> f64 {
    values
        .iter()
        .map(|value| {
            let away = value - level;
            away.abs() - (away - effect).abs()
        })
        .sum()
}

fn cause(place: Place, effect: f64, level: f64, values: &[f64]) -> Cause {
    Cause {
        place,
        effect,
        slow: values.iter().filter(|value| **value - level < effect / 2.0).count(),
        flows: values.len(),
    }
}

/// Whether a node has two peers or more: with one, the two cannot be distinguished.
fn has_peers(flows: &[Observed<'_>], node: usize) -> bool {
    let mut peers = flows
        .iter()
        .filter(|flow| Place::Node(node).has_flow(flow))
        .map(|flow| flow.from + flow.to - node);
    let first = peers.next();
    peers.any(|peer| Some(peer) != first)
}

/// Whether a node's side is further below those of the others than chance puts it.
fn stands_out(nodes: usize, flows: &[Observed<'_>], cause: Cause, rule: Rule) -> bool {
    let others = flows.iter().filter(|flow| !cause.place.has_flow(flow));
    let sides = Sides::new(nodes, others.clone());
    let of_others: Vec<f64> = sides
        .from
        .iter()
        .chain(&sides.to)
        .filter(|it| !it.is_empty())
        .filter_map(|values| median(values))
        .collect();
    let Some(level) = median(&of_others) else {
        return false;
    };
    let own: Vec<Vec<f64>> = match cause.place {
        Place::From(node) => vec![sent(flows, node)],
        Place::To(node) => vec![received(flows, node)],
        Place::Node(node) => vec![sent(flows, node), received(flows, node)],
        Place::Path(..) => return false,
    };
    let values: Vec<f64> = others.map(|flow| flow.value).collect();
    let of_flow = spread(&values).unwrap_or(0.0).max(rule.scatter.least);
    own.iter().all(|own| {
        let count = own.len() as f64;
        let scatter = Scatter {
            // A median scatters by √(π/2n) of what it is of.
            least: of_flow * (std::f64::consts::FRAC_PI_2 / count).sqrt().min(1.0),
            // For half of so many to lie far off takes as many independent chances.
            tail: rule.scatter.tail / ((count + 1.0) / 2.0).floor(),
        };
        let reach = reach(&of_others, scatter, 2 * nodes, rule.chance);
        upper(own).is_some_and(|own| level - own > reach.max(rule.floor))
    })
}

fn sent(flows: &[Observed<'_>], node: usize) -> Vec<f64> {
    flows.iter().filter(|flow| flow.from == node).map(|flow| flow.value).collect()
}

fn received(flows: &[Observed<'_>], node: usize) -> Vec<f64> {
    flows.iter().filter(|flow| flow.to == node).map(|flow| flow.value).collect()
}

/// The single ways that are slow, where it is not their nodes.
pub fn paths(nodes: usize, flows: &[Observed<'_>], rule: Rule) -> Vec<Cause> {
    let Some(level) = Sides::new(nodes, flows.iter()).level() else {
        return Vec::new();
    };
    let mut slowest = flows.to_vec();
    slowest.sort_by(|one, two| one.value.total_cmp(&two.value));
    let values: Vec<f64> = slowest.iter().map(|flow| flow.value).collect();
    let most = (flows.len() / MOST_PATHS).max(2);
    // The last one that stands out from what is faster: several do not hide each other (B. Rosner, "Percentage Points for
    // a Generalized ESD Many-Outlier Procedure", Technometrics 25 (1983)).
    let count = (1..=most)
        .rev()
        .find(|number| {
            let (_, others) = values.split_at((*number).min(values.len()));
            // Before the reach, which sorts all of them.
            let slow = slowest.get(number - 1).filter(|slow| {
                level - slow.value > rule.floor && slow.runs.len() >= rule.path_runs
            });
            slow.is_some_and(|slow| {
                // What was measured more often than the others is known better.
                let tail = rule.scatter.tail.min(tail(slow.runs.len() as f64));
                let scatter = Scatter { tail, ..rule.scatter };
                level - slow.value > reach(others, scatter, flows.len(), rule.chance)
            })
        })
        .unwrap_or(0);
    let (slow, others) = slowest.split_at(count.min(slowest.len()));
    slow.iter()
        .filter(|flow| {
            flow.runs.len() >= rule.path_runs && stays_slow(flow, level, others, rule.chance)
        })
        .map(|flow| Cause {
            place: Place::Path(flow.from, flow.to),
            effect: flow.value - level,
            slow: 1,
            flows: 1,
        })
        .collect()
}

/// Whether a flow is slow in most of its runs, and the others' runs are so slow too seldom for that to be chance: a run that
/// was held up, as one in many may be, makes no slow path.
fn stays_slow(flow: &Observed<'_>, level: f64, others: &[Observed<'_>], chance: f64) -> bool {
    let halfway = f64::midpoint(flow.value, level);
    let (own, runs) = (flow.runs_below(halfway), flow.runs.len());
    if own < runs - runs / 4 {
        return false;
    }
    let of_others: usize = others.iter().map(|other| other.runs_below(halfway)).sum();
    let runs_of_others: usize = others.iter().map(|other| other.runs.len()).sum();
    let share = of_others as f64 / runs_of_others.max(1) as f64;
    // Which of its runs they are: at most so many ways.
    let ways = (runs as f64).powi((runs - own) as i32);
    (others.len() + 1) as f64 * ways * share.powi(own as i32) <= chance
}

#[cfg(test)]
#[path = "outliers_tests.rs"]
mod tests;
