//! What a flow needs at one of its ends: roles, queue sizes, memory. Computed before anything is created, and compared with
//! the limits of the end's device.

use datapath::{Geometry, sends_inline};
use plan::{Case, Side};
use protocol::{endpoints::Posts, failure::RunFailure, frame::MAX_FRAME_BYTES};
use settings::{Access, CallStyle, CqMode, Domains, RecvQueue, Service, Settings, Timestamps};
use verbs::{PortLimits, QpCapacity, Services, VerbsError};

/// The tasks of an end in a flow.
#[derive(Clone, Copy, Debug)]
pub struct EndRoles {
    /// It begins what it sends; elsewhere it answers.
    pub initiates: bool,
    pub sends: bool,
    pub receives: bool,
    /// The peer writes to its memory or reads from it.
    pub offers_memory: bool,
}

impl EndRoles {
    /// The roles of `side` in `flow`.
    pub fn new(flow: &Settings, side: Side) -> EndRoles {
        let is_both = flow.bidirectional || flow.is_answered();
        let sends = side == Side::Initiator || is_both;
        let is_target = side == Side::Target || is_both;
        let profile = flow.op.profile();
        EndRoles {
            initiates: side == Side::Initiator || flow.bidirectional,
            sends,
            receives: is_target && profile.receives,
            offers_memory: is_target && profile.access != Access::None,
        }
    }
}

/// Worker threads that have work at one end: a worker without a QP of its own has nothing to poll, unless all share
/// one CQ.
pub fn effective_workers(flow: &Settings) -> usize {
    let workers = match flow.cq {
        CqMode::Shared => flow.workers,
        CqMode::PerWorker | CqMode::PerQp => flow.workers.min(flow.qps),
    };
    workers.max(1) as usize
}

/// Latency recorders of an end that sends: one per QP, or per QP and worker if all workers share a CQ. In an open loop
/// there are as many for the times from the post, and one per QP for lateness; with the device's stamps one per worker for
/// the times from there, and in lock-step those of steps and of iterations.
pub(crate) fn recorders(flow: &Settings) -> usize {
    let workers = match flow.cq {
        CqMode::Shared => effective_workers(flow),
        CqMode::PerWorker | CqMode::PerQp => 1,
    };
    let each = workers * flow.qps as usize;
    let notices = match flow.timestamps {
        Timestamps::Cpu => 0,
        Timestamps::Device => effective_workers(flow),
    };
    let steps = if flow.lock_step { 2 } else { 0 };
    notices + steps + if flow.is_closed_loop() { each } else { 2 * each + flow.qps as usize }
}

/// Quantities that a flow takes at one end.
pub(crate) struct Needs {
    pub(crate) capacity: QpCapacity,
    /// Receives of the SRQ, if it takes one.
    pub(crate) srq_wrs: Option<u32>,
    pub(crate) cqs: u32,
    pub(crate) cq_entries: u32,
}

impl Needs {
    pub(crate) fn new(flow: &Settings, geometry: &Geometry, roles: EndRoles) -> Needs {
        let workers = flow.workers.min(flow.qps).max(1);
        let (cqs, qps_per_cq) = match flow.cq {
            CqMode::Shared => (1, flow.qps),
            CqMode::PerWorker => (workers, flow.qps.div_ceil(workers)),
            CqMode::PerQp => (flow.qps, 1),
        };
        let sends = if roles.sends { geometry.completions_in_flight() } else { 0 };
        let receives = if roles.receives { flow.rx_depth } else { 0 };
        let is_shared = roles.receives && flow.recv_queue == RecvQueue::Shared;
        let received = if roles.receives { flow.receives_of(qps_per_cq) } else { 0 };
        let completions = u64::from(sends) * u64::from(qps_per_cq) + received;
        let entries = u32::try_from(completions).unwrap_or(u32::MAX).max(1);
        Needs {
            capacity: QpCapacity {
                send_wr: if roles.sends { geometry.depth() } else { 1 },
                recv_wr: if is_shared { 0 } else { receives.max(1) },
                inline_bytes: if roles.sends
                    && flow.sizes().any(|(bytes, _)| sends_inline(flow, bytes))
                {
                    flow.inline_bytes
                } else {
                    0
                },
                sges: flow.sges,
            },
            srq_wrs: is_shared.then_some(receives),
            cqs,
            cq_entries: flow.cq_depth.unwrap_or(entries),
        }
    }
}

