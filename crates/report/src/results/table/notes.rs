//! What is to be known of all figures, in lines below the table: runs that are not to be trusted and what helps, of how
//! many messages latency is, send queues that were full, devices that are software. It must not know the table.

use std::collections::BTreeSet;

use super::super::model::{
    CaseFlow, CaseResult, Device, Doubt, DoubtKind, FlowResult, Load, Node, ResultFile, Run,
    StarvedQp,
};
use super::super::number::{digits, plural};

/// Runs that are told one by one.
const MOST: usize = 8;

/// What is to be known of loads, in lines of any length.
pub(super) fn of_loads(result: &ResultFile) -> Vec<String> {
    let mut lines = full_queues(result);
    lines.extend(not_kept(result));
    lines
}

/// What is to be known of all figures, a line each.
pub(super) fn of_all(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    let of_figures = doubtful(result).into_iter().chain(not_together(result));
    of_figures
        .chain(starved(result))
        .chain(exchanges(result))
        .chain(moderation(result))
        .chain(software(result))
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
        let digits = digits(seconds);
        format!("{share:.1} % of messages waited, {seconds:.digits$} s summed over QPs")
    });
    let lost = (load.never_sent > 0).then(|| {
        let [never, offered] = [load.never_sent, load.offered];
        format!("{never} of {offered} were never sent")
    });
    let parts: Vec<String> = waited.into_iter().chain(lost).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How many runs did not keep their schedule, and of the first of them why and what helps.
fn not_kept(result: &ResultFile) -> Vec<String> {
    let doubt = |flow: &'_ FlowResult| -> Option<String> {
        let mut doubts = flow.window.doubts.iter();
        let doubt = doubts.find(|doubt| doubt.kind == DoubtKind::ScheduleNotKept)?;
        Some(doubt.message.clone())
    };
    let late = |run: &Run| run.flows.iter().any(|flow| doubt(flow).is_some());
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let count = runs.filter(|run| late(run)).count();
    let first = flows(result).find_map(|(flow, _, moved)| Some((flow, doubt(moved)?)));
    let Some((flow, message)) = first else {
        return Vec::new();
    };
    vec![
        format!(
            "{count} {} schedule, and {} of the requested load; `compare` leaves {} out:",
            if count == 1 {
                "run did not keep its"
            } else {
                "runs did not keep their"
            },
            if count == 1 {
                "its latency is not"
            } else {
                "their latency is not"
            },
            if count == 1 { "it" } else { "them" },
        ),
        format!("  {}: {message}", flow.subject()),
    ]
}

/// The QP that got least of its share, and how many got less than half.
fn starved(result: &ResultFile) -> Option<String> {
    let of_flow = |(flow, run, moved): (CaseFlow<'_>, &Run, &FlowResult)| {
        let told = moved.fairness.iter().flat_map(|it| it.starved.clone());
        let subject = match flow.case.runs.len() {
            1 => flow.subject(),
            _ => format!("{}, run {}", flow.subject(), run.run),
        };
        told.map(|qp| (qp, subject.clone())).collect::<Vec<_>>()
    };
    let all: Vec<(StarvedQp, String)> = flows(result).flat_map(of_flow).collect();
    let (qp, subject) = all
        .iter()
        .min_by(|(one, _), (other, _)| one.share.total_cmp(&other.share))?;
    let StarvedQp { index, qpn, share } = qp;
    let which = format!("QP {index} (QPN {qpn}) of {subject}");
    Some(match all.len() {
        1 => format!("{which} got {share:.2} of its share"),
        count => format!(
            "{count} QPs got less than half of their share; {which} got least, {share:.2} of it"
        ),
    })
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

/// How many runs have rates that a worker spoilt, and what helps.
fn doubtful(result: &ResultFile) -> Option<String> {
    let is_of_worker =
        |doubt: &Doubt| matches!(doubt.kind, DoubtKind::WindowLength | DoubtKind::EdgeMissed);
    let spoils = |flow: &FlowResult| flow.window.doubts.iter().any(is_of_worker);
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let count = runs.filter(|run| run.flows.iter().any(spoils)).count();
    (count > 0).then(|| {
        format!(
            "{count} {} a worker that missed an edge of the window, or measured less or more than requested: do not \
             trust the rate, `compare` leaves it out; measure longer (-D), or use fewer workers than cores",
            if count == 1 { "run has" } else { "runs have" },
        )
    })
}

/// How many runs' flows were not measured at the same time, and of the first of them how far they were apart.
fn not_together(result: &ResultFile) -> Option<String> {
    let told = |run: &Run| -> Option<String> {
        let mut doubts = run.flows.iter().flat_map(|flow| &flow.window.doubts);
        let doubt = doubts.find(|doubt| doubt.kind == DoubtKind::NotTogether)?;
        Some(doubt.message.clone())
    };
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let told: Vec<String> = runs.filter_map(told).collect();
    let first = told.first()?;
    let count = told.len();
    let whose = if count == 1 { "run's" } else { "runs'" };
    Some(format!(
        "{count} {whose} flows were not measured together ({first}): do not trust the rates, `compare` leaves them out; \
         measure longer (-D)"
    ))
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
