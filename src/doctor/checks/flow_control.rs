//! Checks the means against packet loss (PFC, pause frames, ECN) and the loss counters of devices and interfaces.
//! Counters start when the driver is loaded, so they show that something happened, not when.

use machine::device::Lossless;
use metrics::counters::{Reading, why_loss_is_unknown};
use metrics::counts_pauses;
use results::model::PathEventKind;
use settings::Settings;
use verbs::Transport;

use super::super::entries::{DeviceEntry, PortEntry};
use super::super::machine::Machine;
use super::subject::{Subject, port_name};
use protocol::finding::{Finding, State};

const WHY_LOSS: &str = "RC repairs a loss only after a timeout or a NAK, which costs much throughput and tail \
                        latency; a network for RoCE should lose almost no packets";

const WHY_PAUSE: &str = "PFC (or plain pause frames) makes the sender wait instead of losing packets, and only works when \
     adapters and switches agree; many pauses mean that a receiver or the network is the bottleneck";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (device, port) in subject.inventory.system_ports() {
        findings.push(losses(subject, device, port));
        let is_adapter = !device.software && port.is_ethernet();
        if let Some(netdev) = port.netdev.as_deref().filter(|_| is_adapter) {
            findings.push(pause(subject, device, port, netdev));
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
    let more = match more.as_slice() {
        [] => String::new(),
        more => format!("; also {}", listed(more)),
    };
    if lost.is_empty() {
        let is_iwarp = device.transport == Transport::Iwarp.name();
        if let Some(reason) = why_loss_is_unknown(reading.as_ref(), is_iwarp) {
            let why = reason.of_driver(driver);
            return loss_finding(
                device,
                port,
                State::Unknown,
                format!("loss unknown: {why}{more}"),
            );
        }
        return loss_finding(
            device,
            port,
            State::Ok,
            format!("none counted since the driver was loaded{more}"),
        );
    }
    loss_finding(device, port,
        State::Warning,
        format!("counted since the driver was loaded: {}{more}", listed(&lost)),
    )
    .remedy(
        "run a sweep and this check again; if the counters grow, look for a path without PFC or ECN, a bad cable or \
         a wrong MTU; with Soft-RoCE on a busy machine raise --timeout",
    )
}

fn loss_finding(device: &DeviceEntry, port: &PortEntry, state: State, found: String) -> Finding {
    Finding::new("lost packets", state, found, WHY_LOSS).of(port_name(device, port))
}

/// `sequence gap: out_of_sequence 5, …`.
fn listed(events: &[(PathEventKind, &str, u64)]) -> String {
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
                Some(true) => pause_finding(netdev, State::Ok, found),
                Some(false) => pause_finding(netdev, State::Warning, found).remedy(lossless.advice()),
                None => pause_finding(netdev, State::Unknown, found).remedy(lossless.advice()),
            }
        }
        (_, Some(true)) => pause_finding(netdev, State::Ok, format!("pause frames are on, PFC is not{frames}")),
        (None, None) => pause_finding(netdev,
            State::Unknown,
            "unknown: the driver does not report PFC, and `ethtool` is not installed".into(),
        ),
        _ => pause_finding(netdev,
            State::Warning,
            format!("neither PFC nor pause frames are on{frames}"),
        )
        .remedy(format!(
            "for a lossless class run `sudo dcb pfc set dev {netdev} prio-pfc 3:on`, set the switch alike, and put \
             traffic into it (--dscp, or --service-level in a VLAN); a network with ECN alone does not need it"
        )),
    }
}

fn pause_finding(netdev: &str, state: State, found: String) -> Finding {
    Finding::new("flow control", state, found, WHY_PAUSE).of(netdev)
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
    use super::super::tests::*;
    use super::*;
    use machine::device::Bridging;

    #[test]
    fn counters_of_loss_are_a_warning() {
        let counters = [
            ("mlx5_0/ports/1/hw_counters/out_of_sequence", "0\n"),
            ("mlx5_0/ports/1/hw_counters/np_cnp_sent", "12\n"),
            ("rxe0/ports/1/hw_counters/completer_retry_err", "3\n"),
        ];
        let tree = tree();
        tree.add("sys/class/infiniband", &counters);
        let found = findings(&tree, check);
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
        let found = findings(&tree, check);
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
            let found = findings(&tree.with_bridging(bridging), check).remove(1);
            (found.state, found.found)
        };
        for (dscps, state, found) in [
            (&[(0, 3)], State::Ok, "priority 3, with PFC"),
            (&[(0, 1)], State::Warning, "priority 1, without PFC: they can be lost"),
            (&[(8, 1)], State::Unknown, "a priority that the driver does not report"),
        ] {
            let frames = "since the driver was loaded: rx_prio3_pause 7";
            let told = format!(
                "PFC is on for priority 3, 4, and packets of DSCP 0 have {found}; {frames}"
            );
            assert_eq!(with(&[3, 4], dscps, ""), (state, told));
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
