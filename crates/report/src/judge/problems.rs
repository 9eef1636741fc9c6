//! What looks wrong in runs: failures, windows that do not count, losses, throughput that does not settle, QPs that are served
//! unevenly, rails that are slower than others of their node. The gravest comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use settings::listed;

use super::evenness::{OverTime, WRONG_BELOW};
use super::finding::{COUNT, Finding, OF, QpId, Severity, Subject, figure, than};
use super::mesh::{groups, title};
use crate::observe::format::counted;
use crate::observe::standing::{self, LeftOut, Standing};
use crate::observe::{Metric, Observed, Spread};
use results::model::{
    CLIENT, CaseResult, DoubtKind, FlowConfig, FlowResult, LoadVerdict, PathEvent, PathEventKind,
    ResultFile, Run, SERVER, StarvedQp,
};
use statistics::{LEAST_OBSERVATIONS, median};

/// A QP that stands still for so long while others move may wait for a retransmission.
const LONG_STALL_SECONDS: f64 = 0.1;

/// Finds one thing that is wrong in runs.
type Search = fn(&[Ran<'_>]) -> Option<Finding>;

/// What may be wrong in runs, the gravest first, in which order it is shown.
const OF_RUNS: &[Search] = &[
    failed,
    unreliable,
    overload,
    receivers_that_disagree,
    lost_messages,
    lost_packets,
    receivers_not_ready,
    paused_by_network,
    paused_by_host,
    not_settled,
    stalled_qps,
    starved_qps,
    uneven_qps,
    shared_cores,
    drift,
];

/// What looks wrong: first where to look, then the gravest.
pub(super) fn problems(results: &[&ResultFile]) -> Vec<Finding> {
    let runs = runs(results);
    results
        .iter()
        .flat_map(|result| slow_rails(result))
        .chain(OF_RUNS.iter().filter_map(|find| find(&runs)))
        .chain(scatter(results))
        .collect()
}

pub(super) type Ran<'a> = (&'a CaseResult, &'a Run);

pub(super) fn runs<'a>(results: &[&'a ResultFile]) -> Vec<Ran<'a>> {
    let runs = results
        .iter()
        .flat_map(|result| &result.cases)
        .flat_map(|case| case.runs.iter().map(move |run| (case, run)));
    // What a user stopped went as it should until then.
    runs.filter(|(_, run)| !run.interrupted).collect()
}

/// Runs of which something is true; written as `2 of 6 runs`.
pub(super) struct Affected<'a> {
    /// Each with how grave it is there.
    runs: Vec<(&'a CaseResult, &'a Run, f64)>,
    of: usize,
}

impl<'a> Affected<'a> {
    /// Those that have a gravity; `None` where none has.
    pub(super) fn with_gravity(
        runs: &[Ran<'a>],
        gravity: impl Fn(&CaseResult, &Run) -> Option<f64>,
    ) -> Option<Affected<'a>> {
        let affected: Vec<_> = runs
            .iter()
            .filter_map(|(case, run)| Some((*case, *run, gravity(case, run)?)))
            .collect();
        (!affected.is_empty()).then_some(Affected { runs: affected, of: runs.len() })
    }

