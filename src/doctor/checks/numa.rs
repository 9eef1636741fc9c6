//! Checks that this process may run on the adapters' NUMA nodes.

use machine::threads::{CoreList, cores_of_node};

use super::super::entries::DeviceEntry;
use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str = "a core and memory on another socket than the adapter cost latency and bandwidth; rocebench pins \
     its workers to the adapter's node if it can";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    subject.adapters().map(|device| judge(subject, device).of(&device.name)).collect()
}

fn judge(subject: &Subject<'_>, device: &DeviceEntry) -> Finding {
    let machine = subject.machine;
    let nodes = subject.inventory.host.numa_nodes.unwrap_or(1);
    let Some(node) = device.numa_node else {
        return if nodes <= 1 {
            finding(State::Ok, "the machine has one node".into())
        } else {
            finding(
                State::Warning,
                format!("the firmware does not report which of {nodes} nodes the adapter is on"),
            )
            .remedy("find its node in the board's manual, and choose cores there with --cores")
        };
    };
    let Ok(cores) = cores_of_node(machine.root(), node) else {
        return finding(State::Unknown, format!("node {node}, whose cores are unknown"));
    };
    let allowed = machine
        .text("proc/self/status")
        .and_then(|status| allowed_list(&status))
        .and_then(|list| list.parse::<CoreList>().ok());
    let cores = CoreList(cores);
    let found = format!("node {node} of {nodes}, with cores {cores}");
    match allowed {
        Some(allowed) if !cores.0.iter().any(|core| allowed.0.contains(core)) => finding(
            State::Warning,
            format!("{found}; this process may use none of them"),
        )
        .remedy(format!(
            "run `taskset -c {cores} rocebench …`, or give the container or cgroup cores {cores}"
        )),
        _ => finding(State::Ok, found),
    }
}

fn finding(state: State, found: String) -> Finding {
    Finding::new("NUMA", state, found, WHY)
}

fn allowed_list(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn a_process_kept_from_the_adapters_node_is_told() {
        let tree = tree();
        assert_eq!(findings(&tree, check)[0].state, State::Unknown);
        tree.add("sys/devices/system/node/node1", &[("cpulist", "8-15\n")]);
        tree.add("proc/self", &[("status", "Cpus_allowed_list:\t0-3,12\n")]);
        assert_eq!(findings(&tree, check)[0].state, State::Ok);
        tree.add("proc/self", &[("status", "Cpus_allowed_list:\t0-3\n")]);
        let found = &findings(&tree, check)[0];
        assert_eq!(found.state, State::Warning);
        assert!(found.found.contains("cores 8-15"), "{found:?}");
    }
}
