//! Whether a node's report can be right: it tells of the node's ends of flows and of all their QPs, of what the case asks
//! for, and its figures follow from each other. It is checked when it comes; one that cannot be right fails the run before
//! a figure of it counts. It must not judge what is only unlikely, as the window of a worker that was away.

use node::memory_place::named;
use node::needs::EndRoles;
use node::outcome::LENGTH_MATTERS;
use plan::{Case, Flow, Side};
use protocol::failure::RunFailure;
use protocol::node_report::{EndReport, NodeReport, SetUpReport};
use results::model::{
    Bandwidth, Device, DoubtKind, Fairness, FlowResult, Latency, Load, NodeState, QpResult,
    Received, gbit_per_s, mmsg_per_s,
};
use settings::{Access, Arrivals, MemoryPlace, RecvQueue, Spread, Stop};

/// By how much figures may differ from what others give, as a part of them: readers of JSON may lose the last digit.
const ROUNDING: f64 = 1e-9;

/// Beyond so many standard deviations no Poisson count is.
const DEVIATIONS: f64 = 8.0;

/// The most often that a packet of an unreliable service comes: deliberate faults of each end may double it.
const MOST_COPIES: u128 = 4;

/// What cannot be, as a clause.
type Check = Result<(), String>;

/// The failure of a run of which a node reports what cannot be.
pub(crate) fn failure(node: &str, reason: &str) -> RunFailure {
    let hint = "its figures are left out: run again, with the same version of rocebench at all nodes; if it stays so, \
                look at `dmesg` there and report it";
    RunFailure::new(format!("the report of {node} cannot be right: {reason}"), Some(hint.into()))
}

/// Whether a report has the ends of flows of node number `node`, each with all of its QPs, or the promise of them.
pub(crate) fn check_ends(case: &Case, node: u32, report: &NodeReport) -> Check {
    let expected = case.ends_at(node).map(|(number, _, side)| (number, side));
    let reported = report.ends.iter().map(|end| (end.flow as usize, end.side));
    ensure(expected.eq(reported), || "it tells of flows that are not its own".to_owned())?;
    for_ends(case, node, report, |flow, _, end| {
        let listed = end.sent.as_ref().map_or(0, |sent| sent.qps.len());
        let promised = end.sent.as_ref().map_or(flow.qps, |_| end.qps);
        for (what, count) in [
            ("QPs", promised as usize),
            ("QPs with posted messages", end.posted_in_all.len()),
            ("QPs with received messages", end.received_in_all.len()),
        ] {
            ensure_same(what, count as u64, "the case has", flow.qps)?;
        }
        ensure(listed <= flow.qps as usize, || {
            format!("it lists {listed} QPs, and the case has {}", flow.qps)
        })
    })
}

/// Whether the figures of a node's report fit the case and each other. It has its ends and their QPs, the run went through
/// all its steps, and the node has told of `device` before.
pub(crate) fn check_figures(case: &Case, node: u32, device: &Device, report: &NodeReport) -> Check {
    let own = report.devices.first();
    ensure(own.is_some_and(|own| own.is_port_of(device)), || {
        let other = own.map_or("none", |own| &own.name);
        format!("its device is {other}, and was {}", device.name)
    })?;
    check_state(report.state.as_ref())?;
    for_ends(case, node, report, |flow, side, end| {
        check_end(flow, EndRoles::new(flow, side), end, case.is_set_up())
    })?;
    if case.is_set_up() {
        return report.set_up.as_ref().map_or(Ok(()), |set_up| check_set_up(case, node, set_up));
    }
    check_workers(case, node, report)
}

/// Whether each fact and each counter has a value for each interval.
fn check_state(state: Option<&NodeState>) -> Check {
    let Some(state) = state else {
        return Ok(());
    };
    let lengths = state.facts.values().map(Vec::len).chain(state.counters.values().map(Vec::len));
    for length in lengths {
        ensure_same(
            "values over time",
            length as u64,
            "it has intervals",
            state.at_seconds.len() as u64,
        )?;
    }
    Ok(())
}

