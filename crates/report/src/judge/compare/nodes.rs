//! Nodes over nights: each node of a pattern, its rails and its paths, by all flows that both sides have of them. What a night
//! has in common, and what a node or a pair of nodes has every night, cancel; what is left of a node is judged beside what is
//! left of all others. `docs/dev/statistics.md` has the rule with its proof.

use std::collections::{BTreeMap, BTreeSet};

use results::load::Loaded;
use results::model::{CaseResult, Direction, NodesComparison, PlaceComparison, Run, Verdict};
use settings::{Pattern, Settings};
use statistics::{Scatter, median, spread, t_quantile};

use super::options::Options;
use super::sides::{Difference, SideFiles, differences, without_free};
use super::turns::reason_against;
use crate::judge::finding::{Finding, Subject, number, percent, with_unit};
use crate::judge::mesh::{Observed, PATH_RUNS, Place, Rule, groups, paths, tail, title};
use crate::observe::{Metric, format::some_of, standing};

/// Chance of naming any node of a night slower although none is.
const CHANCE_OF_SLOWER: f64 = 0.005;
/// The same of faster ones.
const CHANCE_OF_FASTER: f64 = 0.002;
/// The same of slower paths.
const CHANCE_OF_PATH: f64 = 0.001;
/// Share of error on either side of an interval.
const TAIL: f64 = 0.025;
/// With fewer nodes it is not known what is common to all.
const LEAST_NODES: usize = 4;
/// Flows without which a side of a node is not judged.
const LEAST_FLOWS: usize = 2;
/// Flows that are so many scatters from the median of their side were held up, or are slow paths: its mean is without them.
const HELD_UP: f64 = 3.5;
/// A flow that moves nothing counts as this, in the metric's unit.
const LEAST: f64 = 1e-9;
/// One side of so many at most is named: more of them are what is usual.
const MOST: usize = 4;
/// Nodes that a sentence names.
const MOST_NAMED: usize = 5;

/// An end of flows: a node, and its rail; an empty one where flows go over none.
pub type End<'a> = (&'a str, &'a str);
/// Logarithms of each run of each flow, by its ends: from, to. More is better.
pub type Night<'a> = BTreeMap<[End<'a>; 2], Vec<f64>>;

/// A flow on both sides, each less the level of its nights.
struct Flow<'a> {
    ends: [End<'a>; 2],
    base: f64,
    new: f64,
    /// Each run of the new side over the base.
    runs: Vec<f64>,
}

/// All flows of an end in one direction; of a path those from a node to another.
struct Side<'a> {
    direction: Direction,
    /// Of a path both nodes.
    end: End<'a>,
    flows: Vec<usize>,
    /// How it changed beside the others, as a logarithm of which more is better.
    effect: f64,
    /// Standard error of that, infinite where it is not known; and its degrees of freedom.
    error: f64,
    degrees: f64,
}

impl Side<'_> {
    /// In standard errors.
    fn distance(&self) -> f64 {
        if self.effect == 0.0 { 0.0 } else { self.effect.abs() / self.error }
    }

    /// Whether one of so many sides is seldom so far off by chance.
    fn is_beyond(&self, sides: usize) -> bool {
        let chance = if self.effect < 0.0 { CHANCE_OF_SLOWER } else { CHANCE_OF_FASTER };
        self.distance() > t_quantile(chance / sides as f64, self.degrees)
    }

    fn is_rail(&self) -> bool {
        !self.end.1.is_empty()
    }
}

