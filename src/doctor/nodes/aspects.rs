//! What is compared between nodes: a row for each fact, in the order in which they are told.

use crate::doctor::entries::family;
use machine::host::memory_text;
use protocol::examination::LockedMemory;
use protocol::finding::State;
use results::model::Device;
use verbs::Gid;

use super::asked::Answer;

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
        on => format!("on for {}", on.join(",")),
    }
}
