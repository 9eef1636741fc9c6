//! The checks of one machine, a file for each group. None needs root, changes anything or opens a device; what
//! cannot be seen without root is said.

mod cpu;
mod firewall;
mod flow_control;
mod gids;
mod hugepages;
mod kernel;
mod memory;
mod mtu;
mod numa;
mod pcie;
mod permissions;
mod ports;
mod udp_port;
mod versions;

use super::entries::{DeviceEntry, PortEntry};
use super::finding::Finding;
use super::inventory::Inventory;
use super::machine::Machine;

/// The module and the device that stand in for hardware.
pub(super) const SETUP_RXE: &str = "with hardware, load its driver; without, the kernel's software device: \
     `sudo scripts/setup-rxe NETDEV`, which is `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV`; \
     the embedded device needs nothing";

/// What the checks need to know.
pub struct Subject<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Its devices.
    pub inventory: &'a Inventory,
    /// TCP port of the control connection.
    pub control_port: u16,
    /// An embedded device was asked for, so the system's are left out.
    pub only_embedded: bool,
}

/// All checks, those first on which others rest.
pub fn all(subject: &Subject<'_>) -> Vec<Finding> {
    [
        kernel::check,
        permissions::check,
        memory::check,
        ports::check,
        gids::check,
        mtu::check,
        firewall::check,
        udp_port::check,
        pcie::check,
        numa::check,
        cpu::check,
        flow_control::check,
        hugepages::check,
        versions::check,
    ]
    .iter()
    .flat_map(|check| check(subject))
    .collect()
}

impl Subject<'_> {
    /// Devices with hardware.
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
        self.inventory
            .system_ports()
            .filter(|(_, port)| port.is_active() && port.is_ethernet())
    }

    /// A finding for each of them.
    fn of_active_roce_ports(&self, judge: fn(&DeviceEntry, &PortEntry) -> Finding) -> Vec<Finding> {
        self.active_roce_ports()
            .map(|(device, port)| judge(device, port))
            .collect()
    }
}

/// Whether this process has a capability, by its number (capabilities(7), linux/capability.h).
fn has_capability(machine: &Machine, number: u32) -> bool {
    let effective = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    machine
        .text("proc/self/status")
        .and_then(effective)
        .is_some_and(|set| set >> number & 1 == 1)
}

/// `mlx5_0:1`: a port as a subject.
fn port_name(device: &DeviceEntry, port: &PortEntry) -> String {
    format!("{}:{}", device.name, port.port)
}

/// `a`, `a and b`, `a, b and c`.
fn and(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::finding::State;
    use super::super::machine::made_up::Tree;
    use super::super::sysfs;
    use super::*;

    /// What a check says of a tree; the devices are those of its sysfs.
    pub(super) fn findings(tree: &Tree, check: fn(&Subject<'_>) -> Vec<Finding>) -> Vec<Finding> {
        findings_with(tree, check, |_| {})
    }

    /// As [`findings`], with what verbs would add.
    pub(super) fn findings_with(
        tree: &Tree,
        check: fn(&Subject<'_>) -> Vec<Finding>,
        add: impl FnOnce(&mut Vec<DeviceEntry>),
    ) -> Vec<Finding> {
        let mut inventory = Inventory {
            devices: sysfs::devices(&tree.machine),
            ..Inventory::default()
        };
        add(&mut inventory.devices);
        let all = check(&Subject {
            machine: &tree.machine,
            inventory: &inventory,
            control_port: 18515,
            only_embedded: false,
        });
        for finding in &all {
            assert!(!finding.why.is_empty() && !finding.found.is_empty());
            let needs_mending = matches!(finding.state, State::Warning | State::Broken);
            assert!(!needs_mending || finding.remedy.is_some(), "{finding:?}");
        }
        all
    }

    /// State and finding of each, in order.
    pub(super) fn states(findings: &[Finding]) -> Vec<(State, String)> {
        findings
            .iter()
            .map(|finding| (finding.state, finding.label()))
            .collect()
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
        assert_eq!(and(&["a"]), "a");
    }

    #[test]
    fn a_bare_machine_is_not_broken() {
        let tree = Tree::new(&[]);
        let findings = findings(&tree, all);
        assert!(
            findings.iter().all(|it| it.state != State::Broken),
            "{findings:#?}"
        );
    }
}
