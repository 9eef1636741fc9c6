//! What is compared between nodes, who differs from most, and the sentences that say so.

use std::collections::BTreeMap;

use machine::host::memory_text;
use protocol::{
    handshake::ClockOffset,
    node_report::{Check, Finding, LockedMemory, State},
};
use results::model::Device;
use settings::listed;
use verbs::Gid;

use super::Answer;
use crate::doctor::{
    inventory::family,
    peer::{FAR_NS, WHY_CLOCK, milliseconds},
};

/// A fact of a node.
pub(super) struct Aspect {
    /// In sentences: `interface MTU of node07 is 1500`.
    pub(super) name: &'static str,
    pub(super) heading: &'static str,
    /// What a difference is: broken where it breaks or slows runs, a warning where it makes figures hard to compare, and
    /// ok where nodes may differ.
    pub(super) difference: State,
    /// Of a node; `None` where it is not known.
    pub(super) value: fn(&Answer) -> Option<String>,
    pub(super) why: &'static str,
    pub(super) remedy: &'static str,
}

pub(super) const ASPECTS: &[Aspect] = &[
    Aspect {
        name: "rocebench",
        heading: "rocebench",
        difference: State::Warning,
        value: |node| Some(node.version.clone()),
        why: "all speak one protocol, but two versions may measure differently",
        remedy: "install the same version everywhere",
    },
    Aspect {
        name: "kernel",
        heading: "kernel",
        difference: State::Warning,
        value: |node| text(&node.host.kernel),
        why: "drivers come with the kernel, and their speed and faults depend on its version",
        remedy: "install the same kernel everywhere, or compare only nodes of one kernel",
    },
    Aspect {
        name: "rdma-core",
        heading: "rdma-core",
        difference: State::Warning,
        value: |node| node.host.rdma_core.clone(),
        why: "the part of a driver that posts and polls is in rdma-core",
        remedy: "install the same version everywhere",
    },
    Aspect {
        name: "device",
        heading: "device",
        difference: State::Ok,
        value: |node| match &node.examination.device {
            Some(device) => Some(device.name.clone()),
            None => Some("none".to_owned()),
        },
        why: "",
        remedy: "",
    },
    Aspect {
        name: "driver",
        heading: "driver",
        difference: State::Warning,
        value: |node| device(node)?.driver.clone(),
        why: "a pair of two kinds of adapters is as fast as the slower one",
        remedy: "compare only nodes with one kind, or choose their devices: --nodes a/mlx5_0,b/mlx5_0",
    },
    Aspect {
        name: "firmware",
        heading: "firmware",
        difference: State::Warning,
        value: |node| device(node)?.firmware.clone(),
        why: "firmware decides congestion control, counters and defaults",
        remedy: "flash the same firmware everywhere",
    },
    Aspect {
        name: "--faults",
        heading: "faults",
        difference: State::Broken,
        value: |node| {
            let faults = device(node)?.faults.clone();
            Some(faults.unwrap_or_else(|| "none".to_owned()))
        },
        why: "packets of this node go wrong on purpose (--faults)",
        remedy: "start `rocebench serve` there without --faults and without SOFTROCE_FAULTS",
    },
    Aspect {
        name: "link layer",
        heading: "link",
        difference: State::Broken,
        value: |node| device(node)?.link_layer.clone(),
        why: "InfiniBand and Ethernet do not reach each other",
        remedy: "choose ports of one kind: --nodes a/mlx5_0,b/mlx5_1, or `rocebench serve -d`",
    },
    Aspect {
        name: "link speed",
        heading: "speed",
        difference: State::Broken,
        value: |node| Some(format!("{} Gb/s", device(node)?.link_gbit_per_s?)),
        why: "a slower port takes less, and others wait for it",
        remedy: "look at cable, transceiver and the switch port (`ethtool NETDEV`); or choose another port with -d",
    },
    Aspect {
        name: "PCIe",
        heading: "PCIe",
        difference: State::Broken,
        value: |node| {
            let device = device(node)?;
            let (speed, lanes) = (device.pci_gtransfer_per_s?, device.pci_width_lanes?);
            Some(format!("{speed} GT/s x{lanes}"))
        },
        why: "an adapter is no faster than its slot",
        remedy: "look at the slot, the riser and the BIOS (`lspci -vv`: LnkSta against LnkCap)",
    },
    Aspect {
        name: "RDMA MTU",
        heading: "MTU",
        difference: State::Broken,
        value: |node| Some(device(node)?.active_mtu_bytes?.to_string()),
        why: "each pair takes the smaller of both, and smaller packets cost throughput",
        remedy: "sudo ip link set NETDEV mtu N there, and allow it on the switches",
    },
    Aspect {
        name: "interface MTU",
        heading: "netdev MTU",
        difference: State::Broken,
        value: |node| Some(device(node)?.netdev_mtu_bytes?.to_string()),
        why: "packets larger than the MTU of an interface or switch on the way are lost",
        remedy: "sudo ip link set NETDEV mtu N there, and allow it on the switches",
    },
    Aspect {
        name: "GID",
        heading: "GID",
        difference: State::Broken,
        value: |node| gid(device(node)?),
        why: "nodes reach each other with GIDs of one type and one address family",
        remedy: "`rocebench devices` there lists the GIDs; choose one with `rocebench serve -x`",
    },
    Aspect {
        name: "clock",
        heading: "kept clock",
        difference: State::Warning,
        value: |node| {
            let word =
                if node.examination.clock_is_kept? { "synchronised" } else { "not synchronised" };
            Some(word.to_owned())
        },
        why: "measurements begin at an agreed time, and an unsynchronised clock drifts",
        remedy: "sudo timedatectl set-ntp true",
    },
    Aspect {
        name: "PFC",
        heading: "PFC",
        difference: State::Broken,
        value: |node| Some(priorities(node.examination.lossless.pfc_priorities.as_ref()?)),
        why: "a node without PFC for a priority loses packets under an incast, even if all others have it",
        remedy: "sudo dcb pfc set dev NETDEV prio-pfc 3:on there (the others' priorities), and the same on its switch port",
    },
    Aspect {
        name: "pause frames",
        heading: "pause",
        difference: State::Broken,
        value: |node| switch(node.examination.lossless.pause_frames),
        why: "a port that ignores pause frames loses packets when others wait",
        remedy: "sudo ethtool -A NETDEV rx on tx on (or off, as at the others)",
    },
    Aspect {
        name: "ECN",
        heading: "ECN",
        difference: State::Broken,
        value: |node| Some(priorities(node.examination.lossless.ecn_priorities.as_ref()?)),
        why: "a sender that ignores congestion notifications takes bandwidth from those that obey",
        remedy: "set /sys/class/net/NETDEV/ecn/roce_np/enable/N and roce_rp/enable/N as at the others",
    },
    Aspect {
        name: "trust",
        heading: "trust",
        difference: State::Broken,
        value: |node| node.examination.lossless.trust.clone(),
        why: "packets with the same DSCP get another priority there, so PFC and ECN apply to other packets",
        remedy: "sudo dcb apptrust set dev NETDEV order dscp (mlnx_qos -i NETDEV --trust dscp)",
    },
    Aspect {
        name: "priorities of DSCPs",
        heading: "DSCP",
        difference: State::Broken,
        value: |node| {
            let table = node.examination.lossless.dscp_priorities.as_ref()?;
            let words: Vec<String> =
                table.iter().map(|(dscp, priority)| format!("{dscp}:{priority}")).collect();
            Some(if words.is_empty() { "default".to_owned() } else { words.join(" ") })
        },
        why: "packets with the same DSCP get another priority there, so PFC and ECN apply to other packets",
        remedy: "sudo dcb app replace dev NETDEV dscp-prio 26:3 there (the others' table)",
    },
    Aspect {
        name: "traffic class",
        heading: "tclass",
        difference: State::Broken,
        value: |node| Some(node.examination.lossless.traffic_class?.to_string()),
        why: "packets without --traffic-class get this one, and with it their priority",
        remedy: "set /sys/class/infiniband/DEVICE/tc/1/traffic_class as at the others, or give --traffic-class",
    },
    Aspect {
        name: "locked memory",
        heading: "memlock",
        difference: State::Warning,
        value: |node| {
            Some(match node.examination.locked_memory? {
                LockedMemory::Unlimited => "unlimited".to_owned(),
                LockedMemory::Bytes(bytes) => memory_text(bytes),
            })
        },
        why: "a node with a lower limit fails to create QPs and register memory when others succeed",
        remedy: "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit of `rocebench serve`",
    },
    Aspect {
        name: "number of cores",
        heading: "cores",
        difference: State::Warning,
        value: |node| Some(node.examination.usable_cores?.to_string()),
        why: "workers that share a core are slower",
        remedy: "give the process more cores (taskset, --cpus-per-task), or the same --cores to all nodes",
    },
    Aspect {
        name: "number of NUMA nodes",
        heading: "NUMA",
        difference: State::Warning,
        value: |node| Some(node.host.numa_nodes?.to_string()),
        why: "memory of another NUMA node is slower, so placement matters only at some nodes",
        remedy: "compare only nodes of one kind, or place workers with --cores",
    },
    Aspect {
        name: "CPU governor",
        heading: "governor",
        difference: State::Warning,
        value: |node| node.host.governor.clone(),
        why: "a core that clocks down adds latency",
        remedy: "sudo cpupower frequency-set -g performance",
    },
];

