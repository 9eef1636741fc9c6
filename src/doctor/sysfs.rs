//! Reads RDMA devices from sysfs into inventory entries.

use std::net::IpAddr;

use machine::device;
use verbs::{Driver, Gid, GidEntry, GidType, KernelLink, kernel_driver};

use super::entries::{DeviceEntry, GidRow, PortEntry};
use super::machine::Machine;

const CLASS: &str = "sys/class/infiniband";

/// All devices of the kernel.
pub(super) fn devices(machine: &Machine) -> Vec<DeviceEntry> {
    let names = machine.list(CLASS);
    names.iter().map(|name| device(machine, name)).collect()
}

fn device(machine: &Machine, name: &str) -> DeviceEntry {
    let folder = format!("{CLASS}/{name}");
    let facts = device::read(machine.root(), name, 1, None);
    let driver = kernel_driver(machine.root(), name);
    let known = driver.as_deref().and_then(Driver::from_name);
    let ports = machine.list(format!("{folder}/ports"));
    let max_speed = machine.text(format!("{folder}/device/max_link_speed"));
    DeviceEntry {
        transport: None,
        name: name.to_owned(),
        library: "libibverbs".to_owned(),
        software: known.is_some_and(Driver::is_software),
        driver,
        firmware: facts.firmware,
        node_guid: machine.text(format!("{folder}/node_guid")),
        pci_address: facts.pci_address,
        pci_gtransfer_per_s: facts.pci_gtransfer_per_s,
        pci_width_lanes: facts.pci_width_lanes,
        pci_max_gtransfer_per_s: max_speed
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        pci_max_width_lanes: machine.number(format!("{folder}/device/max_link_width")),
        numa_node: facts.numa_node,
        uverbs: uverbs(machine, name),
        address: None,
        note: None,
        ports: ports
            .iter()
            .filter_map(|number| Some(port(machine, name, number.parse().ok()?)))
            .collect(),
    }
}

/// The character device of an RDMA device.
fn uverbs(machine: &Machine, name: &str) -> Option<String> {
    let class = "sys/class/infiniband_verbs";
    let nodes = machine.list(class);
    nodes
        .into_iter()
        .find(|node| machine.text(format!("{class}/{node}/ibdev")).as_deref() == Some(name))
}

fn port(machine: &Machine, name: &str, number: u8) -> PortEntry {
    let facts = device::read(machine.root(), name, number, None);
    let folder = format!("{CLASS}/{name}/ports/{number}");
    let physical = machine.text(format!("{folder}/phys_state"));
    let link = KernelLink::read(machine.root(), name, number);
    let is_ethernet = facts.link_layer.as_deref() == Some("Ethernet");
    let mut port = PortEntry {
        port: number,
        state: facts.state,
        physical_state: physical.map(|text| after_number(&text).to_owned()),
        link_layer: facts.link_layer,
        link_gbit_per_s: link.gbit_per_s,
        width_lanes: link.lanes,
        gids: gids(machine, &folder, is_ethernet),
        ..PortEntry::default()
    };
    let of_gids = port.gids.iter().find_map(|gid| gid.netdev.clone());
    let netdev = of_gids.or_else(|| machine.text(format!("{CLASS}/{name}/parent"))).or_else(|| {
        let folder = format!("{CLASS}/{name}/device/net");
        // With several interfaces on one card, it could be any of them.
        match machine.list(folder).as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    });
    if let Some(netdev) = netdev {
        fill_netdev(machine, &mut port, netdev);
    }
    port
}

/// Adds the facts of a port's network interface.
pub(super) fn fill_netdev(machine: &Machine, port: &mut PortEntry, netdev: String) {
    let folder = format!("sys/class/net/{netdev}");
    port.netdev_mtu_bytes = machine.number(format!("{folder}/mtu"));
    port.netdev_state = machine.text(format!("{folder}/operstate"));
    for gid in &mut port.gids {
        gid.netdev.get_or_insert_with(|| netdev.clone());
    }
    port.netdev = Some(netdev);
}

fn gids(machine: &Machine, folder: &str, is_ethernet: bool) -> Vec<GidRow> {
    let indices = machine.list(format!("{folder}/gids"));
    indices
        .iter()
        .filter_map(|index| {
            let gid = Gid::parse(&machine.text(format!("{folder}/gids/{index}"))?)?;
            if gid.is_zero() {
                return None;
            }
            let gid_type =
                match machine.text(format!("{folder}/gid_attrs/types/{index}")).as_deref() {
                    Some("RoCE v2") => GidType::RoceV2,
                    _ if is_ethernet => GidType::RoceV1,
                    _ => GidType::Infiniband,
                };
            let entry = GidEntry { index: index.parse().ok()?, gid, gid_type, interface: None };
            let netdev = machine.text(format!("{folder}/gid_attrs/ndevs/{index}"));
            Some(GidRow::from_entry(&entry, netdev))
        })
        .collect()
}

/// `ACTIVE` of `4: ACTIVE`.
fn after_number(text: &str) -> &str {
    text.split_once(": ").map_or(text, |(_, word)| word)
}

/// The interface that has an address, from the output of `ip -o address`.
pub(super) fn interface_of(machine: &Machine, address: IpAddr) -> Option<String> {
    interface_in(&machine.tool("ip", &["-o", "address"])?, address)
}

