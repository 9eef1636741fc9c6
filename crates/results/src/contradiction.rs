//! Figures of a run that cannot be: those that are below 0, that lack though what they follow from is there, or that
//! others in the same run deny. It must not judge a figure that is only unlikely, and knows no other run.

use serde::Serialize;
use serde_json::{Value, to_value};
use settings::Settings;
use statistics::shares;

use crate::model::{
    Bandwidth, CaseConfig, Connect, Delivery, FlowResult, Latency, Limits, Load, LoadSearch,
    LoadVerdict, NodeResult, ResultFile, Run, SearchEnd, TrialOutcome, can_tell, gbit_per_s,
    mmsg_per_s,
};
use crate::text::seconds_text;

/// By how much an index of fairness may differ.
const FAIRNESS_TOLERANCE: f64 = 0.005;

/// By how much a figure may differ from what it follows from, as a part of it.
const TOLERANCE: f64 = 0.02;

/// Times on two clocks, the CPU's and the wall's, may differ by this part, and by this many seconds.
const CLOCK_TOLERANCE: f64 = 0.1;
const CLOCK_TOLERANCE_SECONDS: f64 = 0.05;

/// Windows of the workers may differ by 2 % in length before a run is doubtful, and from the one that was planned.
const WINDOWS_DIFFER: f64 = 0.05;

/// Notes in each run of a result what is impossible in it.
pub fn note(result: &mut ResultFile) {
    for case in &mut result.cases {
        for run in &mut case.runs {
            run.contradiction = check_run(&case.config, run).err();
        }
    }
}

/// What is impossible in a search, as the rest of a sentence that begins with it; `None` when nothing is.
pub fn of_search(search: &LoadSearch) -> Option<String> {
    check_search(search).err()
}

/// What is impossible in a run, as the rest of a sentence that begins with the run.
fn check_run(config: &CaseConfig, run: &Run) -> Check {
    ensure_none_negative(run)?;
    for (index, moved) in run.flows.iter().enumerate() {
        let found = check_flow(&config.flow(index), run, moved);
        found.map_err(|reason| match config.flow_label(&moved.name) {
            "" => reason,
            name => format!("{reason} (flow {name})"),
        })?;
    }
    run.nodes.iter().try_for_each(|node| check_workers(run, node))?;
    run.connect.as_ref().map_or(Ok(()), |connect| check_set_up(config, connect))
}

fn check_flow(settings: &Settings, run: &Run, moved: &FlowResult) -> Check {
    let (totals, seconds) = (&moved.totals, moved.window.seconds);
    check_bytes(settings, "moved", totals.messages, totals.bytes)?;
    check_qps(run, moved)?;
    let is_moving = totals.messages > 0;
    for (what, rate, expected) in [
        ("gbit_per_s", totals.gbit_per_s, gbit_per_s(totals.bytes, seconds)),
        ("mmsg_per_s", totals.mmsg_per_s, mmsg_per_s(totals.messages, seconds)),
    ] {
        ensure_follows(what, rate, expected, is_moving)?;
    }
    for (what, times) in [
        ("latency", &moved.latency_ns),
        ("service time", &moved.service_ns),
        ("lateness", &moved.lateness_ns),
        ("notice", &moved.notice_ns),
    ] {
        check_latency(what, times.as_ref())?;
    }
    check_load(settings, moved)?;
    check_bandwidth(moved.bandwidth_gbit_per_s.as_ref())?;
    check_fairness(settings, moved)?;
    if let Some(received) = &moved.received {
        check_bytes(settings, "received", received.messages, received.bytes)?;
        ensure_positive("the receiver's window", received.window_seconds)?;
    }
    if let Some(delivery) = &moved.delivery {
        check_delivery(delivery, moved)?;
    }
    if let Some(limits) = &moved.limits {
        check_limits(limits, moved.gbit_per_s())?;
    }
    let [_, window] = windows(run, moved);
    check_timeline(moved, window)?;
    check_qp_timeline(moved, window)
}