/// Whether what both ends of each flow report can be. What one QP sent over a reliable service its peer received once.
pub(crate) fn check_both_ends(flow: &Flow, initiator: &EndReport, target: &EndReport) -> Check {
    if initiator.failure.is_some() || target.failure.is_some() {
        return Ok(());
    }
    ensure_same("the path MTU", initiator.mtu_bytes, "the other end has", target.mtu_bytes)?;
    if !flow.op.profile().receives {
        return Ok(());
    }
    let there = (&initiator.posted_in_all, &target.received_in_all);
    let back = (&target.posted_in_all, &initiator.received_in_all);
    for (posted, arrived) in [there, back] {
        if flow.ud_fan_out {
            ensure_arrivals("the QPs", sum(posted), sum(arrived))?;
            continue;
        }
        for (qp, (&sent, &received)) in posted.iter().zip(arrived).enumerate() {
            if flow.service.is_reliable() {
                ensure(sent == received, || {
                    format!("QP {qp} sent {sent} messages and its peer received {received}")
                })?;
            } else {
                ensure_arrivals(&format!("QP {qp}"), sent.into(), received.into())?;
            }
        }
    }
    Ok(())
}

fn ensure_arrivals(who: &str, sent: u128, received: u128) -> Check {
    ensure(received <= sent * MOST_COPIES, || {
        format!("{who} sent {sent} messages and the peer received {received}")
    })
}

/// Checks each end, and says of which flow a case's several are.
fn for_ends(
    case: &Case,
    node: u32,
    report: &NodeReport,
    check: impl Fn(&Flow, Side, &EndReport) -> Check,
) -> Check {
    for ((_, flow, side), end) in case.ends_at(node).zip(&report.ends) {
        // What failed alone has no figures.
        if case.check.is_some() && end.failure.is_some() {
            continue;
        }
        check(flow, side, end).map_err(|reason| match case.flows.len() {
            1 => reason,
            _ => format!("{reason} (flow {})", flow.name),
        })?;
    }
    Ok(())
}

fn check_end(flow: &Flow, roles: EndRoles, end: &EndReport, is_set_up: bool) -> Check {
    // Beside set-ups only the traffic that goes from the leading node is measured.
    ensure(is_set_up || end.sent.is_some() == roles.initiates, || {
        "it tells of sending where it does not, or does not where it does".to_owned()
    })?;
    let receives = [end.received.is_some(), end.receive_queues.is_some()];
    ensure(receives == [roles.receives; 2], || {
        "it tells of receives where it has none, or does not where it has".to_owned()
    })?;
    let place = named(flow, end.side);
    let is_told_of = matches!(place, MemoryPlace::Dmabuf | MemoryPlace::Gpu(..));
    ensure(end.memory.is_none() || is_told_of, || {
        format!("it tells of other memory than --memory-at {place}")
    })?;
    if let Some(mtu) = flow.mtu {
        ensure_same("the path MTU", end.mtu_bytes, "--mtu is", mtu.bytes())?;
    }
    if let Some(sent) = &end.sent {
        check_sent(flow, end, sent, is_set_up)?;
    }
    if let Some(received) = &end.received {
        check_received(flow, end, received)?;
        // What is lost is not received, and an end that sends too counts from when it sends.
        if let Stop::MessagesPerQp(each) = flow.stop()
            && !(is_set_up || roles.initiates)
            && flow.service.is_reliable()
        {
            let wanted = u128::from(each) * u128::from(flow.qps);
            ensure_same("received messages", received.messages, "-n makes", wanted)?;
        }
    }
    if let Some(queues) = &end.receive_queues {
        let count = match flow.recv_queue {
            RecvQueue::PerQp => flow.qps,
            RecvQueue::Shared => 1,
        };
        ensure_same("receive queues", queues.queues, "the case has", count)?;
        ensure_same("receives", queues.receives, "the case has", flow.receives())?;
    }
    Ok(())
}

