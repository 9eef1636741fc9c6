//! Compares the RDMA MTU with the MTU of the network interface.

use super::super::entries::{DeviceEntry, PortEntry};
use super::subject::{Subject, port_name};
use protocol::finding::{Finding, State};

/// The most bytes that a RoCE v2 packet adds to its payload in terms of the interface's MTU: IPv6 40, UDP 8, BTH 12,
/// AtomicETH 28 (the longest extended header), XRC 4, ICRC 4. The kernel reserves the same (`iboe_get_mtu` in
/// include/rdma/ib_addr.h) and takes the largest RDMA MTU that fits.
const HEADERS_BYTES: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// The customary interface MTU that fits an RDMA MTU of 4096.
const CUSTOMARY_BYTES: u32 = 4200;

const WHY: &str = "the RDMA MTU is the payload of a packet: each packet must fit the interface's MTU and every \
     switch's, and large packets cost less header and less work (98 % payload on the wire with 4096, 93 % with 1024)";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    subject.of_active_roce_ports(judge)
}

fn judge(device: &DeviceEntry, port: &PortEntry) -> Finding {
    let (Some(active), Some(netdev), Some(netdev_bytes)) =
        (port.active_mtu_bytes, &port.netdev, port.netdev_mtu_bytes)
    else {
        let what = match port.active_mtu_bytes {
            None => "the RDMA MTU, which only an opened device reports",
            Some(_) => "the network interface",
        };
        return finding(device, port, State::Unknown, format!("could not read {what}"));
    };
    let max = port.max_mtu_bytes.unwrap_or(4096);
    let found = format!("RDMA {active} of at most {max}; {netdev} {netdev_bytes}");
    // The fewest bytes of a packet, less than the kernel reserves: IPv4, and RETH in place of AtomicETH.
    let least_bytes = active + 20 + 8 + 12 + 16 + 4;
    if least_bytes > netdev_bytes {
        return finding(
            device,
            port,
            State::Broken,
            format!("{found}: full packets do not fit, they are lost or cut"),
        )
        .remedy(raise_mtu(netdev, CUSTOMARY_BYTES.max(active + HEADERS_BYTES)));
    }
    if active < max {
        return finding(
            device,
            port,
            State::Warning,
            format!("{found}: the interface's MTU keeps packets small"),
        )
        .remedy(raise_mtu(netdev, CUSTOMARY_BYTES.max(max + HEADERS_BYTES)));
    }
    finding(device, port, State::Ok, found)
}

fn raise_mtu(netdev: &str, bytes: u32) -> String {
    format!(
        "sudo ip link set {netdev} mtu {bytes}, at both ends, and allow it on the switches between"
    )
}

fn finding(device: &DeviceEntry, port: &PortEntry, state: State, found: String) -> Finding {
    Finding::new("MTU", state, found, WHY).of(port_name(device, port))
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    fn of(active: u32, netdev: u32) -> Finding {
        let port = PortEntry {
            port: 1,
            active_mtu_bytes: Some(active),
            max_mtu_bytes: Some(4096),
            netdev: Some("eth2".into()),
            netdev_mtu_bytes: Some(netdev),
            ..PortEntry::default()
        };
        judge(&DeviceEntry::default(), &port)
    }

    #[test]
    fn packets_must_fit_and_should_be_large() {
        assert_eq!(of(4096, 4200).state, State::Ok);
        let small = of(1024, 1500);
        assert_eq!(small.state, State::Warning);
        assert!(small.remedy.unwrap().contains("eth2 mtu 4200"));
        assert_eq!(of(4096, 1500).state, State::Broken);
        assert_eq!(of(4096, 4155).state, State::Broken);
        assert_eq!(of(4096, 4156).state, State::Ok);
    }

    #[test]
    fn a_device_that_was_not_opened_tells_no_mtu() {
        assert_eq!(findings(&tree(), check)[0].state, State::Unknown);
        let found = findings_with(&tree(), check, |devices| {
            devices[0].ports[0].active_mtu_bytes = Some(4096);
        });
        assert_eq!(found[0].found, "RDMA 4096 of at most 4096; eth2 4200");
    }
}
