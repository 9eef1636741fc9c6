//! Turns the workers' counts and windows into what a node reports.

use std::collections::BTreeMap;

use datapath::{Layout, QpReport, Trouble, WindowEdges, WorkerReport, WorkerSteps, received_bytes};
use machine::{
    control_groups::CpuQuota,
    device::{Lossless, pcie_payload_gbit_per_s},
    surroundings::{Bond, both_functions, other_function},
};
use metrics::{
    self, Clock, EMBEDDED_DRIVER, Recorder, Samples, counters::Growth, limits::protocol_efficiency,
    steady::drift,
};
use protocol::handshake::ClockOffset;
use protocol::message::NodeFailure;
use protocol::node_report::{DeviceCounters, DeviceKind, EndReport, EndSteps};
use results::{
    model::{
        Bandwidth, Device, Doubt, DoubtKind, Fairness, FlowResult, Latency, Limits, Narrower,
        PathEvent, QpResult, QpTimeline, ReceiveQueues, Received, Timeline, Totals, Window,
        WorkerResult, gbit_per_s,
    },
    text::seconds_text,
};
use settings::{Access, Settings, Stop};
use verbs::{Driver, Port, kernel_driver};

use crate::{
    memory_needs::of_receive_queues,
    open_loop::{self, OpenLoop},
    run::{FlowEnd, Sampled},
    verbs_objects::VerbsObjects,
};

/// The report of a finished end; `sampled` is `None` if its window never opened. Its port is one of `ports`.
pub fn end_report(
    end: &FlowEnd,
    sampled: Option<Sampled>,
    ports: &[PortFacts],
    clock: &Clock,
) -> EndReport {
    let FlowEnd { number, flow, side, objects, .. } = end;
    let roles = objects.roles();
    let sent = sampled.map(|sampled| {
        let mut sent = sent(flow, end, ports, clock);
        tell_timeline(end, clock, sampled.flow, &mut sent);
        sent.qp_timeline = sampled.qps.and_then(|qps| qp_timeline(qps, end));
        sent
    });
    let is_measured = sent.is_some() || end.is_timed();
    let times = windows_ns(end, clock).filter(|_| is_measured);
    EndReport {
        flow: *number,
        side: *side,
        mtu_bytes: objects.path_mtu_bytes(),
        outstanding_reads: objects.outstanding_reads(),
        wire: objects.wire_kind(),
        window_ns: times.map(|[first_open, .., last_closed]| (first_open, last_closed)),
        shared_ns: times.map(|[_, all_open, one_closed, _]| (all_open, one_closed)),
        doubts: if is_measured { Windows::new(flow, end, clock).doubts } else { Vec::new() },
        sent,
        received: roles.receives.then(|| received(flow, end, clock)),
        receive_queues: roles.receives.then(|| receive_queues(flow, objects)),
        memory: objects.memory().cloned(),
        errors: end.troubles().map(Trouble::errors).sum(),
        steps: (flow.lock_step && roles.sends).then(|| steps(end)),
        posted_in_all: sums(end, |qp| qp.posted_in_all),
        received_in_all: sums(end, |qp| qp.received_in_all),
        qps: 0,
        failure: end.failure().as_ref().map(NodeFailure::from),
    }
}

/// The steps of an end that sends. Where several workers send its messages, the last of them ends a step.
fn steps(end: &FlowEnd) -> EndSteps {
    let of_workers: Vec<&WorkerSteps> =
        end.reports.iter().filter_map(|worker| worker.steps.as_ref()).collect();
    let mut times: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
    for (step, ns) in of_workers.iter().flat_map(|worker| &worker.times) {
        let (workers, longest) = times.entry(*step).or_default();
        (*workers, *longest) = (*workers + 1, (*longest).max(*ns));
    }
    let sampled = |of: fn(&WorkerSteps) -> Option<&Samples>| {
        Recorder::merged(of_workers.iter().find_map(|worker| of(worker)))?.latency()
    };
    EndSteps {
        step_ns: sampled(|worker| worker.step.as_ref()),
        iteration_ns: sampled(|worker| worker.iteration.as_ref()),
        times: times
            .into_iter()
            .filter(|(_, (workers, _))| *workers == of_workers.len())
            .map(|(step, (_, ns))| (step, ns))
            .collect(),
    }
}

