//! On what a case was measured, as facts that must be the same on both sides. It must not know figures.

use std::fmt::Display;

use super::options::Aspect;
use crate::results::model::{CaseConfig, Device, FORWARD, FlowConfig, Host, Node, ResultFile};

/// One fact: which, and what it is; `None` where the file does not tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) aspect: Aspect,
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// Facts of one subject, whose name stands before theirs.
struct Facts<'a> {
    of: &'a str,
    facts: Vec<Fact>,
}

impl Facts<'_> {
    fn add(&mut self, aspect: Aspect, name: &str, value: Option<impl Display>) {
        self.facts.push(Fact {
            aspect,
            name: format!("{}{name}", self.of),
            value: value.map(|value| value.to_string()),
        });
    }
}

/// A file's facts that are the same for all its cases. The first node's have plain names; of a node on the same machine,
/// or with the same devices, they are not told again.
pub(super) fn of_file(result: &ResultFile) -> Vec<Fact> {
    let Some((first, others)) = result.nodes.split_first() else {
        return Vec::new();
    };
    let mut all = Facts {
        of: "",
        facts: Vec::new(),
    };
    let machines = match others.iter().all(|node| node.host == first.host) {
        true => "one machine",
        false => "several machines",
    };
    all.add(Aspect::Host, "all nodes on", Some(machines));
    let nodes = result.nodes.iter().map(|node| &*node.name);
    all.add(
        Aspect::Host,
        "nodes",
        Some(nodes.collect::<Vec<_>>().join(", ")),
    );
    host(&mut all, &first.host);
    devices(&mut all, first);
    let mut facts = all.facts;
    for node in others {
        let of = format!("the {}'s ", node.name);
        let mut all = Facts {
            of: &of,
            facts: Vec::new(),
        };
        if node.host != first.host {
            host(&mut all, &node.host);
        }
        if !node
            .devices
            .iter()
            .map(plain)
            .eq(first.devices.iter().map(plain))
        {
            devices(&mut all, node);
        }
        facts.extend(all.facts);
    }
    facts
}

/// The embedded device takes another address each time, which makes no other device.
fn plain(device: &Device) -> Device {
    Device {
        gid: None,
        ..device.clone()
    }
}

/// A case's own facts, flow by flow. Those of `forward` have plain names.
pub(super) fn of_case(config: &CaseConfig) -> Vec<Fact> {
    let of_flow = |flow: &FlowConfig| {
        let of = match &*flow.name {
            FORWARD => String::new(),
            name => format!("flow {name}: "),
        };
        let mut all = Facts {
            of: &of,
            facts: Vec::new(),
        };
        all.add(
            Aspect::Mtu,
            "path MTU",
            flow.path_mtu.map(|mtu| format!("{mtu} B")),
        );
        all.add(Aspect::Device, "device", flow.from_device.as_ref());
        all.add(
            Aspect::Device,
            "device of the other end",
            flow.to_device.as_ref(),
        );
        all.facts
    };
    config.flows.iter().flat_map(of_flow).collect()
}

fn host(facts: &mut Facts<'_>, host: &Host) {
    const OF: Aspect = Aspect::Host;
    facts.add(OF, "host name", Some(&host.hostname));
    facts.add(OF, "processor", host.cpu_model.as_ref());
    facts.add(OF, "cores", Some(host.cores));
    facts.add(OF, "NUMA nodes", host.numa_nodes);
    facts.add(OF, "kernel", Some(&host.kernel));
    facts.add(OF, "system", host.os.as_ref());
    facts.add(OF, "frequency governor", host.governor.as_ref());
    facts.add(OF, "rdma-core", host.rdma_core.as_ref());
}

fn devices(facts: &mut Facts<'_>, node: &Node) {
    match &node.devices[..] {
        [] => facts.add(Aspect::Device, "device", None::<String>),
        [only] => device(facts, only),
        many => {
            for one in many {
                let of = format!("{}{}: ", facts.of, one.name);
                let mut all = Facts {
                    of: &of,
                    facts: Vec::new(),
                };
                device(&mut all, one);
                facts.facts.extend(all.facts);
            }
        }
    }
}

