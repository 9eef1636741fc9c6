//! Checks adapters and cores: PCIe links and their ordering, NUMA nodes, frequencies and interrupts.

use machine::{
    control_groups::{CpuQuota, cpu_quota},
    device::pcie_payload_gbit_per_s,
    surroundings::both_functions,
    threads::{CoreList, cores_of_node},
};
use protocol::node_report::{Check, Finding};
use verbs::Driver;

use super::Subject;
use crate::doctor::{inventory::DeviceEntry, machine::Machine};

const PCIE: Check = Check::new(
    "PCIe",
    "all payload crosses the adapter's PCIe link once; a narrow or slow one is the usual reason why a fast adapter stops at \
     half its rate",
);

/// Checks the PCIe link of each adapter: whether it has its full width and speed, and is fast enough for the network link.
pub(super) fn check_pcie(subject: &Subject<'_>) -> Vec<Finding> {
    subject.adapters().filter_map(|device| Some(judge_link(device)?.about(&device.name))).collect()
}

fn judge_link(device: &DeviceEntry) -> Option<Finding> {
    // Skips devices without a PCI bus, as in some virtual machines.
    device.pci_address.as_ref()?;
    let (Some(speed), Some(width)) = (device.pci_gtransfer_per_s, device.pci_width_lanes) else {
        let found =
            "the kernel does not report the link's width and speed (as in virtual machines)";
        return Some(PCIE.unknown(found));
    };
    let gbit_per_s = pcie_payload_gbit_per_s(speed, width);
    let mut found = format!("{speed} GT/s x{width}, about {gbit_per_s:.0} Gb/s");
    let slow = device.pci_max_gtransfer_per_s.is_some_and(|max| max > speed);
    let narrow = device.pci_max_width_lanes.is_some_and(|max| max > width);
    let network: f64 = device
        .ports
        .iter()
        .filter(|port| port.is_active())
        .filter_map(|port| port.link_gbit_per_s)
        .sum();
    if slow || narrow {
        let max = (device.pci_max_gtransfer_per_s, device.pci_max_width_lanes);
        if let (Some(max_speed), Some(max_width)) = max {
            found += &format!("; the adapter can do {max_speed} GT/s x{max_width}");
        }
    }
    if network > gbit_per_s {
        found += &format!("; less than the {network} Gb/s of its ports");
        if let Some(other) = device.ports.iter().find_map(|port| port.other_function.as_ref()) {
            found += &format!(", which {other} carries too: another function of the same cable");
            return Some(PCIE.warning(found, both_functions(&device.name, other)));
        }
        return Some(PCIE.warning(
            found,
            "move the adapter to a wider slot of this speed, or look for a bifurcated or shared one (`sudo lspci \
             -vv` shows LnkCap and LnkSta; the BIOS sets the slot)",
        ));
    }
    // Fast enough for the network link.
    Some(PCIE.ok(found))
}

const ORDERING: Check = Check::new(
    "PCIe ordering",
    "on hosts with AMD processors an adapter of 200 Gb/s and more reaches its rate only if its writes may pass each other \
     (relaxed ordering); perftest and MPI ask for it",
);

/// Offsets and numbers of the PCI Local Bus and PCI Express specifications: the first capability's place, the number of that
/// of PCI Express, its Device Control register and the bit in there.
const FIRST_CAPABILITY: usize = 0x34;
const PCI_EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: usize = 8;
const RELAXED_ORDERING: u8 = 1 << 4;

/// The most capabilities that fit behind the header, so that a circle ends.
const MOST_CAPABILITIES: usize = 48;

/// Checks whether an adapter's writes may pass each other on PCIe, which the setting `ordering` asks for by default: whether
/// its driver passes that on, and whether the system has the device's relaxed ordering on.
pub(super) fn check_ordering(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    // Others are on no PCIe bus.
    subject
        .adapters()
        .filter(|it| it.pci_address.is_some())
        .map(|device| judge_ordering(machine, device).about(&device.name))
        .collect()
}

