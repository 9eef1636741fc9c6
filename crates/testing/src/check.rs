//! What every result must satisfy, whatever was measured: sums, orders, counts and schema.

use std::sync::LazyLock;

use results::model::{
    CaseConfig, CaseResult, ConnectStep, FORWARD, FlowConfig, FlowResult, Latency, Load,
    NodeResult, REVERSE, ResultFile, Run, can_tell,
};
use serde::Deserialize as _;
use serde_json::Value;
use settings::{ConnectMode, CqMode, PollMode, Service, Settings, Spread, Warmup};

use crate::process::{Call, Ended};

impl Call {
    /// Passes, and all runs of so many cases are whole.
    #[track_caller]
    pub fn is_whole(self, cases: usize) -> Ended {
        self.passes().all_whole(cases)
    }
}

impl Ended {
    /// Demands that all runs of so many cases are whole: every message counted in every flow, none failed.
    #[track_caller]
    pub fn all_whole(self, cases: usize) -> Ended {
        assert_eq!(self.cases().len(), cases, "{}", self.stderr());
        complete(&self);
        self
    }
}

/// Checks all files of a sweep whose runs are all complete; returns the result.
#[track_caller]
pub fn complete(ended: &Ended) -> ResultFile {
    let json = ended.json();
    schema(json);
    let result = ResultFile::deserialize(json).unwrap();
    for case in &result.cases {
        for run in &case.runs {
            let place = format!("{} run {}", case.id, run.run);
            assert!(run.complete, "{place}: {:?}", run.failure);
            check_run(&place, &result, &case.config, run);
        }
    }
    // Their cells, the tests of report compare with the JSON.
    for table in [".csv", "-qps.csv"] {
        assert!(ended.file(table).lines().count() > 1, "{table}");
    }
    result
}

#[track_caller]
pub fn schema(json: &Value) {
    static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let text = include_str!("../../../docs/result.schema.json");
        jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
    });
    let errors: Vec<String> = VALIDATOR
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

fn check_run(place: &str, result: &ResultFile, config: &CaseConfig, run: &Run) {
    assert!(run.failure.is_none() && !run.interrupted, "{place}");
    let names: Vec<&str> = run.flows.iter().map(|flow| &*flow.name).collect();
    let of_config: Vec<&str> = config.flows.iter().map(|flow| &*flow.name).collect();
    assert_eq!(names, of_config, "{place}");
    if names.first() == Some(&FORWARD) {
        let wanted = if config.bidirectional { &[FORWARD, REVERSE][..] } else { &[FORWARD] };
        assert_eq!(names, wanted, "{place}");
    }
    for (index, (flow, flow_config)) in run.flows.iter().zip(&config.flows).enumerate() {
        let settings = config.flow(index);
        let place = format!("{place} {}", flow.name);
        check_flow(&place, &settings, flow_config, flow);
        check_limits(&place, result, &settings, flow_config, flow);
    }
    for node in &run.nodes {
        check_workers(&format!("{place} {}", node.name), run, node);
    }
}

fn check_flow(place: &str, settings: &Settings, config: &FlowConfig, flow: &FlowResult) {
    assert_eq!((&flow.from, &flow.to), (&config.from, &config.to), "{place}");
    assert!(flow.window.seconds > 0.0, "{place}");
    let receives = settings.op.profile().receives && !settings.bidirectional;
    assert_eq!(flow.received.is_some(), receives, "{place}");
    let may_lose = settings.op.profile().receives && !settings.service.is_reliable();
    assert_eq!(flow.delivery.is_some(), may_lose, "{place}");
    if let Some(delivery) = &flow.delivery {
        assert_eq!(delivery.sent, delivery.received + delivery.lost, "{place}");
        assert!(delivery.received > 0, "{place}: all is lost");
        let of_qps: Option<u64> = flow.qps.iter().map(|qp| qp.lost).sum();
        let by_qp = (!settings.ud_fan_out).then_some(delivery.lost);
        assert_eq!(of_qps, by_qp, "{place}: lost of QPs");
        assert_eq!(flow.gbit_per_s(), delivery.goodput_gbit_per_s, "{place}");
    } else if let (Some(received), Some(messages)) = (&flow.received, settings.iterations_per_qp) {
        assert_eq!(received.messages, messages * u64::from(settings.qps), "{place}");
        assert_eq!(received.bytes, flow.totals.bytes, "{place}");
    }
    let totals = &flow.totals;
    assert_eq!(totals.errors, 0, "{place}");
    assert!(totals.messages > 0, "{place}");
    assert_eq!(flow.qps.len(), settings.qps as usize, "{place}");
    let messages: u64 = flow.qps.iter().map(|qp| qp.messages).sum();
    let bytes: u64 = flow.qps.iter().map(|qp| qp.bytes).sum();
    assert_eq!((messages, bytes), (totals.messages, totals.bytes), "{place}");
    if settings.size_mix.is_none() {
        assert_eq!(bytes, messages * u64::from(settings.size_bytes), "{place}");
    }
    if let Some(wanted) = settings.iterations_per_qp {
        assert_eq!(messages, wanted * u64::from(settings.qps), "{place}");
        for qp in (flow.qps.iter()).filter(|_| settings.spread == Spread::Own) {
            assert_eq!(qp.messages, wanted, "{place}: QP {}", qp.index);
        }
    }
    let mut numbers: Vec<u32> = flow.qps.iter().map(|qp| qp.qpn).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), flow.qps.len(), "{place}: QP numbers");

    let jain = flow.fairness.as_ref().map(|fairness| fairness.jain);
    let least = 1.0 / f64::from(settings.qps);
    assert_eq!(jain.is_some(), settings.qps > 1, "{place}: Jain");
    assert!((least - 1e-9..=1.0 + 1e-9).contains(&jain.unwrap_or(1.0)), "{place}: Jain {jain:?}");
    check_latencies(place, settings, flow);
}