/// When the first and the last worker opened their windows, and when the first and the last closed them.
fn windows_ns(end: &FlowEnd, clock: &Clock) -> Option<[u64; 4]> {
    let windows = end.reports.iter().filter_map(|worker| worker.window_raw);
    let (opened, closed): (Vec<u64>, Vec<u64>) = windows.unzip();
    let times =
        [opened.iter().min()?, opened.iter().max()?, closed.iter().min()?, closed.iter().max()?];
    Some(times.map(|raw| clock.ns(*raw)))
}

/// Adds the counters of a device, which is not the node's own if it has a name; the coordinator knows the node.
pub fn add_growth(counters: &mut DeviceCounters, device: Option<&str>, growth: &Growth) {
    let named = |counter: String| match device {
        Some(device) => format!("{device}:{counter}"),
        None => counter,
    };
    let grown = growth.by_counter().into_iter();
    counters.grown.extend(grown.map(|(counter, by)| (named(counter), by)));
    for (kind, (count, names)) in growth.by_meaning() {
        counters.events.push(PathEvent {
            node: String::new(),
            kind,
            count,
            counters: names.into_iter().map(named).collect(),
        });
    }
}

/// Adds the throughput over time in the closed window to its flow; nothing if the window was too short for a sample.
fn tell_timeline(
    end: &FlowEnd,
    clock: &Clock,
    mut sampled: metrics::Timeline,
    flow: &mut FlowResult,
) {
    let window = end.shared.window();
    sampled.finish(window.elapsed_ns, window.completed);
    if sampled.samples().is_empty() {
        return;
    }
    let drift = drift(sampled.samples())
        .map(|drift| Doubt { kind: DoubtKind::Drift, message: drift.to_string() });
    flow.window.doubts.extend(drift);
    let bits = end.flow.mean_bytes() * 8.0;
    let gbit_per_s = sampled.rates_per_s().map(|rate| rate * bits / 1e9);
    let interval_seconds = sampled.interval_ns() as f64 / 1e9;
    flow.bandwidth_gbit_per_s = Bandwidth::of_intervals(interval_seconds, gbit_per_s);
    let samples = sampled.samples().iter();
    flow.timeline = Some(Timeline {
        interval_seconds,
        at_seconds: samples.clone().map(|it| at_seconds(it.at_ns)).collect(),
        messages: samples.map(|sample| sample.messages).collect(),
        // A pause would be the longest.
        longest_stall_seconds: (!end.flow.has_on_times())
            .then(|| sampled.longest_stall_ns().max(stall_ns(&end.reports, clock)) as f64 / 1e9),
    });
}

/// The longest time without a completion that all workers saw, exact where there is one worker: several may each have stood
/// still for longer at another time.
fn stall_ns(workers: &[WorkerReport], clock: &Clock) -> u64 {
    let stalls: Option<Vec<(u64, u64)>> = workers.iter().map(|worker| worker.stall_raw).collect();
    let common =
        stalls.into_iter().flatten().reduce(|one, two| (one.0.max(two.0), one.1.min(two.1)));
    common.map_or(0, |(from, until)| clock.ns_between(from, until))
}

/// Microseconds are precise enough for intervals of 10 ms, and take half the digits.
fn at_seconds(at_ns: u64) -> f64 {
    (at_ns / 1000) as f64 / 1e6
}

/// What each QP completed over time in the closed window; nothing if the window was too short for a sample, and where a
/// worker's window was not open: what it had completed before is not known.
fn qp_timeline(sampled: metrics::QpTimeline, end: &FlowEnd) -> Option<QpTimeline> {
    let mut workers = end.reports.iter();
    if workers.any(|worker| worker.window_raw.is_none()) {
        return None;
    }
    let before = sums(end, |qp| qp.completed_before);
    let by_end = sums(end, |qp| qp.completed_before + qp.completed);
    let timeline = sampled.finish(end.shared.window().elapsed_ns, &before, &by_end);
    (!timeline.ends_ns.is_empty()).then(|| QpTimeline {
        interval_seconds: timeline.interval_ns as f64 / 1e9,
        at_seconds: timeline.ends_ns.into_iter().map(at_seconds).collect(),
        messages: timeline.messages,
    })
}

