//! What the kernel tells of an RDMA device, its port and a GID, from sysfs. Who opened the device fills in or corrects what
//! verbs tells (library, driver, speed of the link, path MTUs, an embedded device).

use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;

use super::host::text;
use results::model::Device;

/// The facts of a device's port and, if one is given, its GID, from the files below `root`. A device that the kernel does not
/// know has its name and port, nothing more.
pub fn read(root: &Path, name: &str, port: u8, gid_index: Option<u32>) -> Device {
    let folder = root.join("sys/class/infiniband").join(name);
    let port_folder = folder.join("ports").join(port.to_string());
    let mut device = Device {
        name: name.to_owned(),
        port,
        gid_index,
        firmware: text(&folder.join("fw_ver")),
        link_layer: text(&port_folder.join("link_layer")),
        state: text(&port_folder.join("state")).map(|state| after_number(&state)),
        ..Device::default()
    };
    if device.link_layer.as_deref() != Some("Ethernet") {
        device.lid = text(&port_folder.join("lid")).and_then(|lid| {
            let digits = lid.strip_prefix("0x").unwrap_or(&lid);
            u32::from_str_radix(digits, 16).ok()
        });
    }
    if let Some(index) = gid_index {
        read_gid(&mut device, root, &port_folder, index);
    }
    read_pci(&mut device, &folder.join("device"));
    device
}

fn read_gid(device: &mut Device, root: &Path, port_folder: &Path, index: u32) {
    let [gid, gid_type, netdev] = ["gids", "gid_attrs/types", "gid_attrs/ndevs"]
        .map(|folder| text(&port_folder.join(folder).join(index.to_string())));
    // The kernel writes all zeros; the usual form of an IPv6 address leaves them out.
    device.gid = gid.map(|gid| match gid.parse::<Ipv6Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => gid,
    });
    device.gid_type = gid_type;
    device.netdev = netdev;
    device.netdev_mtu_bytes = device.netdev.as_ref().and_then(|netdev| {
        let path = root.join("sys/class/net").join(netdev).join("mtu");
        text(&path)?.parse().ok()
    });
}

fn read_pci(device: &mut Device, folder: &Path) {
    // -1 is a device without a node.
    device.numa_node = text(&folder.join("numa_node")).and_then(|node| node.parse().ok());
    device.pci_width_lanes =
        text(&folder.join("current_link_width")).and_then(|width| width.parse().ok());
    device.pci_gtransfer_per_s = text(&folder.join("current_link_speed"))
        .and_then(|speed| speed.split_whitespace().next()?.parse().ok());
    if let Ok(target) = fs::canonicalize(folder) {
        let address = target.file_name().map(|name| name.to_string_lossy().into_owned());
        device.pci_address = address.filter(|address| is_pci_address(address));
    }
}

/// `0000:3b:00.0`: domain, bus, device and function.
fn is_pci_address(name: &str) -> bool {
    let parts: Vec<_> = name.split([':', '.']).collect();
    parts.len() == 4 && parts.iter().all(|part| u32::from_str_radix(part, 16).is_ok())
}

/// `ACTIVE` of `4: ACTIVE`.
fn after_number(text: &str) -> String {
    let word = text.split_once(": ").map_or(text, |(_, word)| word);
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::cgroup::tests::machine;

    #[test]
    fn a_card_tells_its_link_gid_and_slot() {
        let pci = "sys/devices/pci0000:3a/0000:3b:00.0";
        let device = "sys/class/infiniband/mlx5_0";
        let files = [
            (pci, "numa_node", "1"),
            (pci, "current_link_speed", "16.0 GT/s PCIe"),
            (pci, "current_link_width", "16"),
            (device, "fw_ver", "22.31.1014\n"),
            (device, "ports/1/link_layer", "Ethernet\n"),
            (device, "ports/1/state", "4: ACTIVE\n"),
            (device, "ports/1/lid", "0x0\n"),
            (device, "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:c0a8:0102\n"),
            (device, "ports/1/gid_attrs/types/3", "RoCE v2\n"),
            (device, "ports/1/gid_attrs/ndevs/3", "eth2\n"),
            ("sys/class/net/eth2", "mtu", "4200\n"),
        ];
        let files = files.map(|(folder, file, text)| (format!("{folder}/{file}"), text));
        let files = files.each_ref().map(|(path, text)| (&**path, *text));
        let root = machine(&files);
        let root = root.path();
        symlink(root.join(pci), root.join(device).join("device")).unwrap();

        let text = |text: &str| Some(text.to_owned());
        let expected = Device {
            name: "mlx5_0".to_owned(),
            firmware: text("22.31.1014"),
            port: 1,
            link_layer: text("Ethernet"),
            state: text("ACTIVE"),
            netdev: text("eth2"),
            netdev_mtu_bytes: Some(4200),
            gid_index: Some(3),
            gid: text("::ffff:192.168.1.2"),
            gid_type: text("RoCE v2"),
            numa_node: Some(1),
            pci_address: text("0000:3b:00.0"),
            pci_gtransfer_per_s: Some(16.0),
            pci_width_lanes: Some(16),
            ..Device::default()
        };
        assert_eq!(read(root, "mlx5_0", 1, Some(3)), expected);
    }

    #[test]
    fn infiniband_has_a_lid() {
        let port = "sys/class/infiniband/ib0/ports/2";
        let root = machine(&[
            (&format!("{port}/link_layer"), "InfiniBand\n"),
            (&format!("{port}/lid"), "0x1c\n"),
        ]);
        assert_eq!(read(root.path(), "ib0", 2, None).lid, Some(28));
    }

    #[test]
    fn a_device_the_kernel_does_not_know_has_its_name_alone() {
        let root = machine(&[]);
        let expected =
            Device { name: "soft0".to_owned(), port: 1, gid_index: Some(0), ..Device::default() };
        assert_eq!(read(root.path(), "soft0", 1, Some(0)), expected);
    }
}
