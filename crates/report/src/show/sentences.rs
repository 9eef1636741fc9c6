//! The sentences of findings, for terminal, page, JSON and JUnit; then why flows failed a condition, and what is
//! said of rails, nodes and the paths between nodes.

use results::model::{CLIENT, SERVER};
use settings::listed;

use crate::judge::{
    findings::{Finding, Problem, ProblemKind, Shape, SlowRail},
    mesh::{Fan, NodesFinding, Part, Rest, Slow, Suspect, Why},
    threshold::{Failure, Relation, Suite},
};
use crate::observe::{
    Metric,
    format::{NOT_MEASURED, exact, plural, some_of},
};

/// What a finding says, as one sentence or two.
pub fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Best { metric, low, high, cases, of_cases, names } => {
            best(*metric, [*low, *high], [*cases, *of_cases], names)
        }
        Finding::NoClearWinner { metric, low, high, cases } => format!(
            "No clear winner in {}: {cases} cases from {}. The runs scatter too much.",
            metric.noun(),
            metric.range(*low, *high)
        ),
        Finding::FewRuns { chance } => {
            let shares: Vec<String> = chance
                .iter()
                .map(|(metric, share)| format!("{:.0} % in {}", share * 100.0, metric.noun()))
                .collect();
            format!(
                "Use --runs 5: with so few runs, differences up to {} may be chance.",
                listed(&shares)
            )
        }
        Finding::Scaling { metric, shape, from, to, of } => {
            scaling(*metric, *shape, [from, to], of)
        }
        Finding::SlowRail(rail) => slow_rail(rail),
        Finding::RailsDiffer(rail) => rails_differ(rail),
        Finding::Wrong(problem) => wrong(problem),
        Finding::NothingWrong { runs: 1 } => "Nothing looks wrong in the run.".to_owned(),
        Finding::NothingWrong { runs } => format!("Nothing looks wrong in {runs} runs."),
        Finding::Nodes { finding, .. } => of_nodes(finding),
    }
}

fn best(
    metric: Metric,
    [low, high]: [f64; 2],
    [cases, of]: [usize; 2],
    names: &[String],
) -> String {
    let range = metric.range(low, high);
    let noun = metric.noun();
    if cases == of {
        let subject = match of {
            2 => "Both cases".to_owned(),
            of => format!("All {of} cases"),
        };
        return format!("{subject} have about the same {noun}: {range}.");
    }
    let most = if metric.higher_is_better() { "Most" } else { "Lowest" };
    match names {
        [name] if cases == 1 => format!("{most} {noun}: {range} with {name}."),
        [] => format!("{most} {noun}: {range} in {cases} of {of} cases."),
        [one, two] if cases == 2 => format!("{most} {noun}: {range} with {one}, and with {two}."),
        names => format!("{most} {noun}: {range} in {cases} of {of} cases ({}).", names.join(", ")),
    }
}

fn scaling(metric: Metric, shape: Shape, [from, to]: [&(String, f64); 2], of: &str) -> String {
    let noun = match metric {
        Metric::GbitPerS => "Throughput".to_owned(),
        other => format!("The number of {}", other.noun()),
    };
    let [from, to] = [from, to].map(|(words, value)| format!("{words} ({})", metric.text(*value)));
    let change = match shape {
        Shape::Level => format!("is about the same from {from} to {to}"),
        Shape::Falls => format!("falls from {from} to {to}"),
        Shape::Grows => format!("grows from {from} to {to}"),
        Shape::StillGrows => format!("still grows at the end, from {from} to {to}"),
        Shape::GrowsUntil => format!("grows until {from}, and no further until {to}"),
        Shape::HighestThenFalls => format!("is highest with {from}, and falls until {to}"),
        Shape::Highest => format!("is highest with {from}"),
    };
    let of = match of {
        "" => String::new(),
        of => format!(" ({of})"),
    };
    format!("{noun} {change}{of}.")
}

