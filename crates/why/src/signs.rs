//! What rows of the table of causes read from the evidence: losses, packets, what is in flight, and which node lacks what.

use results::model::{NodeFact, PathEventKind};
use results::numbers::fixed;

use crate::causes::{Weight, known};
use crate::effect::Effect::{self, Anything, Halved, Slower};
use crate::evidence::Evidence;

pub(crate) fn one_qp(evidence: &Evidence<'_>) -> Weight {
    // Where packets are lost, more QPs help too: each waits for its own losses alone.
    let are_lost = evidence.losses().is_some_and(|losses| losses.lost >= LEAST_LOST);
    known(evidence.case.ping_pong || are_lost, Weight::Against, Weight::Open)
}

pub(crate) fn of_losses(evidence: &Evidence<'_>) -> Weight {
    match evidence.losses() {
        None => Weight::Open,
        Some(_) => known(has_losses(evidence), Weight::Shown, Weight::Against),
    }
}

/// As [`of_losses`], for packets that do not come at all.
pub(crate) fn of_lost(evidence: &Evidence<'_>) -> Weight {
    known(comes_late(evidence) == Some(true), Weight::Against, of_losses(evidence))
}

/// Whether packets that a receiver missed came after all: then it has most of a flight twice for each, as they are sent again.
/// `None` where it has some twice, which probes and lost ACKs do too, and of READs, whose requests are sent again whatever
/// happened to the answers.
pub(crate) fn comes_late(evidence: &Evidence<'_>) -> Option<bool> {
    let lost = evidence.losses().filter(|_| !fetches(evidence))?.lost;
    let events = evidence.runs.iter().flat_map(|run| &run.path_events);
    let at_target = events.filter(|event| event.node == evidence.target());
    let twice: u64 = at_target
        .filter(|event| event.kind == PathEventKind::Resent)
        .map(|event| event.count)
        .sum();
    if twice > 3 * lost { Some(true) } else { (4 * twice < lost).then_some(false) }
}

/// Whether losses take a part of the time that matters: go-back-N sends all behind a lost packet again. Where the receiver was
/// not ready packets behind the refused one come out of order, and nothing is lost.
pub(crate) fn has_losses(evidence: &Evidence<'_>) -> bool {
    let (Some(losses), Some(flow)) = (evidence.losses(), evidence.flow()) else { return false };
    let behind = f64::from(flow.tx_depth) * f64::from(packets(evidence));
    let sent_again = losses.ppm() * 1e-6 * behind;
    // 4.096 µs, doubled so often (InfiniBand specification 9.7.6.1.3).
    let ack_timeout_seconds = 4.096e-6 * f64::from(flow.timeout.min(31)).exp2();
    let waited = waiting_share(evidence, PathEventKind::AckTimeout, ack_timeout_seconds);
    losses.lost >= LEAST_LOST && sent_again.max(waited) > 0.05 && !is_not_ready(evidence)
}

/// Fewer do not matter, or are another's.
pub(crate) const LEAST_PAUSES: u64 = 10;

/// Fewer lost packets are chance.
pub(crate) const LEAST_LOST: u64 = 10;

pub(crate) fn is_not_ready(evidence: &Evidence<'_>) -> bool {
    let kind = PathEventKind::ReceiverNotReady;
    let takes_long = evidence.case.min_rnr_timer == 0
        && waiting_share(evidence, kind, LONGEST_RNR_WAIT_SECONDS) > 0.05;
    evidence.count(kind) >= LEAST_LOST || takes_long
}

/// What a minimal RNR NAK timer of 0 means (InfiniBand specification, table 45).
const LONGEST_RNR_WAIT_SECONDS: f64 = 0.65536;

/// Part of the time of all QPs for which they waited, if each event is a wait of so many seconds.
fn waiting_share(evidence: &Evidence<'_>, kind: PathEventKind, wait_seconds: f64) -> f64 {
    let a_run = evidence.count(kind) as f64 / evidence.runs.len().max(1) as f64;
    let window_seconds = evidence.over_runs(|run| Some(run.flows.first()?.window.seconds));
    let qps = evidence.flow().map_or(1, |flow| flow.qps.max(1));
    a_run * wait_seconds / (window_seconds.unwrap_or(1.0) * f64::from(qps))
}