/// Checks that the number of posts of every WR fits a message, which `--verify` sends to the other node after a run.
pub fn check_posts(flow: &Settings) -> Result<(), RunFailure> {
    const REST_BYTES: u64 = 1024;
    let ring = Geometry::from_flow(flow).ring();
    let bytes = Posts::most_bytes(flow.qps, ring) + REST_BYTES;
    if !flow.verify || bytes <= MAX_FRAME_BYTES as u64 {
        return Ok(());
    }
    let message = format!(
        "--verify can count 9 million WRs at most, but there are {} QPs of {ring} WRs",
        flow.qps
    );
    Err(RunFailure::refused(message, "lower --qps or --tx-depth"))
}

/// Checks that the device can provide what the case requires at node number `node`.
pub fn check_case(limits: &PortLimits, case: &Case, node: u32) -> Result<(), VerbsError> {
    // Of a device that a flow asks for the node finds out when it opens it.
    let ends: Vec<_> =
        case.ends_at(node).filter(|(_, flow, side)| flow.device(*side).is_none()).collect();
    let traffic: u64 = ends.iter().map(|(_, flow, _)| u64::from(flow.qps)).sum();
    if case.is_set_up() {
        let qps = u64::from(case.qps) + traffic;
        limits.allow("QPs", limits.device.max_qp, qps, "--qps or --traffic-qps")?;
    }
    limits.allow("QPs", limits.device.max_qp, traffic, "--qps")?;
    ends.into_iter().try_for_each(|(_, flow, side)| check_flow(limits, flow, side))
}

/// Checks that the device can provide what an end of a flow requires.
pub fn check_flow(limits: &PortLimits, flow: &Settings, side: Side) -> Result<(), VerbsError> {
    if flow.op.profile().is_atomic() && !limits.device.has_atomics {
        let instead = "take fetch-add and compare-swap out of --op; send, write and read work on every device";
        return Err(limits.lacks("atomic operations", instead));
    }
    if has(limits.lacks_services, flow.service) {
        let what = match flow.service {
            Service::Rc => "RC QPs",
            Service::Uc => "UC QPs",
            Service::Ud => "UD QPs",
        };
        return Err(limits.lacks(what, with_another_service(limits, flow)));
    }
    check_calls(limits, flow)?;
    if flow.service == Service::Ud {
        let (limit, needed) = (limits.packet_bytes.into(), flow.size_bytes.into());
        limits.allow("bytes in one datagram, by its port's MTU", limit, needed, "--size")?;
    }
    let roles = EndRoles::new(flow, side);
    if roles.sends
        && let Some(kbit_per_s) = flow.device_kbit_per_s()
    {
        check_pace(limits, flow.service, kbit_per_s)?;
    }
    let needs = Needs::new(flow, &Geometry::from_flow(flow), roles);
    if needs.srq_wrs.is_some() && limits.device.max_srq == 0 {
        return Err(limits.lacks("shared receive queues", "use --recv-queue per-qp"));
    }
    check_amounts(limits, flow, roles, &needs)
}

/// What to give so that a flow runs by a service that the device has, within the depth of its queues.
fn with_another_service(limits: &PortLimits, flow: &Settings) -> String {
    let mut services = Service::ALL.iter().filter(|service| !has(limits.lacks_services, **service));
    let Some(service) = services.next() else {
        return "choose another device with -d".to_owned();
    };
    let mut instead = format!("use --service {service}");
    let most = limits.device.max_qp_wr;
    for (flag, depth) in [("--tx-depth", flow.tx_depth), ("--rx-depth", flow.rx_depth)] {
        if most > 0 && u64::from(depth) > most {
            instead += &format!(" {flag} {most}");
        }
    }
    instead
}