fn check_sent(flow: &Flow, end: &EndReport, sent: &FlowResult, is_set_up: bool) -> Check {
    let (totals, seconds) = (&sent.totals, sent.window.seconds);
    for ((index, qp), &posted) in (0_u32..).zip(&sent.qps).zip(&end.posted_in_all) {
        ensure_same("the index of a QP", qp.index, "its place is", index)?;
        ensure(qp.messages <= posted, || {
            format!("QP {index} completed {} messages of {posted} posted", qp.messages)
        })?;
        check_bytes(flow, "moved", qp.messages, qp.bytes)?;
    }
    ensure_same("messages", totals.messages, "its QPs have", sum_of(sent, |qp| qp.messages))?;
    ensure_same("bytes", totals.bytes, "its QPs have", sum_of(sent, |qp| qp.bytes))?;
    let is_off = end.doubts.iter().any(|doubt| doubt.kind == DoubtKind::WindowLength);
    let rates_differ_by = match flow.stop() {
        // Its windows are those of a phase, as long as the set-ups take.
        _ if is_set_up => None,
        Stop::MessagesPerQp(each) => {
            let wanted = u128::from(each) * u128::from(flow.qps);
            ensure_same("messages", totals.messages, "-n makes", wanted)?;
            let unequal = sent.qps.iter().find(|qp| qp.messages != each);
            if let Some(qp) = unequal.filter(|_| flow.spread == Spread::Own) {
                ensure_same(&format!("messages of QP {}", qp.index), qp.messages, "-n is", each)?;
            }
            Some(ROUNDING)
        }
        Stop::DurationNs(ns) => {
            let wanted = flow.on_ns(ns) as f64 * 1e-9;
            let is_long = (seconds / wanted - 1.0).abs() <= LENGTH_MATTERS + ROUNDING;
            ensure(is_off || is_long, || {
                format!(
                    "its window has {seconds} s instead of {wanted} s, and it says nothing of it"
                )
            })?;
            (!is_off).then_some(3.0 * LENGTH_MATTERS)
        }
    };
    let expected = (gbit_per_s(totals.bytes, seconds), mmsg_per_s(totals.messages, seconds));
    ensure_near("its throughput (Gb/s)", totals.gbit_per_s, expected.0, ROUNDING)?;
    ensure_near("its rate (Mmsg/s)", totals.mmsg_per_s, expected.1, ROUNDING)?;
    // A QP's is by the windows of the workers that served it.
    if let Some(part) = rates_differ_by {
        for qp in &sent.qps {
            let what = format!("the throughput of QP {} (Gb/s)", qp.index);
            ensure_near(&what, qp.gbit_per_s, gbit_per_s(qp.bytes, seconds), part)?;
        }
    }
    check_latencies(flow, end, sent)?;
    check_load(flow, sent)?;
    check_fairness(flow, sent)?;
    let length = match flow.stop() {
        _ if is_set_up || is_off => f64::INFINITY,
        Stop::DurationNs(ns) if flow.has_on_times() => ns as f64 * 1e-9,
        _ => seconds,
    };
    check_over_time(sent, length)?;
    if let Some(limits) = &sent.limits {
        let efficiency = limits.protocol_efficiency;
        ensure(limits.link_gbit_per_s > 0.0 && efficiency > 0.0 && efficiency <= 1.0, || {
            format!(
                "its link has {} Gb/s, of which {efficiency} is payload",
                limits.link_gbit_per_s
            )
        })?;
        let share = totals.gbit_per_s.and_then(|rate| limits.share_of(rate));
        ensure_near("its share of the link", limits.share_of_limit, share, ROUNDING)?;
    }
    let swaps = sum_of(sent, |qp| qp.swaps_made.unwrap_or(0));
    ensure(sent.swaps_made.is_some() == (flow.op.profile().access == Access::Swap), || {
        "it tells of exchanges where there are none, or does not where there are".to_owned()
    })?;
    ensure_same("exchanges", sent.swaps_made.unwrap_or(0), "its QPs have", swaps)
}

fn check_bytes(flow: &Flow, what: &str, messages: u64, bytes: u64) -> Check {
    let sizes = || flow.sizes().map(|(size, _)| u128::from(size) * u128::from(messages));
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    ensure((least..=most).contains(&bytes.into()), || {
        format!("it {what} {bytes} bytes in {messages} messages of {}", flow.sizes_text())
    })
}

