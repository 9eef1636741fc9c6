//! What the kernel tells of an RDMA device, its port and a GID, from sysfs; and what the network interface below it does so
//! that no packet of RoCE is lost: priorities with PFC, ECN, and by what a packet gets its priority. Who opened the device
//! fills in or corrects what verbs tells (library, driver, speed of the link, path MTUs, an embedded device).

use std::fmt;
use std::fs;
use std::net::Ipv6Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use results::model::Device;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with, sockopt,
};
use serde::{Deserialize, Serialize};

use crate::host::text;

/// What PCIe lanes of this speed carry together, in 10^9 bits a second, headers too: 8b/10b coding up to 5 GT/s, 128b/130b from
/// 8 GT/s.
pub fn pcie_gbit_per_s(gtransfer_per_s: f64, lanes: u32) -> f64 {
    let coding = if gtransfer_per_s <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    gtransfer_per_s * coding * f64::from(lanes)
}

/// The share of a PCIe packet of 256 bytes that is payload, after headers and flow control: a TLP has some 26 bytes besides
/// its payload (PCI Express Base Specification, chapters 2 and 3).
const PAYLOAD_SHARE: f64 = 0.9;

/// About what PCIe lanes of this speed carry together of payload, in 10^9 bits a second.
pub fn pcie_payload_gbit_per_s(gtransfer_per_s: f64, lanes: u32) -> f64 {
    pcie_gbit_per_s(gtransfer_per_s, lanes) * PAYLOAD_SHARE
}

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
    device.netdev_mtu_bytes = device.netdev.as_ref().and_then(|interface| {
        let path = root.join("sys/class/net").join(interface).join("mtu");
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

/// The word of a state that the kernel writes as `4: ACTIVE`.
fn after_number(text: &str) -> String {
    let word = text.split_once(": ").map_or(text, |(_, word)| word);
    word.to_owned()
}

/// What a network interface does so that no packet is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lossless {
    /// Priorities with PFC (IEEE 802.1Qbb), in order.
    pub pfc_priorities: Option<Vec<u8>>,
    /// Pause frames (IEEE 802.3x) are on, in one direction at least.
    pub pause_frames: Option<bool>,
    /// Priorities on which the adapter both sends congestion notifications and obeys them.
    pub ecn_priorities: Option<Vec<u8>>,
    /// By which field a packet gets its priority: `dscp` or `pcp`.
    pub trust: Option<String>,
    /// DSCP with the priority that it stands for, in order of DSCP.
    pub dscp_priorities: Option<Vec<(u8, u8)>>,
    /// The traffic class of all packets of the device, whatever a QP asks for.
    pub traffic_class: Option<u8>,
}

/// What becomes of packets on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// The traffic class that they have.
    pub traffic_class: u8,
    /// Their priority, where it is known.
    pub priority: Option<u8>,
    pub is_lossless: Option<bool>,
}

impl Lossless {
    /// Of a port of a device and the interface below it, by files below `root` and by what the kernel tells of PFC. Pause frames
    /// need a tool, and are left out.
    pub fn read(root: &Path, device: (&str, u8), netdev: &str, bridging: Bridging) -> Lossless {
        let net = root.join("sys/class/net").join(netdev);
        Lossless {
            pfc_priorities: bridging.pfc_priorities,
            pause_frames: None,
            ecn_priorities: ecn_priorities(&net),
            // MLNX_OFED's file, where the kernel is older than the netlink table (6.2).
            trust: bridging.trust.map(str::to_owned).or_else(|| text(&net.join("qos/trust"))),
            dscp_priorities: bridging.dscp_priorities,
            traffic_class: global_traffic_class(root, device),
        }
    }