fn judge_ordering(machine: &Machine, device: &DeviceEntry) -> Finding {
    let name = device.driver.as_deref().unwrap_or("(unknown)");
    let known = device.driver.as_deref().and_then(Driver::from_name);
    match known.map(|driver| driver.relaxed_ordering) {
        None => ORDERING.unknown(format!(
            "rocebench asks for relaxed; unknown whether driver {name} does it"
        )),
        Some(false) => ORDERING.ok(format!("strict: driver {name} has no relaxed ordering")),
        Some(true) => match relaxes_ordering(machine, &device.name) {
            Some(false) => ORDERING.warning(
                "strict: the system has turned the device's relaxed ordering off",
                "turn it on in the BIOS (`PCIe relaxed ordering`), and look at `sudo lspci -vv`: DevCtl should show RlxdOrd+",
            ),
            Some(true) => ORDERING.ok(format!("relaxed, by driver {name}")),
            None => ORDERING.ok(format!(
                "relaxed, by driver {name}, if the firmware has it and the BIOS leaves it on"
            )),
        },
    }
}

/// Whether the system leaves the device's relaxed ordering on; `None` where that cannot be read, as without root.
fn relaxes_ordering(machine: &Machine, device: &str) -> Option<bool> {
    let config = machine.bytes(format!("sys/class/infiniband/{device}/device/config"))?;
    let mut place = usize::from(*config.get(FIRST_CAPABILITY)?);
    for _ in 0..MOST_CAPABILITIES {
        if *config.get(place)? == PCI_EXPRESS {
            return Some(config.get(place + DEVICE_CONTROL)? & RELAXED_ORDERING != 0);
        }
        place = usize::from(*config.get(place + 1)?);
    }
    None
}

const NUMA: Check = Check::new(
    "NUMA",
    "a core and memory on another socket than the adapter cost latency and bandwidth; rocebench pins its workers to the \
     adapter's node if it can",
);

/// Checks that this process may run on the adapters' NUMA nodes.
pub(super) fn check_numa(subject: &Subject<'_>) -> Vec<Finding> {
    subject.adapters().map(|device| judge_numa(subject, device).about(&device.name)).collect()
}

fn judge_numa(subject: &Subject<'_>, device: &DeviceEntry) -> Finding {
    let machine = subject.machine;
    let nodes = subject.inventory.host.numa_nodes.unwrap_or(1);
    let Some(node) = device.numa_node else {
        return if nodes <= 1 {
            NUMA.ok("the machine has one node")
        } else {
            NUMA.warning(
                format!("the firmware does not report which of {nodes} nodes the adapter is on"),
                "find its node in the board's manual, and choose cores there with --cores",
            )
        };
    };
    let Ok(cores) = cores_of_node(machine.root(), node) else {
        return NUMA.unknown(format!("node {node}, whose cores are unknown"));
    };
    let allowed = machine
        .text("proc/self/status")
        .and_then(|status| allowed_list(&status))
        .and_then(|list| list.parse::<CoreList>().ok());
    let cores = CoreList(cores);
    let found = format!("node {node} of {nodes}, with cores {cores}");
    match allowed {
        Some(allowed) if !cores.0.iter().any(|core| allowed.0.contains(core)) => NUMA.warning(
            format!("{found}; this process may use none of them"),
            format!(
                "run `taskset -c {cores} rocebench …`, or give the container or cgroup cores {cores}"
            ),
        ),
        _ => NUMA.ok(found),
    }
}