/// A message may come twice, but not be lost without having been sent.
fn check_delivery(delivery: &Delivery, moved: &FlowResult) -> Check {
    let (sent, lost) = (delivery.sent, delivery.lost);
    ensure_at_most("lost messages", lost, "that were sent", sent)?;
    let share = Some(Delivery::share(lost, sent));
    ensure_follows("a share of lost messages", Some(delivery.lost_share), share, true)?;
    let lost_by_qp: Option<Vec<u64>> = moved.qps.iter().map(|qp| qp.lost).collect();
    if let Some(lost_by_qp) = lost_by_qp.filter(|counts| !counts.is_empty()) {
        let sum = lost_by_qp.iter().map(|count| u128::from(*count)).sum();
        ensure_equal("lost messages", lost, "its QPs", sum)?;
    }
    // In traffic both ways the receiver's counts of the window are in no file.
    let Some(received) = &moved.received else {
        return Ok(());
    };
    let seconds = received.window_seconds.unwrap_or(moved.window.seconds);
    if seconds > 0.0 {
        let expected_gbit = gbit_per_s(received.bytes, seconds);
        ensure_follows("goodput (Gb/s)", delivery.goodput_gbit_per_s, expected_gbit, true)?;
        let expected_mmsg = mmsg_per_s(received.messages, seconds);
        ensure_follows("goodput (Mmsg/s)", delivery.goodput_mmsg_per_s, expected_mmsg, true)?;
    }
    Ok(())
}

fn check_bytes(settings: &Settings, what: &str, messages: u64, bytes: u64) -> Check {
    let sizes: Vec<u128> = settings.sizes().map(|(size, _)| size.into()).collect();
    let [least, most] = [sizes.iter().min(), sizes.iter().max()]
        .map(|size| u128::from(messages) * size.copied().unwrap_or(0));
    ensure((least..=most).contains(&bytes.into()), || {
        let size = match &settings.size_mix {
            Some(mix) => mix.to_string(),
            None => format!("{} bytes", settings.size_bytes),
        };
        format!("{what} {bytes} bytes in {messages} messages of {size}")
    })
}

/// The QPs make up the totals. Files may leave them out to be small.
fn check_qps(run: &Run, moved: &FlowResult) -> Check {
    if moved.qps.is_empty() {
        return Ok(());
    }
    let messages = moved.qps.iter().map(|qp| u128::from(qp.messages)).sum();
    ensure_equal("messages", moved.totals.messages, "its QPs", messages)?;
    let bytes = moved.qps.iter().map(|qp| u128::from(qp.bytes)).sum();
    ensure_equal("bytes", moved.totals.bytes, "its QPs", bytes)?;
    for qp in &moved.qps {
        let index = qp.index;
        let Some(rate) = qp.gbit_per_s else { continue };
        // It is by the windows of the workers that served it.
        let [most, least] = windows(run, moved).map(|seconds| gbit_per_s(qp.bytes, seconds));
        let (least, most) = (least.unwrap_or(0.0), most.unwrap_or(f64::INFINITY));
        let possible = least * (1.0 - TOLERANCE)..=most * (1.0 + TOLERANCE);
        ensure(possible.contains(&rate), || {
            format!(
                "has gbit_per_s of QP {index} of {rate:.4}, and its other figures give {least:.4} to {most:.4}"
            )
        })?;
        check_latency(&format!("latency of QP {index}"), qp.latency_ns.as_ref())?;
        check_latency(&format!("service time of QP {index}"), qp.service_ns.as_ref())?;
        check_latency(&format!("lateness of QP {index}"), qp.lateness_ns.as_ref())?;
    }
    Ok(())
}

/// The shortest and the longest window of a flow and its node's workers.
fn windows(run: &Run, moved: &FlowResult) -> [f64; 2] {
    run.node(&moved.from)
        .into_iter()
        .flat_map(|node| &node.workers)
        .filter_map(|worker| worker.window_seconds)
        .fold([moved.window.seconds; 2], |[least, most], seconds| {
            [least.min(seconds), most.max(seconds)]
        })
}

/// Jain's index and the extreme shares, which follow from the QPs' bytes. One QP alone has none.
fn check_fairness(settings: &Settings, moved: &FlowResult) -> Check {
    let Some(fairness) = &moved.fairness else {
        let messages = moved.totals.messages;
        return ensure(settings.qps < 2 || messages == 0, || {
            format!("lacks the fairness of its {messages} messages")
        });
    };
    let (jain, least, most) = (fairness.jain, fairness.min_share, fairness.max_share);
    let slack = FAIRNESS_TOLERANCE;
    let is_possible = jain <= 1.0 + slack && least <= 1.0 + slack && most >= 1.0 - slack;
    ensure(is_possible, || format!("has fairness {jain} with shares from {least} to {most}"))?;
    let bytes: Vec<f64> = moved.qps.iter().map(|qp| qp.bytes as f64).collect();
    let Some(expected) = shares(&bytes).map(|shares| shares.jain) else {
        return Ok(());
    };
    ensure((jain - expected).abs() <= slack, || {
        format!("has fairness {jain:.4}, and its QPs give {expected:.4}")
    })
}