/// Of each flow the median over nights and all runs, less the level of their nights; and the level: the median flow.
fn centred<'a>(nights: &[Night<'a>]) -> (BTreeMap<[End<'a>; 2], [Vec<f64>; 2]>, f64) {
    let mut cells: BTreeMap<[End<'a>; 2], [Vec<f64>; 2]> = BTreeMap::new();
    let mut levels = Vec::new();
    for night in nights {
        let medians: Vec<f64> = night.values().filter_map(|runs| median(runs)).collect();
        let level = median(&medians).unwrap_or(0.0);
        levels.push(level);
        for (ends, runs) in night {
            let [of_nights, of_runs] = cells.entry(*ends).or_default();
            of_nights.extend(median(runs).map(|value| value - level));
            of_runs.extend(runs.iter().map(|value| value - level));
        }
    }
    (cells, median(&levels).unwrap_or(0.0))
}

/// The median flow, new over base, and what became of each place beside it; of paths, those that are slower.
///
/// Several changes do not hide each other: sides are taken out, the furthest first, until one stands out from what is left, and
/// then so did the first (B. Rosner, "Percentage Points for a Generalized ESD Many-Outlier Procedure", Technometrics 25 (1983)).
/// It is named, and asked again without its flows.
pub fn places(
    base: &[Night<'_>],
    new: &[Night<'_>],
    metric: Metric,
    margin: f64,
) -> (f64, Vec<PlaceComparison>) {
    let (flows, old_level, level) = flows_of_both(base, new);
    let floor = margin.ln_1p();
    let mut left = sides(&flows);
    let most = left.len() / MOST;
    let mut free = vec![true; flows.len()];
    let mut taken: Vec<Side<'_>> = Vec::new();
    let mut means = left_means(&mut left, &flows, &free);
    while let Some(at) = furthest(&mut left, &means, floor).filter(|_| taken.len() < most) {
        let side = left.swap_remove(at);
        side.flows.iter().for_each(|flow| free[*flow] = false);
        taken.push(side);
        means = left_means(&mut left, &flows, &free);
    }
    place_among(&mut left, &means, &BTreeSet::new());
    taken.extend(slower_paths(&flows, &free, floor));
    let value = |log: f64| if metric.higher_is_better() { log.exp() } else { (-log).exp() };
    let compared = taken.iter().chain(&left).enumerate().map(|(index, side)| {
        let width = side.error * t_quantile(TAIL, side.degrees);
        let ends = [side.effect - width, side.effect + width];
        let mut interval = ends.map(value);
        interval.sort_by(f64::total_cmp);
        let [old, now]: [Vec<f64>; 2] = [
            side.flows.iter().map(|flow| flows[*flow].base).collect(),
            side.flows.iter().map(|flow| flows[*flow].new).collect(),
        ];
        let is_path = side.direction == Direction::Path;
        PlaceComparison {
            nodes: std::iter::once(side.end.0)
                .chain(is_path.then_some(side.end.1))
                .map(str::to_owned)
                .collect(),
            rail: (!is_path && side.is_rail()).then(|| side.end.1.to_owned()),
            direction: side.direction,
            flows: side.flows.len(),
            base_median: value(median(&old).unwrap_or(0.0) + old_level),
            new_median: value(median(&now).unwrap_or(0.0) + level),
            ratio: value(side.effect),
            low: Some(interval[0]).filter(|_| width.is_finite()),
            high: Some(interval[1]).filter(|_| width.is_finite()),
            verdict: if index < taken.len() && side.effect < -floor {
                Verdict::Slower
            } else if index < taken.len() && side.effect > floor {
                Verdict::Faster
            } else if ends.iter().all(|end| end.abs() < floor) {
                Verdict::Equal
            } else {
                Verdict::Unclear
            },
        }
    });
    (value(level - old_level), compared.collect())
}

/// The flows of both sides, and the levels of base and new.
fn flows_of_both<'a>(base: &[Night<'a>], new: &[Night<'a>]) -> (Vec<Flow<'a>>, f64, f64) {
    let [(known, old_level), (cells, level)] = [centred(base), centred(new)];
    let both = cells.into_iter().filter_map(|(ends, [of_nights, runs])| {
        let of_base = median(&known.get(&ends)?[0])?;
        Some(Flow {
            ends,
            base: of_base,
            new: median(&of_nights)?,
            runs: runs.iter().map(|run| run - of_base).collect(),
        })
    });
    (both.collect(), old_level, level)
}

/// Each node and each of several rails in both directions, with its flows.
fn sides<'a>(flows: &[Flow<'a>]) -> Vec<Side<'a>> {
    let ends: BTreeSet<End<'a>> = flows.iter().flat_map(|flow| flow.ends).collect();
    let mut sides: BTreeMap<(Direction, End<'a>), Vec<usize>> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        for (direction, end) in [Direction::Sends, Direction::Receives].into_iter().zip(flow.ends) {
            let node = (end.0, "");
            sides.entry((direction, node)).or_default().push(index);
            // The only rail of a node is the node.
            if ends.range((end.0, "")..).take_while(|(name, _)| *name == end.0).count() > 1 {
                sides.entry((direction, end)).or_default().push(index);
            }
        }
    }
    sides
        .into_iter()
        .map(|((direction, end), own)| Side {
            direction,
            end,
            flows: own,
            effect: 0.0,
            error: f64::INFINITY,
            degrees: 1.0,
        })
        .collect()
}

