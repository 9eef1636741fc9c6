//! What is known of a device by the kernel: its files in sysfs, those of its ports and of the interfaces below their GIDs, and its
//! driver. `root` is [`VerbsLibrary::root`], that of the library which has the device.
//!
//! [`VerbsLibrary::root`]: super::VerbsLibrary::root

use std::fs;
use std::path::{Path, PathBuf};

use rdma_sys::ibv_port_attr;

/// The text of a file without white space around it; `None` where it cannot be read, or is empty.
pub(super) fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The folder of a device.
pub(super) fn device_folder(root: &Path, device: &str) -> PathBuf {
    root.join("sys/class/infiniband").join(device)
}

/// Name of a device's kernel driver: that of its PCI device. Soft-RoCE belongs to none, and its devices alone have a `parent`.
pub fn kernel_driver(root: &Path, name: &str) -> Option<String> {
    let folder = device_folder(root, name);
    if let Ok(link) = fs::read_link(folder.join("device/driver")) {
        return Some(link.file_name()?.to_string_lossy().into_owned());
    }
    let has_parent = folder.join("parent").exists();
    has_parent.then(|| SOFT_ROCE.to_owned())
}

/// The folder of a port.
pub(super) fn port_folder(root: &Path, name: &str, port: u8) -> PathBuf {
    device_folder(root, name).join(format!("ports/{port}"))
}

/// Name of the network interface below an entry of the GID table of the port that has this folder.
pub(super) fn netdev(port: &Path, gid_index: u8) -> Option<String> {
    text(&port.join(format!("gid_attrs/ndevs/{gid_index}")))
}

/// The folder of a network interface, which is there if it is in this network namespace.
pub(super) fn interface_folder(root: &Path, netdev: &str) -> PathBuf {
    root.join("sys/class/net").join(netdev)
}

/// Index of a network interface of this network namespace.
pub(super) fn interface_index(root: &Path, netdev: &str) -> Option<u32> {
    text(&interface_folder(root, netdev).join("ifindex"))?.parse().ok()
}

// The data rate of a port's link, from the best source that tells of it. `active_speed` of `ibv_query_port(3)` has 8 bits: the
// kernel reports every rate above NDR's as NDR's there, and of a bond one member's.

/// What the kernel's files tell of a port's link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelLink {
    /// Data rate in Gb/s, of a bond that of the bond; `None` where nothing tells it for sure.
    pub gbit_per_s: Option<f64>,
    /// Number of lanes, of a bond those of one member.
    pub lanes: Option<u32>,
    is_bond: bool,
}

impl KernelLink {
    /// Of port `port` of device `name`, from the files below `root`.
    pub fn read(root: &Path, name: &str, port: u8) -> KernelLink {
        let folder = port_folder(root, name, port);
        let interface = netdev(&folder, 0).map(|netdev| interface_folder(root, &netdev));
        let bond = interface.filter(|interface| interface.join("bonding").exists());
        let (rate, lanes) = text(&folder.join("rate")).map_or((None, None), |text| rate(&text));
        KernelLink {
            gbit_per_s: match &bond {
                Some(bond) => text(&bond.join("speed"))
                    .and_then(|mbit_per_s| mbit_per_s.parse::<u32>().ok())
                    .map(|mbit_per_s| f64::from(mbit_per_s) / 1e3),
                None => rate,
            },
            lanes,
            is_bond: bond.is_some(),
        }
    }
}

/// Data rate and lanes of `100 Gb/sec (4X EDR)`.
fn rate(text: &str) -> (Option<f64>, Option<u32>) {
    let (speed, rest) = text.split_once(' ').unwrap_or((text, ""));
    let width = rest.split_once('(').and_then(|(_, width)| width.split_once('X'));
    let lanes = width.and_then(|(lanes, _)| lanes.parse().ok());
    (speed.parse().ok().filter(|speed| *speed > 0.0), lanes.filter(|lanes| *lanes > 0))
}

/// Data rate in Gb/s of the link of a port of device `name`; `None` where nothing tells it for sure. The sources, best first: the
/// bond below the port; the kernel's `rate`; the code of `active_speed`, which is one member's where there is a bond.
pub(super) fn link_gbit_per_s(
    root: &Path,
    name: &str,
    port: u8,
    attr: &ibv_port_attr,
) -> Option<f64> {
    let link = KernelLink::read(root, name, port);
    link.gbit_per_s.or_else(|| {
        (!link.is_bond)
            .then(|| {
                let lane = lane_gbit_per_s(attr.active_speed, LinkLayer::from_attributes(attr))?;
                Some(lane * f64::from(lanes(attr.active_width)?))
            })
            .flatten()
    })
}

