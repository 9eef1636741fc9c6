//! The two sides of a comparison: the files of each, the runs of a case that count, which cases of the two belong together, and
//! on what they were measured.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;

use settings::{ROWS, Row, Settings};

use super::options::Aspect;
use crate::observe::format::some_of;
use crate::observe::standing::{self, LeftOut, Standing};
use results::load::Loaded;
use results::model::{
    CaseConfig, CaseResult, Device, FORWARD, FlowConfig, Host, Node, Observation, ResultFile, Run,
};
use results::text;
use statistics::{Unit, median};

/// The files of a side, with the facts of each.
pub(super) struct SideFiles<'a> {
    pub(super) name: &'static str,
    pub(super) files: Vec<&'a Loaded>,
    pub(super) facts: Vec<Vec<Fact>>,
}

/// A file's runs of a case that count.
#[derive(Clone)]
pub(super) struct Launch<'a> {
    /// Of the file, within its side.
    pub(super) number: usize,
    pub(super) file: &'a Loaded,
    pub(super) case: &'a CaseResult,
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> SideFiles<'a> {
    pub(super) fn new(name: &'static str, files: Vec<&'a Loaded>) -> SideFiles<'a> {
        let facts = files.iter().map(|file| facts_of_file(&file.result));
        SideFiles { name, facts: facts.collect(), files }
    }

    /// On what a case was measured, file by file.
    pub(super) fn facts(&self, case: &SideCase<'_>) -> Vec<Vec<Fact>> {
        case.iter()
            .map(|(file, case)| {
                self.facts
                    .get(*file)
                    .into_iter()
                    .flatten()
                    .cloned()
                    .chain(facts_of_case(&case.config))
                    .collect()
            })
            .collect()
    }

    /// The runs of a case that count; what is wrong with others goes to `bad`, what was left out to `notes`.
    pub(super) fn launches(
        &self,
        cases: &SideCase<'a>,
        bad: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Vec<Launch<'a>> {
        let mut not_counted = LeftOut::default();
        let mut launches = Vec::new();
        for &(number, case) in cases {
            let Some(&file) = self.files.get(number) else {
                continue;
            };
            let mut runs = Vec::new();
            for run in &case.runs {
                let standing = standing::of_run(run);
                not_counted.add(&standing);
                match standing {
                    Standing::Counts => runs.push(run),
                    Standing::Stopped | Standing::Doubtful(_) => {}
                    Standing::Bad(reason) => {
                        let path = text::path(&file.path);
                        bad.push(format!("run {} in {path} {reason}", run.run));
                    }
                }
            }
            if !runs.is_empty() {
                launches.push(Launch { number, file, case, runs });
            }
        }
        let (name, runs, stopped) = (self.name, not_counted.runs, not_counted.stopped);
        let doubtful = not_counted.doubtful.into_iter().map(|(kind, count)| {
            let (mark, remedy) = (kind.name(), standing::reason(kind).remedy);
            format!("{count} of {runs} {name} runs are marked \"{mark}\" ({remedy})")
        });
        let by_the_user = (stopped > 0)
            .then(|| format!("{stopped} of {runs} {name} runs were stopped by the user"));
        let left_out: Vec<String> = by_the_user.into_iter().chain(doubtful).collect();
        if launches.is_empty() && bad.is_empty() {
            let reason = format!("the {name} side has no run that counts");
            bad.push(if left_out.is_empty() {
                reason
            } else {
                format!("{reason}: {}", left_out.join("; "))
            });
        } else {
            notes.extend(left_out.into_iter().map(|text| text + " and do not count"));
        }
        launches
    }
}