    /// What becomes of packets whose QP asks for this traffic class and this service level.
    pub fn treatment(&self, traffic_class: u8, service_level: u8) -> Treatment {
        let traffic_class = self.traffic_class.unwrap_or(traffic_class);
        let priority = match self.trust.as_deref() {
            // The VLAN tag's priority is made of the service level.
            Some("pcp") => Some(service_level & 7),
            _ => self.priority_of_dscp(traffic_class >> 2),
        };
        let pfc = self.pfc_priorities.as_ref();
        Treatment {
            traffic_class,
            priority,
            is_lossless: match pfc {
                Some(pfc) if pfc.is_empty() => Some(false),
                _ => priority.map(|priority| pfc.is_some_and(|pfc| pfc.contains(&priority))),
            },
        }
    }

    fn priority_of_dscp(&self, dscp: u8) -> Option<u8> {
        let (_, priority) =
            self.dscp_priorities.as_ref()?.iter().find(|(entry, _)| *entry == dscp)?;
        Some(*priority)
    }

    /// What gives packets a priority with PFC.
    pub fn advice(&self) -> String {
        let pfc = self.pfc_priorities.as_ref();
        let first = pfc.and_then(|pfc| pfc.first()).copied().unwrap_or(3);
        match (self.lossless_dscp(), self.traffic_class) {
            (Some(dscp), _) => format!("give --dscp {dscp}, whose packets have PFC here"),
            (None, Some(class)) => format!(
                "change the device's file tc/PORT/traffic_class: it gives all packets traffic class {class}, whatever --traffic-class says"
            ),
            (None, None) if self.trust.as_deref() == Some("pcp") => format!(
                "give --service-level {first} on a VLAN's interface, whose tag sets the priority, or have the \
                 adapter trust DSCP (`dcb apptrust set dev ETH order dscp`)"
            ),
            (None, None) => format!(
                "map a DSCP to the priority (`dcb app add dev ETH dscp-prio 26:{first}`), then give --dscp 26"
            ),
        }
    }

    /// A DSCP whose priority has PFC, 26 if it is one.
    pub fn lossless_dscp(&self) -> Option<u8> {
        let by_dscp = self.trust.as_deref() != Some("pcp") && self.traffic_class.is_none();
        [26].into_iter()
            .chain(0..64)
            .find(|dscp| by_dscp && self.treatment(dscp << 2, 0).is_lossless == Some(true))
    }
}

impl fmt::Display for Treatment {
    /// As the second half of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packets of DSCP {} have ", self.traffic_class >> 2)?;
        match (self.priority, self.is_lossless) {
            (Some(priority), Some(true)) => write!(f, "priority {priority}, with PFC"),
            (Some(priority), Some(false)) => {
                write!(f, "priority {priority}, without PFC: they can be lost")
            }
            (None, Some(false)) => f.write_str("no PFC: they can be lost"),
            (_, _) => f.write_str("a priority that the driver does not report"),
        }
    }
}

/// Of MLNX_OFED's files: a priority counts where the adapter notifies (`roce_np`) and reacts (`roce_rp`).
fn ecn_priorities(net: &Path) -> Option<Vec<u8>> {
    is_ecn_on(net, "roce_np", 0)?;
    Some(
        (0..8)
            .filter(|priority| {
                is_ecn_on(net, "roce_np", *priority) == Some(true)
                    && is_ecn_on(net, "roce_rp", *priority) == Some(true)
            })
            .collect(),
    )
}

fn is_ecn_on(net: &Path, role: &str, priority: u8) -> Option<bool> {
    let flag = text(&net.join(format!("ecn/{role}/enable/{priority}")))?;
    Some(flag.parse::<u8>().ok()? != 0)
}

/// Of MLNX_OFED's file: `Global tclass=106`.
fn global_traffic_class(root: &Path, (device, port): (&str, u8)) -> Option<u8> {
    let folder = root.join("sys/class/infiniband").join(device);
    let content = text(&folder.join(format!("tc/{port}/traffic_class")))?;
    let line = content.lines().find_map(|line| line.strip_prefix("Global tclass="))?;
    line.trim().parse().ok()
}