/// Data rate of a lane for the `active_speed` codes of PortInfo (InfiniBand specification volume 1, 14.2.5.6).
/// InfiniBand loses 8b/10b coding up to QDR and 64b/66b with FDR. An Ethernet driver picks the code and width whose
/// product is the Ethernet rate.
fn lane_gbit_per_s(code: u8, link_layer: LinkLayer) -> Option<f64> {
    let (infiniband, ethernet) = match code {
        1 => (2.0, 2.5),
        2 => (4.0, 5.0),
        4 => (8.0, 10.0),
        8 => (10.0, 10.0),
        16 => (13.64, 14.0),
        32 => (25.0, 25.0),
        64 => (50.0, 50.0),
        // NDR's code, 128, stands for faster ones too.
        _ => return None,
    };
    Some(match link_layer {
        LinkLayer::Infiniband => infiniband,
        LinkLayer::Ethernet => ethernet,
        LinkLayer::Other(_) => return None,
    })
}

/// Number of lanes for the `active_width` codes (same section).
pub(super) fn lanes(code: u8) -> Option<u32> {
    Some(match code {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => return None,
    })
}

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    Ethernet,
    Infiniband,
    /// One that verbs.h does not name.
    Other(u8),
}

/// The link layer of RDMA over Thunderbolt, as its driver calls it.
const THUNDERBOLT: u8 = 100;

impl LinkLayer {
    /// That of a port. 0, unspecified, is an old InfiniBand driver.
    pub(super) fn from_attributes(attr: &ibv_port_attr) -> LinkLayer {
        // IBV_LINK_LAYER_* of verbs.h.
        match attr.link_layer {
            0 | 1 => LinkLayer::Infiniband,
            2 => LinkLayer::Ethernet,
            other => LinkLayer::Other(other),
        }
    }

    /// Whether a port's address is its GID; elsewhere it is its LID.
    pub fn has_gid_addresses(self) -> bool {
        self != LinkLayer::Infiniband
    }

    pub fn name(self) -> &'static str {
        match self {
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Infiniband => "InfiniBand",
            LinkLayer::Other(THUNDERBOLT) => "Thunderbolt",
            LinkLayer::Other(_) => "an unknown link layer",
        }
    }
}

/// What is known of adapters by their kernel driver, because no call tells it: whether a driver passes relaxed ordering on, and
/// how it chooses the UDP source port of RoCE v2. Read in Linux 7.2, drivers/infiniband/hw and sw.
#[derive(Debug)]
pub struct Driver {
    /// The name of the PCI device's driver.
    pub name: &'static str,
    /// Whether it asks the adapter for relaxed ordering; whether the adapter obeys depends on firmware and slot.
    pub relaxed_ordering: bool,
    /// Whether its library has a call for a QP's UDP source port.
    pub takes_udp_ports: bool,
    /// Whether it makes the UDP source port of connected QPs by the kernel's function (`rdma_get_udp_sport` of rdma/ib_verbs.h);
    /// else the firmware chooses it, or there is none.
    computes_port: bool,
}

const fn row(name: &'static str, relaxed_ordering: bool, computes_port: bool) -> Driver {
    Driver { name, relaxed_ordering, takes_udp_ports: false, computes_port }
}

static DRIVERS: [Driver; 13] = [
    // mlx5/mr.c, set_mkc_access_pd_addr_fields; mlx5/qp.c, mlx5_set_path_udp_sport; rdma-core's
    // mlx5dv_modify_qp_udp_sport.
    Driver { takes_udp_ports: true, ..row("mlx5_core", true, true) },
    // bnxt_re/ib_verbs.c, bnxt_re_check_and_set_relaxed_ordering.
    row("bnxt_en", true, false),
    // irdma/verbs.c, irdma_modify_qp_roce.
    row("ice", false, true),
    row("idpf", false, true),
    row("i40e", false, false),
    // hns_roce_hw_v2.c, hns_roce_v2_set_path.
    row("hns3", false, true),
    // mana/qp.c, mana_ib_gd_modify_qp.
    row("mana", false, true),
    // ionic_controlpath.c, ionic_modify_qp_cmd.
    row("ionic", false, true),
    // erdma_verbs.c, in its RoCE v2 mode.
    row("erdma", false, true),
    row("efa", false, false),
    row("qede", false, false),
    row("cxgb4", false, false),
    // rxe_verbs.c, rxe_modify_qp, since Linux 5.17.
    row(SOFT_ROCE, false, true),
];