    pub(super) fn new(runs: &[Ran<'a>], is_wrong: impl Fn(&Run) -> bool) -> Option<Affected<'a>> {
        Affected::with_gravity(runs, |_, run| is_wrong(run).then_some(0.0))
    }

    fn with_flow(runs: &[Ran<'a>], is_wrong: fn(&FlowResult) -> bool) -> Option<Affected<'a>> {
        Affected::new(runs, |run| run.flows.iter().any(is_wrong))
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().map(|(_, run, _)| *run)
    }

    fn gravities(&self) -> impl Iterator<Item = f64> {
        self.runs.iter().map(|(.., gravity)| *gravity)
    }

    pub(super) fn most(&self) -> f64 {
        self.gravities().fold(0.0, f64::max)
    }

    fn least(&self) -> f64 {
        self.gravities().fold(f64::INFINITY, f64::min)
    }

    /// What is wrong, with the first case of it, and what helps, as far as that is known.
    fn problem(&self, id: &'static str, what: String, remedy: &str) -> Finding {
        let case = self.runs.first().map_or("", |(case, ..)| &case.id);
        let count = self.runs.len();
        let first = if count == 1 { "" } else { "first " };
        problem(id, [count, self.of], case, what + &format!(" ({first}{case})"), remedy)
    }

    /// The same of what is nobody's fault, but to be known.
    pub(super) fn caveat(&self, id: &'static str, what: String) -> Finding {
        Finding { severity: Severity::Caveat, ..self.problem(id, what, "") }
    }
}

impl fmt::Display for Affected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.runs.len(), counted(self.of, "run"))
    }
}

fn problem(
    id: &'static str,
    [count, of]: [usize; 2],
    case: &str,
    what: String,
    remedy: &str,
) -> Finding {
    let text = match remedy.trim_end_matches('.') {
        "" => what + ".",
        remedy => format!("{what}. {remedy}."),
    };
    Finding::problem(id, Subject::case(case), text).with(COUNT, count).with(OF, of)
}

/// A name as a key of JSON: `edge_missed`.
fn key(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

fn failed(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::new(runs, |run| matches!(standing::of_run(run), Standing::Bad(_)))?;
    let hint = bad.runs().find_map(|run| run.failure.as_ref()?.hint.as_deref());
    Some(bad.problem("failed_runs", format!("{bad} failed"), hint.unwrap_or_default()))
}

fn is_doubtful(run: &Run) -> bool {
    standing::of_run(run).is_doubtful()
}

/// How many runs of a case were measured again, because others were in doubt.
pub(super) fn measured_again(case: &CaseResult) -> usize {
    match case.config.settings.runs as usize {
        runs @ 2.. if case.comparison.is_none() => case.runs.len().saturating_sub(runs),
        _ => 0,
    }
}

/// Runs whose rates are in doubt count nowhere. It is no problem where each was measured again.
fn unreliable(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_gravity(runs, |case, run| {
        let is_spoilt = is_doubtful(run)
            && case.runs.iter().filter(|other| is_doubtful(other)).count() > measured_again(case);
        is_spoilt.then_some(0.0)
    })?;
    let doubts = LeftOut::new(bad.runs().map(standing::of_run)).doubtful;
    let (worst, _) = doubts.iter().max_by_key(|(doubt, count)| (**count, Reverse(**doubt)))?;
    let reason = standing::reason(*worst);
    let are = if bad.runs.len() == 1 { "is" } else { "are" };
    let what = format!("{bad} {are} unreliable: {}", reason.short);
    let finding = bad.problem("unreliable_runs", what, reason.remedy);
    Some(
        doubts
            .iter()
            .fold(finding, |finding, (doubt, count)| finding.with(key(doubt.name()), *count)),
    )
}

fn overload(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_flow(runs, |flow| flow.verdict() == Some(LoadVerdict::Overloaded))?;
    let what = format!("{bad} served less than was offered");
    Some(bad.problem("overload", what, "Lower --rate, or use more QPs"))
}

fn receivers_that_disagree(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_flow(runs, |flow| flow.received_otherwise().is_some())?;
    let what = format!("Sender and receiver disagree by more than 2 % in {bad}");
    Some(bad.problem("receivers_that_disagree", what, "Measure longer (-D)"))
}

/// Messages of UC or UD that did not come.
fn lost_messages(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_gravity(runs, |_, run| {
        let deliveries = run.flows.iter().filter_map(|flow| flow.delivery.as_ref());
        let share = deliveries.map(|delivery| delivery.lost_share).reduce(f64::max);
        share.filter(|share| *share > 0.0)
    })?;
    let most = match bad.most() * 100.0 {
        ..0.01 => "less than 0.01".to_owned(),
        most => format!("up to {most:.2}"),
    };
    let what = format!("{bad} lost messages, {most} %");
    let remedy = "Post more receives (--rx-depth), or lower --rate";
    Some(bad.problem("lost_messages", what, remedy).with("lost_share", bad.most()))
}

fn lost_packets(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::new(runs, |run| losses(run).next().is_some())?;
    let mut sums: BTreeMap<PathEventKind, u64> = BTreeMap::new();
    for event in bad.runs().flat_map(losses) {
        let sum = sums.entry(event.kind).or_default();
        *sum = sum.saturating_add(event.count);
    }
    let counts: Vec<String> =
        sums.iter().map(|(kind, sum)| format!("{sum} {}", kind.words())).collect();
    let what =
        format!("{bad} lost packets or had late ones: {}{}", counts.join(", "), together(&bad));
    let remedy = if bad.runs().any(Run::is_on_embedded_device) {
        "The embedded device loses packets with --faults and where CPUs are busy: use fewer --workers, or more CPUs"
    } else {
        "Look for a link with errors and for switches without flow control (rocebench doctor)"
    };
    let finding = bad.problem("lost_packets", what, remedy);
    Some(sums.iter().fold(finding, |finding, (kind, sum)| finding.with(key(kind.name()), *sum)))
}

/// Where at least half of the most frequent event's packets were counted at once: when, and at which node.
fn together(bad: &Affected<'_>) -> String {
    let events = bad.runs().flat_map(|run| losses(run).map(move |event| (run, event)));
    events
        .max_by_key(|(_, event)| event.count)
        .and_then(|(run, event)| {
            let (seconds, count) = run.moment(event)?;
            let is_most = count >= event.count.div_ceil(2);
            is_most.then(|| {
                format!("; {count} at once, {seconds:.1} s into run {} at {}", run.run, event.node)
            })
        })
        .unwrap_or_default()
}

/// Packets that were lost or late, without what followed from a receiver that had no receive posted: packets that were behind
/// the refused one come out of order, and are sent again (InfiniBand specification 9.7.5). Among many nodes it is not known
/// what followed from which.
fn losses(run: &Run) -> impl Iterator<Item = &PathEvent> {
    use PathEventKind::{Resent, SequenceGap, SequenceNak};
    let explains = run.nodes.len() <= 2 && run.path_events.iter().any(is_not_ready);
    run.path_events.iter().filter(move |event| {
        let follows = explains && matches!(event.kind, SequenceGap | SequenceNak | Resent);
        event.count > 0 && event.kind.is_loss() && !follows
    })
}

fn paused_by_network(runs: &[Ran<'_>]) -> Option<Finding> {
    paused(
        runs,
        ("paused_by_network", PathEventKind::PausedByNetwork),
        "The network stopped the sender",
        "Look for the slowest receiver and link behind the switch, and measure at a lower --rate",
    )
}

fn paused_by_host(runs: &[Ran<'_>]) -> Option<Finding> {
    paused(
        runs,
        ("paused_by_host", PathEventKind::PausedByHost),
        "A host stopped the network",
        "It takes data too slowly: use memory and --cores of the adapter's NUMA node, and look at its PCIe link (rocebench doctor)",
    )
}

/// Runs in which such pauses were counted. It is no fault where flow control is on, but may be what limits.
fn paused(
    runs: &[Ran<'_>],
    (id, kind): (&'static str, PathEventKind),
    what: &str,
    remedy: &str,
) -> Option<Finding> {
    let bad = Affected::with_gravity(runs, |_, run| {
        let events = run.path_events.iter().filter(|event| event.kind == kind);
        let count: u64 = events.map(|event| event.count).fold(0, u64::saturating_add);
        (count > 0).then_some(count as f64)
    })?;
    let is_embedded = bad.runs().any(Run::is_on_embedded_device);
    let remedy = if is_embedded { "It was asked for (--faults pause)" } else { remedy };
    let text = format!("{what} in {bad}, up to {:.0} times", bad.most());
    let finding = bad.problem(id, text, remedy).with("most_pauses", bad.most());
    Some(Finding { severity: Severity::Note, ..finding })
}

fn is_not_ready(event: &PathEvent) -> bool {
    event.count > 0 && event.kind == PathEventKind::ReceiverNotReady
}

fn receivers_not_ready(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::new(runs, |run| run.path_events.iter().any(is_not_ready))?;
    let what = format!("{bad} found no receive posted at the receiver");
    Some(bad.problem("receivers_not_ready", what, "Post more receives (--rx-depth)"))
}

fn not_settled(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_flow(runs, |flow| flow.window.warmup_steady == Some(false))?;
    let what = format!("Throughput did not settle in the warm-up of {bad}");
    Some(bad.problem("not_settled", what, "Measure longer (-D)"))
}

/// QPs that stood still while others moved.
fn stalled_qps(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_gravity(runs, |case, run| {
        case.flows()
            .filter_map(|flow| OverTime::new(flow.result(run)?, &flow.settings))
            .map(|flow| flow.longest_alone_seconds())
            .reduce(f64::max)
            .filter(|seconds| *seconds >= LONG_STALL_SECONDS)
    })?;
    let milliseconds = bad.most() * 1e3;
    let what = format!(
        "{bad} had a QP that stood still while others moved, for up to {milliseconds:.0} ms"
    );
    Some(bad.problem("stalled_qps", what, "").with("stall_seconds", bad.most()))
}

/// QPs that got less than half of their share, and not by chance.
fn starved_qps(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::new(runs, |run| starved(run).next().is_some())?;
    let least = bad.runs().flat_map(starved).min_by(|one, two| one.share.total_cmp(&two.share))?;
    let StarvedQp { index, qpn, share } = *least;
    let what = format!("{bad} starved a QP: QP {index}, QPN {qpn} got {share:.2} of its share");
    let mut finding = bad.problem("starved_qps", what, "").with("share", share);
    finding.subject.qp = Some(QpId { index, qpn });
    Some(finding)
}

fn starved(run: &Run) -> impl Iterator<Item = &StarvedQp> {
    run.flows.iter().filter_map(|flow| flow.fairness.as_ref()).flat_map(|it| &it.starved)
}

fn uneven_qps(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_gravity(runs, |case, run| {
        // Shares that were asked for are uneven on purpose.
        let are_weighted = case.flows().any(|flow| flow.settings.qp_weights.is_some());
        let fairness = run.flows.iter().filter_map(|flow| flow.fairness.as_ref());
        let least = fairness.map(|fairness| fairness.jain).reduce(f64::min);
        least.filter(|jain| *jain < WRONG_BELOW && !are_weighted)
    })?;
    let what = format!("{bad} served QPs unevenly: Jain's index down to {:.2}", bad.least());
    Some(bad.problem("uneven_qps", what, "").with(Metric::Fairness.name(), bad.least()))
}

fn shared_cores(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::new(runs, |run| {
        let mut workers = run.nodes.iter().flat_map(|node| &node.workers);
        workers.any(|worker| worker.core_shared_with.is_some_and(|others| others > 0))
    })?;
    let remedy = "Use fewer --workers, or name --cores";
    Some(bad.problem("shared_cores", format!("Workers shared cores in {bad}"), remedy))
}

/// Throughput rose or fell through the window.
fn drift(runs: &[Ran<'_>]) -> Option<Finding> {
    let bad = Affected::with_flow(runs, |flow| flow.window.has_doubt(DoubtKind::Drift))?;
    let what = format!("Throughput drifted in {bad}");
    Some(bad.problem("drift", what, standing::reason(DoubtKind::Drift).remedy))
}

/// Cases whose runs differ by more than single runs may.
fn scatter(results: &[&ResultFile]) -> Option<Finding> {
    let cases = results.iter().flat_map(|result| &result.cases);
    let scattering: Vec<(f64, &CaseResult)> = cases
        .clone()
        .filter_map(|case| -> Option<(f64, &CaseResult)> {
            let spread = Observed::of_case(case).next()?.spread(Metric::GbitPerS)?;
            let scatter = (spread.high - spread.low) / spread.median;
            let is_wide = scatter > of_few_runs(Metric::GbitPerS) && scatter.is_finite();
            (is_wide && !are_few(spread.count)).then_some((scatter, case))
        })
        .collect();
    let (most, worst) = scattering.iter().max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let (count, of, case) = (scattering.len(), cases.count(), &worst.id);
    let (of_cases, percent) = (counted(of, "case"), most * 100.0);
    let first = if count == 1 { "" } else { "most " };
    let what = format!(
        "Runs of {count} of {of_cases} scatter in throughput by up to {percent:.0} % ({first}{case})"
    );
    let remedy = "Measure longer (-D) and more often (--runs)";
    Some(problem("scatter_between_runs", [count, of], case, what, remedy).with("scatter", *most))
}

/// A rail that is slower than the others of its node.
struct SlowRail<'a> {
    /// The node and the rail; of flows that all go between the same two rails both ends.
    ends: Vec<(String, String)>,
    /// The median over its flows.
    value: f64,
    /// The median over the flows of the node's other rails.
    usual: f64,
    rails: usize,
    flows: &'a BTreeSet<(usize, usize)>,
    is_embedded: bool,
}

impl SlowRail<'_> {
    fn finding(self, case: &str, metric: Metric) -> Finding {
        let (name, others) = (self.name(), self.rails.saturating_sub(1));
        let [value, usual] = [self.value, self.usual].map(|value| figure(metric, value));
        let than = than(metric, self.value / self.usual);
        let look = if self.is_embedded { "CPUs" } else { "ports, cable and PCIe slots" };
        let (id, text) = if self.rails > 2 {
            (
                "slow_rail",
                format!(
                    "Rail {name} is slow: {value}, {than} the median {usual} of the other {others} ({case}). Look at its \
                     {look}."
                ),
            )
        } else {
            (
                "rails_differ",
                format!(
                    "Rails differ: {name} has {value}, {than} the other, {usual} ({case}). Look at both: two rails do not \
                     show which is normal."
                ),
            )
        };
        let subject = Subject { rails: self.ends, ..Subject::case(case) };
        Finding::problem(id, subject, text)
            .with(metric.name(), self.value)
            .with(format!("usual_{}", metric.name()), self.usual)
            .with("rails", self.rails)
    }

    /// The rail, with its nodes where they are others than client and server, or call it differently.
    fn name(&self) -> String {
        match &self.ends[..] {
            [(node, one), (_, two)] if one == two && [CLIENT, SERVER].contains(&&**node) => {
                one.clone()
            }
            ends => {
                let names = ends.iter().map(|(node, name)| format!("{name} of {node}"));
                listed(&names.collect::<Vec<_>>())
            }
        }
    }
}

/// An end of flows at a rail: the node, whether they go to it, and the rail.
type End = (String, bool, String);

#[derive(Default)]
struct Moved {
    /// Of each run that counts.
    figures: Vec<f64>,
    /// The same over the median of all rails of the same flow in the run.
    ratios: Vec<f64>,
    /// Which flows they are, by case and place.
    flows: BTreeSet<(usize, usize)>,
}

/// The rails of a result that are slower than others of their node.
fn slow_rails(result: &ResultFile) -> Vec<Finding> {
    groups(result).into_iter().flat_map(|cases| of_cases(&cases)).collect()
}

fn of_cases(cases: &[&CaseResult]) -> Vec<Finding> {
    let metric = if cases.first().is_some_and(|case| case.config.is_closed_loop()) {
        Metric::GbitPerS
    } else {
        Metric::P50Ns
    };
    let mut ends: BTreeMap<End, Moved> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        for run in &case.runs {
            add(&mut ends, number, (case, run), metric);
        }
    }
    let sides: BTreeSet<(&String, bool)> = ends.keys().map(|(node, to, _)| (node, *to)).collect();
    let mut found: Vec<SlowRail<'_>> = Vec::new();
    for side in sides {
        let rails: Vec<(&End, &Moved)> =
            ends.iter().filter(|((node, to, _), _)| (node, *to) == side).collect();
        for ((node, _, rail), moved, usual) in slow_ones(&rails, metric) {
            let end = (node.clone(), rail.clone());
            // With no other flows it is not known at which end the cause is.
            if let Some(same) = found.iter_mut().find(|other| *other.flows == moved.flows) {
                same.ends.push(end);
                continue;
            }
            // It is slow in both directions.
            if found.iter().any(|other| other.ends.contains(&end)) {
                continue;
            }
            found.push(SlowRail {
                ends: vec![end],
                value: median(&moved.figures).unwrap_or(usual),
                usual,
                rails: rails.len(),
                flows: &moved.flows,
                is_embedded: cases
                    .iter()
                    .any(|case| case.runs.iter().any(Run::is_on_embedded_device)),
            });
        }
    }
    found.into_iter().map(|slow| slow.finding(&title(cases), metric)).collect()
}

/// Adds what the flows of a run moved to the rails at their ends.
fn add(
    ends: &mut BTreeMap<End, Moved>,
    number: usize,
    (case, run): (&CaseResult, &Run),
    metric: Metric,
) {
    // All that one flow has become, by its name.
    let mut over: BTreeMap<&str, Vec<(usize, &FlowConfig, f64)>> = BTreeMap::new();
    for (place, (config, flow)) in case.config.flows.iter().zip(&run.flows).enumerate() {
        if let Some((name, _)) = config.over_rails()
            && standing::counts(run, flow)
            && let Some(figure) = metric.of(run, Some::<&FlowResult>(flow))
        {
            over.entry(name).or_default().push((place, config, figure));
        }
    }
    for rails in over.values().filter(|it| it.len() > 1) {
        let figures: Vec<f64> = rails.iter().map(|(.., figure)| *figure).collect();
        let Some(middle) = median(&figures).filter(|middle| *middle > 0.0) else {
            continue;
        };
        for (place, config, figure) in rails {
            let Some((_, [from, to])) = config.over_rails() else {
                continue;
            };
            for (node, is_to, rail) in [(&config.from, false, from), (&config.to, true, to)] {
                let end = (node.clone(), is_to, rail.to_owned());
                let moved = ends.entry(end).or_default();
                moved.figures.push(*figure);
                moved.ratios.push(figure / middle);
                moved.flows.insert((number, *place));
            }
        }
    }
}

/// The rails of a node that are slower than its others by more than the runs scatter, each with the median of those.
fn slow_ones<'a>(rails: &[(&'a End, &'a Moved)], metric: Metric) -> Vec<(&'a End, &'a Moved, f64)> {
    let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
    let mut by_worth: Vec<(f64, (&End, &Moved))> = rails
        .iter()
        .map(|rail| (sign * median(&rail.1.ratios).unwrap_or_default(), *rail))
        .collect();
    by_worth.sort_by(|(one, _), (two, _)| one.total_cmp(two));
    let sorted: Vec<(&End, &Moved)> = by_worth.into_iter().map(|(_, rail)| rail).collect();
    // Less than half may be slow; the last one that stands out from what is faster, so that several do not hide each other.
    let most = (rails.len().saturating_sub(1) / 2).max(1);
    let count = (1..=most)
        .rev()
        .find(|number| {
            let (slow, others) = sorted.split_at((*number).min(sorted.len()));
            let last = slow.split_at(number.saturating_sub(1)).1;
            ratios(last, metric)
                .zip(ratios(others, metric))
                .is_some_and(|(own, usual)| !own.may_equal(&usual))
        })
        .unwrap_or(0);
    let (slow, others) = sorted.split_at(count.min(sorted.len()));
    let of_others: Vec<f64> =
        others.iter().flat_map(|(_, moved)| &moved.figures).copied().collect();
    let usual = median(&of_others).unwrap_or_default();
    slow.iter().map(|(end, moved)| (*end, *moved, usual)).collect()
}

fn ratios(rails: &[(&End, &Moved)], metric: Metric) -> Option<Figures> {
    let ratios: Vec<f64> = rails.iter().flat_map(|(_, moved)| &moved.ratios).copied().collect();
    Figures::new(metric, &ratios)
}

/// Of too few runs to know how they scatter, this many times the usual margin of a metric says nothing.
const FEW_RUNS_MARGINS: f64 = 3.0;

/// Figures of one case, of each run that counts, and their median.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) median: f64,
    /// Whether the runs are too few to know how they scatter.
    pub(super) are_of_few_runs: bool,
    /// How far apart two medians like it may be by chance whatever the runs say, as a share of the larger one.
    tolerance: f64,
    /// Where more runs could lie: the range of the figures, made twice as wide on a logarithmic scale. Few runs seldom have
    /// the extremes, and a case that moves between two speeds says nothing about one that is slower than both.
    reach: [f64; 2],
}

impl Figures {
    /// `None` without a run that counts.
    pub(super) fn new(metric: Metric, of_runs: &[f64]) -> Option<Figures> {
        let spread = Spread::new(of_runs.iter().copied()).filter(|it| it.median > 0.0)?;
        let are_of_few_runs = are_few(spread.count);
        let beyond = (spread.high / spread.low).sqrt();
        Some(Figures {
            median: spread.median,
            are_of_few_runs,
            tolerance: if are_of_few_runs { of_few_runs(metric) } else { metric.default_margin() },
            reach: [spread.low / beyond, spread.high * beyond],
        })
    }

    /// Whether chance may be all that is between them.
    pub(super) fn may_equal(&self, other: &Figures) -> bool {
        let (low, high) = (self.median.min(other.median), self.median.max(other.median));
        let is_near = 1.0 - low / high <= self.tolerance.max(other.tolerance);
        is_near || (self.reach[0] <= other.reach[1] && other.reach[0] <= self.reach[1])
    }
}

/// Whether so many runs are too few to know how they scatter.
pub(super) fn are_few(runs: usize) -> bool {
    runs < LEAST_OBSERVATIONS
}

/// How far apart figures of single runs are for sure: 0.09 is 9 %.
pub(super) fn of_few_runs(metric: Metric) -> f64 {
    FEW_RUNS_MARGINS * metric.default_margin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_equal(one: &[f64], other: &[f64]) -> bool {
        let [one, other] = [one, other].map(|it| Figures::new(Metric::GbitPerS, it).unwrap());
        assert_eq!(one.may_equal(&other), other.may_equal(&one));
        one.may_equal(&other)
    }

    #[test]
    fn single_runs_have_to_be_further_apart() {
        assert!(may_equal(&[100.0], &[92.0]));
        assert!(!may_equal(&[100.0], &[90.0]));
        assert!(!may_equal(&[100.0; 3], &[92.0; 3]));
        assert!(may_equal(&[100.0; 3], &[98.0; 3]));
        assert!(may_equal(&[100.0; 3], &[92.0]), "the other is a single run");
    }

    #[test]
    fn what_runs_scatter_is_no_difference() {
        assert!(may_equal(&[90.0, 100.0, 110.0], &[85.0, 85.0, 85.0]));
        assert!(!may_equal(&[90.0, 100.0, 110.0], &[75.0, 75.0, 75.0]));
        assert_eq!(Figures::new(Metric::GbitPerS, &[]), None);
    }

    #[test]
    fn a_case_with_two_speeds_is_not_like_one_that_is_slower_than_both() {
        let two_speeds = [11.0, 12.0, 29.0, 30.0, 30.0];
        assert!(!may_equal(&two_speeds, &[1.2, 1.3, 1.4]));
        assert!(may_equal(&two_speeds, &[9.0, 10.0, 11.0]));
    }
}