/// What is wrong, and what helps.
fn wrong(problem: &Problem) -> String {
    let Problem { kind, count, of, case, most, .. } = problem;
    let runs = format!("{count} of {of} {}", plural(*of, "run"));
    let counts = problem
        .counts
        .iter()
        .map(|(name, number)| match kind {
            ProblemKind::Unreliable => name.clone(),
            ProblemKind::Starved => format!("{name} {number}"),
            _ => format!("{number} {name}"),
        })
        .collect::<Vec<_>>()
        .join(", ");
    let text = match kind {
        ProblemKind::Failed => format!("{runs} failed"),
        ProblemKind::Unreliable => {
            let are = if *count == 1 { "is" } else { "are" };
            format!("{runs} {are} unreliable: {counts}")
        }
        ProblemKind::Overloaded => format!("{runs} served less than was offered"),
        ProblemKind::ReceiverDisagrees => {
            format!("Sender and receiver disagree by more than 2 % in {runs}")
        }
        ProblemKind::MessagesLost => {
            let most = match most * 100.0 {
                ..0.01 => "less than 0.01".to_owned(),
                most => format!("up to {most:.2}"),
            };
            format!("{runs} lost messages, {most} %")
        }
        ProblemKind::PacketsLost => format!("{runs} lost packets or had late ones: {counts}"),
        ProblemKind::ReceiverNotReady => {
            format!("{runs} found no receive posted at the receiver")
        }
        ProblemKind::NotSettled => format!("Throughput did not settle in the warm-up of {runs}"),
        ProblemKind::Stalled => format!(
            "{runs} had a QP that stood still while others moved, for up to {:.0} ms",
            most * 1e3
        ),
        ProblemKind::Starved => {
            format!("{runs} starved a QP: {counts} got {most:.2} of its share")
        }
        ProblemKind::Uneven => {
            format!("{runs} served QPs unevenly: Jain's index down to {most:.2}")
        }
        ProblemKind::CoresShared => format!("Workers shared cores in {runs}"),
        ProblemKind::Drift => format!("Throughput drifted in {runs}"),
        ProblemKind::Scatter => format!(
            "{count} of {of} {} scatter in throughput, by up to {:.0} %",
            plural(*of, "case"),
            most * 100.0
        ),
    };
    let first = match count {
        1 => case.clone(),
        _ if *kind == ProblemKind::Scatter => format!("most {case}"),
        _ => format!("first {case}"),
    };
    match remedy(problem) {
        "" => format!("{text} ({first})."),
        remedy => format!("{text} ({first}). {}.", remedy.trim_end_matches('.')),
    }
}

/// What helps; empty where nothing is known.
pub(super) fn remedy(problem: &Problem) -> &str {
    match problem.kind {
        ProblemKind::Overloaded => "Lower --rate, or use more QPs",
        ProblemKind::ReceiverDisagrees | ProblemKind::NotSettled => "Measure longer (-D)",
        ProblemKind::MessagesLost => "Post more receives (--rx-depth), or lower --rate",
        ProblemKind::PacketsLost => {
            "Look for a link with errors and for switches without flow control (rocebench doctor)"
        }
        ProblemKind::ReceiverNotReady => "Post more receives (--rx-depth)",
        ProblemKind::CoresShared => "Use fewer --workers, or name --cores",
        ProblemKind::Drift => "Warm up longer (--warmup)",
        ProblemKind::Scatter => "Measure longer (-D) and more often (--runs)",
        _ => &problem.hint,
    }
}

/// Findings in a few sentences: the best cases, the gravest problem, and the names of the other problems.
pub fn short(findings: &[Finding]) -> Vec<(bool, String)> {
    let (wrong, right): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.is_wrong());
    let mut sentences: Vec<(bool, String)> = right.iter().map(|it| (false, sentence(it))).collect();
    if let Some((gravest, others)) = wrong.split_first() {
        sentences.push((true, sentence(gravest)));
        let names: Vec<String> = others
            .iter()
            .map(|finding| match finding {
                Finding::Wrong(problem) => {
                    format!("{} ({} of {})", problem.kind.name(), problem.count, problem.of)
                }
                other => sentence(other).trim_end_matches('.').to_owned(),
            })
            .collect();
        if !names.is_empty() {
            sentences.push((true, format!("Also: {}.", names.join("; "))));
        }
    }
    sentences
}

/// Flows that a sentence names.
const MOST_FLOWS: usize = 5;

/// Every reason why a flow failed; `None` if it passed.
pub(in crate::show) fn of_flow(failures: &[Failure]) -> Option<String> {
    let texts: Vec<String> = failures.iter().map(failure).collect();
    (!texts.is_empty()).then(|| texts.join(", and "))
}

