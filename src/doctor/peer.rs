//! Checks the other end: before any transfer whether it answers, its versions and its clock; then a small transfer of each
//! operation; and after the transfers the MTU of the path.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use node::resources::NodeOptions;
use plan::Sweep;
use protocol::{
    PROGRAM_VERSION, PROTOCOL_VERSION,
    error::ConnectError,
    failure::RunFailure,
    handshake::{ClockOffset, PeerInfo, connect, until_servers_listen},
    link::Link,
    node_report::{Check, Finding},
    token::Token,
};
use results::model::{Device, Failure, Host, ResultFile};
use serde_json::Value;
use settings::{Given, Op};
use verbs::{Gid, Route};

use super::examine::Examination;
use crate::coordinator::{
    interface::{Ends, Observer, SweepOptions, Target},
    sweep::run_sweep,
    sweeper::SweepOutcome,
};

/// Clocks farther apart make the logs of both ends hard to compare.
pub(super) const FAR_NS: i128 = 1_000_000_000;

const REACH: Check = Check::new(
    "reach",
    "both ends agree on each case over a TCP connection, the control connection",
);

const VERSION: Check = Check::new(
    "peer version",
    "both ends must speak the same protocol; different versions may still measure differently",
);

pub(super) const WHY_CLOCK: &str = "results and logs of both ends carry times; latencies do not depend on it: one \
                                    clock measures them";

const CLOCK: Check = Check::new("peer clock", WHY_CLOCK);

const PATH: Check = Check::new(
    "path MTU",
    "packets larger than the MTU of an interface or switch on the way are lost: small messages pass, large ones do not",
);

pub(super) struct Reached {
    pub(super) findings: Vec<Finding>,
    /// The control connection; [`Link::part`] ends it.
    pub(super) link: Link,
    pub(super) route: Route,
}

/// An end that did not answer.
pub(super) struct Unreached {
    pub(super) finding: Finding,
    pub(super) interrupted: bool,
}

pub(super) fn reach(
    host: &str,
    examination: &Examination,
    facts: &Value,
    stop: &AtomicBool,
) -> Result<Reached, Box<Unreached>> {
    let (port, token, approach) =
        (examination.port, examination.token.as_ref(), examination.approach);
    let (link, peer, took) = until_servers_listen(approach.wait, || {
        let started = Instant::now();
        let (link, peer) = connect(host, port, approach.from, token, facts, stop)?;
        Ok((link, peer, started.elapsed()))
    })
    .map_err(|error| {
        let finding = not_reached(&error, port);
        Box::new(Unreached { finding, interrupted: error.is_interrupt() })
    })?;
    let route = link.route().map_err(|error| {
        let finding = REACH.broken(error.to_string(), "try again");
        Box::new(Unreached { finding, interrupted: false })
    })?;
    let findings = vec![
        REACH.ok(format!(
            "{} answers; connection and handshake took {:.1} ms",
            peer.address,
            took.as_secs_f64() * 1e3
        )),
        version(&peer),
        clock(peer.clock),
    ];
    Ok(Reached { findings, link, route })
}

pub(super) fn not_reached(error: &ConnectError, port: u16) -> Finding {
    let remedy = error.hint().unwrap_or_else(|| {
        format!("start `rocebench serve` there, and open TCP port {port} in its firewall")
    });
    REACH.broken(error.to_string(), remedy)
}

fn version(peer: &PeerInfo) -> Finding {
    let host: Host = serde_json::from_value(peer.host.clone()).unwrap_or_default();
    let mut system = vec![format!("Linux {}", host.kernel)];
    system.extend(host.rdma_core.map(|version| format!("rdma-core {version}")));
    system.extend(host.os);
    let system = match host.kernel.as_str() {
        "" => String::new(),
        _ => format!(", on {} ({})", host.hostname, system.join(", ")),
    };
    let found = format!("rocebench {}, protocol {PROTOCOL_VERSION}{system}", peer.version);
    if peer.version == PROGRAM_VERSION {
        return VERSION.ok(found);
    }
    VERSION.warning(
        format!("{found}; here it is {PROGRAM_VERSION}"),
        "install the same version of rocebench on both ends",
    )
}

fn clock(offset: Option<ClockOffset>) -> Finding {
    let Some(offset) = offset else {
        return CLOCK.unknown("the other end does not report its time");
    };
    let side = if offset.offset_ns < 0 { "behind" } else { "ahead" };
    let within = milliseconds(offset.uncertainty_ns as f64);
    let found = if offset.offset_ns.unsigned_abs() <= offset.uncertainty_ns.into() {
        format!("the same, ±{within}")
    } else {
        let by = milliseconds(offset.offset_ns.unsigned_abs() as f64);
        format!("{by} {side}, ±{within}")
    };
    let least_ns = offset.offset_ns.abs() - i128::from(offset.uncertainty_ns);
    if least_ns < FAR_NS {
        return CLOCK.ok(found);
    }
    CLOCK.warning(found, "sudo timedatectl set-ntp true, at both ends")
}

