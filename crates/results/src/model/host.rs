//! Machines and their RDMA devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Cores that are online.
    pub cores: u32,
    /// NUMA nodes that are online.
    pub numa_nodes: Option<u32>,
    /// Frequency governor of the first core, such as `performance`.
    pub governor: Option<String>,
    /// Version of rdma-core, such as `44.0`.
    pub rdma_core: Option<String>,
}

/// One RDMA device, with the port and GID in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Verbs name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Verbs library that drives it: `libibverbs` or `embedded`.
    pub library: String,
    /// True for a device without hardware, such as Soft-RoCE or the embedded one.
    pub software: bool,
    /// Packet faults at its node (`--faults`, with the seed); `null` without.
    pub faults: Option<String>,
    /// Kernel driver, or `softroce` for the embedded device.
    pub driver: Option<String>,
    /// Whether the driver passes a request for relaxed ordering (setting `ordering`) on to the adapter; `null` if rocebench
    /// does not know this driver.
    pub relaxed_ordering: Option<bool>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Port number, from 1.
    pub port: u8,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
    /// Port state, such as `ACTIVE`.
    pub state: Option<String>,
    /// Speed of the link: lanes times the speed of a lane.
    pub link_gbit_per_s: Option<f64>,
    /// Speed of one lane.
    pub speed_gbit_per_s_per_lane: Option<f64>,
    /// Lanes of the link.
    pub width_lanes: Option<u32>,
    /// Active path MTU of the port.
    pub active_mtu_bytes: Option<u32>,
    /// Largest path MTU of the port.
    pub max_mtu_bytes: Option<u32>,
    /// Network interface below the GID.
    pub netdev: Option<String>,
    /// MTU of that network interface.
    pub netdev_mtu_bytes: Option<u32>,
    /// Index of the GID in the port's table.
    pub gid_index: Option<u32>,
    /// The GID, written like an IPv6 address.
    pub gid: Option<String>,
    /// `IB/RoCE v1` or `RoCE v2`.
    pub gid_type: Option<String>,
    /// Local identifier; `null` on Ethernet.
    pub lid: Option<u32>,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// PCI address.
    pub pci_address: Option<String>,
    /// Speed of one PCI lane, in 10^9 transfers a second.
    pub pci_gtransfer_per_s: Option<f64>,
    /// PCI lanes in use.
    pub pci_width_lanes: Option<u32>,
}

impl Device {
    /// Whether both are the same port of the same device, on one host.
    pub fn is_port_of(&self, other: &Device) -> bool {
        (&self.name, self.port) == (&other.name, other.port)
    }
}
