//! Checks that the devices' ports are active.

use super::super::entries::{DeviceEntry, PortEntry};
use super::subject::{Subject, port_name};
use protocol::finding::{Finding, State};

const WHY: &str = "a QP can connect only on a port that is ACTIVE; a RoCE port is ACTIVE when its network interface \
                   is up and has a link";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let ports: Vec<_> = subject.inventory.system_ports().collect();
    let any_active = ports.iter().any(|(_, port)| port.is_active());
    ports.iter().map(|(device, port)| judge(device, port, any_active)).collect()
}

fn judge(device: &DeviceEntry, port: &PortEntry, any_active: bool) -> Finding {
    let state = port.state.as_deref().unwrap_or("of unknown state");
    let mut found = state.to_owned();
    for detail in port.physical_state.iter().chain(&port.link_layer) {
        found += &format!(", {detail}");
    }
    if let Some(speed) = port.link_gbit_per_s {
        found += &format!(", {speed} Gb/s");
    }
    if let Some(netdev) = &port.netdev {
        found += &format!(", on {netdev}");
        if let Some(state) = port.netdev_state.as_ref().filter(|_| !port.is_active()) {
            found += &format!(", which is {state}");
        }
    }
    if port.is_active() {
        return finding(device, port, State::Ok, found);
    }
    let netdev = port.netdev.as_deref().unwrap_or("NETDEV");
    let remedy = match (port.is_ethernet(), port.physical_state.as_deref()) {
        (true, Some("Polling")) => {
            format!(
                "check cable and switch port: the interface has no link (`ip link show {netdev}`)"
            )
        }
        (true, _) => {
            format!(
                "sudo ip link set {netdev} up; if that does not help, check cable and switch port"
            )
        }
        (false, _) => "check the cable, and that a subnet manager runs (opensm)".to_owned(),
    };
    let state = if any_active { State::Warning } else { State::Broken };
    finding(device, port, state, found).remedy(remedy)
}

fn finding(device: &DeviceEntry, port: &PortEntry, state: State, found: String) -> Finding {
    Finding::new("port", state, found, WHY).of(port_name(device, port))
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;
    use results::sample::has;

    #[test]
    fn a_port_that_is_down_matters_less_beside_one_that_is_up() {
        let found = findings(&tree(), check);
        let [up, down] = ["port mlx5_0:1", "port rxe0:1"].map(str::to_owned);
        assert_eq!(states(&found), [(State::Ok, up), (State::Warning, down)]);
        let words = "ACTIVE, LinkUp, Ethernet, 100 Gb/s, on eth2";
        assert_eq!(found[0].found, words);
        has(found[1].remedy.as_ref().unwrap(), ["ip link set v0 up"]);
    }

    #[test]
    fn no_port_that_is_up_is_broken() {
        let port = [("state", "2: INIT\n"), ("link_layer", "InfiniBand\n")];
        let tree = Tree::new(&[]);
        tree.add("sys/class/infiniband/ib0/ports/1", &port);
        let found = findings(&tree, check);
        assert_eq!(found[0].state, State::Broken);
        has(found[0].remedy.as_ref().unwrap(), ["opensm"]);
    }
}