pub(super) fn runs<'a>(side: &'a [Launch<'_>]) -> impl Iterator<Item = &'a Run> {
    side.iter().flat_map(|launch| launch.runs.iter().copied())
}

/// One figure an observation: each run's, or each launch's median; `None` where a run has it not.
pub(super) fn observations(
    side: &[Launch<'_>],
    observation: Observation,
    figure: impl Fn(&Run) -> Option<f64>,
) -> Option<Vec<f64>> {
    let by_launch: Vec<Vec<f64>> = side
        .iter()
        .map(|launch| launch.runs.iter().map(|run| figure(run)).collect())
        .collect::<Option<_>>()?;
    Some(match observation {
        Observation::Run => by_launch.concat(),
        Observation::Launch | Observation::Round => {
            by_launch.iter().filter_map(|values| median(values)).collect()
        }
    })
}

/// Which runs a side's observations are of, in the same order.
pub(super) fn units(side: &[Launch<'_>], observation: Observation) -> Vec<Unit> {
    side.iter()
        .flat_map(|launch| {
            let runs: Vec<Option<u32>> = match observation {
                Observation::Run => launch.runs.iter().map(|run| Some(run.run)).collect(),
                Observation::Launch | Observation::Round => vec![None],
            };
            runs.into_iter().map(|run| Unit { launch: launch.number, run })
        })
        .collect()
}

/// A case as one side has it: the files that have it, by number within the side, and what each has.
pub(super) type SideCase<'a> = Vec<(usize, &'a CaseResult)>;

#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    /// On both sides, in the order of the base; same name, and same settings unless nothing closer was there.
    pub(super) both: Vec<[SideCase<'a>; 2]>,
    pub(super) only_in_base: Vec<String>,
    pub(super) only_in_new: Vec<String>,
}

/// What was asked for: the settings without what followed from device and path, and without those in which results
/// may differ.
#[derive(Clone, Debug, PartialEq)]
struct Requested {
    settings: Settings,
    /// By name, with the nodes from which and to which they go.
    flows: BTreeMap<String, ([String; 2], Settings)>,
}

pub(super) fn without_free(mut settings: Settings) -> Settings {
    let usual = Settings::default();
    for row in ROWS.iter().filter(|row| row.may_differ) {
        row.copy(&mut settings, &usual);
    }
    settings
}

fn requested(config: &CaseConfig) -> Requested {
    Requested {
        settings: without_free(config.settings.clone()),
        flows: config
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let ends = [flow.from.clone(), flow.to.clone()];
                (flow.name.clone(), (ends, without_free(config.flow(index))))
            })
            .collect(),
    }
}

/// A side's cases, each once, in order of appearance, with what was asked for; without those of patterns with these settings.
fn cases<'a>(side: &[&'a Loaded], without: &[Settings]) -> Vec<(&'a str, Requested, SideCase<'a>)> {
    let mut cases: Vec<(&str, Requested, SideCase)> = Vec::new();
    let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (file, loaded) in side.iter().copied().enumerate() {
        for case in &loaded.result.cases {
            let config = requested(&case.config);
            if case.config.pattern.is_some() && without.contains(&config.settings) {
                continue;
            }
            let known = by_id.entry(&case.id).or_default();
            match known.iter().find(|number| cases[**number].1 == config) {
                Some(number) => cases[*number].2.push((file, case)),
                None => {
                    known.push(cases.len());
                    cases.push((&case.id, config, vec![(file, case)]));
                }
            }
        }
    }
    cases
}

