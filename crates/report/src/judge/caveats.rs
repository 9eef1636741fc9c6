//! What is to be known of all figures of a result: send queues that were full, exchanges that failed, which messages were timed,
//! devices that do not show lost packets or are software.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Severity, Subject};
use super::problems::{self, Affected, runs};
use crate::observe::{
    Observed,
    format::{counted, exact},
    standing,
};
use results::model::{Device, Load, ResultFile, Run, saturating_sum};
use settings::listed;

/// Each finds things of one kind.
const OF_RESULT: &[fn(&ResultFile) -> Vec<Finding>] = &[
    measured_again,
    full_send_queues,
    never_sent,
    exchanges,
    timed_messages,
    half_trips,
    loss_unknown,
    places,
    software,
];

/// Most nodes that are named one by one.
const MOST_NODES: usize = 8;

pub(super) fn caveats(result: &ResultFile) -> Vec<Finding> {
    OF_RESULT.iter().flat_map(|find| find(result)).collect()
}

fn caveat(id: &'static str, subject: Subject, text: String) -> Finding {
    Finding { severity: Severity::Caveat, ..Finding::note(id, subject, text) }
}

fn loads(run: &Run) -> impl Iterator<Item = &Load> {
    run.flows.iter().filter_map(|flow| flow.load.as_ref())
}

/// How many runs count where others were in doubt and measured again.
fn measured_again(result: &ResultFile) -> Vec<Finding> {
    let cases = result.cases.iter().filter(|case| problems::measured_again(case) > 0);
    let again: usize = cases.clone().map(problems::measured_again).sum();
    if again == 0 {
        return Vec::new();
    }
    let count = cases.flat_map(|case| &case.runs).filter(|run| standing::run_counts(run)).count();
    let verb = if count == 1 { "counts" } else { "count" };
    let were = if again == 1 { "was" } else { "were" };
    let text = format!("{} {verb}, {again} {were} measured again.", counted(count, "run"));
    let finding = caveat("measured_again", Subject::default(), text);
    vec![finding.with("count", count).with("again", again)]
}

/// Runs whose messages met a full send queue. The system causes this wait: latency includes it.
fn full_send_queues(result: &ResultFile) -> Vec<Finding> {
    let waiting = Affected::with_gravity(&runs(&[result]), |_, run| {
        let parts =
            loads(run).map(|load| load.queue_full_messages as f64 / load.offered.max(1) as f64);
        parts.reduce(f64::max).filter(|part| *part > 0.0)
    });
    let finding = waiting.map(|waiting| {
        let seconds: f64 = waiting.runs().flat_map(loads).map(|load| load.queue_full_seconds).sum();
        let (share, sum) = (waiting.most(), exact(seconds));
        let what = format!(
            "Latency includes waits for full send queues in {waiting}: up to {:.1} % of messages, {sum} s summed over QPs",
            share * 100.0
        );
        waiting
            .caveat("full_send_queues", what)
            .with("waiting_share", share)
            .with("waiting_seconds", seconds)
    });
    finding.into_iter().collect()
}

fn never_sent(result: &ResultFile) -> Vec<Finding> {
    let lacking = Affected::new(&runs(&[result]), |run| loads(run).any(|load| load.never_sent > 0));
    let finding = lacking.map(|lacking| {
        let loads: Vec<&Load> = lacking.runs().flat_map(loads).collect();
        let never = saturating_sum(loads.iter().map(|load| load.never_sent));
        let offered = saturating_sum(loads.iter().map(|load| load.offered));
        let what = format!("{never} of {offered} messages were never sent in {lacking}");
        lacking
            .caveat("never_sent", what)
            .with("never_sent_messages", never)
            .with("offered_messages", offered)
    });
    finding.into_iter().collect()
}

/// For each case with exchanges: the share that succeeded, over all its runs and flows.
fn exchanges(result: &ResultFile) -> Vec<Finding> {
    let of_case = result.cases.iter().filter_map(|case| {
        let flows = case.runs.iter().flat_map(|run| &run.flows);
        let made =
            saturating_sum(flows.clone().map(|flow| flow.swaps_made).collect::<Option<Vec<_>>>()?);
        let messages = saturating_sum(flows.map(|flow| flow.totals.messages));
        let share = made as f64 / messages as f64;
        let text = format!("{:.1} % of the exchanges succeeded ({}).", share * 100.0, case.id);
        (messages > 0)
            .then(|| caveat("exchanges", Subject::case(&case.id), text).with("share", share))
    });
    of_case.collect()
}

