//! The checks of one machine, one file per topic. No check needs root, changes anything or opens a device; a check
//! reports what it cannot see without root.

mod firewall;
mod gpu;
mod hardware;
mod kernel;
mod ports;

use protocol::node_report::Finding;

use super::inventory::{DeviceEntry, Inventory, PortEntry};
use super::machine::Machine;
pub(super) use kernel::{SETUP_RXE, locked_memory};
pub(super) use ports::lossless;

/// Runs all checks; those that others depend on come first.
pub fn run_all(subject: &Subject<'_>) -> Vec<Finding> {
    [
        kernel::check_drivers,
        kernel::check_device_nodes,
        kernel::check_providers,
        kernel::check_locked_memory,
        ports::check_ports,
        ports::check_gids,
        ports::check_mtu,
        ports::check_bonds,
        firewall::check_firewall,
        firewall::check_udp_port,
        hardware::check_pcie,
        hardware::check_ordering,
        hardware::check_numa,
        hardware::check_cpu,
        ports::check_flow_control,
        gpu::check_gpus,
        kernel::check_huge_pages,
        kernel::check_versions,
    ]
    .iter()
    .flat_map(|check| check(subject))
    .collect()
}

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
    fn adapters(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.inventory.system().filter(|device| !device.software)
    }

    fn has_adapters(&self) -> bool {
        self.adapters().next().is_some()
    }

    fn has_system_devices(&self) -> bool {
        self.inventory.system().next().is_some()
    }

    /// Active Ethernet ports of the system's devices.
    fn active_roce_ports(&self) -> impl Iterator<Item = (&DeviceEntry, &PortEntry)> {
        self.inventory.system_ports().filter(|(_, port)| port.is_active() && port.is_ethernet())
    }

    /// The judgement of each active Ethernet port of the system's devices.
    fn judge_active_roce_ports(&self, judge: fn(&PortEntry) -> Finding) -> Vec<Finding> {
        self.active_roce_ports()
            .map(|(device, port)| judge(port).about(port_name(device, port)))
            .collect()
    }
}

/// `mlx5_0:1`: a port as a subject.
fn port_name(device: &DeviceEntry, port: &PortEntry) -> String {
    format!("{}:{}", device.name, port.port)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::inventory::kernel_devices;
    pub(super) use super::super::inventory::tests::tree;
    pub(super) use super::super::machine::made_up::Tree;
    use super::*;
    use protocol::node_report::State;

    /// The findings of a check on a tree, with the devices of its sysfs.
    pub(super) fn findings(tree: &Tree, check: fn(&Subject<'_>) -> Vec<Finding>) -> Vec<Finding> {
        findings_with(tree, check, |_| {})
    }

    /// As [`findings`], with changes to the devices as verbs would make them.
    pub(super) fn findings_with(
        tree: &Tree,
        check: fn(&Subject<'_>) -> Vec<Finding>,
        add: impl FnOnce(&mut Vec<DeviceEntry>),
    ) -> Vec<Finding> {
        let mut inventory =
            Inventory { devices: kernel_devices(&tree.machine), ..Inventory::default() };
        add(&mut inventory.devices);
        let findings = check(&Subject {
            machine: &tree.machine,
            inventory: &inventory,
            control_port: 18515,
            only_embedded: false,
        });
        assert!(findings.iter().all(|it| !it.why.is_empty() && !it.found.is_empty()));
        findings
    }

    /// Its state, and what was found.
    pub(in super::super) fn outcome(finding: &Finding) -> (State, &str) {
        (finding.state, &finding.found)
    }

    /// State and finding of each, in order.
    pub(super) fn states(findings: &[Finding]) -> Vec<(State, String)> {
        findings.iter().map(|it| (it.state, it.label())).collect()
    }

    #[test]
    fn a_bare_machine_is_not_broken() {
        let findings = findings(&Tree::new(&[]), run_all);
        let is_broken = findings.iter().any(|it| it.state == State::Broken);
        assert!(!is_broken, "{findings:#?}");
    }
}
