//! Puts the reports of all nodes together to the result of a run, and checks that they fit each other.

use std::collections::BTreeMap;

use metrics::convergence;
use node::outcome::apart_doubt;
use plan::{Case, Flow, FlowDevice, Side};
use protocol::failure::RunFailure;
use protocol::message::WarmUp;
use protocol::node_report::{EndReport, NodeReport, SetUpReport};
use results::model::{
    CaseConfig, Connect, Delivery, Device, Doubt, DoubtKind, EndMemory, Failure, FlowConfig,
    FlowResult, NodeResult, REVERSE, Run, WireKind, gbit_per_s, mmsg_per_s, saturating_sum,
};
use settings::ConnectMode;

use super::links::{Clocks, Furthest, Member, Span, together};
use super::lock_step;
use super::nodes::{Node, place_of};
use super::report_check;

/// Flows whose windows overlap by a smaller part were not measured together.
const LEAST_OVERLAP: f64 = 0.95;

/// A run that is over.
pub(crate) struct Assembled {
    /// As it stands in the result.
    pub(crate) run: Run,
    /// Why it failed; `None` if it did not.
    pub(crate) failure: Option<RunFailure>,
    /// Devices of each node that its flows have asked for besides its own.
    pub(crate) devices: Vec<Vec<Device>>,
    /// What the ends of each flow agreed on, in the order of the case's flows; `None` of those that did not come so far.
    pub(crate) paths: Vec<Option<PathFacts>>,
    /// All nodes are done with the run, whatever came of it.
    pub(crate) goes_on: bool,
}

/// What was learnt of all nodes before they reported.
#[derive(Default)]
pub(crate) struct Learnt {
    pub(crate) warm_up: WarmUp,
    pub(crate) clocks: Clocks,
}

/// What the devices of two nodes can do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathFacts {
    pub(crate) mtu_bytes: u32,
    /// READs outstanding on one QP.
    pub(crate) outstanding_reads: u8,
    pub(crate) wire: Option<WireKind>,
}

/// What a flow with traffic both ways is called where it goes back.
fn name_of_reverse(flow: &Flow) -> String {
    let (name, rail) = match flow.name.find(Flow::OVER) {
        Some(at) => flow.name.split_at(at),
        None => (&*flow.name, ""),
    };
    match name {
        Flow::FORWARD => format!("{REVERSE}{rail}"),
        name => format!("{name} {REVERSE}{rail}"),
    }
}

/// The settings of a case and of its flows in the form of a result file. A bidirectional flow is told as two.
pub(crate) fn config(case: &Case, nodes: &[Node]) -> CaseConfig {
    let mut flows = Vec::new();
    for flow in &case.flows {
        let (from, to) = (nodes.get(flow.from as usize), nodes.get(flow.to as usize));
        let (from_name, to_name) =
            (from.map_or("", |node| &node.name), to.map_or("", |node| &node.name));
        let forward = FlowConfig {
            from_device: device_name(from, flow.device(Side::Initiator)),
            to_device: device_name(to, flow.device(Side::Target)),
            ..FlowConfig::new(&flow.name, from_name, to_name, case, flow)
        };
        let reverse = FlowConfig {
            name: name_of_reverse(flow),
            from: forward.to.clone(),
            to: forward.from.clone(),
            from_device: forward.to_device.clone(),
            to_device: forward.from_device.clone(),
            ..forward.clone()
        };
        flows.push(forward);
        if flow.bidirectional {
            flows.push(reverse);
        }
    }
    CaseConfig { settings: case.settings.clone(), flows, check: case.check.clone() }
}

/// The device that an end of a flow names, or else the one of its node.
fn device_name(node: Option<&Node>, named: Option<&FlowDevice>) -> Option<String> {
    match named {
        Some(device) => Some(device.name.clone()),
        None => Some(node?.facts.device.name.clone()),
    }
}