/// The mean change of each side by its flows that are free; sides that have too few of them go.
fn left_means(sides: &mut Vec<Side<'_>>, flows: &[Flow<'_>], free: &[bool]) -> Vec<f64> {
    let changes: Vec<f64> = flows.iter().map(|flow| flow.new - flow.base).collect();
    let held_up = HELD_UP * spread(&changes).unwrap_or(0.0);
    sides.retain_mut(|side| {
        side.flows.retain(|flow| free[*flow]);
        side.flows.len() >= LEAST_FLOWS
    });
    sides
        .iter()
        .map(|side| {
            let own: Vec<f64> = side.flows.iter().map(|flow| changes[*flow]).collect();
            let middle = median(&own).unwrap_or(0.0);
            let near: Vec<f64> =
                own.into_iter().filter(|change| (change - middle).abs() <= held_up).collect();
            if near.is_empty() { middle } else { near.iter().sum::<f64>() / near.len() as f64 }
        })
        .collect()
}

/// The side that is furthest off, if it stands out from what is left without it and without others that are further off than
/// what stands out.
fn furthest(sides: &mut [Side<'_>], means: &[f64], floor: f64) -> Option<usize> {
    let (mut out, mut first) = (BTreeSet::new(), None);
    for _ in 0..sides.len() / MOST {
        place_among(sides, means, &out);
        let (at, side) = (0..)
            .zip(&*sides)
            .filter(|(at, _)| !out.contains(at))
            .max_by(|(_, one), (_, two)| one.distance().total_cmp(&two.distance()))?;
        first = first.or(Some(at));
        if side.is_beyond(sides.len() - out.len()) && side.effect.abs() > floor {
            return first;
        }
        out.insert(at);
    }
    None
}

/// Where each side lies among the others of its kind that are not out.
fn place_among(sides: &mut [Side<'_>], means: &[f64], out: &BTreeSet<usize>) {
    let counts: Vec<f64> = sides.iter().map(|side| side.flows.len() as f64).collect();
    let usual = median(&counts).unwrap_or(1.0);
    let are_rails: Vec<bool> = sides.iter().map(Side::is_rail).collect();
    for (index, side) in sides.iter_mut().enumerate() {
        let of_others: Vec<f64> = (0..means.len())
            .filter(|it| *it != index && are_rails[*it] == are_rails[index] && !out.contains(it))
            .map(|other| means[other])
            .collect();
        if of_others.len() <= LEAST_FLOWS {
            (side.effect, side.error) = (0.0, f64::INFINITY);
            continue;
        }
        let count = of_others.len() as f64;
        let middle = of_others.iter().sum::<f64>() / count;
        let squares: f64 = of_others.iter().map(|other| (other - middle).powi(2)).sum();
        // A mean of fewer flows scatters more.
        let fewer = (usual / side.flows.len() as f64).max(1.0);
        (side.effect, side.degrees) = (means[index] - middle, count - 1.0);
        side.error = (squares / side.degrees * (fewer + 1.0 / count)).sqrt();
    }
}

/// Slower ways between nodes that are as they were.
fn slower_paths<'a>(flows: &[Flow<'a>], free: &[bool], floor: f64) -> Vec<Side<'a>> {
    let nodes: BTreeSet<&str> = flows.iter().flat_map(|flow| flow.ends).map(|end| end.0).collect();
    let names: Vec<&str> = nodes.into_iter().collect();
    let observed: Vec<Observed<'_>> = flows
        .iter()
        .zip(free)
        .filter(|(_, is_free)| **is_free)
        .map(|(flow, _)| {
            let [from, to] = flow.ends.map(|end| names.binary_search(&end.0).unwrap_or_default());
            Observed { from, to, value: flow.new - flow.base, runs: &flow.runs }
        })
        .collect();
    let changes: Vec<f64> = observed.iter().map(|flow| flow.value).collect();
    let scatter = Scatter { least: spread(&changes).unwrap_or(0.0), tail: tail(1.0) };
    let rule = Rule { floor, chance: CHANCE_OF_PATH, scatter, path_runs: PATH_RUNS };
    let mut causes = paths(names.len(), &observed, rule);
    // Of flows over several rails once.
    causes.sort_by_key(|cause| cause.place);
    causes.dedup_by_key(|cause| cause.place);
    let slow = causes.iter().filter_map(|cause| match cause.place {
        Place::Path(from, to) => Some(([names[from], names[to]], cause.effect)),
        _ => None,
    });
    slow.map(|([from, to], effect)| {
        let own = (0..).zip(flows).filter(|(_, flow)| flow.ends.map(|end| end.0) == [from, to]);
        Side {
            direction: Direction::Path,
            end: (from, to),
            flows: own.map(|(index, _)| index).collect(),
            effect,
            error: f64::INFINITY,
            degrees: 1.0,
        }
    })
    .collect()
}

