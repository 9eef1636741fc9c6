//! The data rate of a port's link, from the best source that tells of it. `active_speed` of `ibv_query_port(3)` has 8 bits: the
//! kernel reports every rate above NDR's as NDR's there, and of a bond one member's.

use std::path::Path;

use rdma_sys::ibv_port_attr;

use super::link_layer::LinkLayer;
use super::sysfs::{self, text};

/// Data rate in Gb/s of the link of a port of device `name`; `None` where nothing tells it for sure. The sources, best first: the
/// bond below the port; the kernel's `rate`; the code of `active_speed`.
pub(super) fn gbit_per_s(root: &Path, name: &str, port: u8, attr: &ibv_port_attr) -> Option<f64> {
    let folder = sysfs::port(root, name, port);
    let interface = sysfs::netdev(&folder, 0).map(|netdev| sysfs::interface(root, &netdev));
    if let Some(bond) = interface.filter(|interface| interface.join("bonding").exists()) {
        let mbit_per_s = text(&bond.join("speed"))?.parse::<u32>().ok()?;
        return Some(f64::from(mbit_per_s) / 1e3);
    }
    // "100 Gb/sec (4X EDR)"
    let rate = text(&folder.join("rate"))
        .and_then(|rate| rate.split_whitespace().next()?.parse::<f64>().ok());
    let of_code = || {
        let lane = lane_gbit_per_s(attr.active_speed, LinkLayer::of(attr))?;
        Some(lane * f64::from(lanes(attr.active_width)?))
    };
    rate.filter(|rate| *rate > 0.0).or_else(of_code)
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