/// The result of a run, of which `blank` has the number and the beginning. `reports` come with the nodes' numbers.
pub(crate) fn assemble(
    nodes: &[Node],
    members: &[Member<'_>],
    case: &Case,
    blank: Run,
    learnt: &Learnt,
    mut reports: Vec<(usize, NodeReport)>,
    early_failure: Option<RunFailure>,
) -> Assembled {
    let goes_on =
        reports.len() == members.len() && early_failure.as_ref().is_none_or(|it| it.interrupted);
    let config = config(case, nodes);
    let set_up = reports
        .iter_mut()
        .find(|(node, _)| *node == 0)
        .and_then(|(_, report)| report.set_up.take());
    let mut run = Run {
        flows: config.flows.iter().map(FlowResult::new).collect(),
        nodes: members
            .iter()
            .map(|member| NodeResult {
                clock: learnt.clocks.node_clock(member.number),
                ..NodeResult::named(&member.node.name)
            })
            .collect(),
        ..blank
    };
    let paths = paths(case, &reports, set_up.as_ref());
    let step_failure = early_failure.or_else(|| {
        let mut flows = case.flows.iter().zip(0..);
        flows.find_map(|(flow, index)| {
            let initiator = end(&reports, index, Side::Initiator)?;
            unaccounted(flow, initiator, end(&reports, index, Side::Target)?)
        })
    });
    let windows = windows(case, &reports, &learnt.clocks);
    let of_ends = doubts_of_ends(case, &reports, &learnt.clocks);
    run.lock_step = lock_step::of_run(case, nodes, &reports);
    add_counters(nodes, &mut reports, &mut run);
    add_flows(case, nodes, &mut reports, of_ends, &mut run);
    add_doubts(nodes, &mut reports, &mut run);
    add_overlap(&windows, &mut run);
    for flow in &mut run.flows {
        let (seconds, steady) = match &set_up {
            Some(set_up) => (set_up.warmup_seconds, set_up.warmup_steady),
            None => (learnt.warm_up.seconds, learnt.warm_up.is_steady),
        };
        (flow.window.warmup_seconds, flow.window.warmup_steady) = (seconds, steady);
    }
    if let Some(set_up) = set_up.filter(|set_up| set_up.is_measured) {
        let other = reports
            .iter_mut()
            .find(|(node, _)| *node == 1)
            .and_then(|(_, report)| report.set_up.take());
        run.connect = Some(connect(case, set_up, other.unwrap_or_default()));
    }
    if !case.is_set_up() {
        let link_down_ns: Vec<(i64, i64)> =
            reports.iter().flat_map(|(_, report)| &report.link_down_ns).copied().collect();
        run.convergence = convergence(&config, &run.flows, &link_down_ns);
    }
    if !run.convergence.is_empty() {
        // Throughput changes as flows come and go, and as links fail and return.
        for flow in &mut run.flows {
            flow.window.doubts.retain(|doubt| doubt.kind != DoubtKind::Drift);
        }
    }
    let failure = step_failure.or_else(|| empty_window(case, &run));
    run.complete = failure.is_none();
    if let Some(failure) = &failure {
        run.interrupted = failure.interrupted;
        run.failure = Some(failure.to_result());
    }
    let mut devices = vec![Vec::new(); nodes.len()];
    for (node, report) in reports {
        devices[node] = report.devices;
    }
    Assembled { run, failure, devices, paths, goes_on }
}

/// The report of an end of a flow.
fn end(reports: &[(usize, NodeReport)], flow: usize, side: Side) -> Option<&EndReport> {
    let mut ends = reports.iter().flat_map(|(_, report)| &report.ends);
    ends.find(|end| end.flow as usize == flow && end.side == side)
}

fn paths(
    case: &Case,
    reports: &[(usize, NodeReport)],
    set_up: Option<&SetUpReport>,
) -> Vec<Option<PathFacts>> {
    let flows = (0..case.flows.len()).map(|index| {
        let end = end(reports, index, Side::Initiator).filter(|end| end.mtu_bytes > 0)?;
        Some(PathFacts {
            mtu_bytes: end.mtu_bytes,
            outstanding_reads: end.outstanding_reads,
            wire: end.wire,
        })
    });
    let of_rounds = set_up.and_then(|set_up| set_up.path).map(|(mtu_bytes, outstanding_reads)| {
        PathFacts { mtu_bytes, outstanding_reads, wire: None }
    });
    if case.flows.is_empty() { vec![of_rounds] } else { flows.collect() }
}

/// What the two ends of a flow report that cannot be together.
fn unaccounted(flow: &Flow, initiator: &EndReport, target: &EndReport) -> Option<RunFailure> {
    let hint = "completions were lost or doubled, or an end does not tell what is: look at both ends' `dmesg`, and report it";
    let reason = report_check::check_both_ends(flow, initiator, target).err()?;
    Some(RunFailure::new(reason, Some(hint.into())))
}

/// What a node did in a run.
fn result_of<'r>(node: Option<&Node>, run: &'r mut Run) -> Option<&'r mut NodeResult> {
    let name = &node?.name;
    run.nodes.iter_mut().find(|result| result.name == *name)
}