fn check_latencies(flow: &Flow, end: &EndReport, sent: &FlowResult) -> Check {
    let is_planned = !flow.is_closed_loop();
    for (what, latency) in [
        ("latency", &sent.latency_ns),
        ("service time", &sent.service_ns),
        ("lateness", &sent.lateness_ns),
        ("time to notice", &sent.notice_ns),
    ] {
        check_latency(what, latency.as_ref(), is_planned)?;
    }
    let has_histograms = sent.qps.len() <= QpResult::MOST_HISTOGRAMS;
    for qp in sent.qps.iter().filter(|_| has_histograms) {
        for latency in [&qp.latency_ns, &qp.service_ns, &qp.lateness_ns] {
            check_latency(&format!("a time of QP {}", qp.index), latency.as_ref(), is_planned)?;
        }
    }
    ensure(sent.latency_ns.is_none() || !flow.no_latency, || {
        "it has latencies, and the case records none".to_owned()
    })?;
    let count = |latency: &Option<Latency>| latency.as_ref().map_or(0, |times| times.count);
    if is_planned {
        return Ok(());
    }
    let latencies = count(&sent.latency_ns);
    let of_qps = sum_of(sent, |qp| count(&qp.latency_ns));
    ensure_same("latencies", latencies, "its QPs have", of_qps)?;
    let posted = sum(&end.posted_in_all);
    ensure(u128::from(latencies) <= posted, || {
        format!("it has {latencies} latencies of {posted} messages posted")
    })
}

/// Its figures are those of its histogram. In an open loop those are absent that rocebench's own lateness spoils.
fn check_latency(what: &str, latency: Option<&Latency>, may_lack: bool) -> Check {
    let Some(latency) = latency else { return Ok(()) };
    let histogram = latency.histogram().map_err(|error| format!("{what}: {error}"))?;
    let expected = Latency::from_histogram(&histogram, latency.overflows).unwrap_or_default();
    let of_histogram = "its histogram has";
    for (name, reported, truth) in [
        ("samples", latency.count, expected.count),
        ("min", latency.min, expected.min),
        ("max", latency.max, expected.max),
        ("overflows", latency.overflows.saturating_sub(latency.count), 0),
    ] {
        ensure_same(&format!("{name} of {what}"), reported, of_histogram, truth)?;
    }
    for ((percentile, reported), (_, truth)) in latency.percentiles().zip(expected.percentiles()) {
        ensure(reported == truth || may_lack && reported.is_none(), || {
            let [reported, truth] =
                [reported, truth].map(|ns| ns.map_or("none".into(), |ns| ns.to_string()));
            format!("{} of {what} is {reported}, and {of_histogram} {truth}", percentile.name)
        })?;
    }
    for (name, reported, truth) in
        [("mean", latency.mean, expected.mean), ("deviation", latency.stddev, expected.stddev)]
    {
        ensure_near(&format!("the {name} of {what} (ns)"), Some(reported), Some(truth), ROUNDING)?;
    }
    Ok(())
}

/// An open loop has the load that was asked for, and tells what became of each message of it.
fn check_load(flow: &Flow, sent: &FlowResult) -> Check {
    let planned = flow.planned_rate().messages_per_second(flow.mean_bytes());
    let (wanted, load) = match (planned, &sent.load) {
        (None, None) => return Ok(()),
        (Some(wanted), Some(load)) => (wanted, load),
        (None, Some(_)) => return Err("it tells of a load, and the case has none".into()),
        (Some(_), None) => return Err("it tells of no load, and the case has one".into()),
    };
    ensure_near("its load (messages/s)", Some(load.asked_per_second), Some(wanted), ROUNDING)?;
    let Some(ns) = flow.window_ns() else { return Ok(()) };
    check_offered(load, flow, wanted, ns)?;
    let achieved = mmsg_per_s(sent.totals.messages, sent.window.seconds).unwrap_or(0.0) * 1e6;
    ensure_near("messages/s achieved", Some(load.achieved_per_second), Some(achieved), ROUNDING)?;
    for (what, count) in [
        ("messages never sent", load.never_sent),
        ("messages that waited for room", load.queue_full_messages),
        ("latencies", sent.latency_ns.as_ref().map_or(0, |times| times.count)),
        ("service times", sent.service_ns.as_ref().map_or(0, |times| times.count)),
        ("times of lateness", sent.lateness_ns.as_ref().map_or(0, |times| times.count)),
    ] {
        ensure(count <= load.offered, || {
            format!("it has {count} {what} of {} offered", load.offered)
        })?;
    }
    Ok(())
}

