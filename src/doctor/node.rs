//! What a node tells of itself when many are examined: the facts that are compared, and what its own checks find.

use machine::threads;
use node::outcome;
use node::resources::NodeOptions;
use plan::flow::FlowDevice;
use protocol::examination::NodeExamination;
use results::model::Device;
use verbs::{PortRequest, Route, VerbsError, select_or_embedded};

use super::checks::{self, Subject};
use super::examine::device_used;
use super::inventory::{Inventory, NoChoice};
use super::machine::Machine;

/// Examines this machine as a node whose device is asked for by `options`, or is `device`, and whose control connection
/// runs along `route` to the port `control_port`.
pub fn examine_node(
    machine: &Machine,
    options: &NodeOptions,
    route: Route,
    device: Option<&FlowDevice>,
    control_port: u16,
) -> NodeExamination {
    let request = match device {
        Some(device) => PortRequest {
            device: Some(device.name.clone()),
            ib_port: device.ib_port,
            gid_index: None,
            ..options.request.clone()
        },
        None => options.request.clone(),
    };
    let mut examination = NodeExamination {
        usable_cores: threads::allowed_cores()
            .ok()
            .and_then(|cores| u32::try_from(cores.len()).ok()),
        locked_memory: checks::locked_memory(machine),
        clock_is_kept: clock_is_kept(machine),
        ..NodeExamination::default()
    };
    let mut inventory = match Inventory::read(machine, options.library, &request, route) {
        Ok(inventory) => inventory,
        Err(error) => {
            note_no_device(&mut examination, error);
            return examination;
        }
    };
    let only_embedded = match &request.device {
        Some(name) => inventory.keep_only(name),
        None => false,
    };
    examination.findings =
        checks::run_all(&Subject { machine, inventory: &inventory, control_port, only_embedded });
    match select_or_embedded(options.library, &request, Some(route)) {
        Ok(port) => {
            let device = with_interface(outcome::device(&port), &inventory);
            if let Some(netdev) = &device.netdev {
                examination.lossless =
                    checks::lossless(machine, (&device.name, device.port), netdev);
            }
            examination.device = Some(device);
        }
        Err(error) => note_no_device(&mut examination, error),
    }
    examination
}

fn note_no_device(examination: &mut NodeExamination, error: VerbsError) {
    examination.no_device = Some(error.to_string());
    let no_choice = NoChoice::from(error);
    examination.findings.push(device_used(&None, Some(&no_choice)));
}

/// With the interface below an embedded device, which the kernel does not tell.
fn with_interface(mut device: Device, inventory: &Inventory) -> Device {
    let entry = inventory
        .devices
        .iter()
        .find(|entry| entry.name == device.name && entry.library == device.library);
    let ports = entry.into_iter().flat_map(|entry| &entry.ports);
    if let Some(port) = ports.into_iter().find(|port| port.port == device.port) {
        device.netdev = device.netdev.or_else(|| port.netdev.clone());
        device.netdev_mtu_bytes = device.netdev_mtu_bytes.or(port.netdev_mtu_bytes);
        if device.library == super::entries::EMBEDDED {
            // It has no link with a meaningful speed.
            (device.link_gbit_per_s, device.width_lanes) = (None, None);
        }
    }
    device
}

/// Whether the kernel counts the clock as synchronised (`timedatectl`), or whoever keeps it says so.
fn clock_is_kept(machine: &Machine) -> Option<bool> {
    let arguments = ["show", "--property=NTPSynchronized", "--value"];
    match machine.tool("timedatectl", &arguments).as_deref().map(str::trim) {
        Some("yes") => return Some(true),
        Some("no") => return Some(false),
        _ => {}
    }
    if let Some(tracking) = machine.tool("chronyc", &["-n", "tracking"]) {
        let leap = tracking.lines().find(|line| line.starts_with("Leap status"));
        return leap.map(|line| !line.contains("Not synchronised"));
    }
    machine.has("run/systemd/timesync/synchronized").then_some(true)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::machine::made_up::Tree;
    use super::*;

    #[test]
    fn a_clock_is_kept_where_something_says_so() {
        let tree = Tree::new(&[]);
        assert_eq!(clock_is_kept(&tree.machine), None);
        tree.add("run/systemd/timesync", &[("synchronized", "")]);
        assert_eq!(clock_is_kept(&tree.machine), Some(true));
        let unsynchronised = "Leap status     : Not synchronised\n";
        for (program, told, kept) in [
            ("timedatectl", "no\n", Some(false)),
            ("timedatectl", "yes\n", Some(true)),
            ("chronyc", "Leap status     : Normal\n", Some(true)),
            ("chronyc", unsynchronised, Some(false)),
        ] {
            let tree = Tree::new(&[]).with_tools(move |name: &str, _: &[&str]| {
                (name == program).then(|| told.to_owned())
            });
            assert_eq!(clock_is_kept(&tree.machine), kept, "{told}");
        }
    }

    #[test]
    fn a_node_without_its_device_says_so_and_tells_the_rest() {
        let request = PortRequest { device: Some("nope".into()), ..PortRequest::default() };
        let options = NodeOptions::system(request, None);
        let route = Route::to(IpAddr::from(Ipv4Addr::LOCALHOST));
        let found = examine_node(&Machine::this(), &options, route, None, 18515);
        assert_eq!(found.device, None);
        assert!(found.no_device.unwrap().contains("nope"));
        assert!(found.usable_cores.is_some());
        assert_eq!(found.findings.last().unwrap().check, "device used");
        let embedded = FlowDevice { name: "soft0".into(), ib_port: None };
        let found = examine_node(&Machine::this(), &options, route, Some(&embedded), 18515);
        let device = found.device.unwrap();
        let names = (&*device.name, device.netdev.as_deref());
        assert_eq!(names, ("soft0", Some("lo")));
    }
}