/// The kernel's Soft-RoCE, which belongs to no PCI device.
pub(super) const SOFT_ROCE: &str = "rdma_rxe";

/// The first UDP source port that RoCE v2 uses (`IB_ROCE_UDP_ENCAP_VALID_PORT_MIN`), and how many bits choose among them.
const FIRST_PORT: u32 = 0xc000;
const PORT_BITS: u32 = 14;

/// Bits of a flow label.
const LABEL_BITS: u32 = 20;

impl Driver {
    /// The driver of this name; `None` for one of which nothing is known.
    pub fn from_name(name: &str) -> Option<&'static Driver> {
        // `mlx5_core.sf` drives a subfunction.
        let module = name.split('.').next().unwrap_or(name);
        DRIVERS.iter().find(|driver| driver.name == module)
    }

    /// Whether its devices have no hardware.
    pub fn is_software(&self) -> bool {
        self.name == SOFT_ROCE
    }

    /// The UDP source port of packets from connected QP `own` to QP `peer`, sent with this flow label.
    pub fn udp_source_port(&self, flow_label: u32, own: u32, peer: u32) -> Option<u16> {
        let label = match flow_label {
            0 => label_of_qps(own, peer),
            label => label,
        };
        self.computes_port.then(|| port_from_label(label))
    }
}

/// `rdma_flow_label_to_udp_sport`: the label's high bits are folded into the low ones.
fn port_from_label(label: u32) -> u16 {
    let low = (label ^ label >> PORT_BITS) & ((1 << PORT_BITS) - 1);
    // 14 bits above 0xc000 end at 0xffff.
    (FIRST_PORT | low) as u16
}

/// The label that the kernel makes of two QP numbers (`rdma_calc_flow_label`).
fn label_of_qps(own: u32, peer: u32) -> u32 {
    let product = u64::from(own) * u64::from(peer);
    let once = product ^ product >> LABEL_BITS;
    let folded = once ^ once >> (2 * LABEL_BITS);
    (folded & ((1 << LABEL_BITS) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_driver_is_that_of_the_pci_device_or_soft_roce() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = device_folder(root.path(), name);
            fs::create_dir_all(folder.join("device")).unwrap();
            folder
        };
        let drivers = "/sys/bus/pci/drivers/mlx5_core";
        symlink(drivers, folder("mlx5_0").join("device/driver")).unwrap();
        fs::write(folder("rxe0").join("parent"), "v0\n").unwrap();
        folder("siw0");
        let of = |name| kernel_driver(root.path(), name);
        assert_eq!(of("mlx5_0").as_deref(), Some("mlx5_core"));
        assert_eq!(of("rxe0").as_deref(), Some("rdma_rxe"));
        assert_eq!((of("siw0"), of("soft0")), (None, None));
    }

    #[test]
    fn rates_are_the_kernels() {
        for (text, expected) in [
            ("2.5 Gb/sec (1X SDR)", (Some(2.5), Some(1))),
            ("400 Gb/sec (4X NDR)", (Some(400.0), Some(4))),
            ("100", (Some(100.0), None)),
            ("0 Gb/sec (4X)", (None, Some(4))),
            ("100 Gb/sec (0X)", (Some(100.0), None)),
            ("x Gb/sec", (None, None)),
            ("", (None, None)),
        ] {
            assert_eq!(rate(text), expected, "{text}");
        }
    }

    fn of(name: &str, label: u32, own: u32, peer: u32) -> Option<u16> {
        Driver::from_name(name)?.udp_source_port(label, own, peer)
    }

    #[test]
    fn a_label_is_folded_into_the_port() {
        assert_eq!(of("mlx5_core", 1, 0x11, 0x12), Some(0xc001));
        assert_eq!(of("mlx5_core", 0xf_ffff, 0x11, 0x12), Some(0xffc0));
        assert_eq!(of("mana", 0x4000, 0x11, 0x12), Some(0xc001));
        assert_eq!(of("mlx5_core.sf", 1, 0x11, 0x12), Some(0xc001));
    }

    #[test]
    fn without_a_label_the_qps_choose_the_same_port_both_ways() {
        assert_eq!(of("mlx5_core", 0, 0x11, 0x12), Some(0xc000 | 0x132));
        let far = (0x00ff_fffe, 0x00ab_cdef);
        assert_eq!(of("hns3", 0, far.0, far.1), of("hns3", 0, far.1, far.0));
    }

    #[test]
    fn what_the_firmware_chooses_is_not_known() {
        assert_eq!(of("bnxt_en", 7, 0x11, 0x12), None);
        assert_eq!(of("a new one", 7, 0x11, 0x12), None);
    }
}
