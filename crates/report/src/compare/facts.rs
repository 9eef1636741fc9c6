//! On what a case was measured, as facts that must be the same on both sides. It must not know figures.

use super::options::Aspect;
use crate::results::model::{CaseConfig, Device, Host, ResultFile};

/// One fact: which, and what it is; `None` where the file does not tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) aspect: Aspect,
    pub(super) name: &'static str,
    pub(super) value: Option<String>,
}

/// A file's facts that are the same for all its cases.
pub(super) fn of_file(result: &ResultFile) -> Vec<Fact> {
    let mut facts = Vec::new();
    let ends = match &result.peer {
        None => "one machine",
        Some(_) => "two machines",
    };
    add(&mut facts, Aspect::Host, "both ends on", Some(ends));
    host(&mut facts, &result.host, &HERE);
    if let Some(peer) = &result.peer {
        host(&mut facts, peer, &THERE);
    }
    facts
}

/// A case's own facts.
pub(super) fn of_case(config: &CaseConfig) -> [Fact; 2] {
    let fact = |aspect, name, value: Option<String>| Fact {
        aspect,
        name,
        value,
    };
    [
        fact(
            Aspect::Mtu,
            "path MTU",
            config.path_mtu.map(|mtu| format!("{mtu} B")),
        ),
        fact(
            Aspect::Device,
            "device of the other end",
            config.peer_device.clone(),
        ),
    ]
}

/// What the facts of one end are called.
struct Names {
    hostname: &'static str,
    processor: &'static str,
    cores: &'static str,
    numa_nodes: &'static str,
    kernel: &'static str,
    system: &'static str,
    governor: &'static str,
    rdma_core: &'static str,
    device: &'static str,
    library: &'static str,
    software: &'static str,
    driver: &'static str,
    firmware: &'static str,
    link: &'static str,
    lanes: &'static str,
    link_layer: &'static str,
    gid_type: &'static str,
    pci_speed: &'static str,
    pci_lanes: &'static str,
    active_mtu: &'static str,
    netdev_mtu: &'static str,
    faults: &'static str,
}

macro_rules! names {
    ($whose:literal) => {
        Names {
            hostname: concat!($whose, "host name"),
            processor: concat!($whose, "processor"),
            cores: concat!($whose, "cores"),
            numa_nodes: concat!($whose, "NUMA nodes"),
            kernel: concat!($whose, "kernel"),
            system: concat!($whose, "system"),
            governor: concat!($whose, "frequency governor"),
            rdma_core: concat!($whose, "rdma-core"),
            device: concat!($whose, "device"),
            library: concat!($whose, "verbs library"),
            software: concat!($whose, "software device"),
            driver: concat!($whose, "driver"),
            firmware: concat!($whose, "firmware"),
            link: concat!($whose, "link speed"),
            lanes: concat!($whose, "link lanes"),
            link_layer: concat!($whose, "link layer"),
            gid_type: concat!($whose, "GID type"),
            pci_speed: concat!($whose, "PCI speed"),
            pci_lanes: concat!($whose, "PCI lanes"),
            active_mtu: concat!($whose, "port MTU"),
            netdev_mtu: concat!($whose, "interface MTU"),
            faults: concat!($whose, "faults on purpose"),
        }
    };
}

const HERE: Names = names!("");
const THERE: Names = names!("the peer's ");

fn add(
    facts: &mut Vec<Fact>,
    aspect: Aspect,
    name: &'static str,
    value: Option<impl std::fmt::Display>,
) {
    facts.push(Fact {
        aspect,
        name,
        value: value.map(|value| value.to_string()),
    });
}

fn host(facts: &mut Vec<Fact>, host: &Host, names: &Names) {
    add(facts, Aspect::Host, names.hostname, Some(&host.hostname));
    add(
        facts,
        Aspect::Host,
        names.processor,
        host.cpu_model.as_ref(),
    );
    add(facts, Aspect::Host, names.cores, Some(host.cores));
    add(facts, Aspect::Host, names.numa_nodes, host.numa_nodes);
    add(facts, Aspect::Host, names.kernel, Some(&host.kernel));
    add(facts, Aspect::Host, names.system, host.os.as_ref());
    add(facts, Aspect::Host, names.governor, host.governor.as_ref());
    add(
        facts,
        Aspect::Host,
        names.rdma_core,
        host.rdma_core.as_ref(),
    );
    let Some(device) = &host.device else {
        return add(facts, Aspect::Device, names.device, None::<String>);
    };
    self::device(facts, device, names);
}