fn device(facts: &mut Facts<'_>, device: &Device) {
    let yes_or_no = if device.software { "yes" } else { "no" };
    let faults = device.faults.as_deref().unwrap_or("none");
    let gbit = |speed: f64| format!("{speed} Gb/s");
    let bytes = |mtu: u32| format!("{mtu} B");
    let link_speed = device.link_gbit_per_s.map(gbit);
    let pci_speed = device.pci_gtransfer_per_s;
    let pci_speed = pci_speed.map(|speed| format!("{speed} GT/s"));
    facts.add(Aspect::Device, "device", Some(&device.name));
    facts.add(Aspect::Device, "verbs library", Some(&device.library));
    facts.add(Aspect::Device, "software device", Some(yes_or_no));
    facts.add(Aspect::Device, "driver", device.driver.as_ref());
    facts.add(Aspect::Device, "firmware", device.firmware.as_ref());
    facts.add(Aspect::Link, "link speed", link_speed);
    facts.add(Aspect::Link, "link lanes", device.width_lanes);
    facts.add(Aspect::Link, "link layer", device.link_layer.as_ref());
    facts.add(Aspect::Link, "GID type", device.gid_type.as_ref());
    facts.add(Aspect::Link, "PCI speed", pci_speed);
    facts.add(Aspect::Link, "PCI lanes", device.pci_width_lanes);
    facts.add(Aspect::Mtu, "port MTU", device.active_mtu_bytes.map(bytes));
    facts.add(
        Aspect::Mtu,
        "interface MTU",
        device.netdev_mtu_bytes.map(bytes),
    );
    facts.add(Aspect::Faults, "faults on purpose", Some(faults));
}

/// The facts that are not the same in all of both sides' files, with what each side says.
pub(super) fn differences(base: &[&[Fact]], new: &[&[Fact]]) -> Vec<(Aspect, String)> {
    let mut order: Vec<(Aspect, &str)> = Vec::new();
    for fact in base.iter().chain(new).copied().flatten() {
        if !order.contains(&(fact.aspect, &*fact.name)) {
            order.push((fact.aspect, &fact.name));
        }
    }
    order
        .into_iter()
        .filter_map(|(aspect, name)| {
            let (base, new) = (values(base, name), values(new, name));
            let same = base == new && base.len() == 1;
            (!same).then(|| {
                let text = format!(
                    "{name}: {} in the base, {} in the new results",
                    base.join(" and "),
                    new.join(" and ")
                );
                (aspect, text)
            })
        })
        .collect()
}

/// What a side's files say of a fact, each answer once, in a fixed order.
fn values<'a>(files: &[&'a [Fact]], name: &str) -> Vec<&'a str> {
    let mut values: Vec<&str> = files
        .iter()
        .map(|facts| {
            facts
                .iter()
                .find(|fact| fact.name == name)
                .and_then(|fact| fact.value.as_deref())
                .unwrap_or("not known")
        })
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::node;

    fn result(kernel: &str, faults: Option<&str>) -> ResultFile {
        let device = Device {
            faults: faults.map(str::to_owned),
            ..Device::default()
        };
        let mut node = node("client", "left", vec![device]);
        node.host.kernel = kernel.to_owned();
        ResultFile {
            nodes: vec![node],
            ..ResultFile::default()
        }
    }

    #[test]
    fn what_differs_is_named_with_both_sides() {
        let base = of_file(&result("6.1", None));
        let new = of_file(&result("6.2", Some("drop=1%")));
        assert_eq!(differences(&[&base], &[&base]), []);
        let kernel = "kernel: 6.1 in the base, 6.2 in the new results".to_owned();
        let faults = "faults on purpose: none in the base, drop=1% in the new results".to_owned();
        let wanted = [(Aspect::Host, kernel), (Aspect::Faults, faults)];
        assert_eq!(differences(&[&base], &[&new]), wanted);
    }

    #[test]
    fn a_side_of_two_kinds_is_a_difference() {
        let (one, other) = (of_file(&result("6.1", None)), of_file(&result("6.2", None)));
        let found = differences(&[&one, &other], &[&one, &other]);
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
            of_file(&result)
        };
        let one = with_server("6.1", "6.1");
        let other = with_server("6.2", "6.2");
        // The kernel of both.
        assert_eq!(differences(&[&one], &[&other]).len(), 1);
        let apart = with_server("6.1", "6.3");
        let found = differences(&[&one], &[&apart]);
        let words = "all nodes on: one machine in the base, several machines in the new results";
        assert_eq!(found[0].1, words);
        let kernel = "the server's kernel: not known in the base, 6.3 in the new results";
        assert!(found.iter().any(|(_, text)| text == kernel), "{found:?}");
    }
}