/// A node's workers saw the messages of the flows that it posts; where it posts none, those that it received.
fn check_workers(run: &Run, node: &NodeResult) -> Check {
    if node.workers.is_empty() {
        return Ok(());
    }
    let messages: u128 = if run.flows_from(&node.name).next().is_some() {
        run.flows_from(&node.name).map(|flow| u128::from(flow.totals.messages)).sum()
    } else {
        let flows = run.flows.iter().filter(|flow| flow.to == node.name);
        let received = flows.filter_map(|flow| flow.received.as_ref());
        received.map(|received| u128::from(received.messages)).sum()
    };
    let sum = node.workers.iter().map(|worker| u128::from(worker.messages)).sum();
    ensure_equal("messages", messages, "its workers", sum)?;
    let longest = run.flows.iter().map(|flow| flow.window.seconds).fold(0.0, f64::max);
    for worker in &node.workers {
        ensure_at_most("empty polls", worker.empty_polls, "polls", worker.polls)?;
        let window = worker.window_seconds.unwrap_or(longest);
        let [away, cpu] = [worker.away_seconds, worker.cpu_seconds].map(Option::unwrap_or_default);
        ensure_not_longer("a worker's time away", away, window)?;
        ensure_not_longer("a worker's CPU time", cpu, window)?;
    }
    Ok(())
}

fn check_limits(limits: &Limits, rate: Option<f64>) -> Check {
    ensure_positive("a link (Gb/s)", limits.link_gbit_per_s)?;
    let efficiency = limits.protocol_efficiency;
    ensure_positive("a protocol's efficiency", efficiency)?;
    ensure(efficiency <= 1.0, || format!("has a protocol's efficiency of {efficiency}, above 1"))?;
    let expected = rate.and_then(|rate| limits.share_of(rate));
    ensure_follows("a share of the limit", limits.share_of_limit, expected, false)
}

fn check_set_up(config: &CaseConfig, connect: &Connect) -> Check {
    let (rounds, connections) = (connect.rounds, connect.connections);
    let qps_of_rounds = u128::from(rounds) * u128::from(config.qps);
    ensure_equal("connections", connections, "its rounds of all QPs", qps_of_rounds)?;
    let expected = (connect.seconds > 0.0).then(|| connections as f64 / connect.seconds);
    let rate = connect.connections_per_second;
    ensure_follows("connections a second", rate, expected, rounds > 0)?;
    ensure(rounds == 0 || connect.setup_ns.is_some(), || {
        format!("lacks the times of its {rounds} rounds")
    })?;
    check_latency("set-up", connect.setup_ns.as_ref())?;
    for step in connect.steps.iter().chain(&connect.peer_steps) {
        check_latency(&format!("{} of set-up", step.step), Some(&step.time_ns))?;
    }
    Ok(())
}

/// A flow has a load where it was asked for one, and what was offered is what its histograms are of. It must not judge a
/// load that is only unlikely: after a stall more may complete in a window than was offered in it.
fn check_load(settings: &Settings, moved: &FlowResult) -> Check {
    let load = match (&moved.load, settings.is_closed_loop()) {
        (None, true) => return Ok(()),
        (Some(_), true) => return Err("has a load, and is a closed loop".to_owned()),
        (None, false) => return Err(format!("lacks the load of --rate {}", settings.rate)),
        (Some(load), false) => load,
    };
    check_requested_load(settings, load)?;
    check_load_rates(load, moved)?;
    let (offered, never, full) = (load.offered, load.never_sent, load.queue_full_messages);
    ensure_at_most("messages never sent", never, "offered", offered)?;
    ensure_at_most("messages at full send queues", full, "offered", offered)?;
    let sent = offered - never;
    let [latencies, services, latenesses] =
        [&moved.latency_ns, &moved.service_ns, &moved.lateness_ns]
            .map(|times| times.as_ref().map_or(0, |latency| latency.count));
    // Percentiles that rocebench's own lateness spoils are absent.
    let are_due = moved.latency_ns.is_some() || load.verdict != LoadVerdict::NotKept;
    if load.recorded_one_in <= 1 && are_due {
        ensure_equal("latencies", latencies, "there were offered", offered.into())?;
    }
    ensure_at_most("latencies", latencies, "messages offered", offered)?;
    // Where messages are many, these are of a random sample.
    for (what, times) in [("service times", services), ("times of lateness", latenesses)] {
        let is_possible = times <= sent && (times > 0 || sent == 0);
        ensure(is_possible, || format!("has {times} {what} of {sent} messages sent"))?;
    }
    check_service_before_latency(moved)
}