/// The embedded device has no link whose speed would be a limit, but one by a rate among its faults, for what it sends to all.
fn check_limits(
    place: &str,
    result: &ResultFile,
    settings: &Settings,
    config: &FlowConfig,
    flow: &FlowResult,
) {
    let name = config.from_device.as_deref().unwrap();
    let devices = &result.node(&config.from).unwrap().devices;
    let device = devices.iter().find(|device| device.name == name).unwrap();
    let faults = device.faults.as_deref().unwrap_or_default();
    let is_limited = faults.contains("tx.rate=") && !faults.contains("peer=");
    let is_embedded = device.library == "embedded";
    let has_limits = !is_embedded || is_limited && !settings.op.profile().fetches;
    assert_eq!(flow.limits.is_some(), has_limits, "{place}: {faults}");
    if let Some(limits) = &flow.limits {
        assert!(limits.protocol_efficiency > 0.0 && limits.protocol_efficiency < 1.0, "{place}");
    }
}

/// Each signalled WR is one sample; a batch that the window's edge cuts may give one more or none.
fn check_latencies(place: &str, settings: &Settings, flow: &FlowResult) {
    let Some(latency) = &flow.latency_ns else {
        assert!(flow.qps.iter().all(|qp| qp.latency_ns.is_none()), "{place}");
        return;
    };
    check_latency(place, latency);
    let of_qps = flow.qps.iter().filter_map(|qp| qp.latency_ns.as_ref());
    let count: u64 = of_qps.clone().map(|one| one.count).sum();
    assert_eq!(count, latency.count, "{place}");
    of_qps.for_each(|one| check_latency(place, one));
    if let Some(load) = &flow.load {
        return check_load(place, load, latency.count, flow);
    }
    // And what was in flight at the end of the window is timed when it completes.
    let (messages, every) = (flow.totals.messages, u64::from(settings.signal_every));
    let in_flight = u64::from(settings.tx_depth).div_ceil(every);
    let spare = u64::from(settings.qps) * (2 + in_flight);
    assert!(
        latency.count <= messages.div_ceil(every) + spare,
        "{place}: {} samples of {messages} messages",
        latency.count
    );
    if settings.iterations_per_qp.is_some() && every == 1 {
        assert_eq!(latency.count, messages, "{place}");
    }
}

/// Everything that was planned in the window is in the figures of an open loop with few messages.
fn check_load(place: &str, load: &Load, recorded: u64, flow: &FlowResult) {
    assert_eq!(load.recorded_one_in, 1, "{place}");
    assert!(load.offered > 0, "{place}");
    assert_eq!(recorded, load.offered, "{place}");
    for times in [&flow.service_ns, &flow.lateness_ns] {
        let count = times.as_ref().map_or(0, |it| it.count);
        assert_eq!(count, load.offered - load.never_sent, "{place}");
    }
    // Poisson arrivals: five standard deviations.
    let planned = load.asked_per_second * flow.window.seconds;
    let off = (load.offered as f64 - planned).abs();
    assert!(off < 5.0 * planned.sqrt() + 0.03 * planned, "{place}: {load:?}");
}

/// A node's workers have seen all that its flows completed.
fn check_workers(place: &str, run: &Run, node: &NodeResult) {
    let mut posted = run.flows_from(&node.name).peekable();
    let posts = posted.peek().is_some();
    if posts {
        let messages: u64 = posted.map(|flow| flow.totals.messages).sum();
        let of_workers: u64 = node.workers.iter().map(|worker| worker.messages).sum();
        assert_eq!(of_workers, messages, "{place}: workers");
    }
    for worker in &node.workers {
        assert!(worker.polls >= worker.empty_polls, "{place}");
        assert!(worker.core.is_some(), "{place}: not pinned");
        assert!(worker.cpu_seconds.unwrap() >= 0.0, "{place}");
        assert!(worker.polls > 0 || !posts, "{place}");
    }
}

fn check_latency(place: &str, latency: &Latency) {
    check_times(place, latency);
    assert!(latency.histogram.is_some(), "{place}");
}