// Numbers are those of `linux/dcbnl.h`, structs those of its `ieee_pfc` and `dcb_app`.

/// Header of a netlink message: length, type, flags, sequence number, port.
pub(crate) const HEADER_BYTES: usize = 16;
/// `struct dcbmsg`: family, command, padding.
const DCB_HEADER_BYTES: usize = 4;
/// Length and type of an attribute.
const ATTRIBUTE_HEADER_BYTES: usize = 4;

pub(crate) const NLM_F_REQUEST: u16 = 1;
const RTM_GETDCB: u16 = 78;
const DCB_CMD_IEEE_GET: u8 = 21;
const DCB_ATTR_IFNAME: u16 = 1;
const DCB_ATTR_IEEE: u16 = 13;
const DCB_ATTR_IEEE_PFC: u16 = 2;
const DCB_ATTR_IEEE_APP_TABLE: u16 = 3;
const DCB_ATTR_IEEE_APP: u16 = 1;
const DCB_ATTR_DCB_APP_TRUST_TABLE: u16 = 11;
/// `IEEE_8021QAZ_APP_SEL_DSCP`: the entry is of a DSCP.
const SELECTS_DSCP: u8 = 5;
/// `DCB_APP_SEL_PCP`: the priority is that of the VLAN tag.
const SELECTS_PCP: u8 = 255;
/// Flags in an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

/// How long the kernel may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the kernel tells of an interface's data centre bridging: PFC, and the priority that a DSCP stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bridging {
    /// Priorities with PFC, in order.
    pub pfc_priorities: Option<Vec<u8>>,
    /// DSCP with the priority that it stands for, in order of DSCP.
    pub dscp_priorities: Option<Vec<(u8, u8)>>,
    /// By which field a packet gets its priority: `dscp` or `pcp`.
    pub trust: Option<&'static str>,
}

impl Bridging {
    /// Asks the kernel by rtnetlink (`RTM_GETDCB`), which needs no root; `None` where the interface's driver has no such
    /// thing.
    pub fn read(netdev: &str) -> Option<Bridging> {
        // No protocol is that of routes and interfaces.
        let socket = open_netlink(None).ok()?;
        let kernel = netlink::SocketAddrNetlink::new(0, 0);
        sendto(&socket, &dcb_request(netdev), SendFlags::empty(), &kernel).ok()?;
        let mut answer = vec![0; 16 << 10];
        let (received, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).ok()?;
        parse_bridging(answer.get(..received)?)
    }
}

pub(crate) fn open_netlink(protocol: Option<Protocol>) -> rustix::io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    Ok(socket)
}

fn dcb_request(netdev: &str) -> Vec<u8> {
    let mut body = vec![0, DCB_CMD_IEEE_GET, 0, 0];
    put_attribute(&mut body, DCB_ATTR_IFNAME, &[netdev.as_bytes(), &[0]].concat());
    netlink_message(RTM_GETDCB, NLM_F_REQUEST, &body)
}

pub(crate) fn netlink_message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number and port: the only request on its socket.
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

pub(crate) fn put_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// An answer; `None` for an error or another message.
fn parse_bridging(answer: &[u8]) -> Option<Bridging> {
    let length = u32::from_ne_bytes(*answer.first_chunk()?) as usize;
    if u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?) != RTM_GETDCB {
        return None;
    }
    let body = answer.get(HEADER_BYTES + DCB_HEADER_BYTES..length)?;
    let ieee = netlink_attributes(body).find(|(kind, _)| *kind == DCB_ATTR_IEEE)?.1;
    let mut found = Bridging::default();
    for (kind, value) in netlink_attributes(ieee) {
        match kind {
            // `pfc_cap`, then a bit for each priority.
            DCB_ATTR_IEEE_PFC => {
                let enabled = *value.get(1)?;
                found.pfc_priorities =
                    Some((0..8).filter(|priority| enabled >> priority & 1 == 1).collect());
            }
            DCB_ATTR_IEEE_APP_TABLE => found.dscp_priorities = Some(dscp_priorities(value)),
            DCB_ATTR_DCB_APP_TRUST_TABLE => found.trust = trusted_field(value),
            _ => {}
        }
    }
    Some(found)
}

