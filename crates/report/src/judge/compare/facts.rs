//! On what a case was measured, as facts that must be the same on both sides.

use std::fmt::Display;

use super::options::Aspect;
use crate::observe::format::each_once;
use results::model::{CaseConfig, Device, FORWARD, FlowConfig, Host, Node, ResultFile};

/// One fact: which, and what it is; `None` if the file does not have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    aspect: Aspect,
    name: String,
    value: Option<String>,
}

/// Facts of one subject, whose name stands before theirs.
fn of<const N: usize>(
    subject: &str,
    aspect: Aspect,
    facts: [(&str, Option<String>); N],
) -> Vec<Fact> {
    facts.map(|(name, value)| Fact { aspect, name: format!("{subject}{name}"), value }).into()
}

fn text(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

/// A file's facts that are the same for all its cases. The first node's have plain names; of a node on the same machine,
/// or with the same devices, they are not repeated.
pub(super) fn of_file(result: &ResultFile) -> Vec<Fact> {
    let Some((first, others)) = result.nodes.split_first() else {
        return Vec::new();
    };
    let machines = if others.iter().all(|node| node.host == first.host) {
        "one machine"
    } else {
        "several machines"
    };
    let nodes: Vec<&str> = result.nodes.iter().map(|node| &*node.name).collect();
    let hosts = [("all nodes on", text(machines)), ("nodes", text(nodes.join(", ")))];
    let mut facts = of("", Aspect::Host, hosts);
    facts.extend(host("", &first.host));
    facts.extend(devices("", first));
    for node in others {
        let subject = format!("the {}'s ", node.name);
        if node.host != first.host {
            facts.extend(host(&subject, &node.host));
        }
        let [own, known] = [node, first].map(|node| node.devices.iter().map(plain));
        if !own.eq(known) {
            facts.extend(devices(&subject, node));
        }
    }
    facts
}

/// The embedded device takes another address each time, which makes no other device.
fn plain(device: &Device) -> Device {
    Device { gid: None, ..device.clone() }
}

/// A case's own facts, flow by flow. Those of `forward` have plain names.
pub(super) fn of_case(config: &CaseConfig) -> impl Iterator<Item = Fact> + '_ {
    config.flows.iter().flat_map(|flow: &FlowConfig| {
        let subject = match &*flow.name {
            FORWARD => String::new(),
            name => format!("flow {name}: "),
        };
        let devices = [
            ("device", flow.from_device.clone()),
            ("device of the other end", flow.to_device.clone()),
        ];
        let mtu = [("path MTU", flow.path_mtu.map(|mtu| format!("{mtu} B")))];
        [of(&subject, Aspect::Mtu, mtu), of(&subject, Aspect::Device, devices)].concat()
    })
}

fn host(subject: &str, host: &Host) -> Vec<Fact> {
    let facts = [
        ("host name", text(&host.hostname)),
        ("processor", host.cpu_model.clone()),
        ("cores", text(host.cores)),
        ("NUMA nodes", host.numa_nodes.and_then(text)),
        ("kernel", text(&host.kernel)),
        ("system", host.os.clone()),
        ("frequency governor", host.governor.clone()),
        ("rdma-core", host.rdma_core.clone()),
    ];
    of(subject, Aspect::Host, facts)
}

fn devices(subject: &str, node: &Node) -> Vec<Fact> {
    match &node.devices[..] {
        [] => of(subject, Aspect::Device, [("device", None)]),
        [only] => device(subject, only),
        many => {
            (many.iter()).flat_map(|one| device(&format!("{subject}{}: ", one.name), one)).collect()
        }
    }
}