fn device(node: &Answer) -> Option<&Device> {
    node.examination.device.as_ref()
}

fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn gid(device: &Device) -> Option<String> {
    let gid = Gid::parse(device.gid.as_deref()?)?;
    Some(format!("{} {}", device.gid_type.as_deref()?, family(&gid)))
}

fn switch(is_on: Option<bool>) -> Option<String> {
    Some(if is_on? { "on" } else { "off" }.to_owned())
}

fn priorities(on: &[u8]) -> String {
    let words: Vec<String> = on.iter().map(u8::to_string).collect();
    match words.as_slice() {
        [] => "off".to_owned(),
        words => format!("on for {}", words.join(",")),
    }
}

/// Nodes that a sentence names; of more it says how many.
const NAMED: usize = 6;

/// A value, and the numbers of the nodes that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) value: String,
    pub(super) nodes: Vec<usize>,
}

/// A fact over all nodes.
pub(super) struct Spread {
    pub(super) aspect: &'static Aspect,
    /// Of each node; `None` where it is not known.
    pub(super) values: Vec<Option<String>>,
    /// The largest first, else the one with the first node.
    pub(super) groups: Vec<Group>,
}

impl Spread {
    /// Of the values of all nodes.
    pub(super) fn new(aspect: &'static Aspect, values: Vec<Option<String>>) -> Spread {
        let mut by_value: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, value) in values.iter().enumerate() {
            if let Some(value) = value {
                by_value.entry(value).or_default().push(number);
            }
        }
        let mut groups: Vec<Group> = by_value
            .into_iter()
            .map(|(value, nodes)| Group { value: value.to_owned(), nodes })
            .collect();
        groups.sort_by_key(|group| {
            (std::cmp::Reverse(group.nodes.len()), group.nodes.first().copied())
        });
        Spread { aspect, values, groups }
    }

    /// How many nodes it is known of.
    fn known(&self) -> usize {
        self.groups.iter().map(|group| group.nodes.len()).sum()
    }

    /// What all have of whom it is known.
    pub(super) fn common(&self) -> Option<&Group> {
        match self.groups.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether two nodes have two values.
    pub(super) fn differs(&self) -> bool {
        self.groups.len() > 1
    }

    /// What more than half of those have of whom it is known.
    pub(super) fn majority(&self) -> Option<&Group> {
        let first = self.groups.first()?;
        (2 * first.nodes.len() > self.known()).then_some(first)
    }

    /// Whether a node has another value than most; where there is no majority, all have.
    pub(super) fn is_odd(&self, node: usize) -> bool {
        let is_known = self.values.get(node).is_some_and(Option::is_some);
        self.differs()
            && is_known
            && !self.majority().is_some_and(|most| most.nodes.contains(&node))
    }

    /// The nodes with another value than most; all that are known where there is no majority.
    pub(super) fn odd(&self) -> Vec<usize> {
        (0..self.values.len()).filter(|it| self.is_odd(*it)).collect()
    }

    /// The difference in a sentence; `None` where there is none, or nodes may differ.
    pub(super) fn finding(&self, names: &[String]) -> Option<Finding> {
        let aspect = self.aspect;
        if !self.differs() || aspect.difference == State::Ok {
            return None;
        }
        let found = match self.majority() {
            Some(most) => {
                let mut parts: Vec<String> = self
                    .groups
                    .iter()
                    .filter(|group| *group != most)
                    .map(|group| format!("{} at {}", group.value, named(names, &group.nodes)))
                    .collect();
                parts.push(if self.known() < self.values.len() {
                    format!("{} at {} others", most.value, most.nodes.len())
                } else {
                    format!("{} at all others", most.value)
                });
                parts.join(", ")
            }
            None => {
                let groups: Vec<String> = self
                    .groups
                    .iter()
                    .map(|group| format!("{} at {}", group.value, named(names, &group.nodes)))
                    .collect();
                format!("the nodes are divided: {}", groups.join("; "))
            }
        };
        let remedy = Some(aspect.remedy.to_owned());
        Some(Check::new(aspect.name, aspect.why).finding(aspect.difference, found, remedy))
    }
}

