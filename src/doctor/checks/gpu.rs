//! Checks GPUs for RDMA, in the order in which they fail in the field: the driver, dmabufs of its memory or a peer-memory module,
//! what stands between GPU and adapter on PCIe, how much of its memory the bus sees, and how near the two are.

use machine::pci::{Nearness, nearness};
use protocol::node_report::{Check, Finding};

use super::Subject;
use crate::doctor::machine::Machine;

const DRIVER: Check = Check::new(
    "GPU driver",
    "--memory-at cuda:N and rocm:N need the driver that gives a GPU's memory out",
);
const MEMORY: Check = Check::new(
    "GPU memory",
    "an adapter learns of a GPU's memory by a dmabuf, or by a peer-memory module: without both, registration fails with \
     error 14, 22 or 93",
);
const PATH: Check = Check::new(
    "GPU path",
    "what an adapter and a GPU send each other goes through the IOMMU if it translates, and up to the root where ACS is \
     on: that is slow, or fails",
);
const BAR: Check =
    Check::new("GPU BAR", "adapters reach only the part of a GPU's memory that its BAR shows");
const DISTANCE: Check = Check::new(
    "GPU distance",
    "traffic between an adapter and a GPU of another NUMA node can lose most of the rate",
);

const NVIDIA: &str = "0x10de";
const AMD: &str = "0x1002";
const DEVICES: &str = "sys/bus/pci/devices";

/// A BAR as small as before BARs could be resized.
const SMALL_BAR_BYTES: u64 = 256 << 20;

/// A GPU as the kernel tells of it.
struct Gpu {
    address: String,
    is_nvidia: bool,
    driver: Option<String>,
}

/// Checks the GPUs of this machine, if there are any.
pub(super) fn check_gpus(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let gpus = gpus(machine);
    let Some(first) = gpus.first() else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> =
        gpus.iter().map(|gpu| driver(machine, gpu).about(&gpu.address)).collect();
    findings.push(memory(machine, first));
    if subject.has_adapters() {
        findings.push(path(machine));
    }
    findings.extend(gpus.iter().filter_map(|gpu| bar(machine, gpu)));
    findings.extend(subject.adapters().filter_map(|it| distance(machine, &gpus, &it.name)));
    findings
}

fn gpus(machine: &Machine) -> Vec<Gpu> {
    let read = |address: &str, file: &str| machine.text(format!("{DEVICES}/{address}/{file}"));
    machine
        .list(DEVICES)
        .into_iter()
        .filter_map(|address| {
            let vendor = read(&address, "vendor")?;
            // Display controllers: of VGA, 3D, and others, as AMD's accelerators call themselves, or processing accelerators.
            let class = read(&address, "class")?;
            let is_gpu =
                ["0x0300", "0x0302", "0x0380", "0x1200"].iter().any(|it| class.starts_with(it));
            let is_known = [NVIDIA, AMD].contains(&vendor.trim());
            let driver = machine.link_name(format!("{DEVICES}/{address}/driver"));
            let is_nvidia = vendor.trim() == NVIDIA;
            (is_gpu && is_known).then_some(Gpu { address, is_nvidia, driver })
        })
        .collect()
}

fn driver(machine: &Machine, gpu: &Gpu) -> Finding {
    let (wanted, node) =
        if gpu.is_nvidia { ("nvidia", "dev/nvidiactl") } else { ("amdgpu", "dev/kfd") };
    match gpu.driver.as_deref() {
        Some(driver) if driver == wanted && machine.has(node) => {
            let version = machine.text(format!("sys/module/{driver}/version"));
            let suffix = version.map(|text| format!(" {}", text.trim())).unwrap_or_default();
            DRIVER.ok(format!("{driver}{suffix}"))
        }
        Some(driver) if driver == wanted => DRIVER.warning(
            format!("{driver}, but there is no /{node}"),
            "run `nvidia-smi` or `rocminfo` as root once, which makes the nodes; in a container, give it the GPUs",
        ),
        driver => DRIVER.warning(
            format!("{}, not {wanted}", driver.unwrap_or("none")),
            format!("install the driver, and load it: `sudo modprobe {wanted}`"),
        ),
    }
}

