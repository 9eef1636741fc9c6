//! Checks of the devices' ports: whether they are active, have a RoCE v2 GID, fit the MTU of their network interface, and
//! what they do against packet loss.

use std::path::Path;

use machine::{device::Lossless, optional_counters::OptionalCounters, surroundings::Bond};
use metrics::{
    counters::{Reading, why_loss_is_unknown},
    counts_pauses,
};
use protocol::node_report::{Check, Finding, State};
use results::model::PathEventKind;
use settings::Settings;
use verbs::{GidType, Transport};

use super::{Subject, port_name};
use crate::doctor::{
    inventory::{DeviceEntry, PortEntry},
    machine::Machine,
};

const PORT: Check = Check::new(
    "port",
    "a QP can connect only on a port that is ACTIVE; a RoCE port is ACTIVE when its network interface is up and has a link",
);

/// Checks that the devices' ports are active.
pub(super) fn check_ports(subject: &Subject<'_>) -> Vec<Finding> {
    let ports: Vec<_> = subject.inventory.system_ports().collect();
    let any_active = ports.iter().any(|(_, port)| port.is_active());
    ports
        .iter()
        .map(|(device, port)| judge_port(port, any_active).about(port_name(device, port)))
        .collect()
}

fn judge_port(port: &PortEntry, any_active: bool) -> Finding {
    let state = port.state.as_deref().unwrap_or("of unknown state");
    let mut found = state.to_owned();
    for detail in port.physical_state.iter().chain(&port.link_layer) {
        found += &format!(", {detail}");
    }
    if let Some(speed) = port.link_gbit_per_s {
        found += &format!(", {speed} Gb/s");
    }
    if let Some(netdev) = &port.netdev {
        found += &format!(", on {netdev}");
        if let Some(netdev_state) = port.netdev_state.as_ref().filter(|_| !port.is_active()) {
            found += &format!(", which is {netdev_state}");
        }
    }
    if port.is_active() {
        return PORT.ok(found);
    }
    let netdev = port.netdev.as_deref().unwrap_or("NETDEV");
    let remedy = match (port.is_ethernet(), port.physical_state.as_deref()) {
        (true, Some("Polling")) => {
            format!(
                "check cable and switch port: the interface has no link (`ip link show {netdev}`)"
            )
        }
        (true, _) => {
            format!(
                "sudo ip link set {netdev} up; if that does not help, check cable and switch port"
            )
        }
        (false, _) => "check the cable, and that a subnet manager runs (opensm)".to_owned(),
    };
    if any_active { PORT.warning(found, remedy) } else { PORT.broken(found, remedy) }
}

const GIDS: Check = Check::new(
    "GIDs",
    "GIDs are a port's RDMA addresses; the kernel makes them from its interface's IP addresses. Both ends must use RoCE v2 \
     GIDs of one address family",
);

/// Checks that active RoCE ports have a RoCE v2 GID, preferably a routable one.
pub(super) fn check_gids(subject: &Subject<'_>) -> Vec<Finding> {
    subject.judge_active_roce_ports(judge_gids)
}

fn judge_gids(port: &PortEntry) -> Finding {
    let netdev = port.netdev.as_deref().unwrap_or("NETDEV");
    let address =
        format!("sudo ip address add 192.0.2.1/24 dev {netdev} (an address of your network)");
    let v2: Vec<_> =
        port.table().into_iter().filter(|entry| entry.gid_type == GidType::RoceV2).collect();
    let routable = v2.iter().filter(|entry| !entry.gid.is_link_local()).count();
    match (port.gids.len(), v2.len(), routable) {
        (0, ..) => GIDS.broken("the table is empty (all entries are zero)", address),
        (entries, 0, _) => GIDS.broken(
            format!("{entries} entries, none is RoCE v2"),
            "enable RoCE v2 in the adapter's settings (`cma_roce_mode` or the vendor's tool), or update driver and \
             firmware; rocebench does not use v1, which is not routable",
        ),
        (_, v2, 0) => GIDS.warning(
            format!("{v2} RoCE v2, all link-local: they reach only this network segment"),
            address,
        ),
        (entries, v2, routable) => {
            GIDS.ok(format!("{entries} entries, {v2} RoCE v2, {routable} of them routable"))
        }
    }
}