/// `node01, node02 and node07`, or `node01, node02 … (9 nodes)`.
pub(super) fn named(names: &[String], nodes: &[usize]) -> String {
    let names: Vec<&str> =
        nodes.iter().filter_map(|node| names.get(*node).map(String::as_str)).collect();
    if names.len() <= NAMED {
        return listed(&names);
    }
    let first = names.iter().take(NAMED - 1).copied().collect::<Vec<_>>();
    format!("{} and {} more", first.join(", "), names.len() - first.len())
}

/// Clocks that are off, each with the numbers of the nodes: those far from the middle one of all nodes, and this
/// machine's where it is far from that.
pub(super) fn clock_findings(
    names: &[String],
    offsets: &[Option<ClockOffset>],
) -> Vec<(Vec<usize>, Finding)> {
    let mut known: Vec<i128> = offsets.iter().flatten().map(|it| it.offset_ns).collect();
    known.sort_unstable();
    let Some(&middle_ns) = known.get(known.len() / 2) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (number, offset) in offsets.iter().enumerate() {
        let Some(offset) = offset else { continue };
        let away_ns = offset.offset_ns - middle_ns;
        if is_far(away_ns, offset.uncertainty_ns) {
            let others = if known.len() == 2 { "the other's" } else { "most others'" };
            let found = format!(
                "{}'s clock is {} {others}, ±{}",
                named(names, &[number]),
                distance(away_ns),
                milliseconds(offset.uncertainty_ns as f64),
            );
            findings.push((vec![number], clock_finding(found)));
        }
    }
    let middle = offsets.iter().flatten().find(|offset| offset.offset_ns == middle_ns);
    if let Some(middle) = middle
        && is_far(middle_ns, middle.uncertainty_ns)
    {
        let found = format!("this machine's clock is {} the nodes'", distance(-middle_ns));
        findings.push((Vec::new(), clock_finding(found)));
    }
    findings
}

