//! The facts of a device, a port and a GID.

use std::net::IpAddr;

use serde::Serialize;

use verbs::{Gid, GidEntry, GidType};

/// Library name of the embedded devices.
pub const EMBEDDED: &str = "embedded";

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceEntry {
    pub name: String,
    /// `libibverbs` or `embedded`.
    pub library: String,
    /// Whether it is without hardware.
    pub software: bool,
    /// Kernel driver, or `softroce`.
    pub driver: Option<String>,
    /// What its packets are, where they are not InfiniBand's: `iWARP`, `SRD (EFA)` …
    pub transport: Option<&'static str>,
    pub firmware: Option<String>,
    pub node_guid: Option<String>,
    pub pci_address: Option<String>,
    /// Speed of a PCI lane, in 10^9 transfers a second.
    pub pci_gtransfer_per_s: Option<f64>,
    pub pci_width_lanes: Option<u32>,
    /// The highest speed of a PCI lane of the device, in 10^9 transfers a second.
    pub pci_max_gtransfer_per_s: Option<f64>,
    /// PCI lanes that the device has.
    pub pci_max_width_lanes: Option<u32>,
    pub numa_node: Option<u32>,
    /// Its character device in `/dev/infiniband`, such as `uverbs0`.
    pub uverbs: Option<String>,
    /// Address of an embedded device; `null` takes a free one of 127.0.0.0/8 at opening.
    pub address: Option<IpAddr>,
    /// Why some facts are missing.
    pub note: Option<String>,
    /// Its ports; empty for an embedded device that was not opened.
    pub ports: Vec<PortEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortEntry {
    /// Its number, from 1.
    pub port: u8,
    /// `ACTIVE`, `DOWN` …
    pub state: Option<String>,
    /// State of the link below it: `LinkUp`, `Disabled`, `Polling` …
    pub physical_state: Option<String>,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
    pub link_gbit_per_s: Option<f64>,
    pub width_lanes: Option<u32>,
    /// Path MTU in use; `null` when the device could not be opened.
    pub active_mtu_bytes: Option<u32>,
    pub max_mtu_bytes: Option<u32>,
    pub netdev: Option<String>,
    pub netdev_mtu_bytes: Option<u32>,
    /// `up`, `down` … of that interface.
    pub netdev_state: Option<String>,
    /// The filled entries of its GID table.
    pub gids: Vec<GidRow>,
}

/// An entry of a GID table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GidRow {
    pub index: u32,
    /// The GID, written like an IPv6 address.
    pub gid: String,
    /// `RoCE v1`, `RoCE v2` or `IB`.
    pub gid_type: String,
    /// `IPv4`, `IPv6` or `link-local`.
    pub family: String,
    /// Network interface of the address.
    pub netdev: Option<String>,
}

/// The address family of a GID.
pub(super) fn family(gid: &Gid) -> &'static str {
    if gid.is_link_local() {
        "link-local"
    } else if gid.address().is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    }
}

impl GidRow {
    /// The row of an entry.
    pub fn from_entry(entry: &GidEntry, netdev: Option<String>) -> GidRow {
        GidRow {
            index: entry.index.into(),
            gid: entry.gid.to_string(),
            gid_type: entry.gid_type.name().to_owned(),
            family: family(&entry.gid).to_owned(),
            netdev,
        }
    }

    /// The entry in the form of verbs.
    pub fn entry(&self) -> Option<GidEntry> {
        let types = [GidType::RoceV1, GidType::RoceV2, GidType::Infiniband];
        Some(GidEntry {
            index: u8::try_from(self.index).ok()?,
            gid: Gid::parse(&self.gid)?,
            gid_type: types.into_iter().find(|found| found.name() == self.gid_type)?,
            interface: None,
        })
    }
}

impl PortEntry {
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("ACTIVE")
    }

    /// Whether its link layer is Ethernet.
    pub fn is_ethernet(&self) -> bool {
        self.link_layer.as_deref() == Some("Ethernet")
    }

    /// The table in the form of verbs.
    pub fn table(&self) -> Vec<GidEntry> {
        self.gids.iter().filter_map(GidRow::entry).collect()
    }
}

impl DeviceEntry {
    /// Whether it is a device of this program.
    pub fn is_embedded(&self) -> bool {
        self.library == EMBEDDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_entry() {
        let entry = GidEntry {
            index: 3,
            gid: Gid::parse("::ffff:192.0.2.1").unwrap(),
            gid_type: GidType::RoceV2,
            interface: None,
        };
        let row = GidRow::from_entry(&entry, Some("eth0".into()));
        let words = (&*row.family, &*row.gid_type);
        assert_eq!(words, ("IPv4", "RoCE v2"));
        assert_eq!(row.entry(), Some(entry));
    }
}