/// Of a table of `dcb_app`: selector, priority, protocol (here the DSCP).
fn dscp_priorities(table: &[u8]) -> Vec<(u8, u8)> {
    let mut found: Vec<_> = netlink_attributes(table)
        .filter_map(|(kind, entry)| match *entry {
            [SELECTS_DSCP, priority, low, high, ..] if kind == DCB_ATTR_IEEE_APP => {
                let dscp = u8::try_from(u16::from_ne_bytes([low, high])).ok()?;
                Some((dscp, priority))
            }
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found
}

/// The selector that comes first counts first.
fn trusted_field(table: &[u8]) -> Option<&'static str> {
    netlink_attributes(table).find_map(|(_, value)| match *value.first()? {
        SELECTS_DSCP => Some("dscp"),
        SELECTS_PCP => Some("pcp"),
        _ => None,
    })
}

/// Types and values, up to the first that does not fit.
pub(crate) fn netlink_attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & TYPE_MASK;
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::host::tests::machine;

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
        let paths = files.map(|(folder, file, content)| (format!("{folder}/{file}"), content));
        let tree = machine(&paths.each_ref().map(|(path, content)| (&**path, *content)));
        let root = tree.path();
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

    #[test]
    fn means_against_loss_are_read_without_root() {
        let lossless = |files: &[(&str, &str)], bridging| {
            Lossless::read(machine(files).path(), ("mlx5_0", 1), "eth2", bridging)
        };
        assert_eq!(lossless(&[], Bridging::default()), Lossless::default());
        let net = "sys/class/net/eth2";
        let mut files = vec![
            (format!("{net}/qos/trust"), "dscp\n"),
            ("sys/class/infiniband/mlx5_0/tc/1/traffic_class".to_owned(), "Global tclass=106\n"),
        ];
        for priority in 0..8 {
            let on = |on| if on { "1\n" } else { "0\n" };
            let enable = |role: &str| format!("{net}/ecn/roce_{role}/enable/{priority}");
            files.extend([(enable("np"), on(priority > 2)), (enable("rp"), on(priority < 5))]);
        }
        let tree: Vec<_> = files.iter().map(|(path, content)| (&**path, *content)).collect();
        let bridging = Bridging { pfc_priorities: Some(vec![3]), ..Bridging::default() };
        let expected = Lossless {
            pfc_priorities: Some(vec![3]),
            ecn_priorities: Some(vec![3, 4]),
            trust: Some("dscp".into()),
            traffic_class: Some(106),
            ..Lossless::default()
        };
        assert_eq!(lossless(&tree, bridging), expected);
    }

    fn usual() -> Lossless {
        Lossless {
            pfc_priorities: Some(vec![3]),
            trust: Some("dscp".into()),
            dscp_priorities: Some(vec![(0, 0), (24, 3), (26, 3)]),
            ..Lossless::default()
        }
    }

    #[test]
    fn a_dscp_gives_the_priority_and_pfc_makes_it_lossless() {
        let treatment = |lossless: &Lossless, class, level| {
            let treatment = lossless.treatment(class, level);
            (treatment.traffic_class, treatment.priority, treatment.is_lossless)
        };
        assert_eq!(treatment(&usual(), 0, 5), (0, Some(0), Some(false)));
        assert_eq!(treatment(&usual(), 106, 0), (106, Some(3), Some(true)));
        assert_eq!(treatment(&usual(), 4, 0), (4, None, None));
        let forced = Lossless { traffic_class: Some(106), ..usual() };
        assert_eq!(treatment(&forced, 0, 0), (106, Some(3), Some(true)));
        let by_tag = Lossless { trust: Some("pcp".into()), ..usual() };
        assert_eq!(treatment(&by_tag, 106, 3), (106, Some(3), Some(true)));
        assert_eq!(treatment(&by_tag, 106, 0), (106, Some(0), Some(false)));
        let without = Lossless { pfc_priorities: Some(Vec::new()), ..Lossless::default() };
        assert_eq!(treatment(&without, 106, 0), (106, None, Some(false)));
        assert_eq!(treatment(&Lossless::default(), 106, 0), (106, None, None));
    }

    #[test]
    fn the_dscp_of_lossless_packets_is_found() {
        assert_eq!(usual().lossless_dscp(), Some(26));
        let other = Lossless { dscp_priorities: Some(vec![(0, 0), (24, 3)]), ..usual() };
        assert_eq!(other.lossless_dscp(), Some(24));
        assert_eq!(Lossless::default().lossless_dscp(), None);
        let text = usual().treatment(0, 0).to_string();
        assert_eq!(text, "packets of DSCP 0 have priority 0, without PFC: they can be lost");
        assert!(usual().advice().starts_with("give --dscp 26"));
        let forced = Lossless { traffic_class: Some(0), ..usual() };
        assert!(forced.advice().contains("whatever --traffic-class says"));
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, kind, value);
        bytes
    }

    /// What the kernel's `dcbnl_ieee_fill` writes for an interface with PFC on priorities 3 and 4.
    fn answer() -> Vec<u8> {
        const NESTED: u16 = 0x8000;
        let mut pfc = [0; 136];
        pfc[..2].copy_from_slice(&[8, 0b1_1000]);
        let app = |selector, priority, protocol: u16| {
            let [low, high] = protocol.to_ne_bytes();
            attribute(DCB_ATTR_IEEE_APP, &[selector, priority, low, high])
        };
        let table = [app(SELECTS_DSCP, 6, 48), app(1, 3, 0x8915), app(SELECTS_DSCP, 3, 26)];
        let trust = [attribute(1, &[SELECTS_DSCP]), attribute(2, &[SELECTS_PCP])];
        let ieee = [
            attribute(1, &[8; 60]),
            attribute(DCB_ATTR_IEEE_PFC, &pfc),
            attribute(DCB_ATTR_IEEE_APP_TABLE, &table.concat()),
            attribute(DCB_ATTR_DCB_APP_TRUST_TABLE | NESTED, &trust.concat()),
        ];
        let body = [
            vec![0, DCB_CMD_IEEE_GET, 0, 0],
            attribute(DCB_ATTR_IFNAME, b"eth2\0"),
            attribute(DCB_ATTR_IEEE | NESTED, &ieee.concat()),
        ];
        netlink_message(RTM_GETDCB, 0, &body.concat())
    }

    #[test]
    fn pfc_and_dscp_are_read() {
        let found = parse_bridging(&answer()).unwrap();
        assert_eq!(found.pfc_priorities, Some(vec![3, 4]));
        assert_eq!(found.dscp_priorities, Some(vec![(26, 3), (48, 6)]));
        assert_eq!(found.trust, Some("dscp"));
    }

    #[test]
    fn what_is_cut_off_or_an_error_is_no_answer_and_no_panic() {
        let whole = answer();
        for length in 0..whole.len() {
            assert_eq!(parse_bridging(&whole[..length]), None, "{length}");
        }
        // NLMSG_ERROR is 2.
        assert_eq!(parse_bridging(&netlink_message(2, 0, &[0; 20])), None);
        let mut short = whole;
        let inner = HEADER_BYTES + DCB_HEADER_BYTES + 12;
        short[inner] = 6;
        short[inner + 1] = 0;
        assert_eq!(parse_bridging(&short), Some(Bridging::default()));
    }

    /// Loopback has no such thing, and the kernel says so at once.
    #[test]
    fn loopback_has_none() {
        assert_eq!(Bridging::read("lo"), None);
        assert_eq!(Bridging::read("no-such-interface"), None);
    }
}
