//! RDMA in the kernel: checks the core, the drivers of installed adapters, and that there is a device.

use settings::listed;

use super::super::machine::Machine;
use super::subject::Subject;
use protocol::finding::{Finding, State};

/// Advice to set up the software device.
pub(in super::super) const SETUP_RXE: &str = "load the adapter's driver; without an adapter make the kernel's \
     software device: `sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev NETDEV`; the embedded \
     device needs neither";

/// Ethernet drivers that need a second module for RoCE.
const RDMA_MODULES: [(&str, &str); 8] = [
    ("mlx5_core", "mlx5_ib"),
    ("mlx4_core", "mlx4_ib"),
    ("bnxt_en", "bnxt_re"),
    ("ice", "irdma"),
    ("i40e", "irdma"),
    ("qede", "qedr"),
    ("hns3", "hns_roce_hw_v2"),
    ("ionic", "ionic_rdma"),
];

const WHY: &str = "verbs programs reach a device through the kernel's RDMA core (ib_core, ib_uverbs) and a \
     driver module of the device";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let devices: Vec<&str> =
        subject.inventory.system().map(|device| device.name.as_str()).collect();
    if subject.only_embedded {
        let found = "the embedded device needs no kernel module";
        return vec![Finding::new("kernel", State::Ok, found, WHY)];
    }
    let mut findings = Vec::new();
    let core = is_loaded(machine, "ib_uverbs") || machine.has("sys/class/infiniband_verbs");
    findings.push(match (devices.is_empty(), core) {
        (false, true) => Finding::new(
            "kernel",
            State::Ok,
            format!("the RDMA core is loaded and has {}", listed(&devices)),
            WHY,
        ),
        (false, false) if machine.has("sys/class/infiniband") => Finding::new(
            "kernel",
            State::Broken,
            format!(
                "{} without the module ib_uverbs, so no program can use a device",
                listed(&devices)
            ),
            WHY,
        )
        .remedy("sudo modprobe ib_uverbs"),
        (false, false) => Finding::new(
            "kernel",
            State::Ok,
            format!("libibverbs has {}, which the kernel does not know", listed(&devices)),
            WHY,
        ),
        (true, _) => {
            let rxe = rxe(subject);
            Finding::new(
                "kernel",
                State::Warning,
                format!("no RDMA device; rocebench runs on its embedded one; {rxe}"),
                WHY,
            )
            .remedy(SETUP_RXE)
        }
    });
    for (driver, module) in RDMA_MODULES {
        let bound = machine.list(format!("sys/bus/pci/drivers/{driver}"));
        let cards = bound.iter().filter(|name| name.contains(':')).count();
        if cards > 0 && !is_loaded(machine, module) {
            let finding = Finding::new(
                "kernel module",
                State::Warning,
                format!("{driver} drives {cards} PCI functions, but {module} is not loaded"),
                "the Ethernet driver alone gives no RDMA device",
            );
            findings.push(finding.of(module).remedy(format!("sudo modprobe {module}")));
        }
    }
    findings
}

fn is_loaded(machine: &Machine, module: &str) -> bool {
    machine.has(format!("sys/module/{module}"))
}

/// Whether the kernel's software device is available.
fn rxe(subject: &Subject<'_>) -> String {
    let machine = subject.machine;
    if machine.has("sys/module/rdma_rxe") {
        return "the module rdma_rxe is loaded, without a device".to_owned();
    }
    let release = &subject.inventory.host.kernel;
    let folder = format!("lib/modules/{release}");
    if !machine.has(&folder) {
        return format!("this kernel ({release}) has no modules here");
    }
    let rxe = machine.list(format!("{folder}/kernel/drivers/infiniband/sw/rxe"));
    if rxe.is_empty() {
        format!("this kernel ({release}) has no module rdma_rxe")
    } else {
        "the module rdma_rxe is there, not loaded".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn devices_need_the_core() {
        let ok = (State::Ok, "kernel".into());
        assert_eq!(states(&findings(&tree(), check)), [ok]);
        let without = Tree::new(&[("sys/class/infiniband/mlx5_0/fw_ver", "1\n")]);
        let found = findings(&without, check);
        assert_eq!(states(&found), [(State::Broken, "kernel".into())]);
        assert_eq!(found[0].remedy.as_deref(), Some("sudo modprobe ib_uverbs"));
    }

    #[test]
    fn a_card_without_its_second_module_is_found() {
        let tree = Tree::new(&[
            ("sys/bus/pci/drivers/mlx5_core/0000:3b:00.0/x", ""),
            ("sys/bus/pci/drivers/mlx5_core/bind", ""),
            ("sys/bus/pci/drivers/ice/bind", ""),
        ]);
        let found = findings(&tree, check);
        let lacking = (State::Warning, "kernel module mlx5_ib".into());
        assert_eq!(states(&found)[1..], [lacking]);
        assert!(found[0].found.contains("embedded"), "{found:?}");
    }
}