/// A time for people: `1.50 ms`, `3600.0 s`.
pub(super) fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    if ms.abs() < 1000.0 { format!("{ms:.2} ms") } else { format!("{:.1} s", ms / 1e3) }
}

/// Judges the path from both ends' reports of the transfers.
pub(super) fn path_mtu(result: &ResultFile, full_packets_passed: bool) -> Option<Finding> {
    let [own, peer] = &result.nodes[..] else {
        return None;
    };
    let (own, peer) = (own.devices.first()?, peer.devices.first()?);
    let rdma_bytes = result.cases.first()?.config.flows.first()?.path_mtu?;
    let route_bytes =
        peer.gid.as_deref().and_then(Gid::parse).and_then(|gid| route_mtu(gid.address()));
    Some(judge_path(rdma_bytes, &Path { own, peer, route_bytes, full_packets_passed }))
}

struct Path<'a> {
    own: &'a Device,
    peer: &'a Device,
    route_bytes: Option<u32>,
    full_packets_passed: bool,
}

fn judge_path(rdma_bytes: u32, path: &Path<'_>) -> Finding {
    let mut found = format!("RDMA {rdma_bytes}");
    if path.own.netdev_mtu_bytes.or(path.peer.netdev_mtu_bytes).is_some() {
        found += &format!(
            "; interfaces {} here, {} there",
            interface_text(path.own),
            interface_text(path.peer)
        );
    }
    if let Some(bytes) = path.route_bytes {
        found += &format!("; route {bytes}");
    }
    if path.full_packets_passed {
        found += "; full packets pass";
    }
    // IPv4, UDP, BTH, RETH and ICRC.
    let packet_bytes = rdma_bytes + 20 + 8 + 12 + 16 + 4;
    if let Some(route_bytes) = path.route_bytes.filter(|bytes| *bytes < packet_bytes)
        && !path.full_packets_passed
    {
        return PATH.broken(
            format!(
                "{found}: the route takes {route_bytes} bytes, full packets have {packet_bytes}"
            ),
            "raise the MTU of interfaces and switches on the way, or give -m 1024",
        );
    }
    match (path.own.netdev_mtu_bytes, path.peer.netdev_mtu_bytes) {
        (Some(own), Some(peer)) if own != peer => PATH.warning(
            format!("{found}: the interfaces differ"),
            format!(
                "sudo ip link set {} mtu {} {}, and allow it on the switches between",
                if own < peer { path.own } else { path.peer }.netdev.as_deref().unwrap_or("NETDEV"),
                own.max(peer),
                if own < peer { "here" } else { "at the other end" },
            ),
        ),
        _ if path.full_packets_passed => PATH.ok(found),
        _ => PATH.unknown(format!("{found}; no full packet passed")),
    }
}

fn interface_text(device: &Device) -> String {
    match (&device.netdev, device.netdev_mtu_bytes) {
        (Some(netdev), Some(bytes)) => format!("{netdev} {bytes}"),
        _ => "unknown".to_owned(),
    }
}

/// The kernel's route MTU to an address; sends no packet.
fn route_mtu(address: IpAddr) -> Option<u32> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => [0, 0, 0, 0].into(),
        IpAddr::V6(_) => [0u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Connecting a UDP socket looks up a route; any port works.
    socket.connect((address, 4791)).ok()?;
    match address {
        IpAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket).ok(),
        IpAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket).ok(),
    }
}

/// Messages in each direction, for each operation and size.
const MESSAGES: u64 = 32;

const SMALL: &str = "64";
const LARGE: &str = "64K";

const TRANSFER: Check = Check::new(
    "transfer",
    "this is a small benchmark: it connects QPs, sends messages both ways, and compares every byte on arrival",
);

/// A small transfer of each operation in both directions, every byte checked, as a sweep of a few messages. Small messages
/// of one packet come first, then large ones of many full packets, which fail alone if the path does not carry the RDMA
/// MTU.
pub(super) struct TransferCheck<'a> {
    pub(super) target: Target,
    pub(super) resources: &'a NodeOptions,
    pub(super) token: Option<&'a Token>,
    /// That of the QPs, `rc` or `uc`; over `uc` READ is left out.
    pub(super) service: &'a str,
    pub(super) stop: &'a AtomicBool,
}