/// The windows of what was sent, by the coordinator's clock, each with its flow.
fn windows<'c>(
    case: &'c Case,
    reports: &[(usize, NodeReport)],
    clocks: &Clocks,
) -> Vec<(&'c Flow, Span)> {
    let mut windows = Vec::new();
    for (node, report) in reports {
        let node = u32::try_from(*node).unwrap_or(u32::MAX);
        for end in report.ends.iter().filter(|end| end.sent.is_some()) {
            if let Some(flow) = case.flows.get(end.flow as usize)
                && let Some(span) = end.window_ns.and_then(|ns| clocks.own_time(node, ns))
            {
                windows.push((flow, span));
            }
        }
    }
    windows
}

/// What both ends of each flow doubt, once of a kind, and whether they had too little of their windows together.
fn doubts_of_ends(
    case: &Case,
    reports: &[(usize, NodeReport)],
    clocks: &Clocks,
) -> Vec<Vec<Doubt>> {
    let mut of_flows: Vec<Vec<Doubt>> = vec![Vec::new(); case.flows.len()];
    for ((flow, doubts), number) in case.flows.iter().zip(&mut of_flows).zip(0..) {
        let ends: Vec<(usize, &NodeReport, &EndReport)> = reports
            .iter()
            .flat_map(|(node, report)| report.ends.iter().map(move |end| (*node, report, end)))
            .filter(|(.., end)| end.flow == number)
            .collect();
        for doubt in ends.iter().flat_map(|(.., end)| &end.doubts) {
            if !doubts.iter().any(|known| known.kind == doubt.kind) {
                doubts.push(doubt.clone());
            }
        }
        if flow.window_ns().is_some() && !case.is_set_up() {
            let with_clocks: Vec<_> = ends
                .iter()
                .filter_map(|(node, _, end)| {
                    Some((*end, *clocks.offset(u32::try_from(*node).ok()?)?))
                })
                .collect();
            let mut devices = ends.iter().flat_map(|(_, report, _)| &report.devices);
            let is_embedded = devices.any(Device::is_embedded);
            doubts.extend(apart_doubt(&with_clocks, is_embedded));
        }
    }
    of_flows
}

/// How much of their windows the flows had together, and a doubt in each of them where that is too little.
fn add_overlap(windows: &[(&Flow, Span)], run: &mut Run) {
    let spans: Vec<Span> = windows.iter().map(|(_, span)| *span).collect();
    let Some(together) = together(&spans) else {
        return;
    };
    run.overlap = Some(together.overlap);
    if together.overlap >= LEAST_OVERLAP {
        return;
    }
    let (window, ns, deed) = match together.furthest {
        Furthest::Opened(window, ns) => (window, ns, ["opened", "after the first"]),
        Furthest::Closed(window, ns) => (window, ns, ["closed", "before the last"]),
    };
    let name = windows.get(window).map_or("", |(flow, _)| &flow.name);
    let why = format!("{name} {} {:.1} ms {}", deed[0], ns as f64 / 1e6, deed[1]);
    let doubt = Doubt {
        kind: DoubtKind::NotTogether,
        message: format!(
            "all flows were measured together for only {:.0} % of the longest window: {why}",
            together.overlap * 100.0,
        ),
    };
    for flow in &mut run.flows {
        flow.window.doubts.push(doubt.clone());
    }
}

