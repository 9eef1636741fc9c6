//! The checks of one machine, one file per group. No check needs root, changes anything or opens a device; a check
//! reports what it cannot see without root.

mod cpu;
mod firewall;
mod flow_control;
mod gids;
mod hugepages;
mod kernel;
mod memory;
mod mtu;
mod numa;
mod ordering;
mod pcie;
mod permissions;
mod ports;
mod subject;
mod udp_port;
mod versions;

use protocol::finding::Finding;

pub(super) use flow_control::lossless;
pub(super) use kernel::SETUP_RXE;
pub(super) use memory::locked_memory;
pub use subject::Subject;

/// Runs all checks; those that others depend on come first.
pub fn run_all(subject: &Subject<'_>) -> Vec<Finding> {
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
        ordering::check,
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

#[cfg(test)]
pub(super) mod tests {
    use super::super::entries::DeviceEntry;
    use super::super::inventory::Inventory;
    pub(super) use super::super::machine::made_up::Tree;
    use super::super::sysfs;
    pub(super) use super::super::sysfs::tests::tree;
    use super::*;
    use protocol::finding::State;

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
            Inventory { devices: sysfs::devices(&tree.machine), ..Inventory::default() };
        add(&mut inventory.devices);
        let findings = check(&Subject {
            machine: &tree.machine,
            inventory: &inventory,
            control_port: 18515,
            only_embedded: false,
        });
        for finding in &findings {
            assert!(!finding.why.is_empty() && !finding.found.is_empty());
            let needs_mending = matches!(finding.state, State::Warning | State::Broken);
            assert!(!needs_mending || finding.remedy.is_some(), "{finding:?}");
        }
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