/// What an end sent, wrote or read in its window, as a flow without name and ends.
fn sent(flow: &Settings, end: &FlowEnd, ports: &[PortFacts], clock: &Clock) -> FlowResult {
    let windows = Windows::new(flow, end, clock);
    let messages = sums(end, |qp| qp.completed);
    let seconds = windows.seconds_for(
        end.reports.iter().map(|worker| worker.qps.iter().map(|qp| qp.completed).sum()),
    );
    let bytes = sums(end, |qp| qp.completed_bytes);
    let errors = end.troubles().map(Trouble::errors).sum();
    let sum: u64 = messages.iter().sum();
    let totals = Totals::in_window(sum, bytes.iter().sum(), errors, seconds);
    let recorders = |qp: usize| {
        end.reports.iter().filter_map(move |worker| worker.qps.get(qp)?.latency.as_ref())
    };
    let swaps_made =
        (flow.op.profile().access == Access::Swap).then(|| sums(end, |qp| qp.swaps_made));
    let open_loop = OpenLoop::new(flow, end, clock);
    let objects = &end.objects;
    let latency_of: fn(&Recorder) -> Option<Latency> =
        if messages.len() <= QpResult::MOST_HISTOGRAMS {
            Recorder::latency
        } else {
            Recorder::latency_in_brief
        };
    let qps: Vec<QpResult> = messages
        .iter()
        .zip(&bytes)
        .zip(objects.qps())
        .enumerate()
        .map(|(index, ((&messages, &bytes), qp))| {
            let lateness = open_loop.as_ref().and_then(|it| it.lateness_of(index));
            let service = open_loop.as_ref().and_then(|it| it.service_of(index));
            let latency = Recorder::merged(recorders(index));
            QpResult {
                index: index as u32,
                qpn: qp.qpn(),
                udp_source_port: objects.udp_source_port(qp),
                messages,
                bytes,
                gbit_per_s: gbit_per_s(
                    bytes,
                    windows.seconds_for(
                        end.reports.iter().map(|worker| {
                            worker.qps.get(index).map_or(0, |counts| counts.completed)
                        }),
                    ),
                ),
                latency_ns: latency
                    .and_then(|it| open_loop::unspoilt(latency_of(&it)?, &it, lateness.as_ref())),
                service_ns: service.as_ref().and_then(latency_of),
                lateness_ns: lateness.as_ref().and_then(latency_of),
                swaps_made: swaps_made.as_ref().and_then(|made| made.get(index).copied()),
                // The coordinator knows what came.
                lost: None,
            }
        })
        .collect();
    let shares = match &flow.qp_weights {
        Some(weights) => weights.shares(),
        None => vec![1.0; qps.len()],
    };
    let merged = Recorder::merged((0..messages.len()).flat_map(recorders));
    let service = open_loop.as_ref().and_then(OpenLoop::service);
    let lateness = open_loop.as_ref().and_then(OpenLoop::lateness);
    let latency_ns =
        merged.as_ref().and_then(|it| open_loop::unspoilt(it.latency()?, it, lateness.as_ref()));
    let notices = end.reports.iter().filter_map(|it| it.notices.as_ref());
    let notice_ns = Recorder::merged(notices).and_then(|all| all.latency());
    let (load, doubt) = open_loop
        .map(|it| it.load(&totals, seconds, merged.as_ref(), lateness.as_ref()))
        .map_or((None, None), |(load, doubt)| (Some(load), doubt));
    FlowResult {
        limits: limits(flow, &end.objects, ports, totals.gbit_per_s),
        totals,
        latency_ns,
        service_ns: service.and_then(|it| it.latency()),
        lateness_ns: lateness.and_then(|it| it.latency()),
        notice_ns,
        swaps_made: swaps_made.map(|made| made.iter().sum()),
        load,
        fairness: Fairness::of_qps(&qps, &shares, flow.slot_wrs()),
        qps,
        window: Window { seconds, doubts: doubt.into_iter().collect(), ..Window::default() },
        ..FlowResult::default()
    }
}

/// What an end received in its window.
fn received(flow: &Settings, end: &FlowEnd, clock: &Clock) -> Received {
    let windows = Windows::new(flow, end, clock);
    let of_workers: Vec<u64> = end.reports.iter().map(messages_received).collect();
    let messages: u64 = of_workers.iter().sum();
    Received {
        messages,
        bytes: (end.reports.iter().flat_map(|worker| &worker.qps))
            .map(|qp| qp.received_bytes)
            .sum(),
        window_seconds: flow
            .window_ns()
            .map(|_| windows.seconds_for(of_workers))
            .filter(|&seconds| seconds > 0.0),
    }
}

