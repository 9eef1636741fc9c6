//! Notes on all figures, below the table: which messages were timed, send queues that were full, devices that do
//! not show lost packets or are software.

use std::collections::{BTreeMap, BTreeSet};

use crate::observe::Observed;
use crate::observe::format::{exact, plural};
use results::model::{Device, Load, ResultFile};
use results::rates;

/// Most runs with a line of their own.
const MOST: usize = 8;

pub(super) fn of(result: &ResultFile) -> Vec<String> {
    let mut lines = full_queues(result);
    lines.extend(exchanges(result));
    lines.extend(moderation(result));
    lines.extend(half_trips(result));
    lines.extend(loss_unknown(result));
    lines.extend(software(result));
    lines
}

/// Messages that met a full send queue, and those that were never sent. The system causes this wait: latency includes it.
fn full_queues(result: &ResultFile) -> Vec<String> {
    let mut lines = Vec::new();
    for observed in Observed::of_file(result) {
        for observation in &observed.runs {
            let load = observation.moved.and_then(|moved| moved.load.as_ref());
            let Some(text) = load.and_then(full_queue) else {
                continue;
            };
            let number = match observed.runs.len() {
                1 => String::new(),
                _ => format!(", run {}", observation.run.run),
            };
            lines.push(format!("  {}{number}: {text}", observed.flow.subject()));
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if !lines.is_empty() {
        let head = "send queues were full; latency includes the wait for them:";
        lines.insert(0, head.to_owned());
    }
    if more > 0 {
        lines.push(format!("  and in {more} more {}", plural(more, "run")));
    }
    lines
}

/// `40.0 % of messages waited, 1.900 s summed over QPs; 5000 of 2280000 were never sent`; `None` if neither happened.
fn full_queue(load: &Load) -> Option<String> {
    let (full, offered, never) = (load.queue_full_messages, load.offered, load.never_sent);
    let share = full as f64 / offered.max(1) as f64 * 100.0;
    let seconds = exact(load.queue_full_seconds);
    let waited = format!("{share:.1} % of messages waited, {seconds} s summed over QPs");
    let lost = format!("{never} of {offered} were never sent");
    [(full > 0, waited), (never > 0, lost)]
        .into_iter()
        .filter_map(|(is_so, text)| is_so.then_some(text))
        .reduce(|one, other| format!("{one}; {other}"))
}

/// For each case with exchanges: the share that succeeded, over all its runs and flows.
fn exchanges(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().filter_map(|case| {
        let flows = case.runs.iter().flat_map(|run| &run.flows);
        let made =
            rates::sum(flows.clone().map(|flow| flow.swaps_made).collect::<Option<Vec<_>>>()?);
        let messages = rates::sum(flows.map(|flow| flow.totals.messages));
        (messages > 0).then(|| {
            let share = made as f64 / messages as f64 * 100.0;
            format!("{}: {share:.1} % of the exchanges succeeded", case.id)
        })
    })
}

/// Which messages were timed, unless all were, and in how many of the cases with latencies.
fn moderation(result: &ResultFile) -> Option<String> {
    let (mut every, mut with_latency, mut count) = (BTreeSet::new(), 0, 0);
    for case in &result.cases {
        let timed: Vec<u32> = Observed::of_case(case)
            .enumerate()
            .filter(|(_, observed)| {
                observed.runs.iter().any(|it| it.moved.is_some_and(|it| it.latency_ns.is_some()))
            })
            .map(|(at, _)| case.config.flow(at).signal_every)
            .collect();
        with_latency += usize::from(!timed.is_empty());
        count += usize::from(timed.iter().any(|it| *it > 1));
        every.extend(timed.into_iter().filter(|it| *it > 1));
    }
    let of_cases = of_cases(count, with_latency);
    let numbers: Vec<String> = every.iter().map(u32::to_string).collect();
    (count > 0).then(|| {
        format!(
            "latency is measured on the last of every {} messages, which waits longest{of_cases}; -Q 1 measures it on all",
            numbers.join(" or ")
        )
    })
}

/// ` (2 of 3 cases)`; empty for all cases.
fn of_cases(count: usize, of: usize) -> String {
    if count == of { String::new() } else { format!(" ({count} of {of} cases)") }
}

/// Whether latencies are those of ping-pongs.
fn half_trips(result: &ResultFile) -> Option<String> {
    let count = result
        .cases
        .iter()
        .filter(|case| {
            let mut flows = 0..case.config.flows.len();
            flows.any(|at| case.config.flow(at).is_answered())
        })
        .count();
    let of_cases = of_cases(count, result.cases.len());
    (count > 0).then(|| format!("latency is half of a ping-pong's round trip{of_cases}"))
}

/// Devices whose counters do not show lost packets, and why.
fn loss_unknown(result: &ResultFile) -> impl Iterator<Item = String> {
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let mut nodes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for unknown in runs.flat_map(|run| &run.loss_unknown) {
        nodes.entry(unknown.words()).or_default().insert(&unknown.node);
    }
    nodes.into_iter().map(|(words, nodes)| {
        let nodes = match nodes.len() {
            ..=MOST => Vec::from_iter(nodes).join(", "),
            count => format!("{count} nodes"),
        };
        format!("loss unknown at {nodes}: {words}")
    })
}

/// Software devices, whose figures are not a network adapter's: a sentence for each, once for nodes on one machine.
fn software(result: &ResultFile) -> Vec<String> {
    let (mut told, mut lines) = (BTreeSet::new(), Vec::new());
    for (number, node) in result.nodes.iter().enumerate() {
        let whose = match (number, result.nodes.len()) {
            (0, _) => String::new(),
            (_, 2) => "at the other end ".to_owned(),
            _ => format!("at {} ", node.name),
        };
        for device in node.devices.iter().filter(|device| device.software) {
            let text = of_software(device);
            if told.insert((&node.host.hostname, text.clone())) {
                lines.push(whose.clone() + &text);
            }
        }
    }
    lines
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
    format!("{name} is {kind}{faults}: no figure here is a network adapter's")
}