/// Checks how many of each object, and of what each object holds.
fn check_amounts(
    limits: &PortLimits,
    flow: &Settings,
    roles: EndRoles,
    needs: &Needs,
) -> Result<(), VerbsError> {
    let sges_of_sends = if flow.op.profile().fetches && limits.device.max_sge_rd > 0 {
        limits.device.max_sge.min(limits.device.max_sge_rd)
    } else {
        limits.device.max_sge
    };
    for (what, limit, needed, flags) in [
        ("QPs", limits.device.max_qp, u64::from(flow.qps), "--qps"),
        ("CQs", limits.device.max_cq, needs.cqs.into(), "--qps, or use --cq shared"),
        (
            "send WRs on one QP",
            limits.device.max_qp_wr,
            needs.capacity.send_wr.into(),
            "--tx-depth",
        ),
        (
            "receive WRs on one QP",
            limits.device.max_qp_wr,
            needs.capacity.recv_wr.into(),
            "--rx-depth",
        ),
        (
            "receives on one SRQ",
            limits.device.max_srq_wr,
            needs.srq_wrs.unwrap_or(0).into(),
            "--rx-depth",
        ),
        (
            "SGEs in one WR",
            if roles.sends { sges_of_sends } else { limits.device.max_sge },
            flow.sges.into(),
            "--sges",
        ),
        (
            "SGEs in one receive of an SRQ",
            limits.device.max_srq_sge,
            if needs.srq_wrs.is_some() { flow.sges.into() } else { 0 },
            "--sges",
        ),
        (
            "entries in one CQ",
            limits.device.max_cqe,
            needs.cq_entries.into(),
            "--qps, --rx-depth or --tx-depth, or use --cq per-qp",
        ),
        ("bytes in one message", limits.message_bytes.into(), flow.size_bytes.into(), "--size"),
    ] {
        limits.allow(what, limit, needed, flags)?;
    }
    Ok(())
}

/// Checks that the device has the calls that the flow is to use.
fn check_calls(limits: &PortLimits, flow: &Settings) -> Result<(), VerbsError> {
    let extended = CallStyle::Extended;
    let missing = [
        (
            flow.post == extended && !limits.extensions.extended_post,
            "extended posting (ibv_wr_start)",
            "use --post legacy",
        ),
        (
            flow.post == extended && flow.sges > 1 && !limits.extensions.extended_lists,
            "correct extended posting of several elements: its library adds up their lengths wrongly",
            "use --sges 1 or --post legacy",
        ),
        (
            flow.poll_api == extended && !limits.extensions.extended_poll,
            "extended polling (ibv_start_poll)",
            "use --poll-api legacy",
        ),
        (
            flow.domains == Domains::Thread && !limits.extensions.thread_domains,
            "single-threaded CQs and thread domains",
            "use --domains usual",
        ),
        (
            flow.udp_sport.is_some() && !limits.takes_udp_ports,
            "call for a QP's UDP source port (only mlx5 over RoCE has one)",
            "use --flow-label, from which many drivers derive the port",
        ),
        (
            flow.timestamps == Timestamps::Device && !limits.extensions.stamps,
            "time stamps of completions with a clock that can be read",
            "use --timestamps cpu",
        ),
    ];
    match missing.into_iter().find(|(is_missing, ..)| *is_missing) {
        Some((_, what, instead)) => Err(limits.lacks(what, instead)),
        None => Ok(()),
    }
}

