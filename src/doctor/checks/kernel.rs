//! What the kernel provides: checks its RDMA core and drivers, the nodes of its devices, memory that may be locked, huge
//! pages, and versions.

use protocol::node_report::{Check, Finding, LockedMemory};
use settings::listed;

use super::Subject;
use crate::doctor::machine::Machine;

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

const KERNEL: Check = Check::new(
    "kernel",
    "verbs programs reach a device through the kernel's RDMA core (ib_core, ib_uverbs) and a driver module of the device",
);

const MODULE: Check = Check::new("kernel module", "the Ethernet driver alone gives no RDMA device");

/// Checks the RDMA core, the drivers of installed adapters, and that there is a device.
pub(super) fn check_drivers(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let devices: Vec<&str> =
        subject.inventory.system().map(|device| device.name.as_str()).collect();
    if subject.only_embedded {
        return vec![KERNEL.ok("the embedded device needs no kernel module")];
    }
    let core = is_loaded(machine, "ib_uverbs") || machine.has("sys/class/infiniband_verbs");
    let names = listed(&devices);
    let mut findings = vec![if devices.is_empty() {
        let found = format!("no RDMA device; rocebench runs on its embedded one; {}", rxe(subject));
        KERNEL.warning(found, SETUP_RXE)
    } else if core {
        KERNEL.ok(format!("the RDMA core is loaded and has {names}"))
    } else if machine.has("sys/class/infiniband") {
        let found = format!("{names} without the module ib_uverbs, so no program can use a device");
        KERNEL.broken(found, "sudo modprobe ib_uverbs")
    } else {
        KERNEL.ok(format!("libibverbs has {names}, which the kernel does not know"))
    }];
    for (driver, module) in RDMA_MODULES {
        let bound = machine.list(format!("sys/bus/pci/drivers/{driver}"));
        let cards = bound.iter().filter(|name| name.contains(':')).count();
        if cards > 0 && !is_loaded(machine, module) {
            let found =
                format!("{driver} drives {cards} PCI functions, but {module} is not loaded");
            let finding = MODULE.warning(found, format!("sudo modprobe {module}"));
            findings.push(finding.about(module));
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

const FOLDER: &str = "dev/infiniband";

const NODES: Check = Check::new(
    "device nodes",
    "a verbs program opens /dev/infiniband/uverbsN of its device for reading and writing",
);

const RDMA_CM: Check = Check::new(
    "device nodes",
    "many RDMA programs connect with rdma_cm, which needs it; rocebench does so only with --connect cm",
);

/// Checks that the devices' nodes in `/dev/infiniband` exist and that this user may use them.
pub(super) fn check_device_nodes(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let nodes: Vec<(&str, &str)> = subject
        .inventory
        .system()
        .filter_map(|device| Some((device.name.as_str(), device.uverbs.as_deref()?)))
        .collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let states: Vec<Node<'_>> = nodes
        .iter()
        .map(|(device, node)| Node {
            device,
            node,
            is_there: machine.has(format!("{FOLDER}/{node}")),
            may_use: machine.may_use(format!("{FOLDER}/{node}")),
        })
        .collect();
    if !machine.has(FOLDER) {
        return vec![without_folder(&states)];
    }
    let mut findings = vec![judge_nodes(&states)];
    if !machine.has(format!("{FOLDER}/rdma_cm")) {
        let remedy =
            "sudo modprobe rdma_ucm; in a container, start it with --device=/dev/infiniband";
        let finding = RDMA_CM.warning("there is no /dev/infiniband/rdma_cm", remedy);
        findings.push(finding.about("rdma_cm"));
    }
    findings
}

/// The kernel makes the folder with its first device, so only a container can lack it.
fn without_folder(nodes: &[Node<'_>]) -> Finding {
    let devices: Vec<&str> = nodes.iter().map(|node| node.device).collect();
    NODES.broken(
        format!("this container has no /dev/infiniband, so it cannot use {}", listed(&devices)),
        "in Kubernetes, request the resource of the RDMA device plugin in the pod's resources.limits, such as \
         rdma/hca_shared_devices_a: 1; elsewhere start the container with --device=/dev/infiniband",
    )
}

struct Node<'a> {
    device: &'a str,
    node: &'a str,
    is_there: bool,
    may_use: bool,
}

fn judge_nodes(nodes: &[Node<'_>]) -> Finding {
    let missing = names_of(nodes, |node| !node.is_there);
    let denied = names_of(nodes, |node| node.is_there && !node.may_use);
    if !missing.is_empty() {
        return NODES.broken(
            format!("/dev/infiniband lacks {}", listed(&missing)),
            "sudo modprobe ib_uverbs; in a container, start it with --device=/dev/infiniband",
        );
    }
    if !denied.is_empty() {
        return NODES.broken(
            format!("this user has no permission to read and write {}", listed(&denied)),
            "sudo chmod a+rw /dev/infiniband/uverbs*; to stay: KERNEL==\"uverbs*\", MODE=\"0666\" in \
             /etc/udev/rules.d/90-rdma.rules",
        );
    }
    NODES.ok(format!("this user may read and write {}", listed(&names_of(nodes, |_| true))))
}

fn names_of(nodes: &[Node<'_>], filter: fn(&Node<'_>) -> bool) -> Vec<String> {
    nodes
        .iter()
        .filter(|node| filter(node))
        .map(|node| format!("{} ({})", node.node, node.device))
        .collect()
}

const PROVIDER: Check = Check::new(
    "provider library",
    "libibverbs uses a device through the library of its driver, which must know the kernel driver's version of the interface \
     (ABI); a container brings a library of its own",
);

/// Checks that libibverbs lists each device whose node is there. What it says of others it says on stderr alone.
pub(super) fn check_providers(subject: &Subject<'_>) -> Vec<Finding> {
    let (machine, inventory) = (subject.machine, subject.inventory);
    let unlisted: Vec<(&str, &str)> = inventory
        .system()
        .filter(|device| device.is_unlisted)
        .filter_map(|device| Some((device.name.as_str(), device.uverbs.as_deref()?)))
        .filter(|(_, node)| machine.has(format!("{FOLDER}/{node}")))
        .collect();
    if unlisted.is_empty() {
        return Vec::new();
    }
    let output = machine.tool("sh", &["-c", "ibv_devices 2>&1"]).unwrap_or_default();
    let are_all = inventory.system().all(|device| device.is_unlisted);
    unlisted
        .into_iter()
        .map(|(device, node)| {
            let abi = machine.text(format!("sys/class/infiniband_verbs/{node}/abi_version"));
            let (found, remedy) = judge_provider(&output, device, abi.as_deref());
            let finding = if are_all {
                PROVIDER.broken(found, remedy)
            } else {
                PROVIDER.warning(found, remedy)
            };
            finding.about(device)
        })
        .collect()
}

/// What was found and what to do, from the output of `ibv_devices` and the ABI of the kernel's driver.
fn judge_provider(output: &str, device: &str, abi: Option<&str>) -> (String, &'static str) {
    // libibverbs: Warning: Driver NAME does not support the kernel ABI of 6 (supports 1 to 1) for device /sys/class/infiniband/DEVICE
    let warning = output.lines().find_map(|line| {
        let (_, text) = line.split_once("Warning: Driver ")?;
        let (provider, text) = text.split_once(" does not support the kernel ABI of ")?;
        let (kernel_abi, text) = text.split_once(" (supports ")?;
        let (range, path) = text.split_once(") for device ")?;
        path.ends_with(&format!("/{device}")).then_some((provider, kernel_abi, range))
    });
    let left_out = "libibverbs leaves it out";
    match (warning, abi) {
        (Some((provider, kernel_abi, range)), _) => (
            format!(
                "{left_out}: the kernel's driver has ABI {kernel_abi}, the library of {provider} supports {range}"
            ),
            "install the library that belongs to the kernel's driver, in a container too: that of the adapter's vendor for \
             the vendor's driver, else a newer rdma-core",
        ),
        (None, abi) => (
            format!("{left_out}; the kernel's driver has ABI {}", abi.unwrap_or("unknown")),
            "install the adapter's library (package ibverbs-providers or libibverbs); \
             `IBV_SHOW_WARNINGS=1 ibv_devices` says what libibverbs lacks",
        ),
    }
}

/// Enough for a few dozen QPs with messages of 1 MiB.
const ENOUGH_BYTES: u64 = 64 << 20;

/// The capability to lock memory beyond any limit.
const CAP_IPC_LOCK: u32 = 14;

const LOCKED: Check = Check::new(
    "locked memory",
    "an RDMA device reads and writes buffers and queues by itself, so they are locked in memory; beyond the limit ibv_reg_mr, \
     ibv_create_cq and ibv_create_qp fail with ENOMEM",
);

/// Checks how much memory this process may lock.
pub(super) fn check_locked_memory(subject: &Subject<'_>) -> Vec<Finding> {
    vec![match limit(subject.machine) {
        Some(Limit::None) => LOCKED.ok("no limit"),
        Some(Limit::Privileged) => LOCKED.ok("no limit for this process (CAP_IPC_LOCK)"),
        Some(Limit::Bytes(bytes)) if !subject.has_system_devices() => {
            LOCKED.ok(format!("at most {}; the embedded device locks none", size(bytes)))
        }
        Some(Limit::Bytes(bytes)) if bytes >= ENOUGH_BYTES => {
            LOCKED.ok(format!("at most {}", size(bytes)))
        }
        Some(Limit::Bytes(bytes)) => LOCKED.warning(
            format!("at most {}", size(bytes)),
            "ulimit -l unlimited; to stay: `* - memlock unlimited` in /etc/security/limits.conf, or \
             LimitMEMLOCK=infinity in a systemd unit",
        ),
        None => LOCKED.unknown("/proc/self/limits does not have it"),
    }]
}

#[derive(Debug, PartialEq)]
enum Limit {
    None,
    /// The process has the capability, so no limit applies.
    Privileged,
    Bytes(u64),
}

/// How much memory this process may lock.
pub(in super::super) fn locked_memory(machine: &Machine) -> Option<LockedMemory> {
    Some(match limit(machine)? {
        Limit::None | Limit::Privileged => LockedMemory::Unlimited,
        Limit::Bytes(bytes) => LockedMemory::Bytes(bytes),
    })
}

fn limit(machine: &Machine) -> Option<Limit> {
    let limits = machine.text("proc/self/limits")?;
    let soft = soft_limit(&limits)?;
    let capable = machine.has_capability(CAP_IPC_LOCK);
    Some(match soft {
        Limit::Bytes(_) if capable => Limit::Privileged,
        other => other,
    })
}

fn soft_limit(limits: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(Limit::None),
        bytes => bytes.parse().ok().map(Limit::Bytes),
    }
}

/// A number of bytes for people: `64 KiB`, `8 MiB`.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

const HUGE_PAGES: Check = Check::new(
    "huge pages",
    "an adapter caches few page translations: buffers in huge pages need fewer, which helps with many QPs and large messages",
);

/// Checks huge pages, which the buffers of a run use if the kernel provides them.
pub(super) fn check_huge_pages(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let mode = machine
        .text("sys/kernel/mm/transparent_hugepage/enabled")
        .and_then(|text| chosen(&text).map(str::to_owned));
    let pages = machine.text("proc/meminfo").and_then(|text| reserved_pages(&text)).unwrap_or(0);
    let reserved = format!("{pages} reserved");
    vec![match mode.as_deref() {
        Some("always") => {
            HUGE_PAGES.ok(format!("every large buffer gets transparent ones; {reserved}"))
        }
        Some(mode) if subject.has_adapters() => HUGE_PAGES.warning(
            format!("transparent ones are set to {mode}, so buffers get none; {reserved}"),
            "echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(mode) => HUGE_PAGES.ok(format!(
            "transparent ones are set to {mode}, which matters only with an adapter; {reserved}"
        )),
        None => HUGE_PAGES.ok(format!("the kernel has no transparent ones; {reserved}")),
    }]
}

/// `madvise` of `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

fn reserved_pages(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Total:"))?;
    line.trim().parse().ok()
}

const VERSIONS: Check = Check::new(
    "versions",
    "most driver faults are known faults of old versions; name these versions in every bug report",
);

/// Lists the versions of this program, the kernel, rdma-core and the operating system, and the adapters' firmware.
pub(super) fn check_versions(subject: &Subject<'_>) -> Vec<Finding> {
    let host = &subject.inventory.host;
    let mut parts =
        vec![format!("rocebench {}", env!("CARGO_PKG_VERSION")), format!("Linux {}", host.kernel)];
    parts.extend(host.rdma_core.iter().map(|version| format!("rdma-core {version}")));
    parts.extend(host.os.clone());
    for device in subject.adapters() {
        if let Some(firmware) = &device.firmware {
            parts.push(format!("{} firmware {firmware}", device.name));
        }
    }
    vec![VERSIONS.ok(parts.join(", "))]
}

#[cfg(test)]
mod tests {
    use protocol::node_report::State;
    use results::sample::has;

    use super::super::tests::*;
    use super::*;

    #[test]
    fn devices_need_the_core() {
        let ok = (State::Ok, "kernel".into());
        assert_eq!(states(&findings(&tree(), check_drivers)), [ok]);
        let without = Tree::new(&[("sys/class/infiniband/mlx5_0/fw_ver", "1\n")]);
        let found = findings(&without, check_drivers);
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
        let found = findings(&tree, check_drivers);
        let lacking = (State::Warning, "kernel module mlx5_ib".into());
        assert_eq!(states(&found)[1..], [lacking]);
        assert!(found[0].found.contains("embedded"), "{found:?}");
    }

    #[test]
    fn nodes_that_are_missing_or_forbidden() {
        let node =
            |is_there, may_use| Node { device: "mlx5_0", node: "uverbs0", is_there, may_use };
        assert_eq!(judge_nodes(&[node(true, true)]).state, State::Ok);
        let denied = judge_nodes(&[node(true, true), node(true, false)]);
        assert_eq!(denied.state, State::Broken);
        assert!(denied.remedy.unwrap().contains("chmod"));
        let missing = judge_nodes(&[node(false, false)]);
        assert_eq!(missing.found, "/dev/infiniband lacks uverbs0 (mlx5_0)");
    }

    #[test]
    fn every_device_has_a_node() {
        let tree = tree();
        tree.add("dev/infiniband", &[("uverbs0", ""), ("rdma_cm", "")]);
        let found = findings(&tree, check_device_nodes);
        assert_eq!(states(&found), [(State::Broken, "device nodes".into())]);
        assert!(found[0].found.ends_with("uverbs1 (rxe0)"), "{found:?}");
        tree.add("dev/infiniband", &[("uverbs1", "")]);
        let permitted = (State::Ok, "device nodes".into());
        assert_eq!(states(&findings(&tree, check_device_nodes)), [permitted]);
    }

    #[test]
    fn a_pod_without_device_files_is_told_what_to_request() {
        let found = findings(&tree(), check_device_nodes);
        assert_eq!(states(&found), [(State::Broken, "device nodes".into())]);
        has(&found[0].found, ["this container has no /dev/infiniband", "mlx5_0 and rxe0"]);
        has(found[0].remedy.as_ref().unwrap(), ["resources.limits", "--device=/dev/infiniband"]);
    }

    #[test]
    fn a_device_that_libibverbs_leaves_out_has_a_provider_of_another_abi() {
        let files = [("dev/infiniband/uverbs0", ""), ("dev/infiniband/uverbs1", "")];
        let unlisted = |tree: &Tree, names: &[&str]| {
            findings_with(tree, check_providers, |devices| {
                for device in devices {
                    device.is_unlisted = names.contains(&&*device.name);
                }
            })
        };
        let silent = tree();
        assert!(unlisted(&silent, &["mlx5_0"]).is_empty(), "its node is not there");
        silent.add("", &files);
        silent.add("sys/class/infiniband_verbs/uverbs0", &[("abi_version", "6\n")]);
        assert!(unlisted(&silent, &[]).is_empty());
        let found = unlisted(&silent, &["mlx5_0"]);
        assert_eq!(states(&found), [(State::Warning, "provider library mlx5_0".into())]);
        assert_eq!(found[0].found, "libibverbs leaves it out; the kernel's driver has ABI 6");
        // As libibverbs writes it, twice for each device.
        let warning = "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device \
                       /sys/class/infiniband/";
        let output = format!("{warning}mlx5_0\n{warning}mlx5_0\n    device  node GUID\n");
        let telling = tree().with_tools(move |name, _| (name == "sh").then(|| output.clone()));
        telling.add("", &files);
        let both = unlisted(&telling, &["mlx5_0", "rxe0"]);
        let provider = |name: &str| (State::Broken, format!("provider library {name}"));
        assert_eq!(states(&both), ["mlx5_0", "rxe0"].map(provider));
        has(&both[0].found, ["has ABI 6, the library of bnxt_re supports 1 to 1"]);
        has(&both[1].found, ["ABI unknown"]);
    }

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max processes             95000                95000                processes \n\
         Max locked memory         65536                65536                bytes     \n";

    #[test]
    fn a_small_limit_is_a_warning_unless_it_does_not_bind() {
        let tree = tree();
        let with = |capabilities: &str| {
            let files = [("limits", LIMITS), ("status", capabilities)];
            tree.add("proc/self", &files);
            findings(&tree, check_locked_memory).remove(0)
        };
        let limited = with("CapEff:\t0000000000000000\n");
        assert_eq!(outcome(&limited), (State::Warning, "at most 64 KiB"));
        let privileged = with("Name:\tx\nCapEff:\t000001ffffffffff\n");
        assert_eq!(privileged.state, State::Ok);
    }

    #[test]
    fn the_embedded_device_does_not_care() {
        let tree = Tree::new(&[("proc/self/limits", LIMITS)]);
        assert_eq!(findings(&tree, check_locked_memory)[0].state, State::Ok);
        assert_eq!(findings(&Tree::new(&[]), check_locked_memory)[0].state, State::Unknown);
    }

    #[test]
    fn limits_as_the_kernel_writes_them() {
        let unlimited = LIMITS.replace("65536 ", "unlimited ");
        assert_eq!(soft_limit(&unlimited), Some(Limit::None));
        assert_eq!(soft_limit(LIMITS), Some(Limit::Bytes(65536)));
        assert_eq!(soft_limit("Max cpu time unlimited"), None);
        assert_eq!(size(8 << 20), "8 MiB");
        assert_eq!(size(2 << 30), "2 GiB");
    }

    #[test]
    fn the_mode_in_brackets_counts() {
        let mode = "sys/kernel/mm/transparent_hugepage/enabled";
        let reserved = "MemTotal: 1 kB\nHugePages_Total:     12\n";
        let files = [(mode, "always [madvise] never\n"), ("proc/meminfo", reserved)];
        let tree = tree();
        tree.add("", &files);
        let found = &findings(&tree, check_huge_pages)[0];
        assert_eq!(found.state, State::Warning);
        assert!(found.found.ends_with("12 reserved"), "{found:?}");
        assert_eq!(findings(&Tree::new(&files), check_huge_pages)[0].state, State::Ok);
        assert_eq!(chosen("[always] madvise never"), Some("always"));
    }

    #[test]
    fn firmware_of_adapters_is_told() {
        let found = &findings(&tree(), check_versions)[0].found;
        assert!(found.contains("mlx5_0 firmware 22.31.1014"), "{found}");
        assert!(found.contains("rocebench "));
    }
}