pub(super) fn pair<'a>(base: &[&'a Loaded], new: &[&'a Loaded], without: &[Settings]) -> Pairs<'a> {
    let (base, mut left) = (cases(base, without), cases(new, without));
    let mut partners: Vec<Option<SideCase>> = vec![None; base.len()];
    // Exact matches go first, so that a near one does not take what another case matches exactly.
    for exactly in [true, false] {
        for ((id, config, _), partner) in base.iter().zip(&mut partners) {
            if partner.is_some() {
                continue;
            }
            let mut others = left.iter();
            let found =
                others.position(|(other, its, _)| other == id && (!exactly || its == config));
            *partner = found.map(|place| left.remove(place).2);
        }
    }
    let mut pairs = Pairs::default();
    for ((id, _, case), partner) in base.into_iter().zip(partners) {
        match partner {
            Some(partner) => pairs.both.push([case, partner]),
            None => pairs.only_in_base.push(id.to_owned()),
        }
    }
    pairs.only_in_new = left.into_iter().map(|(id, ..)| id.to_owned()).collect();
    pairs
}

/// What was asked for differently, field by field: the case's settings, then what flows have of their own.
pub(super) fn settings_that_differ(base: &CaseConfig, new: &CaseConfig) -> Vec<String> {
    let (base, new) = (requested(base), requested(new));
    let mut differences = rows_that_differ([&base.settings, &new.settings], |_| true);
    for (name, (ends, flow)) in &base.flows {
        let Some((other_ends, other)) = new.flows.get(name) else {
            differences.push(format!("flow {name}: only in the base"));
            continue;
        };
        let flow_of = format!("flow {name}");
        if ends != other_ends {
            differences.push(differ(&flow_of, ends.join(" → "), other_ends.join(" → ")));
        }
        let rows = rows_that_differ([flow, other], |row: &Row| {
            !row.is_equal(&base.settings, flow) || !row.is_equal(&new.settings, other)
        });
        differences.extend(rows.into_iter().map(|text| format!("{flow_of}: {text}")));
    }
    let added = new.flows.keys().filter(|name| !base.flows.contains_key(*name));
    differences.extend(added.map(|name| format!("flow {name}: only in the new results")));
    differences
}

fn rows_that_differ([base, new]: [&Settings; 2], is_told: impl Fn(&Row) -> bool) -> Vec<String> {
    ROWS.iter()
        .filter(|row| !row.is_equal(base, new) && is_told(row))
        .map(|row| {
            let [base, new] = [base, new].map(|side| match row.text(side) {
                text if text.is_empty() => "not set".to_owned(),
                text => text,
            });
            differ(row.flag, base, new)
        })
        .collect()
}

/// One fact: which, and what it is; `None` if the file does not have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    aspect: Aspect,
    /// The node that it is about; `None` of the whole, or of a flow.
    node: Option<String>,
    name: String,
    value: Option<String>,
}

/// Facts of one subject, whose name stands before theirs.
fn facts_about<const N: usize>(
    subject: &str,
    aspect: Aspect,
    facts: [(&str, Option<String>); N],
) -> Vec<Fact> {
    facts
        .map(|(name, value)| Fact { aspect, node: None, name: format!("{subject}{name}"), value })
        .into()
}

fn known(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

/// A file's facts that are the same for all its cases.
pub(super) fn facts_of_file(result: &ResultFile) -> Vec<Fact> {
    let Some((first, others)) = result.nodes.split_first() else {
        return Vec::new();
    };
    let machines = if others.iter().all(|node| node.host == first.host) {
        "one machine"
    } else {
        "several machines"
    };
    let nodes: Vec<&str> = result.nodes.iter().map(|node| &*node.name).collect();
    let hosts = [("all nodes on", known(machines)), ("nodes", known(nodes.join(", ")))];
    let mut facts = facts_about("", Aspect::Host, hosts);
    for node in &result.nodes {
        let own = host(&node.host).into_iter().chain(devices(node));
        facts.extend(own.map(|fact| Fact { node: Some(node.name.clone()), ..fact }));
    }
    facts
}

/// A case's own facts, flow by flow. Those of `forward` have plain names.
pub(super) fn facts_of_case(config: &CaseConfig) -> impl Iterator<Item = Fact> + '_ {
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
        let wire = [("packets go by", flow.wire.and_then(|wire| known(wire.name())))];
        [
            facts_about(&subject, Aspect::Mtu, mtu),
            facts_about(&subject, Aspect::Device, devices),
            facts_about(&subject, Aspect::Link, wire),
        ]
        .concat()
    })
}