/// The receives of an end, and their memory.
fn receive_queues(flow: &Settings, objects: &VerbsObjects) -> ReceiveQueues {
    let device = DeviceKind::new(objects.port());
    let shared = objects.shared_receives();
    let layout = Layout::receives(flow);
    ReceiveQueues {
        queues: shared.map_or(flow.qps, |_| 1),
        receives: flow.receives(),
        buffer_bytes: flow.receives() * u64::from(received_bytes(flow)),
        allocated_bytes: layout.registered_bytes() as u64,
        queue_bytes: of_receive_queues(flow, device),
        limit_events: shared.map(|receives| receives.limit_events()),
    }
}

fn messages_received(worker: &WorkerReport) -> u64 {
    worker.qps.iter().map(|qp| qp.received).sum()
}

/// A node's workers, which serve all of its ends: with what they sent; with what they received, where the node sends
/// nothing.
pub(crate) fn workers(ends: &[FlowEnd], clock: &Clock) -> Vec<WorkerResult> {
    let sends = ends.iter().any(|end| end.objects.roles().initiates);
    let mut results: BTreeMap<usize, WorkerResult> = BTreeMap::new();
    for end in ends {
        let windows = Windows::new(&end.flow, end, clock);
        for worker in &end.reports {
            let messages = if sends {
                worker.qps.iter().map(|qp| qp.completed).sum()
            } else {
                messages_received(worker)
            };
            let own = worker_result(worker, &windows, messages, clock);
            match results.get_mut(&worker.thread) {
                Some(known) => add(known, &own),
                None => drop(results.insert(worker.thread, own)),
            }
        }
    }
    results.into_values().collect()
}

/// The same worker at another end: its time is the same, its work is more.
fn add(known: &mut WorkerResult, other: &WorkerResult) {
    known.window_seconds = known.window_seconds.or(other.window_seconds);
    known.away_seconds = most(known.away_seconds, other.away_seconds);
    known.cpu_seconds = most(known.cpu_seconds, other.cpu_seconds);
    known.messages += other.messages;
    known.polls += other.polls;
    known.empty_polls += other.empty_polls;
    known.blocked += other.blocked;
}

fn most(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(two)) => Some(one.max(two)),
        (one, two) => one.or(two),
    }
}

/// A figure of each QP, summed over the workers.
fn sums(end: &FlowEnd, figure: impl Fn(&QpReport) -> u64) -> Vec<u64> {
    per_qp(end, |worker, qp| worker.qps.get(qp).map_or(0, &figure))
}

/// A count of each QP, summed over the workers.
pub fn per_qp(end: &FlowEnd, figure: impl Fn(&WorkerReport, usize) -> u64) -> Vec<u64> {
    (0..end.objects.qps().len())
        .map(|qp| end.reports.iter().map(|worker| figure(worker, qp)).sum())
        .collect()
}

fn worker_result(
    worker: &WorkerReport,
    windows: &Windows,
    messages: u64,
    clock: &Clock,
) -> WorkerResult {
    WorkerResult {
        window_seconds: windows.of_worker(worker.index),
        core: worker.core.map(|core| core as u32),
        core_shared_with: None,
        messages,
        away_seconds: away_seconds(worker, clock),
        cpu_seconds: worker.window_raw.map(|_| worker.cpu_seconds),
        polls: worker.polls,
        empty_polls: worker.empty_polls,
        blocked: worker.blocked,
    }
}

fn limits(
    flow: &Settings,
    objects: &VerbsObjects,
    ports: &[PortFacts],
    gbit_per_s: Option<f64>,
) -> Option<Limits> {
    let facts = ports.iter().find(|facts| facts.is_of(objects.port()))?;
    let of_faults = planted_gbit_per_s(objects.port()).filter(|_| !flow.op.profile().fetches);
    let link_gbit_per_s = objects.port().info.link_gbit_per_s.or(of_faults)?;
    let efficiency = protocol_efficiency(
        (flow.op.transfer(), flow.service),
        flow.sizes().map(|(bytes, weight)| (bytes.into(), weight)),
        objects.path_mtu_bytes(),
        objects.wire(),
    );
    // What moved more was no limit, such as the PCIe link that a hypervisor makes up.
    let narrower = facts
        .narrower(flow.qps, efficiency)
        .filter(|it| gbit_per_s.is_none_or(|rate| rate <= it.payload_gbit_per_s));
    let limits = Limits {
        link_gbit_per_s,
        protocol_efficiency: efficiency,
        share_of_limit: None,
        narrower: narrower.filter(|it| it.payload_gbit_per_s < link_gbit_per_s * efficiency),
    };
    Some(Limits { share_of_limit: gbit_per_s.and_then(|rate| limits.share_of(rate)), ..limits })
}

