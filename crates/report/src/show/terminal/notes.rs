//! What is to be known of all figures, in lines below the table: of how many messages latency is, send queues that were full,
//! devices that are software. It must not know the table.

use std::collections::BTreeSet;

use crate::observe::format::{exact, plural};
use crate::results::model::{
    CaseFlow, CaseResult, Device, FlowResult, Load, Node, ResultFile, Run,
};

/// Runs that are told one by one.
const MOST: usize = 8;

/// What is to be known of all figures, a line each.
pub(super) fn of(result: &ResultFile) -> Vec<String> {
    let mut lines = full_queues(result);
    lines.extend(exchanges(result));
    lines.extend(moderation(result));
    lines.extend(software(result));
    lines
}

/// Every flow of every run, with the run.
fn flows<'a>(
    result: &'a ResultFile,
) -> impl Iterator<Item = (CaseFlow<'a>, &'a Run, &'a FlowResult)> {
    let of_case = |case: &'a CaseResult| {
        let flows: Vec<CaseFlow<'a>> = case.flows().collect();
        case.runs.iter().flat_map(move |run| {
            // A run's flows are in the order of the case's, which saves looking for each of thousands.
            let of_run = flows.clone().into_iter().enumerate();
            of_run.filter_map(move |(index, flow)| {
                let at_place = run.flows.get(index).filter(|it| it.name == flow.name());
                let moved = at_place.or_else(|| flow.result(run))?;
                Some((flow, run, moved))
            })
        })
    };
    result.cases.iter().flat_map(of_case)
}

/// Of which messages send queues were full, and what was never sent. It is the system's doing and in the latency.
fn full_queues(result: &ResultFile) -> Vec<String> {
    let told = flows(result).filter_map(|(flow, run, moved)| {
        let load = moved.load.as_ref()?;
        let text = full_queue(load)?;
        let number = match flow.case.runs.len() {
            1 => String::new(),
            _ => format!(", run {}", run.run),
        };
        Some(format!("  {}{number}: {text}", flow.subject()))
    });
    let mut told: Vec<String> = told.collect();
    let more = told.len().saturating_sub(MOST);
    told.truncate(MOST);
    if !told.is_empty() {
        let head = "send queues were full; waiting for them is part of the latency:";
        told.insert(0, head.to_owned());
    }
    if more > 0 {
        told.push(format!("  and in {more} more {}", plural(more, "run")));
    }
    told
}

/// `40.0 % of messages waited, 1.900 s summed over QPs; 5000 of 2280000 were never sent`; `None` where there is nothing to tell.
fn full_queue(load: &Load) -> Option<String> {
    let share = load.queue_full_messages as f64 / load.offered.max(1) as f64 * 100.0;
    let seconds = load.queue_full_seconds;
    let waited = (load.queue_full_messages > 0).then(|| {
        let seconds = exact(seconds);
        format!("{share:.1} % of messages waited, {seconds} s summed over QPs")
    });
    let lost = (load.never_sent > 0).then(|| {
        let [never, offered] = [load.never_sent, load.offered];
        format!("{never} of {offered} were never sent")
    });
    let parts: Vec<String> = waited.into_iter().chain(lost).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How many exchanges were made, of each case that makes them: over all of its runs and flows.
fn exchanges(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().filter_map(|case| {
        let flows = || case.runs.iter().flat_map(|run| &run.flows);
        let made: u64 = flows().map(|flow| flow.swaps_made).sum::<Option<u64>>()?;
        let messages: u64 = flows().map(|flow| flow.totals.messages).sum();
        (messages > 0).then(|| {
            let share = made as f64 / messages as f64 * 100.0;
            format!("{}: {share:.1} % of the exchanges were made", case.id)
        })
    })
}

/// Which messages were timed, where it was not each, and in how many of the cases with latencies.
fn moderation(result: &ResultFile) -> Option<String> {
    let timed = |case: &CaseResult| -> Vec<u32> {
        let is_timed = |run: &Run, index: usize| {
            let flow = run.flows.get(index);
            flow.is_some_and(|flow| flow.latency_ns.is_some())
        };
        let flows = 0..case.config.flows.len();
        let timed = flows.filter(|index| case.runs.iter().any(|run| is_timed(run, *index)));
        timed
            .map(|index| case.config.flow(index).signal_every)
            .collect()
    };
    let cases: Vec<Vec<u32>> = result.cases.iter().map(timed).collect();
    let with_latency = cases.iter().filter(|every| !every.is_empty()).count();
    let moderated = cases.iter().filter(|it| it.iter().any(|every| *every > 1));
    let count = moderated.clone().count();
    let every: BTreeSet<u32> = moderated.flatten().copied().filter(|it| *it > 1).collect();
    (count > 0).then(|| {
        let every: Vec<String> = every.iter().map(u32::to_string).collect();
        let of_cases = match with_latency == count {
            true => String::new(),
            false => format!(" ({count} of {with_latency} cases)"),
        };
        format!(
            "latency is measured on the last of every {} messages, which waits longest{of_cases}; -Q 1 measures it on all",
            every.join(" or ")
        )
    })
}

/// What keeps the figures from being a network adapter's: a sentence for each device, that of two nodes on one machine
/// once.
fn software(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    let devices = |node: &'_ Node| -> Vec<Device> {
        let devices = node.devices.iter();
        devices.filter(|device| device.software).cloned().collect()
    };
    let mut told = BTreeSet::new();
    let mut lines = Vec::new();
    for (number, node) in result.nodes.iter().enumerate() {
        let whose = match (number, result.nodes.len()) {
            (0, _) => String::new(),
            (_, 2) => "at the other end ".to_owned(),
            _ => format!("at {} ", node.name),
        };
        for device in devices(node) {
            let text = of_software(&device);
            if told.insert((&node.host.hostname, text.clone())) {
                lines.push(whose.clone() + &text);
            }
        }
    }
    lines.into_iter()
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
