//! Figures of a run that cannot be: those that are no numbers, that lack though what they follow from is there, or that
//! others in the same run deny. It must not judge a figure that is only unlikely, and knows no other run.

mod figures;
mod loads;
mod timelines;

use super::model::{
    Bandwidth, CaseConfig, Connect, Delivery, Fairness, FlowResult, Limits, LoadSearch, NodeResult,
    Received, ResultFile, Run,
};
use super::rates::{gbit_per_s, mmsg_per_s};
use figures::{
    Found, TOLERANCE, distribution, equals, follows, is_longer, latency, not_negative, positive,
};
use settings::{Settings, Timestamps};

/// The same for an index of fairness.
const FAIRNESS_TOLERANCE: f64 = 0.005;

/// Notes in each run of a result what is impossible in it.
pub fn note(result: &mut ResultFile) {
    for case in &mut result.cases {
        for run in &mut case.runs {
            run.contradiction = of_run(&case.config, run);
        }
    }
}

/// What is impossible in a run, as the rest of a sentence that begins with the run; `None` when nothing is.
fn of_run(config: &CaseConfig, run: &Run) -> Option<String> {
    check(config, run).err()
}

/// What is impossible in a search, as the rest of a sentence that begins with it; `None` when nothing is.
pub fn of_search(search: &LoadSearch) -> Option<String> {
    loads::search(search).err()
}

fn check(config: &CaseConfig, run: &Run) -> Found {
    for (index, moved) in run.flows.iter().enumerate() {
        let found = flow(&config.flow(index), run, moved);
        found.map_err(|told| match config.flow_label(&moved.name) {
            "" => told,
            name => format!("{told} (flow {name})"),
        })?;
    }
    for node in &run.nodes {
        workers(run, node)?;
    }
    run.connect.as_ref().map_or(Ok(()), |it| set_up(config, it))
}