/// A load is what the settings say, in whole messages a second.
fn check_requested_load(settings: &Settings, load: &Load) -> Check {
    let (requested, maximum) = (load.asked_per_second, load.maximum_per_second);
    let rate = settings.rate;
    ensure_positive("a load (messages/s)", requested)?;
    ensure_positive("a closed loop's maximum (messages/s)", maximum)?;
    let expected = match rate.share() {
        None => rate.messages_per_second(settings.mean_bytes()),
        Some(share) => maximum.map(|maximum| maximum * share),
    }
    .ok_or_else(|| format!("lacks the maximum that --rate {rate} is a share of"))?;
    ensure((requested - expected).abs() <= 1.0 + 1e-6 * expected, || {
        format!(
            "has a load of {requested:.1} messages a second, and --rate {rate} is {expected:.1}"
        )
    })
}

fn check_load_rates(load: &Load, moved: &FlowResult) -> Check {
    let (seconds, completed) = (moved.window.seconds, moved.totals.messages);
    for (what, rate, messages) in [
        ("offered_per_second", load.offered_per_second, load.offered),
        ("achieved_per_second", load.achieved_per_second, completed),
    ] {
        // Of a window without length there is no rate to follow from.
        if seconds > 0.0 {
            ensure_near(what, rate, messages as f64 / seconds, WINDOWS_DIFFER)?;
        }
    }
    Ok(())
}

/// A message is posted when it was planned or later. So where both are of all messages, latency is at least service.
fn check_service_before_latency(moved: &FlowResult) -> Check {
    let (Some(latency), Some(service)) = (&moved.latency_ns, &moved.service_ns) else {
        return Ok(());
    };
    if latency.count != service.count {
        return Ok(());
    }
    for (name, latency_ns, service_ns) in [
        ("mean", Some(latency.mean), Some(service.mean)),
        ("p50", latency.p50.map(|ns| ns as f64), service.p50.map(|ns| ns as f64)),
        ("largest", Some(latency.max as f64), Some(service.max as f64)),
    ] {
        // Histograms know their samples to 1 %.
        if let (Some(latency_ns), Some(service_ns)) = (latency_ns, service_ns)
            && latency_ns < service_ns * 0.98
        {
            let limit = format!("below the {name} service time of {service_ns} ns");
            return Err(format!("has a {name} latency of {latency_ns} ns, {limit}"));
        }
    }
    Ok(())
}

/// A search's bounds are in order, and its trials say what it came to.
fn check_search(search: &LoadSearch) -> Check {
    ensure_none_negative(search)?;
    let maximum = search.maximum_per_second;
    ensure_positive("a closed loop's maximum (messages/s)", maximum)?;
    ensure_positive("trials (s)", search.trial_seconds)?;
    let (lower, upper) = (search.lower_per_second, search.upper_per_second);
    ensure_positive("a lower bound", lower)?;
    ensure_positive("an upper bound", upper)?;
    if let (Some(lower), Some(upper)) = (lower, upper)
        && lower > upper
    {
        return Err(format!("has a lower bound of {lower} above an upper bound of {upper}"));
    }
    for trial in &search.trials {
        ensure_positive("a trial's load (messages/s)", trial.asked_per_second)?;
    }
    let was_kept = search.trials.iter().any(|trial| trial.outcome == TrialOutcome::Kept);
    let reason = match (search.end, lower, upper) {
        (SearchEnd::Found, None, _) | (SearchEnd::Found, _, None) => {
            "found a load, and lacks one of its bounds"
        }
        (SearchEnd::AllKeep, None, _) => "lacks the load that keeps it",
        (SearchEnd::NoneKeeps, Some(_), _) => "says that no load keeps it, and has one that does",
        (SearchEnd::Found | SearchEnd::AllKeep, ..) if !was_kept => {
            "found a load that keeps it, and no trial kept it"
        }
        _ => return Ok(()),
    };
    Err(reason.to_owned())
}