/// What nodes doubt of all that they measured, in each flow of theirs, once of a kind.
fn add_doubts(nodes: &[Node], reports: &mut [(usize, NodeReport)], run: &mut Run) {
    for (number, report) in reports {
        let name = nodes.get(*number).map_or("", |node| &node.name);
        for doubt in report.doubts.drain(..) {
            let own = run.flows.iter_mut().filter(|flow| flow.from == name || flow.to == name);
            for flow in own.filter(|flow| !flow.window.has_doubt(doubt.kind)) {
                let message = format!("{name}: {}", doubt.message);
                // It may be the reason for others.
                flow.window.doubts.insert(0, Doubt { kind: doubt.kind, message });
            }
        }
    }
}

/// The figures of each flow with what its ends doubt, and the workers of each node.
fn add_flows(
    case: &Case,
    nodes: &[Node],
    reports: &mut [(usize, NodeReport)],
    of_ends: Vec<Vec<Doubt>>,
    run: &mut Run,
) {
    let mut ends = BTreeMap::new();
    for (node, report) in reports {
        if let Some(result) = result_of(nodes.get(*node), run) {
            result.workers = std::mem::take(&mut report.workers);
        }
        ends.extend(
            std::mem::take(&mut report.ends).into_iter().map(|end| ((end.flow, end.side), end)),
        );
    }
    let mut flows = run.flows.iter_mut();
    for ((index, flow), doubts) in (0..).zip(&case.flows).zip(of_ends) {
        let target = ends.remove(&(index, Side::Target));
        let initiator = ends.remove(&(index, Side::Initiator));
        let both = initiator.as_ref().zip(target.as_ref());
        // What comes of a ping-pong's messages are their answers.
        let there = both.and_then(|(from, to)| {
            Arrived::new(flow, from, if flow.is_answered() { from } else { to })
        });
        let back = both.and_then(|(to, from)| Arrived::new(flow, from, to));
        let Some(forward) = flows.next() else { return };
        let of_initiator = initiator.as_ref().and_then(|end| end.receive_queues.clone());
        let memory = memory_of_ends(flow, nodes, initiator.as_ref(), target.as_ref());
        let failure = case
            .check
            .as_ref()
            .and_then(|_| failure_of_ends(flow, nodes, initiator.as_ref(), target.as_ref()));
        add_sent(forward, initiator, &doubts);
        if let Some(arrived) = there {
            arrived.add_to(forward);
        }
        forward.receive_queues = target.as_ref().and_then(|end| end.receive_queues.clone());
        forward.memory.clone_from(&memory);
        forward.failure.clone_from(&failure);
        if !flow.bidirectional {
            forward.received = target.and_then(|target| target.received);
        } else if let Some(reverse) = flows.next() {
            add_sent(reverse, target, &doubts);
            if let Some(arrived) = back {
                arrived.add_to(reverse);
            }
            reverse.receive_queues = of_initiator;
            (reverse.memory, reverse.failure) = (memory, failure);
        }
    }
}

/// Why a flow failed alone, by that of its ends that says so first.
fn failure_of_ends(
    flow: &Flow,
    nodes: &[Node],
    initiator: Option<&EndReport>,
    target: Option<&EndReport>,
) -> Option<Failure> {
    [(flow.from, initiator), (flow.to, target)].into_iter().find_map(|(number, end)| {
        let why = end?.failure.as_ref()?;
        let name = nodes.get(number as usize).map_or("", |node| &node.name);
        let message = format!("{}: {}", place_of(name), why.reason);
        Some(Failure { message, hint: why.hint.clone() })
    })
}

/// The memory of both ends of a flow, as far as it is not the host's ordinary.
fn memory_of_ends(
    flow: &Flow,
    nodes: &[Node],
    initiator: Option<&EndReport>,
    target: Option<&EndReport>,
) -> Vec<EndMemory> {
    [(flow.from, initiator), (flow.to, target)]
        .into_iter()
        .filter_map(|(number, end)| {
            let node = nodes.get(number as usize).map_or("", |node| &node.name).to_owned();
            Some(EndMemory { node, ..end?.memory.clone()? })
        })
        .collect()
}

fn add_sent(flow: &mut FlowResult, end: Option<EndReport>, doubts: &[Doubt]) {
    match end.map(|end| (end.sent, end.errors)) {
        Some((Some(sent), _)) => {
            *flow = FlowResult {
                name: std::mem::take(&mut flow.name),
                from: std::mem::take(&mut flow.from),
                to: std::mem::take(&mut flow.to),
                ..sent
            };
            flow.window.doubts.splice(..0, doubts.iter().cloned());
        }
        Some((None, errors)) => flow.totals.errors = errors,
        None => {}
    }
}

