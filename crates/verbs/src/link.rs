//! The data rate of a port's link, from the best source that tells of it. `active_speed` of `ibv_query_port(3)` has 8 bits: the
//! kernel reports every rate above NDR's as NDR's there, and of a bond one member's.

use std::path::Path;

use rdma_sys::ibv_port_attr;

use super::sysfs::{self, text};

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
        let folder = sysfs::port(root, name, port);
        let interface = sysfs::netdev(&folder, 0).map(|netdev| sysfs::interface(root, &netdev));
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
pub(super) fn gbit_per_s(root: &Path, name: &str, port: u8, attr: &ibv_port_attr) -> Option<f64> {
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

// What a port's links are.

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    Ethernet,
    Infiniband,
}

impl LinkLayer {
    /// That of a port. 0, unspecified, is an old InfiniBand driver.
    pub(super) fn from_attributes(attr: &ibv_port_attr) -> LinkLayer {
        // IBV_LINK_LAYER_ETHERNET of verbs.h.
        match attr.link_layer {
            2 => LinkLayer::Ethernet,
            _ => LinkLayer::Infiniband,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Infiniband => "InfiniBand",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