/// The time of a flow's timeline goes on, within the window, and its messages are the total. How steady it is is not judged.
fn check_timeline(moved: &FlowResult, window: f64) -> Check {
    let Some(timeline) = &moved.timeline else {
        return Ok(());
    };
    let (what, ends) = ("a timeline", &timeline.at_seconds);
    check_times(what, timeline.interval_seconds, ends, window)?;
    if ends.is_empty() && timeline.messages.is_empty() {
        Ok(())
    } else {
        check_counts(what, ends, &timeline.messages, "messages", moved.totals.messages)
    }
}

/// The same of its QPs.
fn check_qp_timeline(moved: &FlowResult, window: f64) -> Check {
    let Some(timeline) = &moved.qp_timeline else {
        return Ok(());
    };
    let (what, ends) = ("a timeline of QPs", &timeline.at_seconds);
    check_times(what, timeline.interval_seconds, ends, window)?;
    let (timelines, qps) = (timeline.messages.len(), moved.qps.len());
    ensure_equal("QPs", qps as u64, "timelines of", timelines as u128)?;
    for (messages, qp) in timeline.messages.iter().zip(&moved.qps) {
        let counted = format!("messages on QP {}", qp.index);
        check_counts(what, ends, messages, &counted, qp.messages)?;
    }
    Ok(())
}

/// There is a count for each end of an interval, and all of them make the total.
fn check_counts(what: &str, ends: &[f64], counts: &[u64], counted: &str, total: u64) -> Check {
    let lengths = (ends.len(), counts.len());
    ensure(lengths.0 == lengths.1, || {
        format!("has {what} of {} times and {} counts", lengths.0, lengths.1)
    })?;
    let sum = counts.iter().map(|count| u128::from(*count)).sum();
    ensure_equal(counted, total, "its timeline", sum)
}

fn check_times(what: &str, interval: f64, ends: &[f64], window: f64) -> Check {
    ensure_positive(&format!("{what}'s interval (s)"), interval)?;
    let mut before = 0.0;
    for &at in ends {
        ensure(at > before, || {
            let (end, last_end) = (seconds_text(at), seconds_text(before));
            format!("has {what} in which {end} comes after {last_end}")
        })?;
        before = at;
    }
    ensure_not_longer(what, before, window)
}

/// What is impossible, as what the run "has" or "lacks".
type Check = Result<(), String>;

fn ensure(is_possible: bool, reason: impl FnOnce() -> String) -> Check {
    if is_possible { Ok(()) } else { Err(reason()) }
}