fn flow(settings: &Settings, run: &Run, moved: &FlowResult) -> Found {
    let (totals, seconds) = (&moved.totals, moved.window.seconds);
    not_negative("a window (s)", seconds)?;
    not_negative("a warm-up (s)", moved.window.warmup_seconds)?;
    size_of(settings, "moved", totals.messages, totals.bytes)?;
    qps(run, moved)?;
    let is_moving = totals.messages > 0;
    follows(
        "gbit_per_s",
        totals.gbit_per_s,
        gbit_per_s(totals.bytes, seconds),
        is_moving,
        TOLERANCE,
    )?;
    follows(
        "mmsg_per_s",
        totals.mmsg_per_s,
        mmsg_per_s(totals.messages, seconds),
        is_moving,
        TOLERANCE,
    )?;
    latency("latency", moved.latency_ns.as_ref())?;
    notice(settings, moved)?;
    loads::load(settings, moved)?;
    bandwidth(moved.bandwidth_gbit_per_s.as_ref())?;
    fairness(settings, moved)?;
    if let Some(told) = &moved.received {
        received(settings, told)?;
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

/// Completions have stamps where they were asked for, and each of them a latency.
fn notice(settings: &Settings, moved: &FlowResult) -> Found {
    let Some(told) = &moved.notice_ns else {
        return Ok(());
    };
    latency("notice", Some(told))?;
    if settings.timestamps == Timestamps::Cpu {
        return Err("has times from the device's stamps, and --timestamps cpu".to_owned());
    }
    let latencies = moved.latency_ns.as_ref().map_or(0, |it| it.count);
    match told.count > latencies {
        true => Err(format!(
            "has {} times from the device's stamps and {latencies} latencies",
            told.count
        )),
        false => Ok(()),
    }
}

fn received(settings: &Settings, told: &Received) -> Found {
    size_of(settings, "received", told.messages, told.bytes)?;
    let window = told.window_seconds;
    window.map_or(Ok(()), |it| positive("the receiver's window", it))
}

/// A message may come twice, but not be lost without having been sent.
fn delivery(told: &Delivery, moved: &FlowResult) -> Found {
    let (sent, lost) = (told.sent, told.lost);
    if lost > sent {
        return Err(format!("lost {lost} messages of {sent}"));
    }
    let (told_share, expected) = (Some(told.lost_share), Some(Delivery::share(lost, sent)));
    follows(
        "a share of lost messages",
        told_share,
        expected,
        false,
        TOLERANCE,
    )?;
    let of_qps: Option<Vec<u64>> = moved.qps.iter().map(|qp| qp.lost).collect();
    if let Some(of_qps) = of_qps.filter(|of_qps| !of_qps.is_empty()) {
        let sum = of_qps.iter().map(|lost| u128::from(*lost)).sum();
        equals("lost messages", lost, "its QPs", sum)?;
    }
    // In traffic both ways the receiver's counts of the window are in no file.
    let received = moved.received.as_ref();
    let seconds = |it: &Received| it.window_seconds.unwrap_or(moved.window.seconds);
    let expected = [
        received.and_then(|it| gbit_per_s(it.bytes, seconds(it))),
        received.and_then(|it| mmsg_per_s(it.messages, seconds(it))),
    ];
    let told = [
        ("goodput (Gb/s)", told.goodput_gbit_per_s),
        ("goodput (Mmsg/s)", told.goodput_mmsg_per_s),
    ];
    for ((what, told), expected) in told.into_iter().zip(expected) {
        told.map_or(Ok(()), |it| not_negative(what, it))?;
        if expected.is_some() {
            follows(what, told, expected, true, TOLERANCE)?;
        }
    }
    Ok(())
}

fn size_of(settings: &Settings, what: &str, messages: u64, bytes: u64) -> Found {
    let of_all = |size: Option<u32>| u128::from(messages) * u128::from(size.unwrap_or(0));
    let sizes = || settings.sizes().map(|(bytes, _)| bytes);
    match (of_all(sizes().min())..=of_all(sizes().max())).contains(&bytes.into()) {
        true => Ok(()),
        false => Err(match &settings.size_mix {
            Some(mix) => format!("{what} {bytes} bytes in {messages} messages of {mix}"),
            None => format!(
                "{what} {bytes} bytes in {messages} messages of {} bytes",
                settings.size_bytes
            ),
        }),
    }
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
        not_negative(&of_qp("gbit_per_s"), rate)?;
        // It is by the windows of the workers that served it.
        let [most, least] = windows(run, moved).map(|seconds| gbit_per_s(qp.bytes, seconds));
        let (least, most) = (least.unwrap_or(0.0), most.unwrap_or(f64::INFINITY));
        if rate < least * (1.0 - TOLERANCE) || rate > most * (1.0 + TOLERANCE) {
            return Err(format!(
                "has {} of {rate:.4}, and its other figures give {least:.4} to {most:.4}",
                of_qp("gbit_per_s")
            ));
        }
        latency(&of_qp("latency"), qp.latency_ns.as_ref())?;
        latency(&of_qp("service time"), qp.service_ns.as_ref())?;
        latency(&of_qp("lateness"), qp.lateness_ns.as_ref())?;
    }
    Ok(())
}

/// The shortest and the longest window of a flow and its node's workers.
fn windows(run: &Run, moved: &FlowResult) -> [f64; 2] {
    let all = || {
        let workers = run.node(&moved.from).into_iter().flat_map(|it| &it.workers);
        let of_workers = workers.filter_map(|worker| worker.window_seconds);
        of_workers.chain([moved.window.seconds])
    };
    [
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    ]
}

fn bandwidth(told: Option<&Bandwidth>) -> Found {
    let Some(told) = told else { return Ok(()) };
    positive("an interval of bandwidth (s)", told.interval_seconds)?;
    let figure = |name, value: Option<f64>| Some((name, value?));
    let rising = [
        figure("min", Some(told.min)),
        figure("p1", told.p1),
        figure("p50", told.p50),
        figure("p99", told.p99),
        figure("max", Some(told.max)),
    ];
    let rising: Vec<_> = rising.into_iter().flatten().collect();
    distribution("bandwidth", "Gb/s", &rising, told.mean, told.stddev)
}

/// Jain's index and the extreme shares, which follow from the QPs' bytes. One QP alone has none.
fn fairness(settings: &Settings, moved: &FlowResult) -> Found {
    let Some(told) = &moved.fairness else {
        return match moved.totals.messages {
            _ if settings.qps < 2 => Ok(()),
            0 => Ok(()),
            messages => Err(format!("lacks the fairness of its {messages} messages")),
        };
    };
    let Fairness {
        jain,
        min_share,
        max_share,
        ..
    } = *told;
    for (what, value) in [
        ("fairness", jain),
        ("a least share", min_share),
        ("a largest share", max_share),
    ] {
        not_negative(what, value)?;
    }
    let slack = FAIRNESS_TOLERANCE;
    if jain > 1.0 + slack || min_share > 1.0 + slack || max_share < 1.0 - slack {
        return Err(format!(
            "has fairness {jain} with shares from {min_share} to {max_share}"
        ));
    }
    let count = moved.qps.len() as f64;
    let amounts = moved.qps.iter().map(|qp| qp.bytes as f64);
    let (sum, squares): (f64, f64) = amounts.fold((0.0, 0.0), |(sum, squares), amount| {
        (sum + amount, squares + amount * amount)
    });
    if squares == 0.0 {
        return Ok(());
    }
    let expected = sum * sum / (count * squares);
    match (jain - expected).abs() <= slack {
        true => Ok(()),
        false => Err(format!(
            "has fairness {jain:.4}, and its QPs give {expected:.4}"
        )),
    }
}

/// A node's workers saw the messages of the flows that it posts; where it posts none, those that it received.
fn workers(run: &Run, node: &NodeResult) -> Found {
    if node.workers.is_empty() {
        return Ok(());
    }
    let posted = || run.flows_from(&node.name);
    let received = run.flows.iter().filter(|flow| flow.to == node.name);
    let received = received.filter_map(|flow| flow.received.as_ref());
    let messages: u128 = match posted().next() {
        Some(_) => posted().map(|flow| u128::from(flow.totals.messages)).sum(),
        None => received.map(|it| u128::from(it.messages)).sum(),
    };
    let longest = run.flows.iter().map(|flow| flow.window.seconds);
    let longest = longest.fold(0.0, f64::max);
    let all = &node.workers;
    let sum = all.iter().map(|worker| u128::from(worker.messages)).sum();
    equals("messages", messages, "its workers", sum)?;
    let machine = node.machine_cpu_seconds.unwrap_or_default();
    not_negative("CPU time of the machine (s)", machine)?;
    let engine = node.engine_cpu_seconds.unwrap_or_default();
    not_negative("CPU time of the device (s)", engine)?;
    for worker in all {
        if worker.empty_polls > worker.polls {
            let (empty, polls) = (worker.empty_polls, worker.polls);
            return Err(format!("has a worker with {empty} empty polls of {polls}"));
        }
        let window = worker.window_seconds.unwrap_or(longest);
        not_negative("a worker's window (s)", window)?;
        let away = worker.away_seconds.unwrap_or_default();
        not_negative("a worker's time away (s)", away)?;
        if is_longer(away, window) {
            return Err(format!(
                "has a worker that was away for {away:.3} s of {window:.3} s"
            ));
        }
        let Some(seconds) = worker.cpu_seconds else {
            continue;
        };
        not_negative("CPU time (s)", seconds)?;
        if is_longer(seconds, window) {
            return Err(format!(
                "has a worker that used {seconds:.3} s of CPU time in {window:.3} s"
            ));
        }
    }
    Ok(())
}

fn limits(told: &Limits, rate: Option<f64>) -> Found {
    positive("a link (Gb/s)", told.link_gbit_per_s)?;
    positive("a protocol's efficiency", told.protocol_efficiency)?;
    if told.protocol_efficiency > 1.0 {
        return Err(format!(
            "has a protocol's efficiency of {}, above 1",
            told.protocol_efficiency
        ));
    }
    let expected = rate.and_then(|rate| told.share_of(rate));
    follows(
        "a share of the limit",
        told.share_of_limit,
        expected,
        false,
        TOLERANCE,
    )
}

fn set_up(config: &CaseConfig, told: &Connect) -> Found {
    not_negative("time of set-up (s)", told.seconds)?;
    let all = u128::from(told.rounds) * u128::from(config.qps);
    equals(
        "connections",
        told.connections,
        "its rounds of all QPs",
        all,
    )?;
    let expected = (told.seconds > 0.0).then(|| told.connections as f64 / told.seconds);
    let is_needed = told.rounds > 0;
    follows(
        "connections a second",
        told.connections_per_second,
        expected,
        is_needed,
        TOLERANCE,
    )?;
    if is_needed && told.setup_ns.is_none() {
        return Err(format!("lacks the times of its {} rounds", told.rounds));
    }
    latency("set-up", told.setup_ns.as_ref())?;
    for step in told.steps.iter().chain(&told.peer_steps) {
        latency(&format!("{} of set-up", step.step), Some(&step.time_ns))?;
    }
    let alone = told.traffic_alone_gbit_per_s;
    alone.map_or(Ok(()), |it| not_negative("traffic alone (Gb/s)", it))
}

#[cfg(test)]
#[path = "contradiction_tests.rs"]
mod tests;