fn interface_in(listed: &str, address: IpAddr) -> Option<String> {
    listed.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (interface, _family, own_address) = (words.next()?, words.next()?, words.next()?);
        let own: IpAddr = own_address.split('/').next()?.parse().ok()?;
        (own == address).then(|| interface.to_owned())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv6Addr;

    use super::super::machine::made_up::Tree;
    use super::*;

    /// A 100 GbE card, a second port that is down, and Soft-RoCE.
    pub(crate) fn tree() -> Tree {
        let pci = "sys/devices/pci0000:3a/0000:3b:00.0";
        let card = "sys/class/infiniband/mlx5_0";
        let tree = Tree::new(&[
            ("sys/class/net/eth2/mtu", "4200\n"),
            ("sys/class/net/eth2/operstate", "up\n"),
            ("sys/class/infiniband_verbs/abi_version", "6\n"),
            ("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"),
            ("sys/class/infiniband_verbs/uverbs1/ibdev", "rxe0\n"),
        ]);
        let link = [
            ("numa_node", "1\n"),
            ("current_link_speed", "8.0 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
        ];
        tree.add(pci, &link);
        tree.link(&format!("{card}/device"), pci);
        tree.link(&format!("{pci}/driver"), "sys/bus/pci/drivers/mlx5_core");
        let adapter = [
            ("fw_ver", "22.31.1014\n"),
            ("node_guid", "0c42:a103:0065:1f3e\n"),
            ("ports/1/state", "4: ACTIVE\n"),
            ("ports/1/phys_state", "5: LinkUp\n"),
            ("ports/1/link_layer", "Ethernet\n"),
            ("ports/1/rate", "100 Gb/sec (4X EDR)\n"),
        ];
        tree.add(card, &adapter);
        let (local, ipv4) = ("fe80::e42:a1ff:fe65:1f3e", "::ffff:192.168.1.2");
        for (index, text) in [local, local, ipv4, ipv4].into_iter().enumerate() {
            let gid: Ipv6Addr = text.parse().unwrap();
            let words = gid.segments().map(|word| format!("{word:04x}")).join(":");
            let version = ["IB/RoCE v1\n", "RoCE v2\n"][index % 2];
            let port = format!("{card}/ports/1");
            tree.add(&port, &[(&format!("gids/{index}"), &words)]);
            let attributes = [("types", version), ("ndevs", "eth2\n")];
            for (attribute, text) in attributes {
                tree.add(&port, &[(&format!("gid_attrs/{attribute}/{index}"), text)]);
            }
        }
        let no_gid = "0000:0000:0000:0000:0000:0000:0000:0000\n";
        tree.add(card, &[("ports/1/gids/4", no_gid)]);
        let soft = [
            ("parent", "v0\n"),
            ("ports/1/state", "1: DOWN\n"),
            ("ports/1/phys_state", "3: Disabled\n"),
            ("ports/1/link_layer", "Ethernet\n"),
            ("ports/1/rate", "2.5 Gb/sec (1X SDR)\n"),
            ("ports/1/gids/0", no_gid),
        ];
        tree.add("sys/class/infiniband/rxe0", &soft);
        tree
    }

    #[test]
    fn a_card_and_soft_roce() {
        let tree = tree();
        let found = devices(&tree.machine);
        let [card, soft] = <[DeviceEntry; 2]>::try_from(found).unwrap();
        assert_eq!(card.uverbs.as_deref(), Some("uverbs0"));
        assert_eq!(card.pci_address.as_deref(), Some("0000:3b:00.0"));
        let speeds = (card.pci_gtransfer_per_s, card.pci_max_gtransfer_per_s);
        assert_eq!(speeds, (Some(8.0), Some(16.0)));
        let port = &card.ports[0];
        assert!(port.is_active() && port.is_ethernet());
        assert_eq!(port.physical_state.as_deref(), Some("LinkUp"));
        let netdev = (port.netdev.as_deref(), port.netdev_mtu_bytes);
        assert_eq!(netdev, (Some("eth2"), Some(4200)));
        let rows = port.gids.iter().map(|row| (row.index, &*row.gid_type, &*row.family));
        let expected = [
            (0, "RoCE v1", "link-local"),
            (1, "RoCE v2", "link-local"),
            (2, "RoCE v1", "IPv4"),
            (3, "RoCE v2", "IPv4"),
        ];
        assert!(rows.eq(expected), "{:?}", port.gids);
        assert!(soft.software);
        assert_eq!(soft.ports[0].netdev.as_deref(), Some("v0"));
        assert!(soft.ports[0].gids.is_empty());
        assert_eq!(devices(&Tree::new(&[]).machine), []);
    }

    #[test]
    fn interfaces_by_address() {
        let listed = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
                      2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n\
                      2: eth0    inet6 2001:db8::7/64 scope global\n";
        let eth0 = Some("eth0");
        for (address, interface) in
            [("192.0.2.7", eth0), ("2001:db8::7", eth0), ("192.0.2.8", None)]
        {
            let found = interface_in(listed, address.parse().unwrap());
            assert_eq!(found.as_deref(), interface, "{address}");
        }
    }
}