/// The rate of the link that faults give the embedded device for what it sends to all peers.
fn planted_gbit_per_s(port: &Port) -> Option<f64> {
    let faults = port.embedded.as_ref()?.faults.filter(|faults| faults.peer.is_none())?;
    Some(faults.transmit.rate_bits_per_s? / 1e9)
}

/// What the kernel's files say of a port in use, read once for all flows over it.
pub struct PortFacts {
    pub device: Device,
    bond: Option<Bond>,
}

impl PortFacts {
    pub fn new(port: &Port) -> PortFacts {
        let bond = Bond::read(port.context.root(), port.context.name(), port.info.port);
        PortFacts { device: device(port), bond }
    }

    pub fn is_of(&self, port: &Port) -> bool {
        (&*self.device.name, self.device.port) == (port.context.name(), port.info.port)
    }

    /// What carries least of the port's payload behind its link: its PCIe lanes, or with one QP a member of a bond.
    fn narrower(&self, qps: u32, efficiency: f64) -> Option<Narrower> {
        let lanes = self.device.pci_gtransfer_per_s.zip(self.device.pci_width_lanes);
        let pcie = lanes.map(|(speed, lanes)| Narrower {
            part: format!("PCIe {speed} GT/s x{lanes}"),
            payload_gbit_per_s: pcie_payload_gbit_per_s(speed, lanes),
        });
        let bond = self.bond.as_ref().filter(|_| qps == 1);
        let member = bond.map(|bond| Narrower {
            part: format!("one member of {}", bond.name),
            payload_gbit_per_s: bond.gbit_per_s_of_member * efficiency,
        });
        let known = pcie.into_iter().chain(member).filter(|part| part.payload_gbit_per_s > 0.0);
        known.min_by(|one, other| one.payload_gbit_per_s.total_cmp(&other.payload_gbit_per_s))
    }
}

/// What of a port's surroundings keeps one function, or one QP, from having its link; with what to do.
pub(crate) fn surroundings_note(port: &Port) -> Option<String> {
    let (root, name, number) = (port.context.root(), port.context.name(), port.info.port);
    let facts = PortFacts::new(port);
    if let Some(bond) = &facts.bond {
        return Some(format!("{name}: {}: {}", bond.words(), Bond::ADVICE));
    }
    let (other, link) = (other_function(root, name, number)?, port.info.link_gbit_per_s?);
    let pcie = facts.narrower(0, 1.0).filter(|pcie| pcie.payload_gbit_per_s < link)?;
    let Narrower { part, payload_gbit_per_s } = pcie;
    let both = both_functions(name, &other);
    Some(format!(
        "{name}: {part} carries {payload_gbit_per_s:.0} of its link's {link} Gb/s: {both}"
    ))
}

/// What the network interface below the port in use, of which these are the facts, does against loss.
pub fn lossless(port: &Port, device: &Device) -> Lossless {
    let Some(netdev) = &device.netdev else {
        return Lossless::default();
    };
    let bridging = machine::device::Bridging::read(netdev).unwrap_or_default();
    let root = port.context.root();
    Lossless::read(root, (&device.name, device.port), netdev, bridging)
}

/// Facts of the device and port in use, from the kernel and corrected from verbs.
pub fn device(port: &Port) -> Device {
    let name = port.context.name();
    let gid_index = port.gid.map(|gid| gid.index.into());
    let read = machine::device::read(port.context.root(), name, port.info.port, gid_index);
    let (embedded, known) = (port.embedded.as_ref(), port.context.driver());
    let firmware = Some(port.adapter.limits.firmware.clone()).filter(|text| !text.is_empty());
    Device {
        library: port.context.library().name.to_owned(),
        software: embedded.is_some() || known.is_some_and(Driver::is_software),
        relaxed_ordering: known.map(|driver| driver.relaxed_ordering),
        driver: match embedded {
            Some(_) => Some(EMBEDDED_DRIVER.to_owned()),
            None => kernel_driver(port.context.root(), name),
        },
        faults: embedded.and_then(|embedded| Some(embedded.faults?.to_string())),
        firmware: firmware.or(read.firmware),
        link_layer: Some(port.info.link_layer.name().to_owned()),
        state: Some(port.info.state.to_owned()),
        link_gbit_per_s: port.info.link_gbit_per_s,
        speed_gbit_per_s_per_lane: port.info.lane_gbit_per_s(),
        width_lanes: port.info.lanes,
        active_mtu_bytes: Some(port.info.active_mtu_bytes),
        max_mtu_bytes: Some(port.info.max_mtu_bytes),
        gid: port.gid.map(|entry| entry.gid.to_string()),
        gid_type: port.gid.map(|entry| entry.gid_type.name().to_owned()),
        ..read
    }
}