/// The runs of a pattern in a file in which each node has a flow to each other one.
struct Measured<'a> {
    cases: Vec<&'a CaseResult>,
    /// Without those in which results may differ.
    settings: Settings,
    metric: Metric,
    night: Night<'a>,
}

impl<'a> Measured<'a> {
    fn new(cases: Vec<&'a CaseResult>, metrics: &[Metric]) -> Option<Measured<'a>> {
        let settings = &cases.first()?.config.settings;
        let is_full = matches!(settings.pattern, Some(Pattern::Pairs | Pattern::AllToAll));
        let of_loop = if settings.is_closed_loop() { Metric::GbitPerS } else { Metric::P50Ns };
        let choice = [of_loop, Metric::P50Ns, Metric::P99Ns];
        let metric = choice.into_iter().find(|metric| is_full && metrics.contains(metric))?;
        let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
        let mut night = Night::new();
        for (case, run) in
            cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run)))
        {
            for (config, flow) in case.config.flows.iter().zip(&run.flows) {
                let rails = config.over_rails().map_or([""; 2], |(_, rails)| rails);
                let figure = metric.of(run, Some(flow)).filter(|_| standing::counts(run, flow));
                if let Some(figure) = figure {
                    let ends = [(&*flow.from, rails[0]), (&*flow.to, rails[1])];
                    night.entry(ends).or_default().push(sign * figure.max(LEAST).ln());
                }
            }
        }
        Some(Measured { settings: without_free(settings.clone()), cases, metric, night })
    }

    fn nodes(&self) -> BTreeSet<&'a str> {
        self.night.keys().flatten().map(|(node, _)| *node).collect()
    }
}