/// The nodes' counters and CPU times, and what they say. One device is told once.
fn add_counters(nodes: &[Node], reports: &mut [(usize, NodeReport)], run: &mut Run) {
    let mut known: Vec<(bool, String, u8, Option<String>)> = Vec::new();
    for (number, report) in reports {
        let Some(node) = nodes.get(*number) else {
            continue;
        };
        let Some(device) = report.devices.first() else {
            continue;
        };
        let is_embedded = device.is_embedded();
        // Embedded ones of one name may have addresses of their own.
        let gid = device.gid.clone().filter(|_| is_embedded);
        if let Some(result) = result_of(Some(node), run) {
            result.machine_cpu_seconds = report.machine_cpu_seconds;
            result.state = report.state.take();
        }
        let here = node.link.is_within_host();
        let key = (here, device.name.clone(), device.port, gid);
        if here && known.contains(&key) {
            continue;
        }
        known.push(key);
        if let Some(result) = result_of(Some(node), run) {
            result.engine_cpu_seconds = report.engine_cpu_seconds;
            result.engine_cores = report.engine_cores.take();
        }
        for mut unknown in report.loss_unknown.drain(..) {
            unknown.node.clone_from(&node.name);
            run.loss_unknown.push(unknown);
        }
        if let Some(mut counters) = report.counters.take() {
            for event in &mut counters.events {
                event.node.clone_from(&node.name);
            }
            run.path_events.append(&mut counters.events);
            if let Some(result) = result_of(Some(node), run) {
                result.counters = Some(counters.grown);
            }
        }
    }
}

fn connect(case: &Case, own: SetUpReport, other: SetUpReport) -> Connect {
    let connections = own.rounds.saturating_mul(case.qps.into());
    Connect {
        rounds: own.rounds,
        connections,
        seconds: own.seconds,
        connections_per_second: (own.rounds > 0).then(|| connections as f64 / own.seconds),
        setup_ns: own.setup_ns,
        steps: own.steps,
        peer_steps: other.steps,
        traffic_alone_gbit_per_s: own.alone_gbit_per_s,
        stale_rejections: (case.connect == ConnectMode::Cm).then_some(own.stale_rejections),
    }
}

/// A window in which a flow completed nothing has measured nothing.
fn empty_window(case: &Case, run: &Run) -> Option<RunFailure> {
    if case.is_set_up() || case.check.is_some() {
        return None;
    }
    let empty = run.flows.iter().find(|flow| flow.totals.messages == 0)?;
    Some(nothing_completed(empty.window.seconds))
}

/// The failure of a window in which nothing completed.
pub(crate) fn nothing_completed(seconds: f64) -> RunFailure {
    let hint = "measure longer with -D, or a number of messages with -n; or lower --size, --qps or --tx-depth; or use fewer workers than cores";
    let text = format!("no message completed in the window of {seconds:.3} s");
    RunFailure { unmeasured: true, ..RunFailure::new(text, Some(hint.into())) }
}

/// What came from one end of a flow that may lose messages to the other.
struct Arrived {
    delivery: Delivery,
    /// Messages lost of each QP; empty where that is not known.
    lost_of_qps: Vec<u64>,
}

impl Arrived {
    /// `None` of a service that loses nothing, and of messages that are not received. Where messages are counted, goodput
    /// is by the sender's window, which does not wait for those that do not come.
    fn new(flow: &Flow, from: &EndReport, to: &EndReport) -> Option<Arrived> {
        if flow.service.is_reliable() {
            return None;
        }
        let received = to.received.as_ref()?;
        let own_seconds = from.sent.as_ref().map(|sent| sent.window.seconds);
        let seconds = received.window_seconds.or(own_seconds);
        let (sent, arrived) = (&from.posted_in_all, &to.received_in_all);
        let (delivery, lost_of_qps) = if flow.ud_fan_out {
            // What a QP receives comes from all QPs.
            let [sent, arrived] = [sent, arrived].map(|it| saturating_sum(it.iter().copied()));
            (Delivery::of_qps(&[sent], &[arrived]), Vec::new())
        } else {
            (Delivery::of_qps(sent, arrived), Delivery::lost_of_qps(sent, arrived).collect())
        };
        Some(Arrived {
            delivery: Delivery {
                goodput_gbit_per_s: seconds.and_then(|it| gbit_per_s(received.bytes, it)),
                goodput_mmsg_per_s: seconds.and_then(|it| mmsg_per_s(received.messages, it)),
                ..delivery
            },
            lost_of_qps,
        })
    }

