//! A whole sweep: the ordered cases of the matrix, all of them checked, and how often each is run.

use std::collections::HashSet;
use std::time::Duration;

use settings::{
    ATOMIC_BYTES, ConnectMode, CqMode, Given, LARGEST_MTU_BYTES, Pace, ROWS, RecvQueue, Scope,
    Service, Settings, Spread, Stop,
};

use super::calls::check_calls;
use super::case::{Case, MOST_FLOWS};
use super::error::PlanError;
use super::flow::{Flow, FlowDevice};
use super::flow_table::FlowTable;
use super::matrix::Axes;
use super::node_list::MOST_NODES;
use super::nodes::Nodes;

/// Entries of a CQ: `ibv_create_cq(3)` takes a C `int`.
const MOST_CQ_ENTRIES: u64 = i32::MAX as u64;

/// Cases in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// At least one; ids are unique.
    pub cases: Vec<Case>,
    /// The nodes that their flows go between.
    pub nodes: Nodes,
}

/// What settings mean together.
fn check(case: &Case) -> Result<(), PlanError> {
    match (case.iterations_per_qp, case.duration_seconds) {
        (Some(_), Some(_)) => return Err(PlanError::TwoStops),
        (None, span) if span.is_none_or(|span| span.ns() == 0) => {
            return Err(PlanError::NoDuration);
        }
        _ => {}
    }
    if case.is_set_up() {
        for (flag, is_set) in [
            ("verify", case.verify),
            ("bidirectional", case.bidirectional),
        ] {
            if is_set {
                return Err(PlanError::NotWithConnect { flag });
            }
        }
    }
    let is_alone = matches!(case.flows.as_slice(), [flow] if flow.name == Flow::FORWARD);
    case.flows.iter().try_for_each(|flow| {
        let checked = check_flow(case, flow);
        checked.map_err(|error| match is_alone {
            true => error,
            false => error.in_flow(&flow.name),
        })
    })
}

/// What any plan makes of flows, and a peer may not.
fn check_flows(case: &Case) -> Result<(), PlanError> {
    let refused = |why| {
        let case = case.id.clone();
        Err(PlanError::NoCase { case, why })
    };
    let usual = if case.is_set_up() {
        0..=1
    } else {
        1..=MOST_FLOWS
    };
    if !usual.contains(&case.flows.len()) {
        return refused("it has no flow, or too many");
    }
    let mut names = HashSet::new();
    for flow in &case.flows {
        if !Flow::is_name_of_plan(&flow.name) || !names.insert(&flow.name) {
            return refused("a flow has no name of its own");
        }
        if flow.from.max(flow.to) >= MOST_NODES {
            return refused("a flow goes from or to no node");
        }
        let mut devices = [&flow.from_device, &flow.to_device].into_iter().flatten();
        if !devices.all(|it| FlowDevice::is_name(&it.name) && it.ib_port != Some(0)) {
            return refused("a flow asks for a device without a name");
        }
        if flow.is_set_up() {
            return refused("set-up is not a flow");
        }
        let mut of_case = ROWS.iter().filter(|row| row.scope == Scope::Case);
        if !case.is_set_up() && !of_case.all(|row| row.is_equal(flow, case)) {
            return refused("a flow differs in what holds for all of them");
        }
        check_ranges(flow)?;
    }
    Ok(())
}

fn check_ranges(settings: &Settings) -> Result<(), PlanError> {
    let mut scratch = Settings::default();
    for row in ROWS {
        row.read(&mut scratch, &row.text(settings))?;
    }
    Ok(())
}

/// What settings of a flow mean together.
fn check_flow(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    check_service(case, flow)?;
    for (flag, value) in [
        ("signal-every", flow.signal_every),
        ("post-list", flow.post_list),
    ] {
        if value > flow.tx_depth {
            return Err(PlanError::BatchTooDeep {
                flag,
                value,
                tx_depth: flow.tx_depth,
                case: case.id.clone(),
            });
        }
    }
    if flow.post_list > flow.signal_every && !flow.post_list.is_multiple_of(flow.signal_every) {
        return Err(PlanError::ListDoesNotFit {
            post_list: flow.post_list,
            signal_every: flow.signal_every,
            case: case.id.clone(),
        });
    }
    check_source(case, flow)?;
    check_place(case, flow)?;
    check_load(case, flow)?;
    check_calls(&case.id, flow)?;
    check_pace(case, flow)?;
    let qps_of_a_cq = match flow.cq {
        CqMode::Shared => flow.qps,
        CqMode::PerWorker => flow.qps.div_ceil(flow.workers),
        CqMode::PerQp => 1,
    };
    let receives = match flow.op.profile().receives {
        true => flow.receives_of(qps_of_a_cq),
        false => 0,
    };
    let entries = u64::from(qps_of_a_cq) * u64::from(flow.tx_depth) + receives;
    if flow.cq_depth.is_none() && entries > MOST_CQ_ENTRIES {
        return Err(PlanError::CqTooLarge {
            entries,
            case: case.id.clone(),
        });
    }
    Ok(())
}