pub(crate) fn fetches(evidence: &Evidence<'_>) -> bool {
    evidence.case.op.profile().fetches && !evidence.case.ping_pong
}

/// Whether a message of half the size still has as many packets of the same size a byte.
pub(crate) fn is_many_packets(evidence: &Evidence<'_>) -> bool {
    evidence.flow().is_some_and(|flow| flow.size_bytes / 2 >= evidence.situation.mtu_bytes(flow))
}

/// What packets of half the size do to a case whose packets are counted.
pub(crate) fn by_packets(evidence: &Evidence<'_>) -> Effect {
    let Some(flow) = evidence.flow() else { return Anything };
    let mtu = evidence.situation.mtu_bytes(flow).max(2);
    let [now, then] = [mtu, mtu / 2].map(|mtu| flow.size_bytes.div_ceil(mtu).max(1));
    match f64::from(then) / f64::from(now) {
        1.8.. => Halved,
        1.3.. => Slower,
        _ => Anything,
    }
}

/// Packets of a message of the first flow.
pub(crate) fn packets(evidence: &Evidence<'_>) -> u32 {
    evidence.flow().map_or(1, |flow| {
        flow.size_bytes.div_ceil(evidence.situation.mtu_bytes(flow).max(1)).max(1)
    })
}

pub(crate) fn messages_in_flight(evidence: &Evidence<'_>) -> u64 {
    evidence.flow().map_or(0, |flow| u64::from(flow.qps) * u64::from(flow.tx_depth))
}

pub(crate) fn reads(evidence: &Evidence<'_>) -> Option<u32> {
    let flow = evidence.flow()?;
    flow.max_rd_atomic
        .map(u32::from)
        .or_else(|| evidence.situation.least(flow, |port| port.max_reads))
}

/// Packets of payload that all flows send, a second.
pub(crate) fn packets_per_s(evidence: &Evidence<'_>) -> Option<f64> {
    let flow = evidence.flow()?;
    let bits_per_s = evidence.gbit_per_s()? * 1e9;
    Some(bits_per_s / 8.0 / f64::from(flow.size_bytes.max(1)) * f64::from(packets(evidence)))
}

/// What a flow keeps in flight, such as `16 READs of 64 KiB`.
pub(crate) fn in_flight(evidence: &Evidence<'_>) -> String {
    let Some(flow) = evidence.flow() else { return String::new() };
    let messages = messages_in_flight(evidence);
    let noun = if messages == 1 { "message" } else { "messages" };
    format!("{messages} {noun} of {}", flow.sizes_text())
}

pub(crate) fn round_trip(evidence: &Evidence<'_>) -> String {
    evidence
        .p50_ns()
        .map_or_else(|| "too long".to_owned(), |ns| format!("{} \u{b5}s", fixed(ns / 1e3, 1)))
}

/// Which node lacks CPU time, and why.
pub(crate) fn missing_cpu(evidence: &Evidence<'_>) -> Option<String> {
    let highest = |fact, least: f64| evidence.highest(fact).filter(|(_, mean)| *mean > least);
    if let Some((node, share)) = highest(NodeFact::Throttled, 0.02) {
        let percent = fixed(share * 100.0, 0);
        return Some(format!("A quota of CPU time stops {node} for {percent} % of the time."));
    }
    if let Some((node, cpus)) = highest(NodeFact::CpusStolen, 0.1) {
        return Some(format!(
            "The hypervisor of {node} gives {} CPUs to other machines.",
            fixed(cpus, 1)
        ));
    }
    let (node, waiting) = highest(NodeFact::WorkersWaiting, 0.1)?;
    Some(format!("Workers of {node} wait for a core: {} of them on average.", fixed(waiting, 1)))
}

pub(crate) fn slow_part(evidence: &Evidence<'_>) -> Option<String> {
    let situation = evidence.situation;
    let parts = situation.ports.iter().zip(&situation.names);
    let mut slow = parts.filter_map(|(port, name)| Some((name, port.slow_parts.first()?)));
    slow.next().map(|(name, part)| format!("{name} has {part}."))
}
