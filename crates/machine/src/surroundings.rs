//! What lies around a device's port and may slow it down, from sysfs: the members of its bond, another PCIe function of its
//! cable, the cores near it, and how deep cores sleep.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::text;
use crate::threads::cores_of_node;

/// What lies around a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The bond that its network interface is.
    pub bond: Option<Bond>,
    /// Another device at the same connector of the same card, with PCIe lanes of its own.
    pub other_function: Option<String>,
    /// Cores of the device's NUMA node; empty where that is unknown.
    pub near_cores: Vec<u32>,
    /// Times that a core takes to leave the idle states that are on, in microseconds.
    pub idle_exits_us: Vec<u32>,
}

/// Interfaces that carry traffic together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bond {
    pub name: String,
    /// Those of them that are up.
    pub members: u32,
    /// Speed of the slowest of them, in 10^9 bits a second.
    pub gbit_per_s_of_member: f64,
}

impl Surroundings {
    /// Of a port of a device on this NUMA node, from the files below `root`.
    pub fn read(root: &Path, device: &str, port: u8, numa_node: Option<u32>) -> Surroundings {
        Surroundings {
            bond: Bond::read(root, device, port),
            other_function: other_function(root, device, port),
            near_cores: near_cores(root, numa_node),
            idle_exits_us: idle_exits_us(&root.join("sys/devices/system/cpu/cpu0/cpuidle")),
        }
    }
}

impl Bond {
    /// The bond below a port whose members carry traffic at the same time; `None` of other ports. From the files below `root`.
    pub fn read(root: &Path, device: &str, port: u8) -> Option<Bond> {
        bond(&interface(root, device, port)?)
    }

    /// What it is, and what one QP has of it.
    pub fn words(&self) -> String {
        let Bond { name, members, gbit_per_s_of_member } = self;
        format!(
            "{name} has {members} members of {gbit_per_s_of_member} Gb/s, and one QP uses one of them"
        )
    }

    /// What to do about that.
    pub const ADVICE: &str = "use more QPs, four for each member or more, and look at the bond's transmit hash policy (layer3+4)";
}

/// What to do with two functions of one cable, each of which has PCIe lanes for a part of it.
pub fn both_functions(device: &str, other: &str) -> String {
    format!("use both functions of its cable as rails, at both ends: -d {device},{other}")
}

/// The folder of the network interface below a port.
fn interface(root: &Path, device: &str, port: u8) -> Option<PathBuf> {
    let folder = root.join("sys/class/infiniband").join(device);
    let name = text(&folder.join(format!("ports/{port}/gid_attrs/ndevs/0")))?;
    Some(root.join("sys/class/net").join(name))
}

fn bond(interface: &Path) -> Option<Bond> {
    let members = text(&interface.join("bonding/slaves"))?;
    let mode = text(&interface.join("bonding/mode")).unwrap_or_default();
    let speeds_mbit = members.split_whitespace().filter_map(|name| {
        let member = interface.with_file_name(name);
        let is_up = text(&member.join("operstate")).is_none_or(|state| state == "up");
        text(&member.join("speed")).filter(|_| is_up)?.parse::<u32>().ok()
    });
    let speeds: Vec<u32> = speeds_mbit.collect();
    let slowest = speeds.iter().min().filter(|_| !mode.starts_with("active-backup"))?;
    (speeds.len() > 1).then(|| Bond {
        name: interface.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default(),
        members: speeds.len() as u32,
        gbit_per_s_of_member: f64::from(*slowest) / 1e3,
    })
}

/// Another device at the connector of this port, from the files below `root`.
pub fn other_function(root: &Path, device: &str, port: u8) -> Option<String> {
    let own = connector(root, device, port)?;
    let entries = fs::read_dir(root.join("sys/class/infiniband")).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != device && connector(root, name, port).as_ref() == Some(&own)).min()
}

/// GUID of the card, and name of the port there, which virtual functions have not.
fn connector(root: &Path, device: &str, port: u8) -> Option<(String, String)> {
    let guid = text(&root.join("sys/class/infiniband").join(device).join("sys_image_guid"))?;
    Some((guid, text(&interface(root, device, port)?.join("phys_port_name"))?))
}