fn check_times(place: &str, times: &Latency) {
    assert!(times.count > 0, "{place}");
    let percentiles = times.percentiles().filter_map(|(_, ns)| ns);
    let orders: Vec<u64> = std::iter::once(times.min).chain(percentiles).collect();
    assert!([&orders[..], &[times.max]].concat().is_sorted(), "{place}: {times:?}");
    let (min, max) = (times.min as f64, times.max as f64);
    assert!((min * 0.98..=max * 1.02).contains(&times.mean), "{place}: {times:?}");
}

/// Checks a run of set-up: each connection is counted at each step at both ends, and so is traffic beside it.
#[track_caller]
pub fn connects(case: &CaseResult, rounds: u64) {
    let (config, run, place) = (&case.config, &case.runs[0], &case.id);
    assert!(run.complete, "{place}: {:?}", run.failure);
    let connect = run.connect.as_ref().unwrap();
    let connections = rounds * u64::from(config.qps);
    let set_up = connect.setup_ns.as_ref().map(|it| it.count);
    let counts = (connect.rounds, connect.connections, set_up);
    assert_eq!(counts, (rounds, connections, Some(rounds)), "{place}");
    let rate = connect.connections_per_second.unwrap();
    let of_window = rate * connect.seconds / connections as f64;
    assert!((of_window - 1.0).abs() < 1e-9, "{place}");
    let is_by_cm = config.connect == ConnectMode::Cm;
    assert_eq!(connect.stale_rejections.is_some(), is_by_cm, "{place}");
    let [client, server] = if is_by_cm {
        ["create resolve route connect init rtr rts destroy", "create init rtr rts destroy"]
    } else {
        ["create init exchange rtr rts destroy"; 2]
    };
    for (steps, wanted) in [(&connect.steps, client), (&connect.peer_steps, server)] {
        let names: Vec<&str> = steps.iter().map(|step| &*step.step).collect();
        assert_eq!(names.join(" "), wanted, "{place}");
        for ConnectStep { step, per, time_ns } in steps {
            let once = if per == "round" { rounds } else { connections };
            assert_eq!(time_ns.count, once, "{place}: {step}");
            assert_eq!(time_ns.p99.is_some(), can_tell(once, 0.99), "{place}: {step}");
            assert!(time_ns.min > 0, "{place}: {step}");
            check_times(&format!("{place}: {step}"), time_ns);
        }
    }
    // All steps of a round are within its time, and all rounds within the window.
    let steps_s = connect
        .steps
        .iter()
        .map(|step| step.time_ns.mean * step.time_ns.count as f64 * 1e-9)
        .sum::<f64>();
    assert!(is_by_cm || steps_s <= connect.seconds * 1.01, "{place}: {steps_s}");
    // The traffic beside set-up is a flow.
    let qps: Vec<usize> = run.flows.iter().map(|flow| flow.qps.len()).collect();
    let has_traffic = config.traffic_qps > 0;
    let wanted = has_traffic.then_some(config.traffic_qps as usize);
    assert_eq!(qps, Vec::from_iter(wanted), "{place}");
    assert!(run.flows.iter().all(|flow| flow.totals.gbit_per_s.is_some()), "{place}");
    let wants_alone = has_traffic && config.warmup != Warmup::FixedNs(0);
    let alone = connect.traffic_alone_gbit_per_s;
    assert_eq!(alone > Some(0.0), wants_alone, "{place}: {alone:?}");
}

/// Every cell of services, operations, CQ modes and polling modes: for each service, the words of a sweep over all that it
/// carries, and how many cases that is.
pub fn cells_of_services() -> Vec<(String, usize)> {
    Service::ALL
        .iter()
        .copied()
        .map(|service| cells(service, &ops(service), &cqs(), &polls()))
        .collect()
}

/// Fewer cells, that have every two of them: each operation in each CQ mode and in each polling mode, and these two modes together for one operation.
pub fn pairs_of_cells() -> Vec<(String, usize)> {
    let first = &ops(Service::Rc)[..1];
    let mut sweeps = vec![cells(Service::Rc, first, &cqs(), &polls())];
    for service in Service::ALL.iter().copied() {
        for (cq, poll) in cqs().iter().zip(&polls()) {
            sweeps.push(cells(service, &ops(service), &[cq], &[poll]));
        }
    }
    sweeps
}

fn cqs() -> Vec<&'static str> {
    CqMode::ALL.iter().map(|cq| cq.name()).collect()
}

fn polls() -> Vec<&'static str> {
    PollMode::ALL.iter().map(|poll| poll.name()).collect()
}

fn ops(service: Service) -> Vec<&'static str> {
    service.ops().iter().map(|op| op.name()).collect()
}

/// The words of a sweep, and how many cases it has.
fn cells(service: Service, ops: &[&str], cqs: &[&str], polls: &[&str]) -> (String, usize) {
    let [op, cq, poll] = [ops, cqs, polls].map(|names| names.join(","));
    let words = format!("--service {service} --op {op} --cq {cq} --poll {poll}");
    (words, ops.len() * cqs.len() * polls.len())
}