/// No figure is below 0, but the difference of two clocks. JSON has none that is not a number.
fn ensure_none_negative(figures: &impl Serialize) -> Check {
    fn first(value: &Value) -> Option<String> {
        match value {
            Value::Number(number) => {
                (number.as_f64()? < 0.0).then(|| format!(" of {number}, which is below 0"))
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .find_map(|(at, item)| Some(format!("[{at}]{}", first(item)?))),
            Value::Object(fields) => fields
                .iter()
                .filter(|(name, _)| *name != "clock")
                .find_map(|(name, field)| Some(format!(".{name}{}", first(field)?))),
            _ => None,
        }
    }
    match first(&to_value(figures).unwrap_or_default()) {
        Some(negative) => Err(format!("has {}", negative.trim_start_matches('.'))),
        None => Ok(()),
    }
}

/// A figure that is there is above 0.
fn ensure_positive(what: &str, figure: impl Into<Option<f64>>) -> Check {
    let value = figure.into().unwrap_or(f64::INFINITY);
    ensure(value > 0.0, || format!("has {what} of {value}, which is not above 0"))
}

/// A time on one clock is not longer than one on another.
fn ensure_not_longer(what: &str, seconds: f64, window: f64) -> Check {
    let most = window * (1.0 + CLOCK_TOLERANCE) + CLOCK_TOLERANCE_SECONDS;
    ensure(seconds <= most, || format!("has {what} of {seconds:.3} s in a window of {window:.3} s"))
}

/// A part is not more than its whole.
fn ensure_at_most(what: &str, part: u64, whole_name: &str, whole: u64) -> Check {
    ensure(part <= whole, || format!("has {part} {what} of {whole} {whole_name}"))
}

fn ensure_equal(what: &str, count: impl Into<u128>, parts: &str, sum: u128) -> Check {
    let total = count.into();
    ensure(total == sum, || format!("has {total} {what}, and {parts} {sum}"))
}

/// A figure is what others in the file say, but for this part of it.
fn ensure_near(what: &str, figure: f64, expected: f64, tolerance: f64) -> Check {
    ensure((figure - expected).abs() <= tolerance * expected.abs(), || {
        format!("has {what} of {figure:.4}, and its other figures give {expected:.4}")
    })
}

/// A figure that follows from others in the file, which say `expected`; it may lack only where it `is_needed` not.
fn ensure_follows(
    what: &str,
    figure: Option<f64>,
    expected: Option<f64>,
    is_needed: bool,
) -> Check {
    match (figure, expected) {
        (Some(figure), Some(expected)) => ensure_near(what, figure, expected, TOLERANCE),
        (Some(figure), None) => Err(format!("has {what} of {figure} in a time of 0 s")),
        (None, Some(expected)) if is_needed => {
            Err(format!("lacks {what}, which is {expected:.4} by its other figures"))
        }
        (None, _) => Ok(()),
    }
}

fn check_latency(what: &str, latency: Option<&Latency>) -> Check {
    let Some(latency) = latency else { return Ok(()) };
    let (count, overflows) = (latency.count, latency.overflows);
    ensure(overflows <= count, || {
        format!("has {what} with {overflows} overflows of {count} samples")
    })?;
    let mut rising = vec![(0.0, Some(latency.min as f64))];
    for (percentile, ns) in latency.percentiles() {
        rising.push((percentile.percent, ns.map(|ns| ns as f64)));
    }
    rising.push((100.0, Some(latency.max as f64)));
    check_distribution(what, "ns", (count, latency.mean), &rising)
}

fn check_bandwidth(bandwidth: Option<&Bandwidth>) -> Check {
    let Some(bandwidth) = bandwidth else { return Ok(()) };
    ensure_positive("an interval of bandwidth (s)", bandwidth.interval_seconds)?;
    let rising = [
        (0.0, Some(bandwidth.min)),
        (1.0, bandwidth.p1),
        (50.0, bandwidth.p50),
        (99.0, bandwidth.p99),
        (100.0, Some(bandwidth.max)),
    ];
    check_distribution("bandwidth", "Gb/s", (bandwidth.count, bandwidth.mean), &rising)
}

/// There are samples, and the percentiles for which they suffice; these rise, and the mean is between the ends.
fn check_distribution(
    what: &str,
    unit: &str,
    (count, mean): (u64, f64),
    rising: &[(f64, Option<f64>)],
) -> Check {
    ensure(count > 0, || format!("has {what} without a sample"))?;
    let (mut least, mut below) = (f64::INFINITY, (0.0, f64::NEG_INFINITY));
    for &(percent, value) in rising {
        let Some(value) = value else {
            ensure(!can_tell(count, percent / 100.0), || {
                format!("lacks {} of {what} with {count} samples", percentile_name(percent))
            })?;
            continue;
        };
        let (low, low_value) = below;
        ensure(low_value <= value, || {
            let [low_name, high_name] = [low, percent].map(percentile_name);
            format!(
                "has {what} with {low_name} {low_value} {unit} above {high_name} {value} {unit}"
            )
        })?;
        (least, below) = (least.min(value), (percent, value));
    }
    // A histogram knows its samples to 1 %.
    ensure((least * 0.99..=below.1 * 1.01).contains(&mean), || {
        format!("has a mean {what} of {mean} {unit}, outside its samples")
    })
}

fn percentile_name(percent: f64) -> String {
    match percent {
        ..=0.0 => "min".to_owned(),
        100.0.. => "max".to_owned(),
        _ => format!("p{percent}"),
    }
}

#[cfg(test)]
#[path = "contradiction_tests.rs"]
mod tests;
