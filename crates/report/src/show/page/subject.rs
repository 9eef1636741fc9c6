//! What was measured on what: the machines, their devices, when, with which program.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use maud::{Markup, html};
use settings::listed;

use super::tables;
use crate::observe::format::plural;
use crate::observe::standing::{self, LeftOut};
use crate::results::load::Loaded;
use crate::results::model::{CaseConfig, Device, Host, Node, ResultFile};
use crate::show::plot::figure::{Cell, Column, Table};
use crate::text;

/// So many are told one by one.
const SHOWN: usize = 4;

/// Results of the same nodes on the same machines with the same devices.
struct Setup<'a> {
    nodes: &'a [Node],
    results: Vec<&'a Loaded>,
}

/// A line for the page's title: `4 cases in 5 files on soft0`.
pub fn title(results: &[Loaded]) -> String {
    let mut cases: HashMap<&str, Vec<&CaseConfig>> = HashMap::new();
    for case in results.iter().flat_map(|loaded| &loaded.result.cases) {
        let known = cases.entry(&case.id).or_default();
        if !known.contains(&&case.config) {
            known.push(&case.config);
        }
    }
    let cases = cases.values().map(Vec::len).sum();
    let mut title = format!("{cases} {}", plural(cases, "case"));
    if results.len() > 1 {
        title += &format!(" in {} files", results.len());
    }
    let devices = results.iter().filter_map(|loaded| device(&loaded.result));
    let faulty = |device: &Device| {
        if device.faults.is_some() {
            " with faults"
        } else {
            ""
        }
    };
    let devices: BTreeSet<String> = devices
        .map(|device| format!("{}{}", device.name, faulty(device)))
        .collect();
    let devices: Vec<String> = devices.into_iter().collect();
    if !devices.is_empty() {
        title += &match devices.len() {
            1 | 2 => format!(" on {}", listed(&devices)),
            many => format!(" on {many} devices"),
        };
    }
    match results.iter().map(|loaded| loaded.result.nodes.len()).max() {
        Some(nodes) if nodes > 2 => format!("{title}, {nodes} nodes"),
        _ => title,
    }
}

/// The devices without hardware; empty where all are adapters.
pub fn software_devices(results: &[Loaded]) -> BTreeSet<&str> {
    let nodes = results.iter().flat_map(|loaded| &loaded.result.nodes);
    let devices = nodes
        .flat_map(|node| &node.devices)
        .filter(|device| device.software);
    devices.map(|device| &*device.name).collect()
}

/// The machines, and a table of the result files.
pub fn subject(results: &[Loaded]) -> Markup {
    let setups = setups(results);
    let (shown, folded) = setups.split_at(setups.len().min(SHOWN));
    html! {
        @for setup in shown { (setup_facts(setup)) }
        @if !folded.is_empty() {
            details {
                summary { (folded.len()) " more set-ups" }
                @for setup in folded { (setup_facts(setup)) }
            }
        }
        (tables::folded("files", "Result files", &files(results)))
    }
}

fn setups(results: &[Loaded]) -> Vec<Setup<'_>> {
    let mut setups: Vec<Setup<'_>> = Vec::new();
    for loaded in results {
        let nodes = &loaded.result.nodes[..];
        match setups.iter_mut().find(|setup| same(setup.nodes, nodes)) {
            Some(setup) => setup.results.push(loaded),
            None => setups.push(Setup {
                nodes,
                results: vec![loaded],
            }),
        }
    }
    setups
}

/// The first node's first device.
fn device(result: &ResultFile) -> Option<&Device> {
    result.nodes.first()?.devices.first()
}

/// The embedded device takes another address each time, which makes no other set-up.
fn same(one: &[Node], other: &[Node]) -> bool {
    let plain = |nodes: &[Node]| {
        let mut nodes = nodes.to_vec();
        let devices = nodes.iter_mut().flat_map(|node| &mut node.devices);
        devices.for_each(|device| device.gid = None);
        nodes
    };
    plain(one) == plain(other)
}

fn setup_facts(setup: &Setup<'_>) -> Markup {
    let times: BTreeSet<&str> = (setup.results.iter())
        .map(|loaded| loaded.result.started_at.as_str())
        .collect();
    let ends = times.first().into_iter().chain(times.last());
    let mut when: Vec<String> = ends.map(|time| minute(time)).collect();
    when.dedup();
    let mut programs: Vec<String> = setup.results.iter().map(|loaded| program(loaded)).collect();
    programs.dedup();
    html! {
        dl {
            @for (facts, names) in alike(setup.nodes) {
                dt { (first_and_last(&names)) } dd { (facts) }
            }
            dt { "When" } dd { (when.join(" to ")) }
            dt { "Program" } dd { (first_and_last(&programs)) }
            @if let [only] = setup.results.as_slice() {
                dt { "Command" } dd { code { (only.result.command_line.join(" ")) } }
            }
        }
    }
}

/// Nodes with the same facts but for their names, those of the first first.
fn alike(nodes: &[Node]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for node in nodes {
        let mut facts = host(&node.host);
        for device in &node.devices {
            let _ = write!(facts, "; {}", device_in_full(device));
            if let Some(faults) = &device.faults {
                let _ = write!(facts, ", with faults on purpose: {faults}");
            }
        }
        let name = match node.host.hostname.as_str() {
            host if host.is_empty() || host == node.name => node.name.clone(),
            host => format!("{} ({host})", node.name),
        };
        match groups.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, names)) => names.push(name),
            None => groups.push((facts, vec![name])),
        }
    }
    groups
}