/// Checks that the device can limit QPs of `service` to this rate.
fn check_pace(limits: &PortLimits, service: Service, kbit_per_s: u64) -> Result<(), VerbsError> {
    let Some(pacing) = limits.device.pacing.filter(|pacing| has(pacing.services, service)) else {
        return Err(limits.lacks(
            "rate limit for QPs with this --service, as --pace device needs",
            "take --pace worker, or another --service or device",
        ));
    };
    if kbit_per_s < pacing.least_kbit_per_s.into() {
        return Err(limits.lacks(
            "rate limit as low as each QP's part of --rate with --pace device",
            "raise --rate, lower --qps, or take --pace worker",
        ));
    }
    let most = pacing.most_kbit_per_s.into();
    limits.allow("kbit/s of one QP", most, kbit_per_s, "--rate")
}

fn has(services: Services, service: Service) -> bool {
    match service {
        Service::Rc => services.rc,
        Service::Uc => services.uc,
        Service::Ud => services.ud,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::{DeviceLimits, Pacing};

    #[test]
    fn a_datagram_is_no_longer_than_the_ports_mtu() {
        let limits =
            PortLimits { name: "soft1".to_owned(), packet_bytes: 1024, ..PortLimits::default() };
        let check = |service, size| {
            let flow = Settings::from([("service", service), ("size", size)]);
            let checked = check_flow(&limits, &flow, Side::Target);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check("ud", "1K"), Ok(()));
        assert_eq!(check("uc", "4K"), Ok(()));
        let message = "soft1 can do at most 1024 bytes in one datagram, by its port's MTU, but the case needs 1025";
        assert_eq!(check("ud", "1025"), Err(message.to_owned()));
    }

    /// mlx5 paces raw packets alone.
    #[test]
    fn a_rate_that_the_device_keeps_for_other_qps_alone_is_refused() {
        let pacing = Pacing {
            least_kbit_per_s: 1_000,
            most_kbit_per_s: 100_000_000,
            services: Services::default(),
        };
        let limits = PortLimits {
            name: "mlx5_0".to_owned(),
            device: DeviceLimits { pacing: Some(pacing), ..DeviceLimits::default() },
            ..PortLimits::default()
        };
        let flow = Settings::from([("rate", "10Gb"), ("pace", "device")]);
        let error = check_flow(&limits, &flow, Side::Initiator).unwrap_err();
        let message =
            "mlx5_0 has no rate limit for QPs with this --service, as --pace device needs";
        assert_eq!(error.to_string(), message);
        assert!(error.hint().unwrap().contains("--pace worker"));
    }

    #[test]
    fn a_service_without_qps_is_refused_with_another_that_has_some() {
        let limits = PortLimits {
            name: "bnxt_re0".to_owned(),
            lacks_services: Services { uc: true, ..Services::default() },
            ..PortLimits::default()
        };
        let check = |service| {
            let checked =
                check_flow(&limits, &Settings::from([("service", service)]), Side::Target);
            checked.map_err(|error| (error.to_string(), error.hint()))
        };
        assert_eq!(check("rc"), Ok(()));
        let (message, hint) = check("uc").unwrap_err();
        assert_eq!(message, "bnxt_re0 has no UC QPs");
        assert_eq!(hint.as_deref(), Some("use --service rc"));
    }

    #[test]
    fn a_device_of_uc_alone_with_short_queues_is_refused_once_with_all_that_it_takes() {
        let limits = PortLimits {
            name: "rdma_en2".to_owned(),
            device: DeviceLimits { max_qp_wr: 32, ..DeviceLimits::default() },
            lacks_services: Services { rc: true, ud: true, ..Services::default() },
            ..PortLimits::default()
        };
        let mut flow = Settings::default();
        flow.fit();
        let refused = check_flow(&limits, &flow, Side::Initiator).unwrap_err();
        let all = "use --service uc --tx-depth 32 --rx-depth 32";
        assert_eq!(refused.hint().as_deref(), Some(all));
        let given = [("service", "uc"), ("tx-depth", "32"), ("rx-depth", "32")];
        let fitting = check_flow(&limits, &Settings::from(given), Side::Initiator);
        fitting.map_err(|error| error.to_string()).unwrap();
    }
}