fn host(host: &Host) -> Vec<Fact> {
    let facts = [
        ("host name", known(&host.hostname)),
        ("processor", host.cpu_model.clone()),
        ("cores", host.cores.and_then(known)),
        ("page size", host.page_bytes.map(|bytes| format!("{} KiB", bytes >> 10))),
        ("NUMA nodes", host.numa_nodes.and_then(known)),
        ("kernel", known(&host.kernel)),
        ("system", host.os.clone()),
        ("frequency governor", host.governor.clone()),
        ("rdma-core", host.rdma_core.clone()),
    ];
    facts_about("", Aspect::Host, facts)
}

fn devices(node: &Node) -> Vec<Fact> {
    match &node.devices[..] {
        [] => facts_about("", Aspect::Device, [("device", None)]),
        [only] => device("", only),
        many => many.iter().flat_map(|one| device(&format!("{}: ", one.name), one)).collect(),
    }
}

fn device(subject: &str, device: &Device) -> Vec<Fact> {
    let [active_mtu, netdev_mtu] = [device.active_mtu_bytes, device.netdev_mtu_bytes]
        .map(|mtu: Option<u32>| mtu.map(|mtu| format!("{mtu} B")));
    let link_speed = device.link_gbit_per_s.map(|it| format!("{it} Gb/s"));
    let pci_speed = device.pci_gtransfer_per_s.map(|it| format!("{it} GT/s"));
    let own = [
        ("device", known(&device.name)),
        ("verbs library", known(&device.library)),
        ("software device", known(if device.software { "yes" } else { "no" })),
        ("driver", device.driver.clone()),
        ("firmware", device.firmware.clone()),
    ];
    let link = [
        ("link speed", link_speed),
        ("link lanes", device.width_lanes.and_then(known)),
        ("link layer", device.link_layer.clone()),
        ("GID type", device.gid_type.clone()),
        ("PCI speed", pci_speed),
        ("PCI lanes", device.pci_width_lanes.and_then(known)),
    ];
    let mtu = [("port MTU", active_mtu), ("interface MTU", netdev_mtu)];
    let faults = device.faults.as_deref().unwrap_or("none");
    let faults = [("faults on purpose", known(faults))];
    [
        facts_about(subject, Aspect::Device, own),
        facts_about(subject, Aspect::Link, link),
        facts_about(subject, Aspect::Mtu, mtu),
        facts_about(subject, Aspect::Faults, faults),
    ]
    .concat()
}

/// `kernel: 6.1 in the base, 6.2 in the new results`.
pub(super) fn differ(name: &str, base: impl Display, new: impl Display) -> String {
    format!("{name}: {base} in the base, {new} in the new results")
}

/// A fact that is not the same in all of both sides' files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) aspect: Aspect,
    /// The nodes of which it is so; none where it is so of all, or it is of no node.
    pub(super) nodes: Vec<String>,
    name: String,
    /// What it is on both sides.
    sides: [String; 2],
    /// Whether the new side says what no file of the base does.
    pub(super) is_new: bool,
}

impl Difference {
    /// `kernel: 6.1 in the base, 6.2 in the new results`.
    pub(super) fn text(&self) -> String {
        differ(&self.name, &self.sides[0], &self.sides[1])
    }

    /// With the nodes before it.
    pub(super) fn whole_text(&self) -> String {
        self.of_nodes(&self.text())
    }

    fn of_nodes(&self, text: &str) -> String {
        let nodes = some_of(&self.nodes, MOST_NODES);
        if nodes.is_empty() { text.to_owned() } else { format!("{nodes}: {text}") }
    }
}

/// What is another at the nodes of a result than it was before, with the nodes; without nodes what is so of all:
/// `server: kernel was 6.1 and is 6.2`.
pub fn changes(before: &ResultFile, now: &ResultFile) -> Vec<(Vec<String>, String)> {
    let found = differences(&[facts_of_file(before)], &[facts_of_file(now)]).into_iter();
    found
        .map(|it| {
            let text = format!("{} was {} and is {}", it.name, it.sides[0], it.sides[1]);
            (it.nodes.clone(), it.of_nodes(&text))
        })
        .collect()
}

