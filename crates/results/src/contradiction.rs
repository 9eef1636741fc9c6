//! Figures of a run that cannot be: those that are below 0, that lack though what they follow from is there, or that
//! others in the same run deny. It must not judge a figure that is only unlikely, and knows no other run.

mod figures;
mod loads;
mod timelines;

use super::model::{
    CaseConfig, Connect, Delivery, FlowResult, Limits, LoadSearch, NodeResult, ResultFile, Run,
};
use super::rates::{gbit_per_s, mmsg_per_s};
use figures::{
    Found, TOLERANCE, at_most, bandwidth, equals, follows, latency, none_below_zero, not_longer,
    positive, unless,
};
use settings::Settings;
use statistics::shares;

/// By how much an index of fairness may differ.
const FAIRNESS_TOLERANCE: f64 = 0.005;

/// Notes in each run of a result what is impossible in it.
pub fn note(result: &mut ResultFile) {
    for case in &mut result.cases {
        for run in &mut case.runs {
            run.contradiction = of_run(&case.config, run).err();
        }
    }
}

/// What is impossible in a search, as the rest of a sentence that begins with it; `None` when nothing is.
pub fn of_search(search: &LoadSearch) -> Option<String> {
    loads::search(search).err()
}

/// What is impossible in a run, as the rest of a sentence that begins with the run.
fn of_run(config: &CaseConfig, run: &Run) -> Found {
    none_below_zero(run)?;
    for (index, moved) in run.flows.iter().enumerate() {
        let found = flow(&config.flow(index), run, moved);
        found.map_err(|told| match config.flow_label(&moved.name) {
            "" => told,
            name => format!("{told} (flow {name})"),
        })?;
    }
    run.nodes.iter().try_for_each(|node| workers(run, node))?;
    run.connect.as_ref().map_or(Ok(()), |it| set_up(config, it))
}

fn flow(settings: &Settings, run: &Run, moved: &FlowResult) -> Found {
    let (totals, seconds) = (&moved.totals, moved.window.seconds);
    size_of(settings, "moved", totals.messages, totals.bytes)?;
    qps(run, moved)?;
    let is_moving = totals.messages > 0;
    let rate = gbit_per_s(totals.bytes, seconds);
    follows("gbit_per_s", totals.gbit_per_s, rate, is_moving)?;
    let rate = mmsg_per_s(totals.messages, seconds);
    follows("mmsg_per_s", totals.mmsg_per_s, rate, is_moving)?;
    for (what, times) in [
        ("latency", &moved.latency_ns),
        ("service time", &moved.service_ns),
        ("lateness", &moved.lateness_ns),
        ("notice", &moved.notice_ns),
    ] {
        latency(what, times.as_ref())?;
    }
    loads::load(settings, moved)?;
    bandwidth(moved.bandwidth_gbit_per_s.as_ref())?;
    fairness(settings, moved)?;
    if let Some(told) = &moved.received {
        size_of(settings, "received", told.messages, told.bytes)?;
        positive("the receiver's window", told.window_seconds)?;
    }
    if let Some(told) = &moved.delivery {
        delivery(told, moved)?;
    }
    if let Some(told) = &moved.limits {
        limits(told, moved.gbit_per_s())?;
    }
    let [_, window] = windows(run, moved);
    timelines::of_flow(moved, window)?;
    timelines::of_qps(moved, window)
}

/// A message may come twice, but not be lost without having been sent.
fn delivery(told: &Delivery, moved: &FlowResult) -> Found {
    let (sent, lost) = (told.sent, told.lost);
    at_most("lost messages", lost, "that were sent", sent)?;
    let share = Some(Delivery::share(lost, sent));
    follows("a share of lost messages", Some(told.lost_share), share, true)?;
    let of_qps: Option<Vec<u64>> = moved.qps.iter().map(|qp| qp.lost).collect();
    if let Some(of_qps) = of_qps.filter(|of_qps| !of_qps.is_empty()) {
        let sum = of_qps.iter().map(|lost| u128::from(*lost)).sum();
        equals("lost messages", lost, "its QPs", sum)?;
    }
    // In traffic both ways the receiver's counts of the window are in no file.
    let Some(received) = &moved.received else {
        return Ok(());
    };
    let seconds = received.window_seconds.unwrap_or(moved.window.seconds);
    if seconds > 0.0 {
        let rate = gbit_per_s(received.bytes, seconds);
        follows("goodput (Gb/s)", told.goodput_gbit_per_s, rate, true)?;
        let rate = mmsg_per_s(received.messages, seconds);
        follows("goodput (Mmsg/s)", told.goodput_mmsg_per_s, rate, true)?;
    }
    Ok(())
}

fn size_of(settings: &Settings, what: &str, messages: u64, bytes: u64) -> Found {
    let of_all = |size: Option<u32>| u128::from(messages) * u128::from(size.unwrap_or(0));
    let sizes = || settings.sizes().map(|(bytes, _)| bytes);
    let possible = of_all(sizes().min())..=of_all(sizes().max());
    unless(possible.contains(&bytes.into()), || {
        let size = match &settings.size_mix {
            Some(mix) => mix.to_string(),
            None => format!("{} bytes", settings.size_bytes),
        };
        format!("{what} {bytes} bytes in {messages} messages of {size}")
    })
}