fn near_cores(root: &Path, numa_node: Option<u32>) -> Vec<u32> {
    let cores = numa_node.and_then(|node| cores_of_node(root, node).ok()).unwrap_or_default();
    cores.into_iter().filter_map(|core| core.try_into().ok()).collect()
}

/// In order. The first state polls, and takes no time to leave.
fn idle_exits_us(folder: &Path) -> Vec<u32> {
    let states = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let on = states.filter(|state| text(&state.join("disable")).is_none_or(|it| it == "0"));
    let exits = on.filter_map(|state| text(&state.join("latency"))?.parse().ok());
    let mut found: Vec<u32> = exits.filter(|us| *us > 0).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::machine;

    const CLASS: &str = "sys/class/infiniband";

    /// A card of two connectors, each with two functions, and another card with a bond, on the second of two NUMA nodes.
    fn tree(changed: &[(&str, &str)]) -> tempfile::TempDir {
        let mut files: Vec<(String, String)> = Vec::new();
        for (name, guid, port_name) in [
            ("rocep1s0f0", 1, "p0"),
            ("rocep1s0f1", 1, "p1"),
            ("roceP2p1s0f0", 1, "p0"),
            ("mlx5_bond_0", 2, "p0"),
        ] {
            files.extend([
                (format!("{CLASS}/{name}/sys_image_guid"), format!("0000:5e03:0000:530{guid}\n")),
                (format!("{CLASS}/{name}/ports/1/gid_attrs/ndevs/0"), format!("{name}\n")),
                (format!("sys/class/net/{name}/phys_port_name"), format!("{port_name}\n")),
            ]);
        }
        let idle = "sys/devices/system/cpu/cpu0/cpuidle";
        let others = [
            ("sys/class/net/mlx5_bond_0/bonding/mode", "802.3ad 4\n"),
            ("sys/class/net/mlx5_bond_0/bonding/slaves", "eth0 eth1\n"),
            ("sys/class/net/eth0/speed", "100000\n"),
            ("sys/class/net/eth1/speed", "100000\n"),
            ("sys/devices/system/node/node1/cpulist", "4-5,8\n"),
            (&format!("{idle}/state0/latency"), "0\n"),
            (&format!("{idle}/state1/latency"), "2\n"),
            (&format!("{idle}/state2/latency"), "133\n"),
            (&format!("{idle}/state2/disable"), "0\n"),
            (&format!("{idle}/state3/latency"), "600\n"),
            (&format!("{idle}/state3/disable"), "1\n"),
        ];
        let made = files.iter().map(|(path, text)| (&**path, &**text));
        machine(&made.chain(others).chain(changed.iter().copied()).collect::<Vec<_>>())
    }

    fn read(device: &str, changed: &[(&str, &str)]) -> Surroundings {
        Surroundings::read(tree(changed).path(), device, 1, Some(1))
    }

    #[test]
    fn a_bond_has_members_that_carry_traffic_at_the_same_time() {
        let bond = Bond { name: "mlx5_bond_0".to_owned(), members: 2, gbit_per_s_of_member: 100.0 };
        let expected = Surroundings {
            bond: Some(bond),
            other_function: None,
            near_cores: vec![4, 5, 8],
            idle_exits_us: vec![2, 133],
        };
        assert_eq!(read("mlx5_bond_0", &[]), expected);
        let words = "mlx5_bond_0 has 2 members of 100 Gb/s, and one QP uses one of them";
        assert_eq!(expected.bond.unwrap().words(), words);
        for changed in [
            ("sys/class/net/mlx5_bond_0/bonding/mode", "active-backup 1\n"),
            ("sys/class/net/eth1/operstate", "down\n"),
        ] {
            assert_eq!(read("mlx5_bond_0", &[changed]).bond, None, "{changed:?}");
        }
    }

    #[test]
    fn functions_of_a_connector_are_known_by_card_and_port() {
        let other = |device| read(device, &[]).other_function;
        assert_eq!(other("rocep1s0f0").as_deref(), Some("roceP2p1s0f0"));
        assert_eq!((other("rocep1s0f1"), other("soft0")), (None, None));
    }
}