/// The most bytes that a RoCE v2 packet adds to its payload in terms of the interface's MTU: IPv6 40, UDP 8, BTH 12,
/// AtomicETH 28 (the longest extended header), XRC 4, ICRC 4. The kernel reserves the same (`iboe_get_mtu` in
/// include/rdma/ib_addr.h) and takes the largest RDMA MTU that fits.
const HEADERS_BYTES: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// The customary interface MTU that fits an RDMA MTU of 4096.
const CUSTOMARY_BYTES: u32 = 4200;

const MTU: Check = Check::new(
    "MTU",
    "the RDMA MTU is the payload of a packet: each packet must fit the interface's MTU and every switch's, and large packets \
     cost less header and less work (98 % payload on the wire with 4096, 93 % with 1024)",
);

/// Compares the RDMA MTU with the MTU of the network interface.
pub(super) fn check_mtu(subject: &Subject<'_>) -> Vec<Finding> {
    subject.judge_active_roce_ports(judge_mtu)
}

fn judge_mtu(port: &PortEntry) -> Finding {
    let (Some(active), Some(netdev), Some(netdev_bytes)) =
        (port.active_mtu_bytes, &port.netdev, port.netdev_mtu_bytes)
    else {
        let what = match port.active_mtu_bytes {
            None => "the RDMA MTU, which only an opened device reports",
            Some(_) => "the network interface",
        };
        return MTU.unknown(format!("could not read {what}"));
    };
    let max = port.max_mtu_bytes.unwrap_or(4096);
    let found = format!("RDMA {active} of at most {max}; {netdev} {netdev_bytes}");
    // The fewest bytes of a packet, less than the kernel reserves: IPv4, and RETH in place of AtomicETH.
    let least_bytes = active + 20 + 8 + 12 + 16 + 4;
    if least_bytes > netdev_bytes {
        return MTU.broken(
            format!("{found}: full packets do not fit, they are lost or cut"),
            raise_mtu(netdev, CUSTOMARY_BYTES.max(active + HEADERS_BYTES)),
        );
    }
    if active < max {
        return MTU.warning(
            format!("{found}: the interface's MTU keeps packets small"),
            raise_mtu(netdev, CUSTOMARY_BYTES.max(max + HEADERS_BYTES)),
        );
    }
    MTU.ok(found)
}

fn raise_mtu(netdev: &str, bytes: u32) -> String {
    format!(
        "sudo ip link set {netdev} mtu {bytes}, at both ends, and allow it on the switches between"
    )
}

const BOND: Check = Check::new(
    "bond",
    "the adapter gives each QP one member of the bond; the speeds of port and bond are those of all members together",
);

/// Names the members of bonds, of which one QP uses one.
pub(super) fn check_bonds(subject: &Subject<'_>) -> Vec<Finding> {
    let bonds = subject
        .active_roce_ports()
        .filter_map(|(device, port)| Some((port_name(device, port), port.bond.as_ref()?)));
    bonds
        .map(|(name, bond)| {
            BOND.finding(State::Ok, bond.words(), Some(Bond::ADVICE.to_owned())).about(name)
        })
        .collect()
}

const LOSS: Check = Check::new(
    "lost packets",
    "RC repairs a loss only after a timeout or a NAK, which costs much throughput and tail latency; a network for RoCE should \
     lose almost no packets",
);

const PAUSE: Check = Check::new(
    "flow control",
    "PFC (or plain pause frames) makes the sender wait instead of losing packets, and only works when adapters and switches \
     agree; many pauses mean that a receiver or the network is the bottleneck",
);

