//! The input of all checks: the machine, its devices, and which of them a check applies to.

use super::super::entries::{DeviceEntry, PortEntry};
use super::super::inventory::Inventory;
use super::super::machine::Machine;
use protocol::finding::Finding;

/// The input of all checks.
pub struct Subject<'a> {
    pub machine: &'a Machine,
    pub inventory: &'a Inventory,
    /// TCP port of the control connection.
    pub control_port: u16,
    /// Whether an embedded device was requested, so that the system's are left out.
    pub only_embedded: bool,
}

impl Subject<'_> {
    pub(super) fn adapters(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.inventory.system().filter(|device| !device.software)
    }

    pub(super) fn has_adapters(&self) -> bool {
        self.adapters().next().is_some()
    }

    pub(super) fn has_system_devices(&self) -> bool {
        self.inventory.system().next().is_some()
    }

    /// Active Ethernet ports of the system's devices.
    pub(super) fn active_roce_ports(&self) -> impl Iterator<Item = (&DeviceEntry, &PortEntry)> {
        self.inventory.system_ports().filter(|(_, port)| port.is_active() && port.is_ethernet())
    }

    /// Makes a finding for each of them.
    pub(super) fn of_active_roce_ports(
        &self,
        judge: fn(&DeviceEntry, &PortEntry) -> Finding,
    ) -> Vec<Finding> {
        self.active_roce_ports().map(|(device, port)| judge(device, port)).collect()
    }
}

/// `mlx5_0:1`: a port as a subject.
pub(super) fn port_name(device: &DeviceEntry, port: &PortEntry) -> String {
    format!("{}:{}", device.name, port.port)
}