fn is_far(away_ns: i128, uncertainty_ns: u64) -> bool {
    away_ns.abs() - i128::from(uncertainty_ns) >= FAR_NS
}

/// How far a clock is from another, before whose it is: `1.5 s ahead of`.
fn distance(away_ns: i128) -> String {
    let side = if away_ns < 0 { "behind" } else { "ahead of" };
    format!("{} {side}", milliseconds(away_ns.unsigned_abs() as f64))
}

fn clock_finding(found: String) -> Finding {
    Check::new("clock", WHY_CLOCK).warning(found, "sudo timedatectl set-ntp true, at both")
}

#[cfg(test)]
mod tests {
    use super::*;

    static ASPECT: Aspect = Aspect {
        name: "interface MTU",
        heading: "netdev MTU",
        difference: State::Broken,
        value: |_| None,
        why: "packets are lost",
        remedy: "ip link set",
    };

    /// Of values where `-` is unknown, and nodes n0, n1 …
    fn spread(values: &str) -> (Spread, Vec<String>) {
        let values: Vec<Option<String>> = values
            .split_whitespace()
            .map(|value| (value != "-").then(|| value.to_owned()))
            .collect();
        let names = (0..values.len()).map(|it| format!("n{it}")).collect();
        (Spread::new(&ASPECT, values), names)
    }