/// Checks the means against packet loss (PFC, pause frames, ECN) and the loss counters of devices and interfaces. Counters
/// start when the driver is loaded, so they show that something happened, not when.
pub(super) fn check_flow_control(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (device, port) in subject.inventory.system_ports() {
        findings.push(losses(subject, device, port).about(port_name(device, port)));
        let is_adapter = !device.software && port.is_ethernet();
        if let Some(netdev) = port.netdev.as_deref().filter(|_| is_adapter) {
            findings.push(pause(subject, device, port, netdev).about(netdev));
        }
    }
    findings
}

fn losses(subject: &Subject<'_>, device: &DeviceEntry, port: &PortEntry) -> Finding {
    let root = subject.machine.root();
    let driver = device.driver.as_deref();
    let reading = Reading::of_kernel(root, driver, &device.name, port.port);
    let events = reading.as_ref().map_or_else(Vec::new, Reading::events);
    let (lost, more): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|(meaning, ..)| meaning.is_loss());
    let mut more = match more.as_slice() {
        [] => String::new(),
        more => format!("; also {}", listed_events(more)),
    };
    // Others are not this machine's.
    if root == Path::new("/") {
        let optional = OptionalCounters::open(&device.name, port.port);
        let advice = optional.and_then(|it| to_count_marks((&device.name, port.port), &it.status));
        more.extend(advice);
    }
    if lost.is_empty() {
        let is_iwarp = device.transport == Transport::Iwarp.name();
        if let Some(reason) = why_loss_is_unknown(reading.as_ref(), is_iwarp) {
            let why = reason.of_driver(driver);
            return LOSS.unknown(format!("loss unknown: {why}{more}"));
        }
        return LOSS.ok(format!("none counted since the driver was loaded{more}"));
    }
    LOSS.warning(
        format!("counted since the driver was loaded: {}{more}", listed_events(&lost)),
        "run a sweep and this check again; if the counters grow, look for a path without PFC or ECN, a bad cable or \
         a wrong MTU; with Soft-RoCE on a busy machine raise --timeout; `rocebench why HOST` finds out what loses them",
    )
}

/// How to switch on what counts ECN's marks on the wire, where it is off. The command replaces the set of those that are on.
fn to_count_marks((device, port): (&str, u8), status: &[(String, bool)]) -> Option<String> {
    let of_marks = status.iter().filter(|(name, _)| name.starts_with("cc_"));
    let off: Vec<&str> =
        of_marks.filter(|(_, is_on)| !is_on).map(|(name, _)| name.as_str()).collect();
    let on = status.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.as_str());
    let names = on.chain(off.iter().copied()).collect::<Vec<&str>>().join(",");
    (!off.is_empty()).then(|| {
        format!("; to count ECN marks and CNPs run `sudo rdma statistic set link {device}/{port} optional-counters {names}`")
    })
}

/// `sequence gap: out_of_sequence 5, …`.
fn listed_events(events: &[(PathEventKind, &str, u64)]) -> String {
    let kinds: Vec<_> = events
        .chunk_by(|a, b| a.0 == b.0)
        .map(|alike| {
            let counters: Vec<_> =
                alike.iter().map(|(_, name, value)| format!("{name} {value}")).collect();
            format!("{}: {}", alike[0].0.words(), counters.join(", "))
        })
        .collect();
    kinds.join("; ")
}

/// What the interface below a port of a device does against loss.
pub(in super::super) fn lossless(machine: &Machine, device: (&str, u8), netdev: &str) -> Lossless {
    let bridging = machine.bridging(netdev).unwrap_or_default();
    Lossless {
        pause_frames: pause_frames_are_on(machine, netdev),
        ..Lossless::read(machine.root(), device, netdev, bridging)
    }
}