fn check_offered(load: &Load, flow: &Flow, wanted: f64, window_ns: u64) -> Check {
    let seconds = flow.on_ns(window_ns) as f64 * 1e-9;
    let stretches = flow.on_times().map_or(1, |times| times.until(window_ns).count());
    let (offered, mean) = (load.offered as f64, wanted * seconds);
    let slack = match flow.arrivals {
        Arrivals::Fixed => 0.0,
        Arrivals::Poisson => DEVIATIONS * mean.sqrt(),
    };
    // Each stretch may have one of each QP more or less.
    let rounded = f64::from(flow.qps) * stretches as f64;
    ensure((offered - mean).abs() <= slack + rounded + 1.0, || {
        format!("{offered} messages were offered, and --rate makes about {mean:.0}")
    })?;
    let rate = Some(offered / seconds);
    ensure_near("messages/s offered", Some(load.offered_per_second), rate, ROUNDING)
}

fn check_fairness(flow: &Flow, sent: &FlowResult) -> Check {
    let shares = match &flow.qp_weights {
        Some(weights) => weights.shares(),
        None => vec![1.0; sent.qps.len()],
    };
    let expected = Fairness::of_qps(&sent.qps, &shares, flow.slot_wrs());
    for (what, figure) in [
        ("Jain's index", (|it: &Fairness| it.jain) as fn(&Fairness) -> f64),
        ("its least share", |it| it.min_share),
        ("its largest share", |it| it.max_share),
        ("the count of starved QPs", |it| it.starved.len() as f64),
    ] {
        let [reported, truth] = [&sent.fairness, &expected].map(|it| it.as_ref().map(figure));
        ensure_near(what, reported, truth, ROUNDING)?;
    }
    Ok(())
}

/// The messages of the flow and of its QPs over time are all of them, within the window.
fn check_over_time(sent: &FlowResult, seconds: f64) -> Check {
    if let Some(timeline) = &sent.timeline {
        let (times, counts) = (&timeline.at_seconds, &timeline.messages);
        check_counts("its time line", times, counts, sent.totals.messages, seconds)?;
        let intervals = sent.bandwidth_gbit_per_s.as_ref().map_or(0, |it| it.count);
        ensure_same(
            "intervals of its bandwidth",
            intervals,
            "its time line has",
            times.len() as u64,
        )?;
    }
    if let Some(timeline) = &sent.qp_timeline {
        let lines = timeline.messages.len() as u64;
        ensure_same("time lines of QPs", lines, "there are", sent.qps.len() as u64)?;
        for (qp, counts) in sent.qps.iter().zip(&timeline.messages) {
            let what = format!("the time line of QP {}", qp.index);
            check_counts(&what, &timeline.at_seconds, counts, qp.messages, seconds)?;
        }
    }
    let Some(bandwidth) = &sent.bandwidth_gbit_per_s else { return Ok(()) };
    let histogram =
        bandwidth.histogram_kbit_per_s().map_err(|error| format!("bandwidth: {error}"))?;
    let expected = Bandwidth::from_histogram(bandwidth.interval_seconds, &histogram);
    let figures = |it: &Bandwidth| {
        [Some(it.count as f64), Some(it.min), it.p1, it.p50, it.p99, Some(it.max), Some(it.mean)]
    };
    let of_histogram = expected.as_ref().map_or([None; 7], figures);
    for (reported, truth) in figures(bandwidth).into_iter().zip(of_histogram) {
        ensure_near("a figure of its bandwidth", reported, truth, ROUNDING)?;
    }
    Ok(())
}

fn check_counts(what: &str, times: &[f64], counts: &[u64], messages: u64, seconds: f64) -> Check {
    ensure(times.len() == counts.len() && times.is_sorted(), || {
        format!(
            "{what} has {} times in disorder or not for its {} counts",
            times.len(),
            counts.len()
        )
    })?;
    let last = times.last().copied().unwrap_or(0.0);
    ensure(last <= seconds * (1.0 + 2.0 * LENGTH_MATTERS) + 0.05, || {
        format!("{what} ends at {last} s of {seconds} s")
    })?;
    ensure_same(&format!("messages of {what}"), sum(counts), "there are", messages)
}