/// The results of the transfers.
pub(super) struct TransferResults {
    pub(super) findings: Vec<Finding>,
    /// The last result, with both ends' devices and the path MTU.
    pub(super) result: Option<ResultFile>,
    pub(super) full_packets_passed: bool,
    pub(super) interrupted: bool,
}

/// The result of one operation with one size; `None` if it was not tried.
type OperationOutcome = Option<Result<(), Failure>>;

impl TransferCheck<'_> {
    pub(super) fn run(&self) -> TransferResults {
        let mut done = TransferResults {
            findings: Vec::new(),
            result: None,
            full_packets_passed: false,
            interrupted: false,
        };
        let small = match self.sweep(SMALL) {
            Ok(outcome) => outcome,
            Err(error) => {
                done.interrupted = error.interrupted;
                done.findings.push(not_begun(&error));
                return done;
            }
        };
        // If no small message passes, no large one does; save the time.
        let large = (any_passed(&small) && !small.interrupted).then(|| self.sweep(LARGE));
        done.interrupted = small.interrupted;
        let large = match large {
            Some(Ok(outcome)) => Some(outcome),
            Some(Err(error)) => {
                done.findings.push(not_begun(&error));
                None
            }
            None => None,
        };
        if let Some(large) = &large {
            done.full_packets_passed = any_passed(large);
            done.interrupted |= large.interrupted;
        }
        for op in Op::BASIC {
            let outcomes = [
                outcome_of(&small.result, op),
                large.as_ref().and_then(|it| outcome_of(&it.result, op)),
            ];
            done.findings.extend(judge_transfers(op, outcomes));
        }
        done.result = Some(large.map_or(small.result, |large| large.result));
        done
    }

    fn sweep(&self, size: &str) -> Result<SweepOutcome, RunFailure> {
        let ends = Ends {
            token: self.token.cloned(),
            ..Ends::new(self.target.clone(), self.resources.clone())
        };
        let options = SweepOptions::new(sweep(size, self.service), ends);
        run_sweep(&options, self.stop, &mut NoObserver)
    }
}

fn any_passed(outcome: &SweepOutcome) -> bool {
    Op::BASIC.iter().any(|op| matches!(outcome_of(&outcome.result, *op), Some(Ok(()))))
}

/// A sweep of each operation once, with fewer retries than usual, half a second apart: failures show quickly, while a
/// busy machine has time to answer.
fn sweep(size: &str, service: &str) -> Sweep {
    // Over UC nothing is read, and nothing sent again.
    let (ops, retries) = match service {
        "uc" => ("send,write", &[][..]),
        _ => ("send,write,read", &[("timeout", "17"), ("retry-cnt", "3")][..]),
    };
    let messages = MESSAGES.to_string();
    let common = [
        ("op", ops),
        ("service", service),
        ("size", size),
        ("tx-depth", "8"),
        ("rx-depth", "16"),
        ("bidirectional", "true"),
        ("iters", messages.as_str()),
        ("warmup", "0"),
        ("verify", "true"),
        ("no-latency", "true"),
    ];
    let given: Given = common.into_iter().chain(retries.iter().copied()).collect();
    // The settings are constant; a test checks them.
    Sweep::new(&given).unwrap_or_default()
}

fn outcome_of(result: &ResultFile, op: Op) -> OperationOutcome {
    let case = result.cases.iter().find(|case| case.config.op == op.into())?;
    // A run that the user stopped proves nothing.
    let run = case.runs.first().filter(|run| !run.interrupted)?;
    Some(match &run.failure {
        None if run.complete => Ok(()),
        None => Err(Failure::default()),
        Some(failure) => Err(failure.clone()),
    })
}

fn judge_transfers(op: Op, [small, large]: [OperationOutcome; 2]) -> Option<Finding> {
    let finding = match (small?, large) {
        (Err(failure), _) => broken(format!("64 bytes: {}", failure.message), failure.hint),
        (Ok(()), Some(Err(failure))) => broken(
            format!(
                "small messages pass, large ones do not (64 bytes, 64 KiB): {}",
                failure.message
            ),
            failure.hint,
        ),
        (Ok(()), Some(Ok(()))) => TRANSFER.ok(format!(
            "{MESSAGES} messages each of 64 bytes and 64 KiB, both ways, every byte right"
        )),
        (Ok(()), None) => {
            TRANSFER.ok(format!("{MESSAGES} messages of 64 bytes, both ways, every byte right"))
        }
    };
    Some(finding.about(op.name()))
}