/// Nodes that a difference names.
const MOST_NODES: usize = 4;
const NOT_KNOWN: &str = "not known";

/// The facts that are not the same in all of both sides' files. What is so of several nodes alike stands once.
pub(super) fn differences(base: &[Vec<Fact>], new: &[Vec<Fact>]) -> Vec<Difference> {
    type Key<'a> = (Option<&'a str>, &'a str);
    let mut order: Vec<(Key<'_>, Aspect)> = Vec::new();
    let mut answers: HashMap<Key<'_>, [Vec<&str>; 2]> = HashMap::new();
    let mut nodes: [BTreeSet<&str>; 2] = Default::default();
    for (side, files) in [base, new].into_iter().enumerate() {
        for fact in files.iter().flatten() {
            let key = (fact.node.as_deref(), &*fact.name);
            nodes[side].extend(key.0);
            let of_sides = answers.entry(key).or_insert_with(|| {
                order.push((key, fact.aspect));
                Default::default()
            });
            of_sides[side].push(fact.value.as_deref().unwrap_or(NOT_KNOWN));
        }
    }
    // Which nodes there are is a fact of its own.
    order.retain(|((node, _), _)| node.is_none_or(|node| nodes.iter().all(|it| it.contains(node))));
    let mut found: Vec<Difference> = Vec::new();
    for ((node, name), aspect) in order {
        let both = &answers[&(node, name)];
        let [old, now] = [(&both[0], base), (&both[1], new)].map(|(known, files)| {
            let lacking = (known.len() < files.len()).then_some(NOT_KNOWN);
            known.iter().copied().chain(lacking).collect::<BTreeSet<&str>>()
        });
        if old == now && old.len() == 1 {
            continue;
        }
        let [of_base, of_new] =
            [&old, &now].map(|values| values.iter().copied().collect::<Vec<_>>().join(" and "));
        let sides = [of_base, of_new];
        let known = found
            .iter_mut()
            .find(|it| !it.nodes.is_empty() && it.name == name && it.sides == sides);
        match (known, node) {
            (Some(alike), Some(node)) => alike.nodes.push(node.to_owned()),
            _ => found.push(Difference {
                aspect,
                nodes: node.map(str::to_owned).into_iter().collect(),
                name: name.to_owned(),
                sides,
                is_new: !now.is_subset(&old),
            }),
        }
    }
    for difference in &mut found {
        if nodes[0].intersection(&nodes[1]).count() == difference.nodes.len() {
            difference.nodes.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::{self, node};

    fn file(cases: &[(&str, f64)]) -> Loaded {
        sample::file(
            cases
                .iter()
                .map(|(id, seconds)| CaseResult {
                    id: (*id).to_owned(),
                    config: Settings::from([("duration", seconds.to_string().as_str())]).into(),
                    ..CaseResult::default()
                })
                .collect(),
        )
    }

    #[test]
    fn cases_are_paired_by_what_they_are_and_not_by_place() {
        let base = [file(&[("a", 1.0), ("b", 1.0)]), file(&[("b", 1.0)])];
        let new = [file(&[("c", 1.0), ("b", 1.0), ("a", 1.0)])];
        let pairs = pair(&base.each_ref(), &new.each_ref(), &[]);
        let ids = pairs.both.iter().map(|[old, now]| (&*old[0].1.id, old.len(), now.len()));
        assert!(ids.eq([("a", 1, 1), ("b", 2, 1)]));
        assert!(pairs.only_in_base.is_empty());
        assert_eq!(pairs.only_in_new, ["c"]);
    }

    #[test]
    fn other_settings_pair_only_where_nothing_is_closer() {
        let base = [file(&[("a", 1.0)]), file(&[("a", 5.0)])];
        let new = [file(&[("a", 5.0)])];
        let pairs = pair(&base.each_ref(), &new.each_ref(), &[]);
        assert_eq!(pairs.both.len(), 1);
        let paired = pairs.both[0][0][0].1;
        assert_eq!(paired.config.duration_seconds, "5s".parse().ok());
        assert_eq!(pairs.only_in_base, ["a"]);
        let others = [file(&[("a", 2.0)])];
        let near_pairs = pair(&others.each_ref(), &new.each_ref(), &[]);
        let [near, far] = near_pairs.both[0].each_ref().map(|side| &side[0].1.config);
        let differences = settings_that_differ(near, far);
        assert_eq!(differences, ["duration: 2s in the base, 5s in the new results"]);
    }

    #[test]
    fn what_flows_were_asked_differently_is_told_with_their_names() {
        let base = sample::mixed().cases.remove(0).config;
        assert_eq!(settings_that_differ(&base, &base), [""; 0]);
        let mut reordered = base.clone();
        reordered.flows.reverse();
        assert_eq!(requested(&base), requested(&reordered));
        let mut new = base.clone();
        new.settings.tx_depth = 64;
        new.flows[1].settings.insert("qps".to_owned(), 3.into());
        new.flows[2].name = "other".to_owned();
        let expected = [
            "tx-depth: 128 in the base, 64 in the new results",
            "flow back: only in the base",
            "flow large: qps: 2 in the base, 3 in the new results",
            "flow other: only in the new results",
        ];
        assert_eq!(settings_that_differ(&base, &new), expected);
    }

    fn result(kernel: &str, faults: Option<&str>) -> ResultFile {
        let device = Device { faults: faults.map(str::to_owned), ..Device::default() };
        let mut node = node("client", "left", vec![device]);
        node.host.kernel = kernel.to_owned();
        ResultFile { nodes: vec![node], ..ResultFile::default() }
    }

    #[test]
    fn what_differs_is_named_with_both_sides() {
        let base = [facts_of_file(&result("6.1", None))];
        let new = [facts_of_file(&result("6.2", Some("drop=1%")))];
        assert_eq!(differences(&base, &base), []);
        let found = differences(&base, &new);
        let texts = found.iter().map(|it| (it.aspect, it.whole_text()));
        let kernel = "kernel: 6.1 in the base, 6.2 in the new results".to_owned();
        let faults = "faults on purpose: none in the base, drop=1% in the new results".to_owned();
        assert!(texts.eq([(Aspect::Host, kernel), (Aspect::Faults, faults)]));
    }

    #[test]
    fn a_side_of_two_kinds_is_a_difference() {
        let both = ["6.1", "6.2"].map(|kernel| facts_of_file(&result(kernel, None)));
        let found = differences(&both, &both);
        let words = "kernel: 6.1 and 6.2 in the base, 6.1 and 6.2 in the new results";
        assert_eq!(found[0].whole_text(), words);
    }

    #[test]
    fn what_is_so_of_all_nodes_is_told_once_and_else_with_their_names() {
        let with_server = |kernel: &str, others: &str| {
            let mut result = result(kernel, None);
            let mut server = result.nodes[0].clone();
            (server.name, server.host.kernel) = ("server".to_owned(), others.to_owned());
            result.nodes.push(server);
            [facts_of_file(&result)]
        };
        let one = with_server("6.1", "6.1");
        let other = with_server("6.2", "6.2");
        // The kernel of both.
        assert_eq!(differences(&one, &other).len(), 1);
        let apart = with_server("6.1", "6.3");
        let found = differences(&one, &apart);
        let words = "all nodes on: one machine in the base, several machines in the new results";
        assert_eq!(found[0].whole_text(), words);
        let kernel = "server: kernel: 6.1 in the base, 6.3 in the new results";
        assert_eq!(found[1].whole_text(), kernel);
        assert_eq!(found.len(), 2);
    }
}