fn misfit(case: &Case, flag: &'static str, why: String) -> Result<(), PlanError> {
    Err(PlanError::Misfit {
        flag,
        why,
        case: case.id.clone(),
    })
}

/// What a service means together with the rest.
fn check_service(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    let service = flow.service;
    if !service.carries(flow.op) {
        return Err(PlanError::NotCarried {
            op: flow.op,
            service,
            case: case.id.clone(),
        });
    }
    if service != Service::Rc && flow.connect == ConnectMode::Cm {
        let why = format!("rdma_cm connects RC QPs here, and the case has --service {service}");
        return misfit(case, "connect", why);
    }
    if flow.ud_fan_out && service != Service::Ud {
        let why = format!(
            "only QPs of --service ud send to several, and the case has --service {service}"
        );
        return misfit(case, "ud-fan-out", why);
    }
    if flow.ud_fan_out && flow.tx_depth < flow.qps {
        let (depth, qps) = (flow.tx_depth, flow.qps);
        let why = format!(
            "each WR of a QP goes to one QP, and there are {depth} WRs (--tx-depth) for {qps} QPs"
        );
        return misfit(case, "ud-fan-out", why);
    }
    let (most_bytes, mtu) = match flow.mtu {
        Some(mtu) => (mtu.bytes(), format!("--mtu {mtu}")),
        None => (LARGEST_MTU_BYTES, "the largest MTU".to_owned()),
    };
    if service == Service::Ud && flow.size_bytes > most_bytes {
        return Err(PlanError::DatagramTooLong {
            flag: match flow.size_mix {
                Some(_) => "size-mix",
                None => "size",
            },
            size_bytes: flow.size_bytes,
            most_bytes,
            mtu,
            case: case.id.clone(),
        });
    }
    Ok(())
}

/// What the place of messages in memory means together with the rest.
fn check_place(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    for (flag, bytes) in [
        ("alignment", flow.alignment_bytes),
        ("offset", flow.offset_bytes),
    ] {
        if flow.op.profile().is_atomic() && !bytes.is_multiple_of(ATOMIC_BYTES) {
            let why = format!(
                "--op {} acts on {ATOMIC_BYTES} bytes at a multiple of {ATOMIC_BYTES}, and {bytes} is not one",
                flow.op
            );
            return misfit(case, flag, why);
        }
    }
    let is_shared = flow.cq == CqMode::Shared || flow.recv_queue == RecvQueue::Shared;
    if flow.memory_bytes.is_some()
        && flow.op.profile().fills_receives()
        && flow.workers > 1
        && is_shared
    {
        let why = format!(
            "receives that walk through memory are posted by one worker, and {} share those of --op {}",
            flow.workers, flow.op
        );
        return misfit(case, "memory", why);
    }
    Ok(())
}

/// What an open loop means together with the rest.
fn check_load(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    if flow.is_closed_loop() {
        return Ok(());
    }
    let misfit = |flag, why: &str| misfit(case, flag, why.to_owned());
    if matches!(case.stop(), Stop::MessagesPerQp(_)) {
        return misfit(
            "iters",
            "with --rate a run ends after a time, in which messages are offered",
        );
    }
    if flow.spread != Spread::Own {
        return misfit("spread", "with --rate each QP has its own planned times");
    }
    if flow.slot_wrs() > 1 {
        let why = "with --rate each message is posted at its time, and has a completion of its own";
        return misfit("signal-every", why);
    }
    if flow.no_latency {
        return misfit("no-latency", "with --rate the latency is the result");
    }
    Ok(())
}

/// What a rate that the device keeps means together with the rest.
fn check_pace(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    if flow.pace == Pace::Worker {
        return Ok(());
    }
    if flow.rate.share().is_some() {
        let why = format!(
            "a device takes bits a second, and --rate {} is a share of the closed loop's rate",
            flow.rate
        );
        return misfit(case, "pace", why);
    }
    if flow.op.profile().fetches {
        let why = format!(
            "a device limits what a QP sends, and the other end sends the data of --op {}",
            flow.op
        );
        return misfit(case, "pace", why);
    }
    let is_told = |kbit_per_s| (1..=u32::MAX.into()).contains(&kbit_per_s);
    match flow.device_kbit_per_s() {
        Some(kbit_per_s) if !is_told(kbit_per_s) => {
            let why = format!(
                "with --pace device a QP has 1 to {} kbit/s, and --rate {} gives each of {} QPs {kbit_per_s}",
                u32::MAX,
                flow.rate,
                flow.qps
            );
            misfit(case, "rate", why)
        }
        _ => Ok(()),
    }
}