/// All names of a few, the first and the last of many.
fn first_and_last(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > SHOWN => {
            format!("{first} to {last} ({} of them)", names.len())
        }
        few => few.join(", "),
    }
}

fn host(host: &Host) -> String {
    let mut facts = format!("{} cores", host.cores);
    if let Some(cpu) = &host.cpu_model {
        let _ = write!(facts, " of {cpu}");
    }
    if let Some(os) = &host.os {
        let _ = write!(facts, ", {os}");
    }
    let _ = write!(facts, ", kernel {}", host.kernel);
    if let Some(governor) = &host.governor {
        let _ = write!(facts, ", governor {governor}");
    }
    facts
}

/// Name, and in words when there is no hardware.
fn device_in_short(device: &Device) -> String {
    let mut text = device.name.clone();
    if device.software {
        text.push_str(match device.library.as_str() {
            "embedded" => " (embedded software device)",
            _ => " (software device)",
        });
    }
    if device.faults.is_some() {
        text.push_str(" with faults");
    }
    text
}

fn device_in_full(device: &Device) -> String {
    let mut text = device.name.clone();
    if device.software {
        text.push_str(", software: not a network adapter");
    }
    if let Some(driver) = &device.driver {
        let _ = write!(text, ", driver {driver}");
    }
    if let Some(firmware) = &device.firmware {
        let _ = write!(text, ", firmware {firmware}");
    }
    match device.link_gbit_per_s {
        Some(speed) if !device.software => {
            let _ = write!(text, ", link of {speed} Gb/s");
        }
        _ => {}
    }
    if let Some(mtu) = device.active_mtu_bytes {
        let _ = write!(text, ", MTU {mtu}");
    }
    if let Some(gid_type) = &device.gid_type {
        let _ = write!(text, ", {gid_type}");
    }
    text
}

fn program(loaded: &Loaded) -> String {
    let tool = &loaded.result.tool;
    match &tool.git {
        Some(git) => format!("{} {} ({git})", tool.name, tool.version),
        None => format!("{} {}", tool.name, tool.version),
    }
}

/// `2026-11-20 12:00 UTC` of `2026-11-20T12:00:01.25Z`; what is not such a time stays as it is.
fn minute(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..16)) {
        (Some(day), Some("T"), Some(minute)) => format!("{day} {minute} UTC"),
        _ => time.to_owned(),
    }
}

fn hostname(result: &ResultFile) -> String {
    let first = result.nodes.first();
    first.map_or_else(String::new, |node| node.host.hostname.clone())
}

fn files(results: &[Loaded]) -> Table {
    let column = |name: &str, numeric| Column {
        name: name.to_owned(),
        numeric,
    };
    let count = |count: usize| Cell::Number(count as f64, 0);
    Table {
        caption: "Result files".to_owned(),
        columns: vec![
            column("No", true),
            column("file", false),
            column("began", false),
            column("host", false),
            column("device", false),
            column("program", false),
            column("cases", true),
            column("runs", true),
            column("that do not count", true),
        ],
        rows: results
            .iter()
            .enumerate()
            .map(|(index, loaded)| {
                let result = &loaded.result;
                let runs = || result.cases.iter().flat_map(|case| &case.runs);
                let device = device(result);
                vec![
                    count(index + 1),
                    Cell::Text(text::path(&loaded.path)),
                    Cell::Text(minute(&result.started_at)),
                    Cell::Text(hostname(result)),
                    device.map_or(Cell::Missing, |device| Cell::Text(device_in_short(device))),
                    Cell::Text(program(loaded)),
                    count(result.cases.len()),
                    count(runs().count()),
                    count(LeftOut::of(runs().map(standing::of_run)).count()),
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{self, has};

    fn loaded(device: &str, software: bool, gid: &str) -> Loaded {
        let device = Device {
            name: device.to_owned(),
            library: "embedded".to_owned(),
            software,
            gid: Some(gid.to_owned()),
            ..Device::default()
        };
        sample::loaded(ResultFile {
            started_at: "2026-11-20T12:00:01.5Z".to_owned(),
            nodes: vec![sample::node("client", "left", vec![device])],
            ..sample::cases(vec![Default::default()])
        })
    }

    #[test]
    fn software_is_marked_in_words() {
        let results = [loaded("soft0", true, "::1"), loaded("mlx5_0", false, "::2")];
        let words = "1 case in 2 files on mlx5_0 and soft0";
        assert_eq!(title(&results), words);
        assert!(software_devices(&results).iter().eq(&["soft0"]));
        let html = subject(&results[..1]).into_string();
        let words = ["software: not a network adapter", "2026-11-20 12:00 UTC"];
        has(html, words);
    }

    #[test]
    fn many_nodes_that_are_alike_are_told_once() {
        let mut result = sample::mesh::Mesh::of(16).ring();
        result.nodes[4].devices[0].firmware = Some("1.2".to_owned());
        let results = [sample::loaded(result)];
        assert_eq!(title(&results), "1 case on mlx5_0, 16 nodes");
        let html = subject(&results).into_string();
        has(&html, ["<dt>node1 to node16 (15 of them)</dt><dd>16 cores"]);
        has(&html, ["<dt>node5</dt><dd>16 cores", "firmware 1.2"]);
    }

    #[test]
    fn another_address_of_the_embedded_device_is_no_other_set_up() {
        let results = [("soft0", "::1"), ("soft0", "::2"), ("soft1", "::2")];
        let results = results.map(|(device, gid)| loaded(device, true, gid));
        let setups = setups(&results);
        assert!(setups.iter().map(|setup| setup.results.len()).eq([2, 1]));
    }
}