/// A window whose length differs from the requested one by more than this part is reported. Rates are right in a window of any
/// length; what is told beside them, such as the device's counters, is of the requested one.
pub const LENGTH_MATTERS: f64 = 0.1;

/// Workers of a flow that had less than all but this part of their windows together are reported: while one was away, others
/// may have had more or less to do.
const APART_MATTERS: f64 = 0.01;

/// The same where the embedded device works in the workers, which are away as often within their windows.
const APART_MATTERS_EMBEDDED: f64 = 0.05;

/// A worker of a closed loop that was away for this part of its window is reported: at least so much of what it had done is
/// missing. So is one of an open loop that came back so long before the window: it made up for that within.
const AWAY_MATTERS: f64 = 0.01;

/// A node whose threads a quota of CPU time stopped for this part of its window, summed over CPUs, is reported.
const THROTTLED_MATTERS: f64 = 0.02;

/// A doubt where a quota of CPU time kept threads of this process from CPUs for so long within `seconds`.
pub(crate) fn quota_doubt(
    quota: Option<&CpuQuota>,
    throttled_seconds: f64,
    seconds: f64,
) -> Option<Doubt> {
    let CpuQuota { group, cpus } = quota?;
    (throttled_seconds >= THROTTLED_MATTERS * seconds).then(|| Doubt {
        kind: DoubtKind::CpuQuota,
        message: format!(
            "the quota of control group {group}, {cpus:.1} CPUs, stopped threads for {:.1} ms of {seconds:.3} s",
            throttled_seconds * 1e3
        ),
    })
}

/// The windows of an end's workers, in the order of the workers.
pub struct Windows {
    /// Length of each window; `None` for a worker without one.
    lengths_seconds: Vec<Option<f64>>,
    /// For how long the flow was on in each.
    on_seconds: Vec<Option<f64>>,
    doubts: Vec<Doubt>,
}

impl Windows {
    /// The windows of a run that is over. In a run with a message count all workers have one window, from the start
    /// of the first to the last completion, because they end with their messages.
    pub fn new(flow: &Settings, end: &FlowEnd, clock: &Clock) -> Windows {
        let seconds = |from, to| clock.ns_between(from, to) as f64 * 1e-9;
        let workers = &end.reports;
        let is_embedded = end.objects.port().embedded.is_some();
        // An open loop's own figures tell what its workers missed. The embedded device's worker does the device's work too, on
        // cores that it mostly shares: it is away so often that no figure would be left.
        let away = (flow.is_closed_loop() && !is_embedded).then(|| away_doubt(workers, clock));
        let mut windows = match flow.stop() {
            Stop::DurationNs(asked_ns) => {
                let lengths_seconds: Vec<_> = workers
                    .iter()
                    .map(|worker| worker.window_raw.map(|(opened, closed)| seconds(opened, closed)))
                    .collect();
                let asked_seconds = asked_ns as f64 * 1e-9;
                let away_before_seconds = workers
                    .iter()
                    .filter(|worker| worker.load.is_some())
                    .map(|worker| seconds(0, worker.unattended_raw[0]))
                    .fold(0.0, f64::max);
                // A window that ends with something else has no requested length.
                let doubts = if end.shared.edges() == WindowEdges::OF_PHASE {
                    Vec::new()
                } else {
                    let length = length_doubt(asked_seconds, &lengths_seconds);
                    length
                        .into_iter()
                        .chain(backlog_doubt(asked_seconds, away_before_seconds))
                        .collect()
                };
                let on_seconds = workers
                    .iter()
                    .map(|worker| {
                        worker.window_raw.map(|window| on_seconds(flow, end, window, clock))
                    })
                    .collect();
                Windows { lengths_seconds, on_seconds, doubts }
            }
            Stop::MessagesPerQp(_) => {
                let common = workers
                    .iter()
                    .filter_map(|worker| worker.window_raw)
                    .reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))
                    .map(|(opened, closed)| seconds(opened, closed));
                let lengths_seconds = vec![common; workers.len()];
                Windows { on_seconds: lengths_seconds.clone(), lengths_seconds, doubts: Vec::new() }
            }
        };
        windows.doubts.extend(away.flatten());
        windows
    }

    /// Length of one worker's window, in seconds.
    pub fn of_worker(&self, worker: usize) -> Option<f64> {
        self.lengths_seconds.get(worker).copied().flatten()
    }

    /// The time by which to divide the sum of `counts` (one per worker) so that each worker's count is divided by its
    /// own window, as far as the flow was on in it, and the rates are added. The mean window if nothing was counted.
    pub fn seconds_for(&self, counts: impl IntoIterator<Item = u64>) -> f64 {
        let (mut sum, mut per_second) = (0.0, 0.0);
        for (count, seconds) in counts.into_iter().zip(&self.on_seconds) {
            if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
                sum += count as f64;
                per_second += count as f64 / seconds;
            }
        }
        if per_second > 0.0 {
            return sum / per_second;
        }
        let known: Vec<f64> = self.on_seconds.iter().flatten().copied().collect();
        match known.len() {
            0 => 0.0,
            count => known.iter().sum::<f64>() / count as f64,
        }
    }
}