fn device(facts: &mut Vec<Fact>, device: &Device, names: &Names) {
    let yes_or_no = if device.software { "yes" } else { "no" };
    let faults = device.faults.as_deref().unwrap_or("none");
    let gbit = |speed: f64| format!("{speed} Gb/s");
    let bytes = |mtu: u32| format!("{mtu} B");
    add(facts, Aspect::Device, names.device, Some(&device.name));
    add(facts, Aspect::Device, names.library, Some(&device.library));
    add(facts, Aspect::Device, names.software, Some(yes_or_no));
    add(facts, Aspect::Device, names.driver, device.driver.as_ref());
    add(
        facts,
        Aspect::Device,
        names.firmware,
        device.firmware.as_ref(),
    );
    add(
        facts,
        Aspect::Link,
        names.link,
        device.link_gbit_per_s.map(gbit),
    );
    add(facts, Aspect::Link, names.lanes, device.width_lanes);
    add(
        facts,
        Aspect::Link,
        names.link_layer,
        device.link_layer.as_ref(),
    );
    add(
        facts,
        Aspect::Link,
        names.gid_type,
        device.gid_type.as_ref(),
    );
    let transfers = device
        .pci_gtransfer_per_s
        .map(|speed| format!("{speed} GT/s"));
    add(facts, Aspect::Link, names.pci_speed, transfers);
    add(facts, Aspect::Link, names.pci_lanes, device.pci_width_lanes);
    add(
        facts,
        Aspect::Mtu,
        names.active_mtu,
        device.active_mtu_bytes.map(bytes),
    );
    add(
        facts,
        Aspect::Mtu,
        names.netdev_mtu,
        device.netdev_mtu_bytes.map(bytes),
    );
    add(facts, Aspect::Faults, names.faults, Some(faults));
}

/// The facts that are not the same in all of both sides' files, with what each side says.
pub(super) fn differences(base: &[&[Fact]], new: &[&[Fact]]) -> Vec<(Aspect, String)> {
    let mut order: Vec<(Aspect, &'static str)> = Vec::new();
    for fact in base.iter().chain(new).copied().flatten() {
        if !order.contains(&(fact.aspect, fact.name)) {
            order.push((fact.aspect, fact.name));
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

    fn result(kernel: &str, faults: Option<&str>) -> ResultFile {
        ResultFile {
            host: Host {
                hostname: "left".to_owned(),
                kernel: kernel.to_owned(),
                device: Some(Device {
                    faults: faults.map(str::to_owned),
                    ..Device::default()
                }),
                ..Host::default()
            },
            ..ResultFile::default()
        }
    }

    #[test]
    fn what_differs_is_named_with_both_sides() {
        let (base, new) = (
            of_file(&result("6.1", None)),
            of_file(&result("6.2", Some("drop=1%"))),
        );
        assert_eq!(differences(&[&base], &[&base]), []);
        assert_eq!(
            differences(&[&base], &[&new]),
            [
                (
                    Aspect::Host,
                    "kernel: 6.1 in the base, 6.2 in the new results".to_owned()
                ),
                (
                    Aspect::Faults,
                    "faults on purpose: none in the base, drop=1% in the new results".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_side_of_two_kinds_is_a_difference() {
        let (one, other) = (of_file(&result("6.1", None)), of_file(&result("6.2", None)));
        let found = differences(&[&one, &other], &[&one, &other]);
        assert_eq!(
            found[0].1,
            "kernel: 6.1 and 6.2 in the base, 6.1 and 6.2 in the new results"
        );
    }

    #[test]
    fn another_end_is_a_difference() {
        let alone = result("6.1", None);
        let mut two = alone.clone();
        two.peer = Some(Host::default());
        let found = differences(&[&of_file(&alone)], &[&of_file(&two)]);
        assert!(
            found[0].1.starts_with("both ends on: one machine"),
            "{found:?}"
        );
    }
}