/// The patterns of both sides that were not launched in turns, and their settings: their cases have no verdicts of their own.
pub(super) fn compare(
    sides: &[SideFiles<'_>; 2],
    options: &Options,
) -> (Vec<NodesComparison>, Vec<Settings>) {
    let [old_times, new_times] = sides.each_ref().map(|side| -> Vec<&str> {
        side.files.iter().map(|file| file.result.started_at.as_str()).collect()
    });
    if reason_against(&old_times, &new_times).is_none() {
        return Default::default();
    }
    let [mut base, mut new] = sides.each_ref().map(|side| -> Vec<Measured<'_>> {
        let of_files = side.files.iter().flat_map(|file| groups(&file.result));
        of_files.filter_map(|cases| Measured::new(cases, &options.metrics)).collect()
    });
    let (mut found, mut judged) = (Vec::new(), Vec::new());
    if base.is_empty() || new.is_empty() {
        return (found, judged);
    }
    let facts = differences(&sides[0].facts, &sides[1].facts);
    while let Some(first) = base.first() {
        let settings = first.settings.clone();
        let [old, now] = [&mut base, &mut new]
            .map(|side| side.extract_if(.., |it| it.settings == settings).collect::<Vec<_>>());
        if let Some(compared) = one(&old, &now, &facts, options) {
            found.push(compared);
            judged.push(settings);
        }
    }
    (found, judged)
}