fn failure(failure: &Failure) -> String {
    match failure {
        Failure::NoRun => "no run counts".to_owned(),
        Failure::NoFlow => "no flow has a throughput to judge".to_owned(),
        Failure::NoMedian => {
            "no other flow has the same settings, so there is no median: give Gb or %link"
                .to_owned()
        }
        Failure::NotKnown { metric: Metric::PercentOfLimit, .. } => {
            "its link speed is unknown: give Gb or %median".to_owned()
        }
        Failure::NotKnown { metric, has_samples } => {
            let name = metric.short_name();
            let what = if metric.is_of_setup() { "rounds" } else { "messages" };
            if *has_samples {
                format!("{name} is unknown: too few {what} were timed; measure more (-D, -n)")
            } else {
                format!("{name} was not measured")
            }
        }
        Failure::True { metric, figure, relation, limit, of_median } => {
            let [shown, most] = [*figure, *limit].map(|value| metric.text(value));
            let differs_in_later_digits = shown == most && figure != limit;
            let figure = if differs_in_later_digits { figure.to_string() } else { shown };
            let figure = match metric {
                Metric::PercentOfLimit => format!("{figure} of its link's limit"),
                metric => format!("{} {figure}", metric.short_name()),
            };
            let relation = match relation {
                Relation::Below => "below",
                Relation::AtMost => "not above",
                Relation::Above => "above",
                Relation::AtLeast => "not below",
            };
            let of = of_median
                .map(|share| (share * 1e6).round() / 1e4)
                .map(|percent| format!(" ({percent} % of the median)"));
            format!("{figure}, {relation} {most}{}", of.unwrap_or_default())
        }
    }
}