fn allowed_list(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

const PROCESSOR: Check = Check::new(
    "processor",
    "cores of several kinds differ in speed: without --cores workers take those of the first kind first",
);

const GOVERNOR: Check = Check::new(
    "CPU governor",
    "a governor that slows cores down, or speeds them up late, costs latency and message rate",
);

const IRQBALANCE: Check = Check::new(
    "irqbalance",
    "it moves interrupts between cores during a measurement, which slows workers there",
);

const QUOTA: Check = Check::new(
    "CPU quota",
    "a control group with a quota stops all its threads, also those that poll, for the rest of each period (0.1 s) when it is \
     used up",
);

/// Names the processor; checks the frequency governor, which may slow cores down, irqbalance, which moves interrupts between them, and quotas of CPU time.
pub(super) fn check_cpu(subject: &Subject<'_>) -> Vec<Finding> {
    let host = machine::host::read_below(subject.machine.root());
    vec![PROCESSOR.ok(host.processor()), governor(subject), irqbalance(subject), quota(subject)]
}

fn quota(subject: &Subject<'_>) -> Finding {
    match cpu_quota(subject.machine.root()) {
        None => QUOTA.ok("none"),
        Some(CpuQuota { group, cpus }) => QUOTA.warning(
            format!("control group {group} has {cpus:.1} CPUs: a worker that polls takes a whole one"),
            "raise it (`docker run --cpus`, a pod's CPU limit, cpu.max), or take --poll event and fewer workers",
        ),
    }
}

fn governor(subject: &Subject<'_>) -> Finding {
    let machine = subject.machine;
    let folder = "sys/devices/system/cpu";
    let cores = machine.list(folder);
    let governors: Vec<String> = cores
        .iter()
        .filter_map(|core| machine.text(format!("{folder}/{core}/cpufreq/scaling_governor")))
        .collect();
    let others: Vec<&String> = governors.iter().filter(|name| *name != "performance").collect();
    match (governors.len(), others.as_slice()) {
        (0, _) => GOVERNOR.ok("the kernel sets no frequencies here (as in virtual machines)"),
        (_, []) => GOVERNOR.ok("performance on all cores"),
        (count, [first, ..]) => GOVERNOR.warning(
            format!("{first} on {} of {count} cores", others.len()),
            "sudo cpupower frequency-set -g performance",
        ),
    }
}

fn irqbalance(subject: &Subject<'_>) -> Finding {
    let runs = subject.machine.processes().iter().any(|(_, name)| name == "irqbalance");
    match (runs, subject.has_adapters()) {
        (true, true) => IRQBALANCE.warning("runs", "sudo systemctl stop irqbalance"),
        (true, false) => IRQBALANCE.ok("runs, which matters only with an adapter"),
        (false, _) => IRQBALANCE.ok("does not run"),
    }
}

#[cfg(test)]
mod tests {
    use protocol::node_report::State;

    use super::super::tests::*;
    use super::*;

    #[test]
    fn a_link_that_is_slower_than_the_port_is_found() {
        let found = findings(&tree(), check_pcie);
        let words = "8 GT/s x8, about 57 Gb/s; the adapter can do 16 GT/s x16; less than the 100 Gb/s of its ports";
        assert_eq!(outcome(&found[0]), (State::Warning, words));
        assert_eq!(found.len(), 1, "Soft-RoCE has none");
    }

    #[test]
    fn enough_is_enough() {
        for (lanes, state) in [(Some(16), State::Ok), (None, State::Unknown)] {
            let found =
                findings_with(&tree(), check_pcie, |devices| devices[0].pci_width_lanes = lanes);
            assert_eq!(found[0].state, state);
        }
        assert!((pcie_payload_gbit_per_s(5.0, 8) - 28.8).abs() < 1e-9);
    }

    fn found_with(driver: &str, config: &[u8]) -> (State, String) {
        let tree = tree();
        let device = "sys/class/infiniband/mlx5_0/device";
        tree.add_bytes(&format!("{device}/config"), config);
        let found = findings_with(&tree, check_ordering, |devices| {
            devices[0].driver = Some(driver.to_owned());
        });
        (found[0].state, found[0].found.clone())
    }

    /// A configuration space with two capabilities, the second of which is PCI Express'.
    fn config(control: u8) -> Vec<u8> {
        let mut config = vec![0; 256];
        (config[FIRST_CAPABILITY], config[0x40], config[0x41]) = (0x40, 0x05, 0x60);
        (config[0x60], config[0x68]) = (PCI_EXPRESS, control);
        config
    }

    #[test]
    fn what_is_asked_for_is_what_driver_and_system_allow() {
        for (driver, control, state, sentence) in [
            ("mlx5_core", 0x10, State::Ok, "relaxed, by driver mlx5_core"),
            (
                "mlx5_core",
                0,
                State::Warning,
                "strict: the system has turned the device's relaxed ordering off",
            ),
            ("ice", 0x10, State::Ok, "strict: driver ice has no relaxed ordering"),
        ] {
            assert_eq!(found_with(driver, &config(control)), (state, sentence.to_owned()));
        }
        assert_eq!(found_with("a_new_one", &config(0x10)).0, State::Unknown);
    }

    #[test]
    fn a_configuration_space_that_is_cut_off_or_goes_in_circles_tells_nothing() {
        let mut circle = config(0x10);
        circle[0x41] = 0x40;
        for config in [&config(0x10)[..64], &[], &circle] {
            let (state, text) = found_with("mlx5_core", config);
            assert_eq!(state, State::Ok);
            assert!(text.contains("if the firmware has it"), "{text}");
        }
    }

    #[test]
    fn a_process_kept_from_the_adapters_node_is_told() {
        let tree = tree();
        assert_eq!(findings(&tree, check_numa)[0].state, State::Unknown);
        tree.add("sys/devices/system/node/node1", &[("cpulist", "8-15\n")]);
        tree.add("proc/self", &[("status", "Cpus_allowed_list:\t0-3,12\n")]);
        assert_eq!(findings(&tree, check_numa)[0].state, State::Ok);
        tree.add("proc/self", &[("status", "Cpus_allowed_list:\t0-3\n")]);
        let found = &findings(&tree, check_numa)[0];
        assert_eq!(found.state, State::Warning);
        assert!(found.found.contains("cores 8-15"), "{found:?}");
    }

    #[test]
    fn governors_of_all_cores_count() {
        let files = [
            ("cpu0/cpufreq/scaling_governor", "performance\n"),
            ("cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("cpufreq/boost", "1\n"),
        ];
        let tree = Tree::new(&[]);
        tree.add("sys/devices/system/cpu", &files);
        let found = &findings(&tree, check_cpu)[1];
        assert_eq!(outcome(found), (State::Warning, "powersave on 1 of 2 cores"));
        let none = findings(&Tree::new(&[]), check_cpu);
        assert!(none.iter().all(|it| it.state == State::Ok));
    }

    #[test]
    fn a_quota_of_cpu_time_is_a_warning() {
        let tree = tree();
        tree.add(
            "proc/self",
            &[
                ("cgroup", "0::/\n"),
                ("mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ],
        );
        let of_quota = |limit| {
            tree.add("sys/fs/cgroup", &[("cpu.max", limit)]);
            findings(&tree, check_cpu).remove(3)
        };
        assert_eq!(of_quota("max 100000\n").state, State::Ok);
        let limited = of_quota("150000 100000\n");
        let words = "control group / has 1.5 CPUs: a worker that polls takes a whole one";
        assert_eq!(outcome(&limited), (State::Warning, words));
    }

    #[test]
    fn irqbalance_matters_beside_an_adapter() {
        let tree = tree();
        tree.add("proc/77", &[("comm", "irqbalance\n")]);
        let irqbalance = (State::Warning, "irqbalance".into());
        assert_eq!(states(&findings(&tree, check_cpu))[2], irqbalance);
        let bare = Tree::new(&[("proc/77/comm", "irqbalance\n")]);
        assert_eq!(findings(&bare, check_cpu)[2].state, State::Ok);
    }
}