/// Whether an adapter can learn of its memory, and how.
fn memory(machine: &Machine, gpu: &Gpu) -> Finding {
    if !gpu.is_nvidia {
        let release = machine.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let config = machine.text(format!("boot/config-{}", release.trim()));
        let has = |option: &str| config.as_ref().map(|text| text.contains(&format!("{option}=y")));
        return match (has("CONFIG_DMABUF_MOVE_NOTIFY"), has("CONFIG_PCI_P2PDMA")) {
            (Some(true), Some(true)) => MEMORY.ok("the kernel has what dmabufs of GPUs need"),
            (Some(_), Some(_)) => MEMORY.warning(
                "the kernel lacks DMABUF_MOVE_NOTIFY or PCI_P2PDMA",
                "take a kernel with CONFIG_DMABUF_MOVE_NOTIFY=y and CONFIG_PCI_P2PDMA=y",
            ),
            _ => MEMORY.unknown("the kernel's configuration cannot be read"),
        };
    }
    let version = machine.text("proc/driver/nvidia/version").unwrap_or_default();
    if version.contains("Open Kernel Module") {
        return MEMORY.ok("the open kernel modules export dmabufs");
    }
    let is_loaded =
        ["nvidia_peermem", "nv_peer_mem"].iter().any(|it| machine.has(format!("sys/module/{it}")));
    match (is_loaded, machine.list("sys/kernel/mm/memory_peers").is_empty()) {
        (true, false) => MEMORY.ok("peer memory is loaded and registered"),
        (true, true) => MEMORY.warning(
            "peer memory is loaded, but the RDMA core does not know it",
            "load it again after the adapter's driver: `sudo modprobe -r nvidia-peermem && sudo modprobe \
             nvidia-peermem`; without MLNX_OFED or DOCA take NVIDIA's open kernel modules, which export dmabufs",
        ),
        (false, _) => MEMORY.warning(
            "no dmabufs from the closed kernel modules, and no peer memory",
            "install NVIDIA's open kernel modules, or `sudo modprobe nvidia-peermem`",
        ),
    }
}

/// IOMMU and ACS.
fn path(machine: &Machine) -> Finding {
    let translates = machine.list("sys/kernel/iommu_groups").into_iter().any(|group| {
        let kind = machine.text(format!("sys/kernel/iommu_groups/{group}/type"));
        kind.is_some_and(|kind| kind.starts_with("DMA"))
    });
    if translates {
        return PATH.warning(
            "the IOMMU translates addresses",
            "boot with `iommu=pt`; in virtual machines and for ACS see `sudo rdma_topo check` of rdma-core",
        );
    }
    match machine.tool("rdma_topo", &["check"]) {
        Some(text) if text.trim().is_empty() || text.contains("OK") => {
            PATH.ok("rdma_topo finds nothing")
        }
        Some(text) => PATH.warning(
            text.lines().next().unwrap_or_default(),
            "do what `sudo rdma_topo check` says",
        ),
        None => PATH.unknown(
            "the IOMMU does not translate; ACS is seen by `sudo rdma_topo check` of rdma-core, which is not here",
        ),
    }
}

fn bar(machine: &Machine, gpu: &Gpu) -> Option<Finding> {
    let text = machine.text(format!("{DEVICES}/{}/resource", gpu.address))?;
    let bytes = text.lines().take(6).filter_map(bar_bytes).max()?;
    let found = format!("{} MiB", bytes >> 20);
    let finding = if bytes > SMALL_BAR_BYTES {
        BAR.ok(found)
    } else {
        BAR.warning(
            found,
            "switch `Above 4G Decoding` and `Resizable BAR` on in the BIOS, where the GPU has a large BAR",
        )
    };
    Some(finding.about(&gpu.address))
}

