//! What the page begins with: tiles, then what was measured on what: the machines, their devices, when, with which
//! program.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use results::{
    load::Loaded,
    model::{
        self, CaseConfig, Comparison, Device, Host, LoadVerdict, MetricComparison, Node,
        ResultFile, Verdict,
    },
    text::{self, short_path, unbroken},
};
use settings::listed;

use crate::judge::compare::nodes::findings;
use crate::observe::{
    Metric, Observed,
    format::{NOT_MEASURED, counted},
    standing::{self, LeftOut},
};
use crate::show::compare::summary;
use crate::show::page::tables;
use crate::show::plot::{
    figure::{Cell, Table},
    rows::{device_words, minute},
};

struct Tile {
    label: String,
    value: String,
    /// Of what it is, or what to do.
    about: String,
}

impl Tile {
    fn new(label: impl Into<String>, value: String, about: impl Into<String>) -> Tile {
        Tile { label: label.into(), value, about: about.into() }
    }

    fn empty(label: &str, about: &str) -> Tile {
        Tile::new(label, NOT_MEASURED.to_owned(), about)
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
/// The least even one. A QP alone is always even.
const FAIRNESS: [Extreme; 1] =
    [("Lowest fairness (Jain’s index)", |it| it.flow.settings.qps > 1, Metric::Fairness)];
const NOTHING: &str = "no run that counts has it";

/// Of these results, and of the same with the flows of each case of a pattern as one.
pub(super) fn tiles(
    results: &[Loaded],
    sums: &[Loaded],
    comparison: Option<&Comparison>,
) -> Markup {
    let flows: Vec<Observed<'_>> =
        sums.iter().flat_map(|loaded| Observed::of_file(&loaded.result)).collect();
    let tiles = [
        comparison.map_or_else(|| fastest(&flows), against),
        extreme(&flows, &TAIL, false).unwrap_or_else(|| Tile::empty("Lowest p99", NOTHING)),
        extreme(&flows, &FAIRNESS, false)
            .unwrap_or_else(|| Tile::empty("Fairness", "no case has two QPs or more")),
        trust(results),
    ];
    html! {
        dl.tiles aria-label="In short" {
            @for tile in tiles { div {
                dt { (tile.label) }
                dd { strong { (unbroken(&tile.value)) } " " span { (unbroken(&tile.about)) } }
            } }
        }
    }
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

fn fastest(flows: &[Observed<'_>]) -> Tile {
    let tile = searched(flows).or_else(|| extreme(flows, &FASTEST, true));
    tile.unwrap_or_else(|| Tile::empty("Fastest", NOTHING))
}

fn searched(flows: &[Observed<'_>]) -> Option<Tile> {
    let (load, case, search) = flows
        .iter()
        .filter(|it| it.flow.is_first())
        .map(|it| it.flow.case)
        .flat_map(|case| case.searches.iter().map(move |it| (case, it)))
        .filter_map(|(case, it)| Some((it.lower_per_second?, case, it)))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let label = format!("Highest load with {}", search.asked);
    Some(Tile::new(label, Metric::HighestLoad.text(load), &*case.id))
}

fn trust(results: &[Loaded]) -> Tile {
    let runs = results.iter().flat_map(|loaded| &loaded.result.cases).flat_map(|case| &case.runs);
    let left_out = LeftOut::new(runs.map(standing::of_run));
    let count = counted(left_out.runs, "run");
    let value = match left_out.count() {
        0 if left_out.runs == 1 => "The run counts".to_owned(),
        0 => format!("All {count} count"),
        1 => format!("1 of {count} is unreliable"),
        some => format!("{some} of {count} are unreliable"),
    };
    Tile::new("Trust", value, tables::left_out_sentence(&left_out))
}

/// What a comparison came to: cases by verdict, and the worst of them or what would settle it.
fn against(comparison: &Comparison) -> Tile {
    let unclear =
        comparison.cases_with(Verdict::Unclear) + comparison.cases_with(Verdict::NoVerdict);
    let counts = [
        (comparison.cases_with(Verdict::Slower), "slower"),
        (comparison.cases_with(Verdict::Faster), "faster"),
        (comparison.cases_with(Verdict::Equal), "equal"),
        (unclear, "unclear"),
        (comparison.cases_with(Verdict::NotComparable), "not comparable"),
    ];
    let words = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"));
    let label = format!("Compared with {}", short_path(&comparison.base.name));
    // The first finding is of the worst node.
    if let Some(finding) = comparison.nodes.iter().flat_map(findings).next() {
        return Tile::new(label, summary(comparison), finding.text);
    }
    let value = match words.collect::<Vec<_>>().join(", ") {
        empty if empty.is_empty() => "No case in common".to_owned(),
        verdicts => verdicts,
    };
    let about =
        worst(comparison).or_else(|| (unclear > 0).then(|| remedy(comparison))).unwrap_or_default();
    Tile::new(label, value, about)
}

fn worst(comparison: &Comparison) -> Option<String> {
    let slower = comparison
        .cases
        .iter()
        .flat_map(|case| case.metrics.iter().map(move |metric| (case, metric)))
        .filter(|(_, metric)| metric.verdict == Verdict::Slower);
    let (case, metric) = slower.max_by(|one, other| change(one.1).total_cmp(&change(other.1)))?;
    let percent = (metric.ratio? - 1.0) * 100.0;
    let of = model::subject(&case.config, &case.id, &metric.flow);
    let name = metric.metric.short_name();
    Some(format!("worst: {name} of {of}, {percent:+.1} %"))
}

/// How far the ratio is from 1, either way.
fn change(metric: &MetricComparison) -> f64 {
    metric.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

fn remedy(comparison: &Comparison) -> String {
    let mut cases = comparison.cases.iter();
    if let Some(reason) = cases.find_map(|case| case.no_verdict.clone()) {
        return reason;
    }
    let needed = (comparison.reach).and_then(|it| Some((it.by_case.needed?, it.observation)));
    match needed {
        Some((count, what)) => format!("Measure about {count} {what} on each side."),
        None => "The runs scatter too much. Measure longer.".to_owned(),
    }
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
    let cores_text = cores.map_or("cores".to_owned(), |count| format!("{count} cores"));
    format!("{cores_text}{host}, kernel {kernel}{governor}{devices}")
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
    use results::{
        model::{CaseComparison, CaseResult, DoubtKind, LoadSearch},
        sample::{self, doubt, file, has, load_of},
    };

    use super::*;
    use crate::show::page::tables::tests::case;

    fn fastest_of(cases: Vec<CaseResult>) -> [String; 3] {
        let loaded = file(cases);
        let flows: Vec<_> = Observed::of_file(&loaded.result).collect();
        let tile = fastest(&flows);
        [tile.label, tile.value, tile.about]
    }

    /// Of open loops it is the highest load that was kept, of searches what they found; runs that do not count are in none.
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
        assert_eq!(fastest_of(cases.clone()), ["Fastest", "3.000 Gb/s", "send-4"]);
        cases[5].searches = [None, Some(1.5e6), Some(1.25e6)]
            .map(|lower_per_second| LoadSearch {
                asked: "p99<20us".to_owned(),
                lower_per_second,
                ..LoadSearch::default()
            })
            .to_vec();
        let wanted = ["Highest load with p99<20us", "1.500 M/s", "send-4"];
        assert_eq!(fastest_of(cases), wanted);
        assert_eq!(fastest_of(Vec::new())[1], "-");
    }

    #[test]
    fn trust_counts_runs_and_says_what_helps() {
        let tile = trust(&[file(vec![case("send", 1, 1.0, true), case("read", 1, 1.0, false)])]);
        assert_eq!(tile.value, "1 of 2 runs is unreliable");
        let empty = trust(&[sample::loaded(sample::cases(Vec::new()))]);
        assert_eq!((&*empty.value, &*empty.about), ("All 0 runs count", ""));
    }

    #[test]
    fn a_comparison_is_counted_by_case_and_its_worst_is_named_with_its_flow() {
        let case = |id: &str, ratio: f64, verdict| CaseComparison {
            id: id.to_owned(),
            metrics: vec![MetricComparison {
                verdict,
                ..MetricComparison::unjudged(Metric::GbitPerS, 0.03, vec![1.0], vec![ratio])
            }],
            ..CaseComparison::default()
        };
        let mut worst = case("b", 0.8, Verdict::Slower);
        worst.config = sample::mixed().cases.remove(0).config;
        worst.metrics[0].flow = "large".to_owned();
        let mut comparison = Comparison::default();
        assert_eq!(against(&comparison).value, "No case in common");
        comparison.cases = vec![
            case("a", 0.95, Verdict::Slower),
            worst,
            case("c", 1.2, Verdict::Faster),
            case("d", 0.9, Verdict::Unclear),
            case("e", 0.9, Verdict::NoVerdict),
        ];
        comparison.base.name = "/of/somebody/results/old.json".to_owned();
        let tile = against(&comparison);
        assert_eq!(tile.label, "Compared with results/old.json");
        assert_eq!(tile.value, "2 slower, 1 faster, 2 unclear");
        assert_eq!(tile.about, "worst: bandwidth of b, flow large, -20.0 %");
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
        assert_eq!(title(&results), "1 case in 2 files on mlx5_0 and soft0");
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