fn broken(found: String, hint: Option<String>) -> Finding {
    TRANSFER.broken(found, hint.unwrap_or_else(|| "see what the other end printed".to_owned()))
}

fn not_begun(error: &RunFailure) -> Finding {
    broken(format!("not started: {error}"), error.hint.clone())
}

/// Shows nothing: the findings contain all results.
struct NoObserver;

impl Observer for NoObserver {}

#[cfg(test)]
mod tests {
    use protocol::node_report::State;

    use super::*;

    fn device(netdev_mtu_bytes: u32) -> Device {
        Device {
            netdev: Some("eth0".into()),
            netdev_mtu_bytes: Some(netdev_mtu_bytes),
            ..Device::default()
        }
    }

    fn path(own: u32, peer: u32, route_bytes: u32, passed: bool) -> State {
        let path = Path {
            own: &device(own),
            peer: &device(peer),
            route_bytes: Some(route_bytes),
            full_packets_passed: passed,
        };
        judge_path(4096, &path).state
    }

    #[test]
    fn the_narrowest_place_counts() {
        assert_eq!(path(4200, 4200, 4200, true), State::Ok);
        assert_eq!(path(9000, 4200, 9000, true), State::Warning);
        assert_eq!(path(9000, 9000, 1500, false), State::Broken);
        assert_eq!(path(9000, 9000, 9000, false), State::Unknown);
    }

    #[test]
    fn clocks_are_judged_by_what_is_certain() {
        let of = |offset_ns, uncertainty_ns| clock(Some(ClockOffset { offset_ns, uncertainty_ns }));
        let behind = "1.50 ms behind, ±0.20 ms";
        assert_eq!(of(-1_500_000, 200_000).found, behind);
        assert_eq!(of(1_100_000_000, 200_000_000).state, State::Ok);
        let far = of(3_600_000_000_000, 200_000);
        let ahead = "3600.0 s ahead, ±0.20 ms";
        assert_eq!((far.state, &*far.found), (State::Warning, ahead));
        assert_eq!(of(-3, 200_000).found, "the same, ±0.20 ms");
        assert_eq!(clock(None).state, State::Unknown);
    }

    #[test]
    fn loopback_has_a_route() {
        assert!(route_mtu(IpAddr::from([127, 0, 0, 1])).is_some_and(|bytes| bytes >= 1500));
    }

    #[test]
    fn another_version_is_a_warning() {
        let peer = |version: &str| PeerInfo {
            address: ([192, 0, 2, 7], 18515).into(),
            version: version.into(),
            host: serde_json::json!({"hostname": "b", "kernel": "6.1", "cores": 2}),
            receives_files: false,
            clock: None,
        };
        let same = version(&peer(PROGRAM_VERSION));
        assert_eq!(same.state, State::Ok);
        assert!(same.found.ends_with(", on b (Linux 6.1)"), "{}", same.found);
        assert_eq!(version(&peer("99.0.0")).state, State::Warning);
    }

    fn failed(message: &str) -> OperationOutcome {
        Some(Err(Failure { message: message.into(), hint: Some("try".into()) }))
    }

    #[test]
    fn the_sweep_is_each_operation_both_ways_and_checked() {
        let sizes = [(SMALL, 64), (LARGE, 65_536)];
        for ((size, bytes), (service, expected)) in sizes
            .into_iter()
            .flat_map(|size| [(size, ("rc", &Op::BASIC[..])), (size, ("uc", &Op::BASIC[..2]))])
        {
            let cases = sweep(size, service).cases;
            let ops: Vec<Op> = cases.iter().map(|case| case.op.transfer()).collect();
            assert_eq!(ops, expected);
            for case in &cases {
                assert_eq!((case.size_bytes, case.qps), (bytes, 1));
                assert!(case.verify && case.bidirectional);
            }
        }
    }

    #[test]
    fn full_packets_that_fail_alone_point_at_the_mtu() {
        let found = judge_transfers(Op::Write, [Some(Ok(())), failed("retries")]).unwrap();
        assert_eq!(found.state, State::Broken);
        assert_eq!(found.label(), "transfer write");
        assert!(found.found.contains("large ones do not"));
        let refused = judge_transfers(Op::Send, [failed("retries"), None]).unwrap();
        assert_eq!(refused.found, "64 bytes: retries");
        assert_eq!(refused.remedy.as_deref(), Some("try"));
    }

    #[test]
    fn what_was_not_tried_is_not_told() {
        assert_eq!(judge_transfers(Op::Read, [None, None]), None);
        let small = judge_transfers(Op::Read, [Some(Ok(())), None]).unwrap();
        assert_eq!(small.state, State::Ok);
    }
}