/// `0x0000100000000000 0x0000103fffffffff 0x000000000014220c`: first and last byte.
fn bar_bytes(line: &str) -> Option<u64> {
    let mut numbers = line
        .split_whitespace()
        .map(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let (first, last) = (numbers.next()??, numbers.next()??);
    (last > first).then(|| last - first + 1)
}

/// Which GPU is nearest to an adapter.
fn distance(machine: &Machine, gpus: &[Gpu], device: &str) -> Option<Finding> {
    let (near, address) = gpus
        .iter()
        .filter_map(|gpu| Some((nearness(machine.root(), &gpu.address, device)?, &gpu.address)))
        .min()?;
    let found = format!("{address} is nearest, distance: {near}");
    let finding = match near {
        Nearness::Far => DISTANCE.warning(
            found,
            "use an adapter of the GPU's NUMA node, or move one of the cards to the other's slots",
        ),
        _ => DISTANCE.ok(found),
    };
    Some(finding.about(device))
}

#[cfg(test)]
mod tests {
    use protocol::node_report::State;

    use super::*;
    use crate::doctor::checks::tests::{findings, states, tree};
    use crate::doctor::machine::made_up::Tree;

    const ADDRESS: &str = "0000:3c:00.0";

    /// A machine with an adapter and a GPU of this vendor.
    fn with_gpu(vendor: &str, driver: &str) -> Tree {
        let tree = tree();
        let place = format!("sys/devices/pci0000:3a/0000:3a:01.0/{ADDRESS}");
        tree.add(
            &place,
            &[
                ("vendor", vendor),
                ("class", "0x030200\n"),
                ("numa_node", "1\n"),
                ("resource", "0x1000000000 0x1fffffffff 0x14220c\n0x0 0x0 0x0\n"),
            ],
        );
        tree.link(&format!("{DEVICES}/{ADDRESS}"), &place);
        tree.add("", &[(&format!("sys/bus/pci/drivers/{driver}/module"), "")]);
        tree.link(&format!("{place}/driver"), &format!("sys/bus/pci/drivers/{driver}"));
        tree
    }

    #[test]
    fn a_machine_without_a_gpu_has_nothing_to_check() {
        assert!(findings(&tree(), check_gpus).is_empty());
    }

    #[test]
    fn what_fails_in_the_field_is_found_in_its_order() {
        let tree = with_gpu(NVIDIA, "nvidia");
        let words = |host: &Tree| {
            let found = findings(host, check_gpus);
            found.iter().map(|it| (it.check.to_string(), it.state)).collect::<Vec<_>>()
        };
        let state = |host: &Tree, check: &str| {
            words(host).into_iter().find(|it| it.0 == check).map(|it| it.1)
        };
        let order: Vec<String> = words(&tree).into_iter().map(|it| it.0).collect();
        assert!(
            order.starts_with(
                &["GPU driver", "GPU memory", "GPU path", "GPU BAR"].map(str::to_owned)
            ),
            "{order:?}"
        );
        // No nodes, closed modules, no peer memory.
        assert_eq!(state(&tree, "GPU driver"), Some(State::Warning));
        assert_eq!(state(&tree, "GPU memory"), Some(State::Warning));
        assert_eq!(state(&tree, "GPU BAR"), Some(State::Ok));
        tree.add("", &[("dev/nvidiactl", ""), ("sys/module/nvidia_peermem/refcnt", "0")]);
        assert_eq!(state(&tree, "GPU driver"), Some(State::Ok));
        // Loaded, but not registered.
        assert_eq!(state(&tree, "GPU memory"), Some(State::Warning));
        tree.add("", &[("sys/kernel/mm/memory_peers/nv_mem/version", "1")]);
        assert_eq!(state(&tree, "GPU memory"), Some(State::Ok));
        assert_eq!(state(&tree, "GPU path"), Some(State::Unknown));
        tree.add("", &[("sys/kernel/iommu_groups/7/type", "DMA-FQ\n")]);
        assert_eq!(state(&tree, "GPU path"), Some(State::Warning));
        let small = format!("{DEVICES}/{ADDRESS}/resource");
        tree.add("", &[(&small, "0xd0000000 0xdfffffff 0x14220c\n")]);
        assert_eq!(state(&tree, "GPU BAR"), Some(State::Warning));
        assert!(!states(&findings(&tree, check_gpus)).is_empty());
    }

    #[test]
    fn open_modules_and_kernels_for_amd_give_dmabufs() {
        let open = with_gpu(NVIDIA, "nvidia");
        open.add(
            "",
            &[(
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580\n",
            )],
        );
        assert_eq!(memory(&open.machine, &gpus(&open.machine)[0]).state, State::Ok);
        let amd = with_gpu(AMD, "amdgpu");
        let gpu = &gpus(&amd.machine)[0];
        assert_eq!(memory(&amd.machine, gpu).state, State::Unknown);
        amd.add(
            "",
            &[("proc/sys/kernel/osrelease", "6.1\n"), ("boot/config-6.1", "CONFIG_PCI_P2PDMA=y\n")],
        );
        assert_eq!(memory(&amd.machine, gpu).state, State::Warning);
        assert_eq!(driver(&with_gpu(AMD, "vfio-pci").machine, gpu).state, State::Warning);
    }
}