/// Which messages were timed, unless all were, and in how many of the cases with latencies.
fn timed_messages(result: &ResultFile) -> Vec<Finding> {
    let (mut every, mut with_latency, mut cases) = (BTreeSet::new(), 0, Vec::new());
    for case in &result.cases {
        let timed: Vec<u32> = Observed::of_case(case)
            .enumerate()
            .filter(|(_, observed)| {
                observed.runs.iter().any(|it| it.moved.is_some_and(|it| it.latency_ns.is_some()))
            })
            .map(|(at, _)| case.config.flow(at).signal_every)
            .collect();
        with_latency += usize::from(!timed.is_empty());
        if timed.iter().any(|it| *it > 1) {
            cases.push(case.id.clone());
        }
        every.extend(timed.into_iter().filter(|it| *it > 1));
    }
    if cases.is_empty() {
        return Vec::new();
    }
    let numbers: Vec<String> = every.iter().map(u32::to_string).collect();
    let (numbers, of_cases) = (numbers.join(" or "), of_cases(cases.len(), with_latency));
    let text = format!(
        "Latency is measured on the last of every {numbers} messages, which waits longest{of_cases}. Use -Q 1 to measure all."
    );
    vec![caveat("timed_messages", Subject { cases, ..Subject::default() }, text)]
}

/// ` (2 of 3 cases)`; empty for all cases.
fn of_cases(count: usize, of: usize) -> String {
    if count == of { String::new() } else { format!(" ({count} of {of} cases)") }
}

/// Whether latencies are those of ping-pongs.
fn half_trips(result: &ResultFile) -> Vec<Finding> {
    let of_half = result.cases.iter().filter(|case| {
        let mut flows = 0..case.config.flows.len();
        flows.any(|at| case.config.flow(at).is_answered())
    });
    let cases: Vec<String> = of_half.map(|case| case.id.clone()).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let of_cases = of_cases(cases.len(), result.cases.len());
    let text = format!("Latency is half of a ping-pong's round trip{of_cases}.");
    vec![caveat("half_trips", Subject { cases, ..Subject::default() }, text)]
}

/// Memory that is not the host's ordinary: whose it is, how its device learnt of it, and how near they are.
fn places(result: &ResultFile) -> Vec<Finding> {
    let flows = result.cases.iter().flat_map(|case| &case.runs).flat_map(|run| &run.flows);
    let of_ends = flows.flat_map(|flow| &flow.memory).map(|memory| {
        let mut text = format!("Memory at {} is {} of {}", memory.node, memory.place, memory.of);
        text += &format!(", registered by {}", memory.registered_by);
        if let Some(distance) = &memory.distance {
            text += &format!(", distance to the adapter: {distance}");
        }
        if let Some(nearer) = &memory.nearer {
            text += &format!("; {nearer} is nearer: take that, or :auto");
        }
        (text + ".", memory.node.clone())
    });
    // Each once, for all runs.
    let ends: BTreeSet<(String, String)> = of_ends.collect();
    ends.into_iter()
        .map(|(text, node)| {
            caveat("memory", Subject { nodes: vec![node], ..Subject::default() }, text)
        })
        .collect()
}

/// Devices whose counters do not show lost packets, and why.
fn loss_unknown(result: &ResultFile) -> Vec<Finding> {
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let mut by_reason: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for unknown in runs.flat_map(|run| &run.loss_unknown) {
        by_reason.entry(unknown.words()).or_default().insert(&unknown.node);
    }
    let of_reason = by_reason.into_iter().map(|(words, names)| {
        let nodes: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let place = match nodes.len() {
            ..=MOST_NODES => listed(&nodes),
            count => format!("{count} nodes"),
        };
        let text = format!("Loss unknown at {place}: {words}.");
        caveat("loss_unknown", Subject { nodes, ..Subject::default() }, text)
    });
    of_reason.collect()
}

/// Software devices, whose figures are not a network adapter's: a sentence for each, once for nodes on one machine.
fn software(result: &ResultFile) -> Vec<Finding> {
    let (mut known, mut found) = (BTreeSet::new(), Vec::new());
    for (number, node) in result.nodes.iter().enumerate() {
        let at = match (number, result.nodes.len()) {
            (0, _) => String::new(),
            (_, 2) => "At the other end ".to_owned(),
            _ => format!("At {} ", node.name),
        };
        for device in node.devices.iter().filter(|device| device.software) {
            let text = of_software(device);
            if known.insert((&node.host.hostname, text.clone())) {
                let rails = vec![(node.name.clone(), device.name.clone())];
                let subject = Subject { rails, ..Subject::default() };
                found.push(caveat("software_device", subject, at.clone() + &text));
            }
        }
    }
    found
}

fn of_software(device: &Device) -> String {
    let name = &device.name;
    let kind = match device.library.as_str() {
        "embedded" => "the embedded software device",
        _ => "a software device",
    };
    let faults = match &device.faults {
        Some(faults) => format!(", with faults on purpose ({faults})"),
        None => String::new(),
    };
    format!("{name} is {kind}{faults}: no figure here is a network adapter's.")
}