fn device(subject: &str, device: &Device) -> Vec<Fact> {
    let [active_mtu, netdev_mtu] = [device.active_mtu_bytes, device.netdev_mtu_bytes]
        .map(|mtu: Option<u32>| mtu.map(|mtu| format!("{mtu} B")));
    let link_speed = device.link_gbit_per_s.map(|it| format!("{it} Gb/s"));
    let pci_speed = device.pci_gtransfer_per_s.map(|it| format!("{it} GT/s"));
    let own = [
        ("device", text(&device.name)),
        ("verbs library", text(&device.library)),
        ("software device", text(if device.software { "yes" } else { "no" })),
        ("driver", device.driver.clone()),
        ("firmware", device.firmware.clone()),
    ];
    let link = [
        ("link speed", link_speed),
        ("link lanes", device.width_lanes.and_then(text)),
        ("link layer", device.link_layer.clone()),
        ("GID type", device.gid_type.clone()),
        ("PCI speed", pci_speed),
        ("PCI lanes", device.pci_width_lanes.and_then(text)),
    ];
    let mtu = [("port MTU", active_mtu), ("interface MTU", netdev_mtu)];
    let faults = device.faults.as_deref().unwrap_or("none");
    let faults = [("faults on purpose", text(faults))];
    [
        of(subject, Aspect::Device, own),
        of(subject, Aspect::Link, link),
        of(subject, Aspect::Mtu, mtu),
        of(subject, Aspect::Faults, faults),
    ]
    .concat()
}

/// `kernel: 6.1 in the base, 6.2 in the new results`.
pub(super) fn differ(name: &str, base: impl Display, new: impl Display) -> String {
    format!("{name}: {base} in the base, {new} in the new results")
}

/// The facts that are not the same in all of both sides' files, with what each side says.
pub(super) fn differences(base: &[Vec<Fact>], new: &[Vec<Fact>]) -> Vec<(Aspect, String)> {
    let names = each_once(base.iter().chain(new).flatten().map(|fact| (fact.aspect, &*fact.name)));
    names
        .into_iter()
        .filter_map(|(aspect, name)| {
            let [base, new] = [base, new].map(|side| values(side, name));
            let is_same = base == new && base.len() == 1;
            (!is_same).then(|| (aspect, differ(name, base.join(" and "), new.join(" and "))))
        })
        .collect()
}

/// What a side's files say of a fact, each answer once, in a fixed order.
fn values<'a>(files: &'a [Vec<Fact>], name: &str) -> Vec<&'a str> {
    let values: std::collections::BTreeSet<&str> = files
        .iter()
        .map(|facts| {
            let fact = facts.iter().find(|fact| fact.name == name);
            fact.and_then(|fact| fact.value.as_deref()).unwrap_or("not known")
        })
        .collect();
    values.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::node;

    fn result(kernel: &str, faults: Option<&str>) -> ResultFile {
        let device = Device { faults: faults.map(str::to_owned), ..Device::default() };
        let mut node = node("client", "left", vec![device]);
        node.host.kernel = kernel.to_owned();
        ResultFile { nodes: vec![node], ..ResultFile::default() }
    }

    #[test]
    fn what_differs_is_named_with_both_sides() {
        let base = [of_file(&result("6.1", None))];
        let new = [of_file(&result("6.2", Some("drop=1%")))];
        assert_eq!(differences(&base, &base), []);
        let kernel = "kernel: 6.1 in the base, 6.2 in the new results".to_owned();
        let faults = "faults on purpose: none in the base, drop=1% in the new results".to_owned();
        let wanted = [(Aspect::Host, kernel), (Aspect::Faults, faults)];
        assert_eq!(differences(&base, &new), wanted);
    }

    #[test]
    fn a_side_of_two_kinds_is_a_difference() {
        let both = ["6.1", "6.2"].map(|kernel| of_file(&result(kernel, None)));
        let found = differences(&both, &both);
        let words = "kernel: 6.1 and 6.2 in the base, 6.1 and 6.2 in the new results";
        assert_eq!(found[0].1, words);
    }

    #[test]
    fn another_machine_is_a_difference_and_another_node_on_one_is_told_once() {
        let with_server = |kernel: &str, others: &str| {
            let mut result = result(kernel, None);
            let mut server = result.nodes[0].clone();
            (server.name, server.host.kernel) = ("server".to_owned(), others.to_owned());
            result.nodes.push(server);
            [of_file(&result)]
        };
        let one = with_server("6.1", "6.1");
        let other = with_server("6.2", "6.2");
        // The kernel of both.
        assert_eq!(differences(&one, &other).len(), 1);
        let apart = with_server("6.1", "6.3");
        let found = differences(&one, &apart);
        let words = "all nodes on: one machine in the base, several machines in the new results";
        assert_eq!(found[0].1, words);
        let kernel = "the server's kernel: not known in the base, 6.3 in the new results";
        assert!(found.iter().any(|(_, text)| text == kernel), "{found:?}");
    }
}
