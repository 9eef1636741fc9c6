//! What the page begins with: tiles, then what was measured on what: the machines, their devices, when, with which
//! program.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use results::{
    load::Loaded,
    model::{CaseConfig, CaseResult, Device, Host, LoadVerdict, Node, ResultFile},
    text::{self, unbroken},
};
use settings::{Pattern, Settings, listed, telling_apart};

use crate::observe::{
    Metric, Observed,
    format::{each_once, some_of},
    standing::{self, LeftOut},
};
use crate::show::page::{Page, tables};
use crate::show::plot::{
    figure::{Cell, Table},
    rows::{device_words, minute},
};

pub(super) struct Tile {
    label: String,
    value: String,
    /// Of what it is, or what to do.
    about: String,
}

impl Tile {
    fn new(label: impl Into<String>, value: String, about: impl Into<String>) -> Tile {
        Tile { label: label.into(), value, about: about.into() }
    }

    pub(super) fn sentence(&self) -> String {
        format!("{}: {} ({}).", self.label, self.value, self.about)
    }
}

/// A label, flows of which it is, and by which metric.
type Extreme = (&'static str, fn(&Observed<'_>) -> bool, Metric);

const FASTEST: [Extreme; 3] = [
    ("Fastest", is_full_speed, Metric::GbitPerS),
    ("Highest load kept", is_kept, Metric::AchievedPerS),
    ("Fastest set-up", |_| true, Metric::ConnectionsPerS),
];
const TAIL: [Extreme; 2] = [
    ("Lowest p99", has_own_rate, Metric::P99Ns),
    ("Lowest p99 of set-up", |_| true, Metric::SetupP99Ns),
];
/// Best figures of one experiment that the answer has not; of two sides, of files over time and of nodes they say nothing.
pub(super) fn tiles(page: &Page<'_>, answer: &str) -> Markup {
    let mut drawn = page.sections.iter().filter(|section| !section.figures.is_empty());
    let lead = drawn.next().map_or("", |section| section.id);
    let has_best = !["comparison", "trend", "nodes"].contains(&lead);
    let flows: Vec<Observed<'_>> = flows(page.sums).filter(|_| has_best).collect();
    let found = [extreme(&flows, &FASTEST, true), extreme(&flows, &TAIL, false)];
    let mut tiles: Vec<Tile> = found.into_iter().flatten().collect();
    tiles.retain(|tile| !answer.contains(&tile.value));
    html! {
        @if !tiles.is_empty() {
            dl.tiles aria-label="In short" {
                @for tile in tiles { div {
                    dt { (tile.label) }
                    dd { strong { (unbroken(&tile.value)) } " " span { (unbroken(&tile.about)) } }
                } }
            }
        }
    }
}

fn flows(results: &[Loaded]) -> impl Iterator<Item = Observed<'_>> {
    results.iter().flat_map(|loaded| Observed::of_file(&loaded.result))
}

/// Transfers at full speed, whose rates are results. An open loop moves what it is offered.
fn is_full_speed(observed: &Observed<'_>) -> bool {
    observed.flow.settings.is_closed_loop() && !observed.flow.case.config.is_set_up()
}

/// Open loops that did what they were asked for.
fn is_kept(observed: &Observed<'_>) -> bool {
    !observed.flow.settings.is_closed_loop()
        && observed
            .counted()
            .filter_map(|it| it.moved)
            .all(|moved| moved.verdict() == Some(LoadVerdict::Kept))
}

fn has_own_rate(observed: &Observed<'_>) -> bool {
    is_full_speed(observed) || is_kept(observed)
}