/// For how long a flow was on in a worker's window. Before the nominal one opens, it is on if it is at the opening.
fn on_seconds(flow: &Settings, end: &FlowEnd, (opened, closed): (u64, u64), clock: &Clock) -> f64 {
    let on_ns = match (flow.on_times(), end.shared.edges()) {
        (None, _) | (_, WindowEdges::OF_PHASE) => clock.ns_between(opened, closed),
        (Some(times), edges) => {
            let [from_ns, to_ns] =
                [opened, closed].map(|raw| clock.ns_between(edges.opens_raw, raw));
            let before_ns = clock.ns_between(opened, edges.opens_raw);
            times.on_ns(from_ns..to_ns) + if times.is_on_at_first() { before_ns } else { 0 }
        }
    };
    on_ns as f64 * 1e-9
}

/// For how long a worker was away within its window: no longer than its thread was off its core. A pass that takes so long,
/// as on a software device, is work. `None` without a window.
pub(crate) fn away_seconds(worker: &WorkerReport, clock: &Clock) -> Option<f64> {
    let off_core = own_seconds(worker, clock)? - worker.cpu_seconds;
    let away = clock.ns_between(0, worker.away_raw) as f64 * 1e-9;
    Some(away.min(off_core.max(0.0)))
}

/// The part of their windows for which workers were away.
pub(crate) fn away_part(workers: &[WorkerReport], clock: &Clock) -> f64 {
    let own: f64 = workers.iter().filter_map(|worker| own_seconds(worker, clock)).sum();
    let away: f64 = workers.iter().filter_map(|worker| away_seconds(worker, clock)).sum();
    if own == 0.0 { 0.0 } else { away / own }
}

fn own_seconds(worker: &WorkerReport, clock: &Clock) -> Option<f64> {
    let (start_raw, end_raw) = worker.window_raw?;
    Some(clock.ns_between(start_raw, end_raw) as f64 * 1e-9)
}

/// The worker that was away for the largest part of its window, if that matters.
fn away_doubt(workers: &[WorkerReport], clock: &Clock) -> Option<Doubt> {
    let away = workers.iter().filter_map(|worker| {
        let (away, seconds) = (away_seconds(worker, clock)?, own_seconds(worker, clock)?);
        (away > 0.0).then_some((worker.index, away, seconds))
    });
    let (worker, away, seconds) = away.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))?;
    (away >= AWAY_MATTERS * seconds).then(|| Doubt {
        kind: DoubtKind::WorkerAway,
        message: format!(
            "worker {worker} did not look at its CQs for {:.1} ms of {seconds:.3} s",
            away * 1e3
        ),
    })
}

fn length_doubt(asked_seconds: f64, lengths_seconds: &[Option<f64>]) -> Option<Doubt> {
    let off = |seconds: f64| (seconds / asked_seconds - 1.0).abs();
    let (worker, seconds) = lengths_seconds
        .iter()
        .map(|seconds| seconds.unwrap_or(0.0))
        .enumerate()
        .max_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
    (off(seconds) >= LENGTH_MATTERS).then(|| Doubt {
        kind: DoubtKind::WindowLength,
        message: format!(
            "worker {worker} measured {seconds:.3} s instead of the requested {}",
            seconds_text(asked_seconds)
        ),
    })
}