fn pause(subject: &Subject<'_>, device: &DeviceEntry, port: &PortEntry, netdev: &str) -> Finding {
    let machine = subject.machine;
    let lossless = lossless(machine, (&device.name, port.port), netdev);
    let usual = Settings::default();
    let treatment = lossless.treatment(usual.traffic_class, usual.service_level);
    let frames = machine
        .tool("ethtool", &["-S", netdev])
        .map(|text| pause_frames(&text))
        .filter(|frames| !frames.is_empty())
        .map_or_else(String::new, |frames| {
            format!("; since the driver was loaded: {}", frames.join(", "))
        });
    match (&lossless.pfc_priorities, lossless.pause_frames) {
        (Some(on), _) if !on.is_empty() => {
            let on = listed_numbers(on);
            let found = format!("PFC is on for priority {on}, and {treatment}{frames}");
            match treatment.is_lossless {
                Some(true) => PAUSE.ok(found),
                Some(false) => PAUSE.warning(found, lossless.advice()),
                None => PAUSE.finding(State::Unknown, found, Some(lossless.advice())),
            }
        }
        (_, Some(true)) => PAUSE.ok(format!("pause frames are on, PFC is not{frames}")),
        (None, None) => PAUSE
            .unknown("unknown: the driver does not report PFC, and `ethtool` is not installed"),
        _ => PAUSE.warning(
            format!("neither PFC nor pause frames are on{frames}"),
            format!(
                "for a lossless class run `sudo dcb pfc set dev {netdev} prio-pfc 3:on`, set the switch alike, and put \
                 traffic into it (--dscp, or --service-level in a VLAN); a network with ECN alone does not need it"
            ),
        ),
    }
}

fn listed_numbers(numbers: &[u8]) -> String {
    let words: Vec<String> = numbers.iter().map(u8::to_string).collect();
    words.join(", ")
}

/// Whether pause frames are on in a direction; `None` where that cannot be seen.
fn pause_frames_are_on(machine: &Machine, netdev: &str) -> Option<bool> {
    machine.tool("ethtool", &["-a", netdev]).map(|text| global_pause(&text))
}

/// Whether `ethtool -a` shows pause frames in a direction.
fn global_pause(text: &str) -> bool {
    text.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(name, value)| matches!(name.trim(), "RX" | "TX") && value.trim() == "on")
    })
}

