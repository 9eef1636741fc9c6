//! What was measured on what: the machines, their devices, when, with which program.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use settings::listed;

use super::tables;
use crate::observe::format::counted;
use crate::observe::standing::{self, LeftOut};
use crate::show::plot::figure::{Cell, Table};
use crate::show::plot::rows::settings::{device_words, minute};
use results::load::Loaded;
use results::model::{CaseConfig, Device, Host, Node, ResultFile};
use results::text;

/// Most names that are listed one by one.
const SHOWN: usize = 4;

/// How many cases there are: the same in several files is one.
pub fn cases(results: &[Loaded]) -> usize {
    let mut cases: HashMap<&str, Vec<&CaseConfig>> = HashMap::new();
    for case in results.iter().flat_map(|loaded| &loaded.result.cases) {
        let known = cases.entry(&case.id).or_default();
        if !known.contains(&&case.config) {
            known.push(&case.config);
        }
    }
    cases.values().map(Vec::len).sum()
}

/// A line for the page's title: `4 cases in 5 files on soft0`.
pub fn title(results: &[Loaded]) -> String {
    let cases = cases(results);
    let mut title = counted(cases, "case");
    if results.len() > 1 {
        title += &format!(" in {} files", results.len());
    }
    let devices: BTreeSet<String> = results
        .iter()
        .filter_map(|loaded| device(&loaded.result))
        .map(|device| match device.faults {
            Some(_) => format!("{} with faults", device.name),
            None => device.name.clone(),
        })
        .collect();
    title += &match devices.len() {
        0 => String::new(),
        1 | 2 => format!(" on {}", listed(&devices.into_iter().collect::<Vec<_>>())),
        many => format!(" on {many} devices"),
    };
    match results.iter().map(|loaded| loaded.result.nodes.len()).max() {
        Some(nodes) if nodes > 2 => format!("{title}, {nodes} nodes"),
        _ => title,
    }
}

/// The devices without hardware; empty where all are adapters.
pub fn software_devices(results: &[Loaded]) -> BTreeSet<&str> {
    results
        .iter()
        .flat_map(|loaded| &loaded.result.nodes)
        .flat_map(|node| &node.devices)
        .filter(|device| device.software)
        .map(|device| &*device.name)
        .collect()
}

/// The nodes, and a table of the result files.
pub fn subject(results: &[Loaded]) -> Markup {
    html! {
        dl {
            @for (facts, names) in alike(results) {
                dt { (first_and_last(&names)) } dd { (facts) }
            }
            @if let [only] = results {
                dt { "Command" } dd { code { (only.result.command_line.join(" ")) } }
            }
        }
        (tables::folded("files", "Result files", &files(results)))
    }
}

fn device(result: &ResultFile) -> Option<&Device> {
    result.nodes.first()?.devices.first()
}

/// Nodes with the same facts but for their names, those of the first first.
fn alike(results: &[Loaded]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for node in results.iter().flat_map(|loaded| &loaded.result.nodes) {
        let (facts, name) = (facts(node), name(node));
        match groups.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => groups.push((facts, vec![name])),
        }
    }
    groups
}

fn name(node: &Node) -> String {
    match node.host.hostname.as_str() {
        host if host.is_empty() || host == node.name => node.name.clone(),
        host => format!("{} ({host})", node.name),
    }
}

fn first_and_last(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > SHOWN => {
            format!("{first} to {last} ({} of them)", names.len())
        }
        few => few.join(", "),
    }
}

/// What is known of those things, with what stands before it.
fn known<const N: usize>(facts: [(&str, &Option<String>); N]) -> String {
    facts
        .into_iter()
        .filter_map(|(what, fact)| Some((what, fact.as_ref()?)))
        .map(|(what, fact)| format!("{what}{fact}"))
        .collect()
}

fn facts(node: &Node) -> String {
    let Host { cpu_model, os, kernel, governor, cores, .. } = &node.host;
    let host = known([(" of ", cpu_model), (", ", os)]);
    let governor = known([(", governor ", governor)]);
    let devices: String = node.devices.iter().map(device_facts).collect();
    format!("{cores} cores{host}, kernel {kernel}{governor}{devices}")
}

fn device_facts(device: &Device) -> String {
    let what = if device.software { ", software: not a network adapter" } else { "" };
    let speed = device.link_gbit_per_s.filter(|_| !device.software);
    let link = speed.map(|speed| format!("link of {speed} Gb/s"));
    let mtu = device.active_mtu_bytes.map(|mtu| format!("MTU {mtu}"));
    let facts = known([
        (", driver ", &device.driver),
        (", firmware ", &device.firmware),
        (", ", &link),
        (", ", &mtu),
        (", ", &device.gid_type),
        (", with faults on purpose: ", &device.faults),
    ]);
    format!("; {}{what}{facts}", device.name)
}

fn files(results: &[Loaded]) -> Table {
    let names = "No,file,began (UTC),host,device,program,cases,runs,that do not count";
    let rows = results.iter().enumerate().map(|(index, loaded)| {
        let result = &loaded.result;
        let runs = result.cases.iter().flat_map(|case| &case.runs);
        let left_out = LeftOut::new(runs.map(standing::of_run));
        let tool = &result.tool;
        let git = tool.git.as_ref().map(|git| format!(" ({git})"));
        let host = result.nodes.first().map(|node| node.host.hostname.clone());
        vec![
            Cell::Number((index + 1) as f64, 0),
            Cell::Text(text::path(&loaded.path)),
            Cell::Text(minute(&result.started_at)),
            Cell::Text(host.unwrap_or_default()),
            device(result).map_or(Cell::Missing, |device| Cell::Text(device_words(device))),
            Cell::Text(format!("{} {}{}", tool.name, tool.version, git.unwrap_or_default())),
            Cell::Number(result.cases.len() as f64, 0),
            Cell::Number(left_out.runs as f64, 0),
            Cell::Number(left_out.count() as f64, 0),
        ]
    });
    Table::new("Result files", names.split(','), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::{self, has};

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
        let words = ["software: not a network adapter", "2026-11-20 12:00"];
        has(html, words);
    }

    #[test]
    fn many_nodes_that_are_alike_are_told_once() {
        let mut result = sample::mesh::Mesh::new(16).ring();
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
        let names = alike(&results).into_iter().map(|(_, names)| names.len());
        assert!(names.eq([1, 1]));
    }
}