/// The flows that failed, in one sentence; `None` if all passed.
pub fn failing(suites: &[Suite<'_>]) -> Option<String> {
    let flows: usize = suites.iter().map(|suite| suite.flows.len()).sum();
    let failed: Vec<String> = suites
        .iter()
        .flat_map(|suite| {
            let title = match suites.len() {
                1 => String::new(),
                _ => format!("{}, ", suite.title),
            };
            suite.flows.iter().filter_map(move |flow| {
                let failure = of_flow(&flow.failures)?;
                Some(format!("{title}{}: {failure}", flow.name))
            })
        })
        .collect();
    let count = failed.len();
    let verb = if count == 1 { "fails" } else { "fail" };
    let mut named = failed.iter().take(MOST_FLOWS).cloned().collect::<Vec<_>>().join("; ");
    if count > MOST_FLOWS {
        named += &format!("; and {} more", count - MOST_FLOWS);
    }
    let noun = plural(flows, "flow");
    (count > 0).then(|| format!("{count} of {flows} {noun} {verb}: {named}"))
}

/// `Rail mlx5_2 is slow: 49.000 Gb/s, 50 % less than the median 98.000 Gb/s of the other 3 (CASE): look at …`.
fn slow_rail(rail: &SlowRail) -> String {
    let [name, value, than, usual] = rail_parts(rail);
    let (others, case) = (rail.rails.saturating_sub(1), &rail.case);
    format!(
        "Rail {name} is slow: {value}, {than} the median {usual} of the other {others} ({case}): look at its ports, \
         cable and PCIe slots."
    )
}

/// `Rails differ: mlx5_1 has 70.000 Gb/s, 29 % less than the other, 98.000 Gb/s (CASE). Two …`.
fn rails_differ(rail: &SlowRail) -> String {
    let [name, value, than, usual] = rail_parts(rail);
    let case = &rail.case;
    format!(
        "Rails differ: {name} has {value}, {than} the other, {usual} ({case}). Two rails do not show which is normal: look \
         at both."
    )
}

/// Its name, its figure, how that compares with the usual one, and the usual one.
fn rail_parts(rail: &SlowRail) -> [String; 4] {
    let [value, usual] = [rail.value, rail.usual].map(|it| figure(rail.metric, it));
    [rail_name(rail), value, than(rail.metric, rail.value / rail.usual), usual]
}

/// The rail, with its nodes where they are others than client and server, or call it differently.
fn rail_name(rail: &SlowRail) -> String {
    match &rail.ends[..] {
        [(node, one), (_, two)] if one == two && [CLIENT, SERVER].contains(&&**node) => one.clone(),
        ends => {
            let ends: Vec<String> =
                ends.iter().map(|(node, name)| format!("{name} of {node}")).collect();
            listed(&ends)
        }
    }
}

/// How many flows without a figure a sentence names.
const MOST_NAMED: usize = 5;

/// What it says, as one sentence or more.
pub fn of_nodes(finding: &NodesFinding) -> String {
    match finding {
        NodesFinding::NoFigure { why, of, flows } => no_figure(*why, of, *flows),
        NodesFinding::Slow(slow) => self::slow(slow),
        NodesFinding::MoreSlow { paths: 1 } => "1 other path is slow too.".to_owned(),
        NodesFinding::MoreSlow { paths } => format!("{paths} other paths are slow too."),
        NodesFinding::Lossy { part, nodes, losing, runs, look } => {
            lossy(*part, nodes, [*losing, *runs], *look)
        }
        NodesFinding::MoreLossy { paths: 1 } => "1 other path loses packets too.".to_owned(),
        NodesFinding::MoreLossy { paths } => format!("{paths} other paths lose packets too."),
        NodesFinding::Rest { metric, flows, kind, range } => rest(*metric, *flows, *kind, *range),
        NodesFinding::Fan(fan) => self::fan(fan),
    }
}

fn no_figure(why: Why, of: &[String], flows: usize) -> String {
    let names = if of.len() > MOST_NAMED { some_of(of, MOST_NAMED) } else { listed(of) };
    let nodes: Vec<&String> = of.iter().filter(|name| !name.contains('>')).collect();
    match (why, flows) {
        (Why::NotBegun, 1) => "1 flow did not start.".to_owned(),
        (Why::NotBegun, _) => format!("{flows} flows did not start."),
        (Why::Lost, _) => format!("No figure for {names}: each run failed or was stopped."),
        (Why::Doubtful, _) if nodes.is_empty() => {
            format!("No figure for {names}: each run is doubtful, see below.")
        }
        (Why::Doubtful, _) => format!(
            "No figure for {names}: each run is doubtful, see below. Look for other programs on {}.",
            listed(&nodes)
        ),
    }
}

fn rest(metric: Metric, flows: usize, kind: Rest, [least, middle, most]: [f64; 3]) -> String {
    let within = percent((middle - least).max(most - middle) / middle);
    let (range, middle) = (metric.range(least, most), figure(metric, middle));
    let alike = format!("{flows} flows are within {within} of the median {middle}");
    match kind {
        Rest::Few => format!("{alike}."),
        Rest::Alike => format!("Nothing is slow: {alike}."),
        Rest::Others => format!("The other {alike}."),
        Rest::Apart => format!(
            "{flows} flows: {range}. They do not show which is normal: look at both nodes, and at the path between them."
        ),
        Rest::Scattered => format!(
            "Nothing stands out, but {flows} flows scatter: {range}, the median {middle}. Measure longer (-D)."
        ),
    }
}

fn slow(slow: &Slow) -> String {
    let Slow { metric, usual, .. } = slow;
    let is_rate = metric.higher_is_better();
    let [sends, to, receives, from] = if slow.is_read {
        ["reads", "from", "is read", "by"]
    } else {
        ["sends", "to", "receives", "from"]
    };
    let (Some(first), Some(last)) = (slow.values.first(), slow.values.last()) else {
        return String::new();
    };
    let (less, than) = (percent(1.0 - first / usual), than(*metric, last / usual));
    let (name, other) = match &slow.nodes[..] {
        [name, other] => (name, other.as_str()),
        [name, ..] => (name, ""),
        [] => return String::new(),
    };
    let look = look(slow.look, name, other);
    let (what, way) = match (slow.part, is_rate) {
        (Part::Path, _) => {
            let path = match slow.look {
                Suspect::Host => format!("{name} is slow by itself"),
                _ => format!("{name}>{other} is slow"),
            };
            let [value, usual] = [*last, *usual].map(|value| figure(*metric, value));
            return format!("{path}: {value}, {than} the median {usual}: look at {look}.");
        }
        (Part::Sends, true) => (format!("{name} {sends} {than}"), to),
        (Part::Receives, true) => (format!("{name} {receives} {than}"), from),
        (Part::Node, true) => (format!("{name} {sends} {less} and {receives} {than}"), "with"),
        (Part::Sends, false) => (format!("Messages from {name} take {than}"), "to"),
        (Part::Receives, false) => (format!("Messages to {name} take {than}"), "from"),
        (Part::Node, false) => (format!("Messages from and to {name} take {than}"), "with"),
    };
    let extent = if slow.slow == slow.flows {
        format!("{way} all of them")
    } else {
        format!("in {} of {} flows", slow.slow, slow.flows)
    };
    let values =
        slow.values.iter().map(|value| number(*metric, *value)).collect::<Vec<_>>().join(" and ");
    let figures = with_unit(*metric, &format!("{values} of {}", number(*metric, *usual)));
    let peers = plural(slow.peers, "peer");
    let median = format!("the median of {} {peers} ({figures})", slow.peers);
    format!("{what} {median}, {extent}: look at {look}.")
}

/// Where to look, by the names of the nodes that it is about.
fn look(look: Suspect, name: &str, other: &str) -> String {
    match look {
        Suspect::Port => format!("{name}'s port or cable"),
        Suspect::PortOrCpu => format!("{name}'s port, cable or CPU"),
        Suspect::Cpu { own, others } => format!(
            "other programs on {name}: its workers had {} of their cores, the others' workers {}",
            percent(own),
            percent(others)
        ),
        Suspect::Host => "its CPU, memory and PCIe slot".to_owned(),
        Suspect::Path => "the path".to_owned(),
        Suspect::Sender => format!("{name} and its path to {other}"),
        Suspect::Receiver => format!("{other} and its path from {name}"),
        Suspect::All => {
            format!("{name}, {other} and the path between them; --pattern pairs separates them")
        }
    }
}

/// `node3>node9 loses packets, in 5 of 5 runs: look at the path.`
fn lossy(part: Part, nodes: &[String], [losing, runs]: [usize; 2], at: Suspect) -> String {
    let (Some(name), Some(other)) = (nodes.first(), nodes.last()) else {
        return String::new();
    };
    let (who, what) = match part {
        Part::Path => (format!("{name}>{other}"), "packets"),
        Part::Node => (name.clone(), "packets"),
        Part::Sends => (name.clone(), "packets of flows that it posts"),
        Part::Receives => (name.clone(), "packets of flows that go to it"),
    };
    let look = look(at, name, other);
    format!("{who} loses {what}, in {losing} of {runs} runs: look at {look}.")
}

/// Throughput and p99 over how many nodes there are, whether throughput falls, how even it is, and who has least.
fn fan(fan: &Fan) -> String {
    let (node, points) = (&fan.node, &fan.points);
    let Some(last) = points.last() else {
        return String::new();
    };
    let (who, way) = if fan.is_in { ("sender", "to") } else { ("receiver", "from") };
    let fans: Vec<String> = points.iter().map(|point| point.fan.to_string()).collect();
    let rates = figures(Metric::GbitPerS, points.iter().map(|point| point.gbit_per_s));
    let mut text = format!(
        "{} {} {way} {node}: together {rates} Gb/s",
        fans.join(", "),
        plural(last.fan, who)
    );
    if points.iter().any(|point| point.p99_ns.is_some()) {
        let latencies = figures(Metric::P99Ns, points.iter().map(|point| point.p99_ns));
        text += &format!("; p99 {latencies} µs");
    }
    let fall = fan.fall.map(|fall| fall.map(|place| &points[place]));
    if let Some([best, worst]) = fall
        && let (Some(most), Some(least)) = (best.gbit_per_s, worst.gbit_per_s)
    {
        let (share, many) = (percent(1.0 - least / most), plural(best.fan, who));
        let (from, to) = (best.fan, worst.fan);
        text += &format!(". Throughput falls by {share} from {from} {many} to {to}");
    }
    if let (2.., Some(jain), Some(worst)) = (last.fan, last.jain, &last.worst) {
        let (name, share) = (&worst.node, worst.of_even);
        let gbit_per_s = figure(Metric::GbitPerS, worst.gbit_per_s);
        let count = last.fan;
        text += &format!(
            ". With {count} {who}s Jain's index is {jain:.3}; {name} has least, {gbit_per_s}: {share:.2} of an even share"
        );
        if worst.is_little() {
            text += &format!("; look at {name}, and at its path {way} {node}");
        }
    }
    text + "."
}

fn figures(metric: Metric, values: impl Iterator<Item = Option<f64>>) -> String {
    values
        .map(|it| it.map_or_else(|| NOT_MEASURED.to_owned(), |it| number(metric, it)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// `9.410 Gb/s`, `p50 12.30 µs`.
fn figure(metric: Metric, value: f64) -> String {
    with_unit(metric, &number(metric, value))
}

/// The same of several numbers: `p50 31.200 and 12.000 of 10.100 µs`.
fn with_unit(metric: Metric, numbers: &str) -> String {
    match metric.unit() {
        "ns" => format!("{} {numbers} µs", metric.short_name()),
        unit => format!("{numbers} {unit}"),
    }
}

/// A figure without its unit, as columns have it, latency in microseconds: `9.410`.
pub(in crate::show) fn number(metric: Metric, value: f64) -> String {
    exact(metric.in_column(value))
}

/// A share in percent: two digits that count.
fn percent(share: f64) -> String {
    let percent = share.abs() * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} %")
}

/// How a figure compares with the usual one, by their ratio: `41 % less than`, `3.1 times as long as`.
fn than(metric: Metric, ratio: f64) -> String {
    if metric.higher_is_better() {
        format!("{} less than", percent(1.0 - ratio))
    } else if ratio < 2.0 {
        format!("{} longer than", percent(ratio - 1.0))
    } else {
        format!("{ratio:.1} times as long as")
    }
}

#[cfg(test)]
#[path = "sentences_tests.rs"]
mod tests;