/// A pattern; `None` with so few nodes that it is not known what they have in common.
fn one(
    base: &[Measured<'_>],
    new: &[Measured<'_>],
    facts: &[Difference],
    options: &Options,
) -> Option<NodesComparison> {
    let (last, metric) = (base.last()?, base.last()?.metric);
    let of_base: Vec<BTreeSet<&str>> = base.iter().map(Measured::nodes).collect();
    let known: BTreeSet<&str> = of_base.iter().flatten().copied().collect();
    let measured: BTreeSet<&str> = new.iter().flat_map(Measured::nodes).collect();
    if known.intersection(&measured).count() < LEAST_NODES {
        return None;
    }
    let [old, now]: [Vec<Night<'_>>; 2] =
        [base, new].map(|side| side.iter().map(|it| it.night.clone()).collect());
    let margin = options.margins.of(metric);
    let (common_ratio, places) = places(&old, &now, metric, margin);
    let mut changed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for difference in facts.iter().filter(|difference| difference.is_new) {
        for node in difference.nodes.iter().filter(|node| measured.contains(&***node)) {
            changed.entry(node.clone()).or_default().push(difference.text());
        }
    }
    Some(NodesComparison {
        title: title(&last.cases),
        cases: new.iter().flat_map(|it| &it.cases).map(|case| case.id.clone()).collect(),
        metric,
        margin,
        base_count: base.len(),
        new_count: new.len(),
        common_ratio,
        places,
        missing: known
            .difference(&measured)
            .filter(|node| of_base.iter().filter(|it| it.contains(**node)).count() * 2 > base.len())
            .map(|node| (*node).to_owned())
            .collect(),
        added: measured.difference(&known).map(|node| (*node).to_owned()).collect(),
        changed,
        is_embedded: new
            .iter()
            .flat_map(|it| &it.cases)
            .any(|case| case.runs.iter().any(Run::is_on_embedded_device)),
    })
}

/// Which nodes and rails changed for good beside the others in few files, too few for a step of the series: each with the index of
/// the first file that shows it, the largest change first. The files, in the order of time, are parted where the place changed most;
/// what is behind and the last file alone must both be slower, or faster, than what is before. `None` where the last file
/// has no pattern of enough nodes.
pub fn since(files: &[&Loaded]) -> Option<Vec<(usize, String)>> {
    let options = Options::default();
    let mut of_files: Vec<(usize, Measured<'_>)> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let measured = groups(&file.result).into_iter();
        let patterns = measured.filter_map(|cases| Measured::new(cases, &options.metrics));
        of_files.extend(patterns.map(|pattern| (index, pattern)));
    }
    let (_, newest) = of_files.iter().rev().find(|(index, _)| index + 1 == files.len())?;
    if newest.nodes().len() < LEAST_NODES {
        return None;
    }
    let (metric, margin) = (newest.metric, options.margins.of(newest.metric));
    let alike = of_files.iter().filter(|(_, measured)| measured.settings == newest.settings);
    let (indices, nights): (Vec<usize>, Vec<Night<'_>>) =
        alike.map(|(index, measured)| (*index, measured.night.clone())).unzip();
    let parts = parted(&nights, margin.ln_1p());
    let mut found: Vec<(f64, usize, String)> = Vec::new();
    for at in parts.values().copied().collect::<BTreeSet<usize>>() {
        let (before, behind) = nights.split_at(at);
        let last = &nights[nights.len() - 1..];
        let [of_tail, of_last] = [behind, last].map(|new| places(before, new, metric, margin).1);
        let changed = of_tail.iter().filter(|place| {
            let own = key(place);
            let is_sure = matches!(place.verdict, Verdict::Slower | Verdict::Faster);
            let same = of_last.iter().find(|other| key(other) == own);
            let lasts = same.is_some_and(|other| other.verdict == place.verdict);
            is_sure && lasts && parts.get(&own) == Some(&at)
        });
        found.extend(changed.map(|place| {
            let change = change_text(metric, place.ratio);
            let text = format!("{} {} {change} than before", place.name(), place.direction);
            (place.ratio.ln().abs(), indices[at], text)
        }));
    }
    found.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    Some(found.into_iter().map(|(_, index, text)| (index, text)).collect())
}

/// What a place is: of a path its first node, which no series has.
fn key(place: &PlaceComparison) -> (Direction, End<'_>) {
    let node = place.nodes.first().map_or("", String::as_str);
    (place.direction, (node, place.rail.as_deref().unwrap_or_default()))
}

/// Of each node and rail that all nights have, by direction, the index of the night from which on it differs most from
/// before, beside the others; of those that differ by more than the floor.
fn parted<'a>(nights: &[Night<'a>], floor: f64) -> BTreeMap<(Direction, End<'a>), usize> {
    let mut series: BTreeMap<(Direction, End<'a>), Vec<f64>> = BTreeMap::new();
    for night in nights {
        let (flows, ..) = flows_of_both(nights, std::slice::from_ref(night));
        let mut sides = sides(&flows);
        let means = left_means(&mut sides, &flows, &vec![true; flows.len()]);
        let middle = median(&means).unwrap_or(0.0);
        for (side, mean) in sides.iter().zip(&means) {
            series.entry((side.direction, side.end)).or_default().push(mean - middle);
        }
    }
    series.retain(|_, values| values.len() == nights.len());
    let found = series.into_iter().filter_map(|(key, values)| {
        let apart = (1..values.len()).map(|at| {
            let (before, behind) = values.split_at(at);
            let [one, other] =
                [before, behind].map(|part| part.iter().sum::<f64>() / part.len() as f64);
            let weight = (before.len() * behind.len()) as f64;
            (at, (one - other).abs(), (one - other).powi(2) * weight)
        });
        let (at, size, _) = apart.max_by(|one, other| one.2.total_cmp(&other.2))?;
        (size > floor).then_some((key, at))
    });
    found.collect()
}

/// Ids of what became of a node, a rail or a path.
pub const CHANGES: [&str; 2] = ["slower_than_base", "faster_than_base"];

/// What nodes over nights say, in sentences: who is slower with what else changed there, who is faster, missing and new, and
/// what all have in common.
pub fn findings(nodes: &NodesComparison) -> Vec<Finding> {
    let mut found: Vec<Finding> = [Verdict::Slower, Verdict::Faster]
        .into_iter()
        .flat_map(|verdict| nodes.places.iter().filter(move |place| place.verdict == verdict))
        .map(|place| changed(nodes, place))
        .collect();
    for (id, what, names) in
        [("missing_nodes", "Missing", &nodes.missing), ("new_nodes", "New", &nodes.added)]
    {
        if !names.is_empty() {
            let subject = Subject { nodes: names.clone(), ..Subject::case(&nodes.title) };
            let text = format!("{what}: {}.", some_of(names, MOST_NAMED));
            let is_missing = id == "missing_nodes";
            let finding = if is_missing { Finding::problem } else { Finding::note };
            found.push(finding(id, subject, text));
        }
    }
    let common = change_text(nodes.metric, nodes.common_ratio);
    let text =
        format!("The median flow: {common} than in the base, which is no node's own change.");
    let note = Finding::note("median_flow", Subject::case(&nodes.title), text);
    found.push(note.with("ratio", nodes.common_ratio).with("base_files", nodes.base_count));
    found
}

/// `12 % less`, `p50 12 % longer`.
fn change_text(metric: Metric, ratio: f64) -> String {
    let amount = percent(ratio - 1.0);
    match (metric.higher_is_better(), ratio < 1.0) {
        (true, true) => format!("{amount} less"),
        (true, false) => format!("{amount} more"),
        (false, true) => format!("{} {amount} shorter", metric.short_name()),
        (false, false) => format!("{} {amount} longer", metric.short_name()),
    }
}

/// A node, a rail or a path that is slower, or faster.
fn changed(nodes: &NodesComparison, place: &PlaceComparison) -> Finding {
    let (metric, direction) = (nodes.metric, place.direction);
    let facts: Vec<&str> = (place.nodes.iter())
        .filter_map(|node| nodes.changed.get(node))
        .flatten()
        .map(String::as_str)
        .collect();
    let is_slower = place.verdict == Verdict::Slower;
    let look = match &facts[..] {
        [] if !is_slower => String::new(),
        [] if direction == Direction::Path => " Look at the path.".to_owned(),
        [] => {
            let look = if nodes.is_embedded { "CPUs" } else { "port, cable and CPU" };
            format!(" Nothing else that is known of it changed. Look at its {look}.")
        }
        facts => format!(" Look first at what else changed there: {}.", facts.join("; ")),
    };
    let verb = if direction == Direction::Path { "carries" } else { direction.name() };
    let [base, new] = [place.base_median, place.new_median].map(|value| number(metric, value));
    let text = format!(
        "{} {verb} {} than in the base ({}).{look}",
        place.name(),
        change_text(metric, place.ratio),
        with_unit(metric, &format!("{new} after {base}"))
    );
    let rails =
        place.rail.iter().flat_map(|rail| place.nodes.iter().map(|it| (it.clone(), rail.clone())));
    let subject = Subject {
        nodes: place.nodes.clone(),
        rails: rails.collect(),
        ..Subject::case(&nodes.title)
    };
    let finding = if is_slower {
        Finding::problem(CHANGES[0], subject, text)
    } else {
        Finding::note(CHANGES[1], subject, text)
    };
    finding
        .with("direction", direction.name())
        .with("ratio", place.ratio)
        .with(metric.name(), place.new_median)
        .with(format!("base_{}", metric.name()), place.base_median)
        .with("changed", facts)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use results::load::Found;
    use results::model::{Comparison, ResultFile};
    use results::sample::{
        self, has,
        mesh::{Mesh, Slow},
    };

    use super::*;

    const NODES: usize = 16;

    /// One run of each pair of nodes, which scatters by 5 %; each pair has a figure of its own, the same every night.
    fn night(number: u64, slow: &[Slow]) -> Loaded {
        let pairs = (0..NODES * NODES).map(|pair| {
            Slow::Pair(pair / NODES, pair % NODES, 0.95 + 0.01 * (pair * 7 % 11) as f64)
        });
        let slow = slow.iter().copied().chain(pairs).collect();
        let mesh = Mesh { runs: 1, noise: 0.05, seed: number, slow, ..Mesh::new(NODES) };
        let mut loaded = sample::loaded(mesh.pairs());
        loaded.result.started_at = format!("2026-11-20T12:{number:02}:00Z");
        loaded
    }

    fn compared(new: Loaded) -> Comparison {
        let [base, new] = [(0..5).map(|number| night(number, &[])).collect(), vec![new]]
            .map(|results| Found { results, refused: Vec::new() });
        let (old, other) = (Path::new("good"), Path::new("night"));
        super::super::compare((old, &base), (other, &new), &Options::default())
    }

    /// The example `outliers` has many more nights.
    #[test]
    fn a_node_that_is_ten_percent_slower_is_named_and_nobody_else() {
        for seed in 10..13 {
            for (slow, names) in [
                (vec![], vec![]),
                (vec![Slow::Sends(6, 0.9)], vec!["node7 sends slower"]),
                (vec![Slow::Receives(6, 1.12)], vec!["node7 receives faster"]),
            ] {
                let comparison = compared(night(seed, &slow));
                let places = comparison.nodes[0].places.iter();
                let named =
                    places.filter(|it| [Verdict::Slower, Verdict::Faster].contains(&it.verdict));
                let texts =
                    named.map(|it| format!("{} {} {}", it.name(), it.direction, it.verdict));
                assert_eq!(texts.collect::<Vec<_>>(), names, "{seed}");
            }
        }
    }

    #[test]
    fn what_else_changed_at_a_slower_node_stands_beside_it_and_who_came_and_went() {
        let mut new = night(21, &[Slow::Sends(6, 0.8)]);
        for (index, node) in new.result.nodes.iter_mut().enumerate() {
            node.host.kernel = "6.2.0".to_owned();
            node.devices[0].width_lanes = (index == 6).then_some(2);
        }
        // Another pair every night.
        let mut again = new.result.cases[4].clone();
        again.id = "write-pairs-round31".to_owned();
        new.result.cases.push(again);
        let renamed = serde_json::to_string(&new.result).unwrap().replace("node16", "node17");
        new.result = serde_json::from_str::<ResultFile>(&renamed).unwrap();
        let comparison = compared(new);
        let left = [&comparison.only_in_base, &comparison.only_in_new];
        assert!(comparison.cases.is_empty() && left.iter().all(|ids| ids.is_empty()));
        let findings = findings(&comparison.nodes[0]);
        let ids = ["slower_than_base", "missing_nodes", "new_nodes", "median_flow"];
        assert!(findings.iter().map(|finding| finding.id).eq(ids), "{findings:?}");
        let texts: Vec<&str> = findings.iter().map(|finding| &*finding.text).collect();
        let lanes = "Look first at what else changed there: link lanes: not known in the base, 2 in the new results.";
        has(texts[0], ["node7 sends ", " less than in the base (", lanes]);
        assert_eq!(&texts[1..3], ["Missing: node16.", "New: node17."]);
    }

    #[test]
    fn a_slower_rail_is_not_its_node_and_a_slower_path_is_neither() {
        let names: Vec<String> = (0..8).map(|node| format!("node{node}")).collect();
        let [base, new] = [0.0, 0.25].map(|less| {
            let pairs = (0..64).map(|pair| (pair / 8, pair % 8)).filter(|(from, to)| from != to);
            let mut rng = fastrand::Rng::with_seed(if less > 0.0 { 1 } else { 2 });
            let flows = pairs.flat_map(|pair| [(pair, 0), (pair, 1)]);
            let night = flows.map(|((from, to), rail)| {
                let is_slow = (from, rail) == (2, 1) || (from, to) == (5, 6);
                let ends =
                    [from, to].map(|node: usize| (&*names[node], ["mlx5_0", "mlx5_1"][rail]));
                (ends, vec![0.01 * rng.f64() - if is_slow { less } else { 0.0 }; 3])
            });
            night.collect::<Night<'_>>()
        });
        let (_, places) = places(&[base], &[new], Metric::GbitPerS, 0.03);
        let slower = places.iter().filter(|place| place.verdict == Verdict::Slower);
        let named: Vec<String> = slower.map(PlaceComparison::name).collect();
        assert_eq!(named, ["mlx5_1 of node2", "node5>node6"]);
    }
}