/// The QPs make up the totals. Files may leave them out to be small.
fn qps(run: &Run, moved: &FlowResult) -> Found {
    if moved.qps.is_empty() {
        return Ok(());
    }
    let messages = moved.qps.iter().map(|qp| u128::from(qp.messages)).sum();
    equals("messages", moved.totals.messages, "its QPs", messages)?;
    let bytes = moved.qps.iter().map(|qp| u128::from(qp.bytes)).sum();
    equals("bytes", moved.totals.bytes, "its QPs", bytes)?;
    for qp in &moved.qps {
        let of_qp = |what: &str| format!("{what} of QP {}", qp.index);
        let Some(rate) = qp.gbit_per_s else { continue };
        // It is by the windows of the workers that served it.
        let [most, least] = windows(run, moved).map(|seconds| gbit_per_s(qp.bytes, seconds));
        let (least, most) = (least.unwrap_or(0.0), most.unwrap_or(f64::INFINITY));
        let possible = least * (1.0 - TOLERANCE)..=most * (1.0 + TOLERANCE);
        unless(possible.contains(&rate), || {
            let what = of_qp("gbit_per_s");
            format!("has {what} of {rate:.4}, and its other figures give {least:.4} to {most:.4}")
        })?;
        latency(&of_qp("latency"), qp.latency_ns.as_ref())?;
        latency(&of_qp("service time"), qp.service_ns.as_ref())?;
        latency(&of_qp("lateness"), qp.lateness_ns.as_ref())?;
    }
    Ok(())
}

/// The shortest and the longest window of a flow and its node's workers.
fn windows(run: &Run, moved: &FlowResult) -> [f64; 2] {
    let of_workers = run
        .node(&moved.from)
        .into_iter()
        .flat_map(|it| &it.workers)
        .filter_map(|worker| worker.window_seconds);
    let own = [moved.window.seconds; 2];
    of_workers.fold(own, |[least, most], it| [least.min(it), most.max(it)])
}

/// Jain's index and the extreme shares, which follow from the QPs' bytes. One QP alone has none.
fn fairness(settings: &Settings, moved: &FlowResult) -> Found {
    let Some(told) = &moved.fairness else {
        let messages = moved.totals.messages;
        return unless(settings.qps < 2 || messages == 0, || {
            format!("lacks the fairness of its {messages} messages")
        });
    };
    let (jain, least, most) = (told.jain, told.min_share, told.max_share);
    let slack = FAIRNESS_TOLERANCE;
    let is_possible = jain <= 1.0 + slack && least <= 1.0 + slack && most >= 1.0 - slack;
    unless(is_possible, || format!("has fairness {jain} with shares from {least} to {most}"))?;
    let bytes: Vec<f64> = moved.qps.iter().map(|qp| qp.bytes as f64).collect();
    let Some(expected) = shares(&bytes).map(|it| it.jain) else {
        return Ok(());
    };
    unless((jain - expected).abs() <= slack, || {
        format!("has fairness {jain:.4}, and its QPs give {expected:.4}")
    })
}

/// A node's workers saw the messages of the flows that it posts; where it posts none, those that it received.
fn workers(run: &Run, node: &NodeResult) -> Found {
    if node.workers.is_empty() {
        return Ok(());
    }
    let posted = || run.flows_from(&node.name);
    let received = run
        .flows
        .iter()
        .filter(|flow| flow.to == node.name)
        .filter_map(|flow| flow.received.as_ref());
    let messages: u128 = match posted().next() {
        Some(_) => posted().map(|flow| u128::from(flow.totals.messages)).sum(),
        None => received.map(|it| u128::from(it.messages)).sum(),
    };
    let all = &node.workers;
    let sum = all.iter().map(|worker| u128::from(worker.messages)).sum();
    equals("messages", messages, "its workers", sum)?;
    let longest = run.flows.iter().map(|flow| flow.window.seconds).fold(0.0, f64::max);
    for worker in all {
        at_most("empty polls", worker.empty_polls, "polls", worker.polls)?;
        let window = worker.window_seconds.unwrap_or(longest);
        let [away, cpu] = [worker.away_seconds, worker.cpu_seconds].map(Option::unwrap_or_default);
        not_longer("a worker's time away", away, window)?;
        not_longer("a worker's CPU time", cpu, window)?;
    }
    Ok(())
}

fn limits(told: &Limits, rate: Option<f64>) -> Found {
    positive("a link (Gb/s)", told.link_gbit_per_s)?;
    let efficiency = told.protocol_efficiency;
    positive("a protocol's efficiency", efficiency)?;
    unless(efficiency <= 1.0, || format!("has a protocol's efficiency of {efficiency}, above 1"))?;
    let expected = rate.and_then(|rate| told.share_of(rate));
    follows("a share of the limit", told.share_of_limit, expected, false)
}

fn set_up(config: &CaseConfig, told: &Connect) -> Found {
    let all = u128::from(told.rounds) * u128::from(config.qps);
    equals("connections", told.connections, "its rounds of all QPs", all)?;
    let expected = (told.seconds > 0.0).then(|| told.connections as f64 / told.seconds);
    let rate = told.connections_per_second;
    follows("connections a second", rate, expected, told.rounds > 0)?;
    unless(told.rounds == 0 || told.setup_ns.is_some(), || {
        format!("lacks the times of its {} rounds", told.rounds)
    })?;
    latency("set-up", told.setup_ns.as_ref())?;
    for step in told.steps.iter().chain(&told.peer_steps) {
        latency(&format!("{} of set-up", step.step), Some(&step.time_ns))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "contradiction_tests.rs"]
mod tests;