    /// Adds it to what the flow sent. The share of the limit is then that of what came.
    fn add_to(self, flow: &mut FlowResult) {
        for (qp, lost) in flow.qps.iter_mut().zip(self.lost_of_qps) {
            qp.lost = Some(lost);
        }
        flow.delivery = Some(self.delivery);
        let rate = flow.gbit_per_s();
        if let Some(limits) = &mut flow.limits {
            limits.share_of_limit = rate.and_then(|rate| limits.share_of(rate));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plan::Side;
    use results::model::{Limits, QpResult, Received, Totals};

    use super::*;

    pub(in crate::coordinator) fn end_report(side: Side, counts: [&[u64]; 2]) -> EndReport {
        EndReport {
            flow: 0,
            side,
            mtu_bytes: 1024,
            outstanding_reads: 0,
            wire: None,
            sent: None,
            window_ns: None,
            shared_ns: None,
            doubts: Vec::new(),
            received: None,
            receive_queues: None,
            memory: None,
            errors: 0,
            steps: None,
            posted_in_all: counts[0].to_vec(),
            received_in_all: counts[1].to_vec(),
            qps: 0,
            failure: None,
        }
    }

    /// A flow of 1000-byte messages on two QPs, of which 2000 were sent in a window of a second and 500 received.
    fn received_by(flags: &[(&str, &str)]) -> FlowResult {
        let flow = Flow::forward(flags.iter().copied().collect());
        let from = end_report(Side::Initiator, [&[1500, 1500], &[]]);
        let mut to = end_report(Side::Target, [&[], &[1400, 101]]);
        to.received = Some(Received { messages: 500, bytes: 500_000, window_seconds: Some(1.0) });
        let mut result = FlowResult {
            totals: Totals::in_window(2000, 2_000_000, 0, 1.0),
            qps: vec![QpResult::default(); 2],
            limits: Some(Limits {
                link_gbit_per_s: 0.02,
                protocol_efficiency: 0.8,
                share_of_limit: Some(1.0),
                narrower: None,
            }),
            ..FlowResult::default()
        };
        if let Some(arrived) = Arrived::new(&flow, &from, &to) {
            arrived.add_to(&mut result);
        }
        result
    }

    #[test]
    fn what_came_is_the_throughput_and_losses_are_told_of_each_qp() {
        let flow = received_by(&[("service", "uc")]);
        assert_eq!(flow.totals.gbit_per_s, Some(0.016));
        let rates = (flow.gbit_per_s(), flow.mmsg_per_s());
        assert_eq!(rates, (Some(0.004), Some(0.0005)));
        assert_eq!(flow.limits.as_ref().unwrap().share_of_limit, Some(0.25));
        let of_qps: Vec<_> = flow.qps.iter().map(|qp| qp.lost).collect();
        assert_eq!(of_qps, [Some(100), Some(1399)]);
        let delivery = flow.delivery.unwrap();
        let counts = (delivery.sent, delivery.received, delivery.lost);
        assert_eq!(counts, (3000, 1501, 1499));
    }

    #[test]
    fn a_receive_of_a_fan_out_does_not_tell_which_qp_lost() {
        let flow = received_by(&[("service", "ud"), ("ud-fan-out", "true")]);
        assert_eq!(flow.delivery.as_ref().unwrap().lost, 1499);
        assert!(flow.qps.iter().all(|qp| qp.lost.is_none()));
    }

    #[test]
    fn over_a_reliable_service_the_throughput_is_of_what_was_sent() {
        let flow = received_by(&[]);
        assert_eq!((&flow.delivery, flow.gbit_per_s()), (&None, Some(0.016)));
        assert_eq!(flow.limits.as_ref().unwrap().share_of_limit, Some(1.0));
        assert!(flow.qps.iter().all(|qp| qp.lost.is_none()));
    }
}