fn backlog_doubt(asked_seconds: f64, away_before_seconds: f64) -> Option<Doubt> {
    (away_before_seconds >= AWAY_MATTERS * asked_seconds).then(|| Doubt {
        kind: DoubtKind::EdgeMissed,
        message: format!(
            "a worker that was away for {:.1} ms before the window posted in it what it had missed",
            away_before_seconds * 1e3
        ),
    })
}

/// The doubt of a timed flow whose workers, at both ends, had too little of their windows together. Each end has its node's
/// clock against a common one; what that does not tell is no reason for a doubt.
pub fn apart_doubt(ends: &[(&EndReport, ClockOffset)], is_embedded: bool) -> Option<Doubt> {
    let of_ends: Vec<[i128; 4]> = ends
        .iter()
        .filter_map(|(end, clock)| {
            let ((first_open, last_closed), (all_open, one_closed)) =
                (end.window_ns?, end.shared_ns?);
            let times = [first_open, all_open, one_closed, last_closed];
            Some(times.map(|ns| i128::from(ns) - clock.offset_ns))
        })
        .collect();
    let times = |place: usize| of_ends.iter().map(move |times| times[place]);
    let length_ns = times(3).max()? - times(0).min()?;
    let late_ns = times(1).max()? - times(0).min()?;
    let early_ns = times(3).max()? - times(2).min()?;
    let unknown_ns: i128 = match ends {
        [_] => 0,
        ends => ends.iter().map(|(_, clock)| i128::from(clock.uncertainty_ns)).sum(),
    };
    let apart_ns = late_ns + early_ns - unknown_ns;
    let matters = if is_embedded { APART_MATTERS_EMBEDDED } else { APART_MATTERS };
    (apart_ns > 0 && apart_ns as f64 >= matters * length_ns as f64).then(|| {
        let [late_ms, early_ms] = [late_ns, early_ns].map(|ns| ns as f64 * 1e-6);
        let seconds = length_ns as f64 * 1e-9;
        Doubt {
            kind: DoubtKind::EdgeMissed,
            message: format!(
                "of the flow's workers the last began {late_ms:.1} ms after the first, or the first ended {early_ms:.1} ms \
                 before the last, in {seconds:.3} s"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_is_divided_by_its_own_window_and_rates_are_added() {
        let windows = |on_seconds: Vec<Option<f64>>| Windows {
            lengths_seconds: on_seconds.clone(),
            on_seconds,
            doubts: Vec::new(),
        };
        let none = windows(Vec::new());
        let windows = windows(vec![Some(1.0), Some(0.5), None]);
        let seconds = windows.seconds_for([100, 50, 0]);
        assert!((150.0 / seconds - 200.0).abs() < 1e-9, "{seconds}");
        assert!((windows.seconds_for([0, 50, 0]) - 0.5).abs() < 1e-12);
        assert!((windows.seconds_for([0, 0, 0]) - 0.75).abs() < 1e-12);
        assert!(none.seconds_for([]).abs() < 1e-12);
    }

    #[test]
    fn a_quota_that_stopped_threads_for_2_percent_is_said() {
        let quota = CpuQuota { group: "/docker/7".into(), cpus: 1.5 };
        assert_eq!(quota_doubt(Some(&quota), 0.019, 1.0), None);
        assert_eq!(quota_doubt(None, 0.5, 1.0), None);
        let doubt = quota_doubt(Some(&quota), 0.5, 1.0).unwrap();
        assert_eq!(doubt.kind, DoubtKind::CpuQuota);
        assert_eq!(
            doubt.message,
            "the quota of control group /docker/7, 1.5 CPUs, stopped threads for 500.0 ms of 1.000 s"
        );
    }

    #[test]
    fn a_window_off_by_10_percent_is_said() {
        assert_eq!(length_doubt(1.0, &[Some(0.91), Some(1.0)]), None);
        for lengths in [&[Some(1.0), Some(0.89)][..], &[Some(1.11)], &[None]] {
            assert_eq!(length_doubt(1.0, lengths).unwrap().kind, DoubtKind::WindowLength);
        }
    }
}