/// Counters of pause frames in `ethtool -S`, and mlx5's of drops for lack of buffers
/// (Documentation/networking/…/mlx5/counters.rst).
fn pause_frames(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, value)| {
            (counts_pauses(name) || ["rx_discards_phy", "rx_out_of_buffer"].contains(name))
                && value.trim().parse().is_ok_and(|count: u64| count > 0)
        })
        .map(|(name, value)| format!("{name} {}", value.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use machine::device::Bridging;
    use results::sample::has;

    use super::super::tests::*;
    use super::*;
    use crate::doctor::inventory::GidRow;

    #[test]
    fn a_port_that_is_down_matters_less_beside_one_that_is_up() {
        let found = findings(&tree(), check_ports);
        let [up, down] = ["port mlx5_0:1", "port rxe0:1"].map(str::to_owned);
        assert_eq!(states(&found), [(State::Ok, up), (State::Warning, down)]);
        let words = "ACTIVE, LinkUp, Ethernet, 100 Gb/s, on eth2";
        assert_eq!(found[0].found, words);
        has(found[1].remedy.as_ref().unwrap(), ["ip link set v0 up"]);
    }

    #[test]
    fn no_port_that_is_up_is_broken() {
        let port = [("state", "2: INIT\n"), ("link_layer", "InfiniBand\n")];
        let tree = Tree::new(&[]);
        tree.add("sys/class/infiniband/ib0/ports/1", &port);
        let found = findings(&tree, check_ports);
        assert_eq!(found[0].state, State::Broken);
        has(found[0].remedy.as_ref().unwrap(), ["opensm"]);
    }

    #[test]
    fn counters_of_marks_are_switched_on_beside_those_that_are_on() {
        let names = ["cc_rx_ce_pkts", "cc_tx_cnp_pkts", "rdma_tx_bytes", "rdma_rx_bytes"];
        let advice = |are_on: [bool; 4]| {
            let status: Vec<_> = names.map(str::to_owned).into_iter().zip(are_on).collect();
            to_count_marks(("mlx5_0", 1), &status)
        };
        let command = "rdma statistic set link mlx5_0/1 optional-counters cc_rx_ce_pkts,rdma_tx_bytes,cc_tx_cnp_pkts`";
        has(advice([true, false, true, false]).unwrap(), [command]);
        assert_eq!(advice([true, true, false, false]), None);
    }

    fn state_with(rows: &[(&str, &str)]) -> State {
        let port = PortEntry {
            gids: rows
                .iter()
                .map(|(gid, gid_type)| GidRow {
                    gid: (*gid).into(),
                    gid_type: (*gid_type).into(),
                    ..GidRow::default()
                })
                .collect(),
            ..PortEntry::default()
        };
        judge_gids(&port).state
    }

    #[test]
    fn tables_are_judged_by_their_best_entry() {
        let local = ("fe80::1", "RoCE v2");
        assert_eq!(state_with(&[]), State::Broken);
        assert_eq!(state_with(&[("::ffff:192.0.2.1", "RoCE v1")]), State::Broken);
        assert_eq!(state_with(&[local]), State::Warning);
        assert_eq!(state_with(&[local, ("2001:db8::1", "RoCE v2")]), State::Ok);
    }

    #[test]
    fn ports_that_are_down_are_left_out() {
        let found = findings(&tree(), check_gids);
        assert_eq!(states(&found), [(State::Ok, "GIDs mlx5_0:1".into())]);
        assert!(found[0].found.starts_with("4 entries, 2 RoCE v2, 1 of"));
    }

    fn judged_mtu(active: u32, netdev: u32) -> Finding {
        let port = PortEntry {
            port: 1,
            active_mtu_bytes: Some(active),
            max_mtu_bytes: Some(4096),
            netdev: Some("eth2".into()),
            netdev_mtu_bytes: Some(netdev),
            ..PortEntry::default()
        };
        judge_mtu(&port)
    }

    #[test]
    fn packets_must_fit_and_should_be_large() {
        assert_eq!(judged_mtu(4096, 4200).state, State::Ok);
        let small = judged_mtu(1024, 1500);
        assert_eq!(small.state, State::Warning);
        assert!(small.remedy.unwrap().contains("eth2 mtu 4200"));
        assert_eq!(judged_mtu(4096, 1500).state, State::Broken);
        assert_eq!(judged_mtu(4096, 4155).state, State::Broken);
        assert_eq!(judged_mtu(4096, 4156).state, State::Ok);
    }

    #[test]
    fn a_device_that_was_not_opened_tells_no_mtu() {
        assert_eq!(findings(&tree(), check_mtu)[0].state, State::Unknown);
        let found = findings_with(&tree(), check_mtu, |devices| {
            devices[0].ports[0].active_mtu_bytes = Some(4096);
        });
        assert_eq!(found[0].found, "RDMA 4096 of at most 4096; eth2 4200");
    }

    #[test]
    fn counters_of_loss_are_a_warning() {
        let counters = [
            ("mlx5_0/ports/1/hw_counters/out_of_sequence", "0\n"),
            ("mlx5_0/ports/1/hw_counters/np_cnp_sent", "12\n"),
            ("rxe0/ports/1/hw_counters/completer_retry_err", "3\n"),
        ];
        let tree = tree();
        tree.add("sys/class/infiniband", &counters);
        let found = findings(&tree, check_flow_control);
        let expected = [
            (State::Ok, "lost packets mlx5_0:1".into()),
            (State::Unknown, "flow control eth2".into()),
            (State::Warning, "lost packets rxe0:1".into()),
        ];
        assert_eq!(states(&found), expected);
        let also = "; also ECN and congestion notifications: np_cnp_sent 12";
        assert!(found[0].found.ends_with(also), "{:?}", found[0]);
        let lost = ": sent again: completer_retry_err 3";
        assert!(found[2].found.ends_with(lost), "{:?}", found[2]);
    }

    #[test]
    fn counters_mean_what_their_driver_means() {
        let tree = Tree::new(&[]);
        for (driver, device) in [("bnxt_en", "bnxt_re0"), ("ice", "rocep1s0"), ("qede", "qedr0")] {
            let pci = format!("sys/devices/{device}");
            let card = format!("sys/class/infiniband/{device}");
            tree.add(&pci, &[("numa_node", "0\n")]);
            tree.link(&format!("{card}/device"), &pci);
            let driver = format!("sys/bus/pci/drivers/{driver}");
            tree.link(&format!("{pci}/driver"), &driver);
            let counters = [
                ("seq_err_naks_rcvd", "2\n"),
                ("oos_drop_count", "3\n"),
                ("RTO", "4\n"),
                ("cnpSent", "5\n"),
                ("out_of_seq_request", "6\n"),
            ];
            tree.add(&format!("{card}/ports/1/hw_counters"), &counters);
        }
        let found = findings(&tree, check_flow_control);
        let lost = [
            "gaps seen by the receiver: oos_drop_count 3; NAKs for a gap: seq_err_naks_rcvd 2",
            "ACK timeouts: RTO 4; also ECN and congestion notifications: cnpSent 5",
        ];
        let lost = lost.map(|text| format!("counted since the driver was loaded: {text}"));
        let [gaps, timeouts] = lost.each_ref().map(|text| (State::Warning, &**text));
        let unknown = "loss unknown: driver qede has counters that rocebench does not know";
        let found: Vec<_> = found.iter().map(outcome).collect();
        assert_eq!(found, [gaps, (State::Unknown, unknown), timeouts]);
    }

    #[test]
    fn pfc_and_pause_frames_are_told() {
        let statistics = "NIC statistics:\n     rx_prio3_pause: 7\n     rx_prio3_pause_duration: 9\n     rx_packets: 5\n     tx_pause_ctrl_phy: 0\n";
        let with = |pfc: &[u8], dscps: &[(u8, u8)], pause: &str| {
            let pause = pause.to_owned();
            let bridging = Bridging {
                pfc_priorities: Some(pfc.to_vec()),
                dscp_priorities: Some(dscps.to_vec()),
                ..Bridging::default()
            };
            let tree = tree().with_tools(move |_, arguments| match arguments[0] {
                "-a" => Some(pause.clone()),
                "-S" => Some(statistics.to_owned()),
                _ => None,
            });
            let found = findings(&tree.with_bridging(bridging), check_flow_control).remove(1);
            (found.state, found.found)
        };
        for (dscps, state, found) in [
            (&[(0, 3)], State::Ok, "priority 3, with PFC"),
            (&[(0, 1)], State::Warning, "priority 1, without PFC: they can be lost"),
            (&[(8, 1)], State::Unknown, "a priority that the driver does not report"),
        ] {
            let frames = "since the driver was loaded: rx_prio3_pause 7";
            let sentence = format!(
                "PFC is on for priority 3, 4, and packets of DSCP 0 have {found}; {frames}"
            );
            assert_eq!(with(&[3, 4], dscps, ""), (state, sentence));
        }
        for (autonegotiation, receives, state) in
            [("off", "on", State::Ok), ("on", "off", State::Warning)]
        {
            let pause =
                format!("Autonegotiate:\t{autonegotiation}\nRX:\t\t{receives}\nTX:\t\toff\n");
            assert_eq!(with(&[], &[], &pause).0, state, "{pause}");
        }
    }
}