    #[test]
    fn who_differs_from_most_is_named() {
        let eight = "1500 9000 9000 1500 9000 2000 9000 9000";
        let mixed = "1500 at n0 and n3, 2000 at n5, 9000 at all others";
        let one = "9000 9000 1500 9000";
        for (values, odd, sentence) in [
            (one, vec![2], "1500 at n2, 9000 at all others"),
            (eight, vec![0, 3, 5], mixed),
            ("9000 - 9000 1500", vec![3], "1500 at n3, 9000 at 2 others"),
        ] {
            let (spread, names) = spread(values);
            assert_eq!(spread.odd(), odd, "{values}");
            let finding = spread.finding(&names).unwrap();
            assert_eq!(finding.found, sentence);
            assert_eq!(finding.state, State::Broken);
        }
    }

    #[test]
    fn two_halves_are_told_as_such() {
        for (values, halves) in [
            ("1500 9000 9000 1500", "1500 at n0 and n3; 9000 at n1 and n2"),
            ("1 2", "1 at n0; 2 at n1"),
            ("1 2 3 1", "1 at n0 and n3; 2 at n1; 3 at n2"),
        ] {
            let (spread, names) = spread(values);
            let sentence = format!("the nodes are divided: {halves}");
            assert_eq!(spread.finding(&names).unwrap().found, sentence);
            assert_eq!(spread.odd().len(), names.len(), "{values}");
        }
    }

    #[test]
    fn what_is_unknown_does_not_differ() {
        for values in ["9000 - 9000 -", "- - -", "9000"] {
            let (spread, names) = spread(values);
            assert_eq!(spread.finding(&names), None, "{values}");
            assert!(spread.odd().is_empty(), "{values}");
        }
        assert_eq!(spread("9000 - 9000").0.common().unwrap().nodes, [0, 2]);
        assert_eq!(spread("- -").0.common(), None);
    }

    #[test]
    fn many_are_counted() {
        let names: Vec<String> = (0..20).map(|it| format!("n{it}")).collect();
        let numbers: Vec<usize> = (0..20).collect();
        assert_eq!(named(&names, &numbers), "n0, n1, n2, n3, n4 and 15 more");
        assert_eq!(named(&names, &numbers[..2]), "n0 and n1");
    }

    fn clock_sentences(offsets_s: &[f64]) -> Vec<String> {
        let names: Vec<String> = (0..offsets_s.len()).map(|it| format!("n{it}")).collect();
        let offsets: Vec<_> = offsets_s
            .iter()
            .map(|seconds| {
                (!seconds.is_nan()).then_some(ClockOffset {
                    offset_ns: (seconds * 1e9) as i128,
                    uncertainty_ns: 200_000,
                })
            })
            .collect();
        clock_findings(&names, &offsets).into_iter().map(|(_, finding)| finding.found).collect()
    }

    #[test]
    fn a_clock_far_from_most_is_named() {
        let sentence = "n2's clock is 3599.9 s ahead of most others', ±0.20 ms";
        assert_eq!(clock_sentences(&[0.1, -0.2, 3600.0, 0.0]), [sentence]);
        assert!(clock_sentences(&[0.4, -0.4, f64::NAN, 0.9]).is_empty());
        assert!(clock_sentences(&[]).is_empty());
    }

    #[test]
    fn this_machine_may_be_the_one_that_is_off() {
        let sentence = "this machine's clock is 5.0 s ahead of the nodes'";
        assert_eq!(clock_sentences(&[-5.0, -5.0, -5.0]), [sentence]);
    }
}
