//! Sentences about nodes and the paths between them.

use settings::listed;

use crate::judge::mesh::{Fan, NodesFinding, Part, Rest, Slow, Suspect, Why};
use crate::observe::Metric;
use crate::observe::format::{NOT_MEASURED, exact, plural, some_of};

/// Flows without a figure that a sentence names.
const MOST: usize = 5;

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
    let names = if of.len() > MOST { some_of(of, MOST) } else { listed(of) };
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
        let (fall, many) = (percent(1.0 - least / most), plural(best.fan, who));
        let (from, to) = (best.fan, worst.fan);
        text += &format!(". Throughput falls by {fall} from {from} {many} to {to}");
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
pub(super) fn figure(metric: Metric, value: f64) -> String {
    with_unit(metric, &number(metric, value))
}

/// The same of several numbers: `p50 31.200 and 12.000 of 10.100 µs`.
fn with_unit(metric: Metric, numbers: &str) -> String {
    match metric.unit() {
        "ns" => format!("{} {numbers} µs", metric.short_name()),
        unit => format!("{numbers} {unit}"),
    }
}

/// `9.410`; latency in microseconds.
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
pub(super) fn than(metric: Metric, ratio: f64) -> String {
    if metric.higher_is_better() {
        format!("{} less than", percent(1.0 - ratio))
    } else if ratio < 2.0 {
        format!("{} longer than", percent(ratio - 1.0))
    } else {
        format!("{ratio:.1} times as long as")
    }
}