/// Of the first of these that flows have, the flow whose median is the largest, or the smallest.
fn extreme(flows: &[Observed<'_>], of: &[Extreme], largest: bool) -> Option<Tile> {
    of.iter().find_map(|(label, is_it, metric)| {
        let (value, flow) = flows
            .iter()
            .filter(|flow| is_it(flow))
            .filter_map(|flow| Some((flow.median(*metric)?, flow)))
            .reduce(|best, next| {
                let is_further = next.0 != best.0 && (next.0 > best.0) == largest;
                if is_further { next } else { best }
            })?;
        let mut about = flow.flow.subject();
        if let Some(spread) = flow.spread(*metric).filter(|spread| spread.count > 1) {
            let range = metric.range(spread.low, spread.high);
            about += &format!(", {} runs: {range}", spread.count);
        }
        Some(Tile::new(*label, metric.text(value), about))
    })
}

pub(super) fn fastest(results: &[Loaded]) -> Option<Tile> {
    extreme(&flows(results).collect::<Vec<_>>(), &FASTEST, true)
}

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

/// Settings in which cases differ that a title names.
const MOST_VARIED: usize = 3;

/// A line for the page's title: `send and write over QPs on soft0, 2026-11-20`. Flows of each case of a pattern are one.
pub fn title(sums: &[Loaded]) -> String {
    let cases: Vec<&CaseResult> = sums.iter().flat_map(|loaded| &loaded.result.cases).collect();
    let settings: Vec<Settings> =
        cases.iter().flat_map(|case| case.flows()).map(|flow| flow.settings).collect();
    let ops = each_once(settings.iter().map(|settings| settings.op.name()));
    let patterns = settings.iter().filter_map(|it| it.pattern.as_ref()).map(Pattern::word);
    let varied: Vec<&str> = telling_apart(&settings)
        .into_iter()
        .filter(|row| !row.may_differ && !["op", "pattern"].contains(&row.flag))
        .map(|row| row.title)
        .collect();
    let mut title = listed(&ops);
    for pattern in each_once(patterns) {
        title += &format!(" {pattern}");
    }
    title += &match &varied[..] {
        [] => String::new(),
        few if few.len() <= MOST_VARIED => format!(" over {}", listed(few)),
        many => format!(" over {}", some_of(many, MOST_VARIED)),
    };
    let devices: BTreeSet<String> = sums
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
    match sums.iter().map(|loaded| loaded.result.nodes.len()).max() {
        Some(nodes) if nodes > 2 => title += &format!(", {nodes} nodes"),
        _ => {}
    }
    if sums.len() > 1 {
        title += &format!(", {} files", sums.len());
    }
    let days = sums.iter().filter_map(|loaded| loaded.result.started_at.get(..10));
    match days.clone().min().zip(days.max()) {
        Some((first, last)) if first == last => format!("{title}, {first}"),
        Some((first, last)) => format!("{title}, {first} to {last}"),
        None => title,
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
    let Host { os, kernel, governor, .. } = &node.host;
    let [os, governor] = [(", ", os), (", governor ", governor)].map(|fact| known([fact]));
    let devices: String = node.devices.iter().map(device_facts).collect();
    format!("{}{os}, kernel {kernel}{governor}{devices}", node.host.processor())
}

fn device_facts(device: &Device) -> String {
    let what = if device.software { ", software: not a network adapter" } else { "" };
    let speed = device.link_gbit_per_s.filter(|_| !device.software);
    let link = speed.map(|speed| format!("link of {speed} Gb/s"));
    let mtu = device.active_mtu_bytes.map(|mtu| format!("MTU {mtu}"));
    let pci = device.pci_gtransfer_per_s.zip(device.pci_width_lanes);
    let pci_words =
        pci.map(|(gtransfer_per_s, lanes)| format!("PCIe {gtransfer_per_s} GT/s x{lanes}"));
    let facts = known([
        (", driver ", &device.driver),
        (", firmware ", &device.firmware),
        (", ", &pci_words),
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
    use results::{
        model::DoubtKind,
        sample::{self, doubt, file, has, load_of},
    };

    use super::*;
    use crate::show::page::tables::tests::case;

    fn fastest_of(cases: Vec<CaseResult>) -> [String; 3] {
        let tile = fastest(&[file(cases)]).unwrap();
        [tile.label, tile.value, tile.about]
    }

    /// Of open loops it is the highest load that was kept; runs that do not count are in none.
    #[test]
    fn the_fastest_is_the_best_figure_of_a_run_that_counts() {
        let open = |id: &str, per_second: f64, verdict| {
            let mut case = case("send", 1, 99.0, true);
            case.id = id.to_owned();
            case.config.settings.rate = "1M".parse().unwrap();
            let flow = &mut case.runs[0].flows[0];
            flow.load = load_of(verdict);
            flow.totals.mmsg_per_s = Some(per_second / 1e6);
            case
        };
        let mut cases = vec![
            open("1M", 1e6, LoadVerdict::Kept),
            open("2M", 2e6, LoadVerdict::Kept),
            open("3M", 3e6, LoadVerdict::Overloaded),
            open("4M", 4e6, LoadVerdict::NotKept),
        ];
        assert_eq!(fastest_of(cases.clone()), ["Highest load kept", "2.000 M/s", "2M"]);
        let mut doubtful = case("write", 4, 50.0, true);
        let window = &mut doubtful.runs[0].flows[0].window;
        window.doubts.push(doubt(DoubtKind::EdgeMissed));
        cases.extend([doubtful, case("send", 4, 3.0, true), case("read", 1, 9.0, false)]);
        assert_eq!(fastest_of(cases), ["Fastest", "3.000 Gb/s", "send-4"]);
        assert!(fastest(&[file(Vec::new())]).is_none());
    }

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
        assert_eq!(title(&results), "send on mlx5_0 and soft0, 2 files, 2026-11-20");
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
        assert_eq!(title(&results), "write ring on mlx5_0, 16 nodes, 2026-11-20");
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