fn check_received(flow: &Flow, end: &EndReport, received: &Received) -> Check {
    let in_all = sum(&end.received_in_all);
    ensure(u128::from(received.messages) <= in_all, || {
        format!("it received {} messages in the window and {in_all} in all", received.messages)
    })?;
    check_bytes(flow, "received", received.messages, received.bytes)?;
    let is_long = received.window_seconds.is_none_or(|seconds| seconds > 0.0);
    ensure(is_long, || "the window of what it received has no length".to_owned())
}

/// The workers saw what was sent; where nothing is, what was received.
fn check_workers(case: &Case, node: u32, report: &NodeReport) -> Check {
    let mut sets: Vec<u8> = case.ends_at(node).map(|(_, flow, _)| flow.worker_set).collect();
    sets.sort_unstable();
    sets.dedup();
    let most = u64::from(case.workers) * sets.len() as u64;
    let workers = report.workers.len() as u64;
    ensure(workers <= most, || format!("it has {workers} workers, and the case {most}"))?;
    let sent: Vec<u64> =
        report.ends.iter().filter_map(|end| Some(end.sent.as_ref()?.totals.messages)).collect();
    let received = report.ends.iter().filter_map(|end| Some(end.received.as_ref()?.messages));
    let answers =
        case.ends_at(node).any(|(_, flow, side)| side == Side::Target && flow.is_answered());
    let seen: Vec<u64> = report.workers.iter().map(|worker| worker.messages).collect();
    // Workers that send count their answers to other flows too.
    if sent.is_empty() || !answers {
        let moved = if sent.is_empty() { received.collect() } else { sent };
        ensure_same("messages of its workers", sum(&seen), "its flows have", sum(&moved))?;
    }
    let odd = report.workers.iter().find(|worker| worker.empty_polls > worker.polls);
    odd.map_or(Ok(()), |worker| {
        Err(format!("a worker's polls are {}, of which {} empty", worker.polls, worker.empty_polls))
    })
}

/// What came of rounds of set-up, at the node that leads them.
fn check_set_up(case: &Case, node: u32, set_up: &SetUpReport) -> Check {
    check_latency("set-up", set_up.setup_ns.as_ref(), false)?;
    for step in &set_up.steps {
        check_latency(&step.step, Some(&step.time_ns), false)?;
    }
    if node != 0 {
        return Ok(());
    }
    if let Stop::MessagesPerQp(rounds) = case.stop() {
        ensure_same("rounds", set_up.rounds, "-n is", rounds)?;
    }
    ensure(set_up.seconds > 0.0, || format!("its {} rounds took no time", set_up.rounds))?;
    let times = set_up.setup_ns.as_ref().map_or(0, |times| times.count);
    ensure_same("times of set-up", times, "there are rounds:", set_up.rounds)
}

fn ensure(is_possible: bool, reason: impl FnOnce() -> String) -> Check {
    if is_possible { Ok(()) } else { Err(reason()) }
}

fn ensure_same(
    what: &str,
    reported: impl Into<u128>,
    source: &str,
    expected: impl Into<u128>,
) -> Check {
    let (reported, expected) = (reported.into(), expected.into());
    ensure(reported == expected, || format!("{what}: {reported}, and {source} {expected}"))
}

/// A figure that follows from others, which give `expected` but for this part of it.
fn ensure_near(what: &str, reported: Option<f64>, expected: Option<f64>, tolerance: f64) -> Check {
    let is_near = match (reported, expected) {
        (Some(reported), Some(expected)) => {
            (reported - expected).abs() <= tolerance * expected.abs()
        }
        (reported, expected) => reported == expected,
    };
    let text = |figure: Option<f64>| figure.map_or("none".to_owned(), |it| it.to_string());
    ensure(is_near, || {
        format!("{what}: {}, and its other figures give {}", text(reported), text(expected))
    })
}

fn sum(counts: &[u64]) -> u128 {
    counts.iter().copied().map(u128::from).sum()
}

fn sum_of(sent: &FlowResult, figure: impl Fn(&QpResult) -> u64) -> u128 {
    sent.qps.iter().map(|qp| u128::from(figure(qp))).sum()
}