/// What sizes and spreading mean together with the rest.
fn check_source(case: &Case, flow: &Flow) -> Result<(), PlanError> {
    let misfit = |flag, why: String| misfit(case, flag, why);
    let largest = flow.sizes().map(|(bytes, _)| bytes).max();
    if largest != Some(flow.size_bytes) {
        return misfit("size-mix", "the size is not the largest of the mix".into());
    }
    let unit = flow.slot_wrs();
    let slots = u64::from(flow.tx_depth / unit);
    if let Some(mix) = &flow.size_mix {
        let (period, wrs) = (mix.period(), slots * u64::from(unit) * u64::from(flow.qps));
        if u64::from(period) > wrs {
            let why =
                format!("its shares take {period} WRs, and all send queues together have {wrs}");
            return misfit("size-mix", why);
        }
    }
    if let Some(weights) = &flow.qp_weights {
        if flow.spread != Spread::RoundRobin {
            return misfit(
                "qp-weights",
                "QPs take turns with --spread round-robin only".into(),
            );
        }
        if weights.qps() != u64::from(flow.qps) {
            let why = format!(
                "the groups have {} QPs, and there are {}",
                weights.qps(),
                flow.qps
            );
            return misfit("qp-weights", why);
        }
    }
    if flow.spread == Spread::Own {
        return match flow.outstanding {
            Some(_) => misfit(
                "outstanding",
                "with --spread own each QP keeps its send queue full".into(),
            ),
            None => Ok(()),
        };
    }
    if flow.cq == CqMode::Shared && flow.workers > 1 {
        let why = "a source must see the completions of its own QPs, and all workers share one CQ";
        return misfit("spread", why.into());
    }
    let qps = u64::from(flow.qps / flow.workers.clamp(1, flow.qps.max(1)));
    let most = slots * qps * u64::from(unit);
    match flow.outstanding {
        Some(wrs) if wrs < unit => {
            let why = format!(
                "WRs are posted {unit} at a time (--signal-every, --post-list), and --outstanding is {wrs}"
            );
            misfit("outstanding", why)
        }
        Some(wrs) if u64::from(wrs) > most => {
            let why = format!(
                "--outstanding is {wrs}, and the send queues of a worker's QPs hold {most}"
            );
            misfit("outstanding", why)
        }
        _ => Ok(()),
    }
}

impl Sweep {
    /// Every case that was asked for, with defaults where nothing was, between two ends.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn new(given: &Given) -> Result<Sweep, PlanError> {
        Sweep::with_flows(given, &[], Nodes::TwoEnds)
    }

    /// Every case of these flows between these nodes. `given` is for the flows that do not have their own; without
    /// flows there is one, from the first node to the second.
    ///
    /// # Errors
    /// As [`Sweep::new`].
    pub fn with_flows(
        given: &Given,
        flows: &[FlowTable],
        nodes: Nodes,
    ) -> Result<Sweep, PlanError> {
        if given.has_two_ends() {
            return Err(PlanError::TwoStops);
        }
        match (flows.is_empty(), given.has("pattern")) {
            (false, true) => return Err(PlanError::PatternWithFlows),
            (true, false) if nodes.count() > 2 => {
                let nodes = nodes.count();
                return Err(PlanError::NoFlows { nodes });
            }
            _ => {}
        }
        let mut cases = Axes::new(given, flows, &nodes)?.cases()?;
        for flow in cases.iter_mut().flat_map(|case| &mut case.flows) {
            let device = |node: u32| nodes.device(node).cloned();
            flow.from_device = flow.from_device.take().or_else(|| device(flow.from));
            flow.to_device = flow.to_device.take().or_else(|| device(flow.to));
        }
        cases.iter().try_for_each(check)?;
        Ok(Sweep { cases, nodes })
    }

    /// Checks a case that came from somewhere else than a plan, such as a peer: every range, its flows, and what
    /// settings mean together.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn check(case: &Case) -> Result<(), PlanError> {
        check_ranges(case)?;
        check_flows(case)?;
        check(case)
    }

    /// How often each case is run.
    pub fn runs(&self) -> u32 {
        self.cases.first().map_or(1, |case| case.runs)
    }

    /// The most workers that any case has.
    pub fn max_workers(&self) -> u32 {
        self.cases
            .iter()
            .map(|case| case.workers)
            .max()
            .unwrap_or(0)
    }

    /// The longest that all runs' warm-ups and measurements take together, connecting and draining
    /// not counted; `None` when runs end after a number of messages.
    pub fn longest(&self) -> Option<Duration> {
        let one_round =
            self.cases
                .iter()
                .try_fold(Duration::ZERO, |sum, case| match case.stop() {
                    Stop::DurationNs(ns) => Some(
                        sum.saturating_add(case.warmup.longest())
                            .saturating_add(Duration::from_nanos(ns)),
                    ),
                    Stop::MessagesPerQp(_) => None,
                })?;
        Some(one_round.saturating_mul(self.runs()))
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
