//! One thing that results say: its words for people and its figures for programs, both written where it is found. Whoever
//! shows it prints the words; whoever reads it goes by its id.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::observe::{Metric, format::exact};
use results::model::ResultFile;

/// One thing that results say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Which kind it is, such as `best`, `lost_packets` or `slow_path`.
    pub id: &'static str,
    /// Whether something is to be done about it.
    pub severity: Severity,
    /// The cases, nodes, flows, rails or the QP that it is about.
    pub subject: Subject,
    /// What it says, in a sentence or two.
    pub text: String,
    /// Its figures, by name; names end in the unit.
    pub data: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// What is to be known of all figures.
    Caveat,
    /// Good to know; nothing is to be done.
    Note,
    /// Something is to be done about it.
    Problem,
}

/// What a finding is about; what is empty says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Subject {
    /// Ids of cases, or the title of the rounds of a case: of a problem of runs that of the first, of a scatter that of the worst.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// The node, or both ends of a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Flows, by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Nodes, each with a rail of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<(String, String)>,
    /// The QP that got least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qp: Option<QpId>,
}

/// A QP of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QpId {
    /// Its index in its flow, from 0.
    pub index: u32,
    /// QP number that the device gave it.
    pub qpn: u32,
}

impl Subject {
    /// A case, or the rounds of one.
    pub fn case(name: &str) -> Subject {
        Subject { cases: vec![name.to_owned()], ..Subject::default() }
    }
}

impl Finding {
    /// A finding about which nothing is to be done; figures are added by [`Finding::with`].
    pub fn note(id: &'static str, subject: Subject, text: String) -> Finding {
        Finding { id, severity: Severity::Note, subject, text, data: Map::new() }
    }

    /// A finding about which something is to be done.
    pub fn problem(id: &'static str, subject: Subject, text: String) -> Finding {
        Finding { severity: Severity::Problem, ..Finding::note(id, subject, text) }
    }

    /// With a figure; its name ends in its unit.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, figure: impl Into<Value>) -> Finding {
        self.data.insert(name.into(), figure.into());
        self
    }

    /// Whether something is to be done about it.
    pub fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }

    /// Whether it says where to look: at a node, a path or a rail.
    pub fn names_place(&self) -> bool {
        self.is_problem() && !(self.subject.nodes.is_empty() && self.subject.rails.is_empty())
    }

    /// The case, or the rounds of a case, at which it stands: the last that it is about.
    pub fn case(&self) -> Option<&str> {
        self.subject.cases.last().map(String::as_str)
    }
}

/// Nodes, paths and rails that are slow or lose packets.
pub(super) const SLOW_OR_LOSSY: [&str; 11] = [
    "slow_node",
    "straggler",
    "slow_sender",
    "slow_receiver",
    "slow_path",
    "lossy_node",
    "lossy_sender",
    "lossy_receiver",
    "lossy_path",
    "slow_rail",
    "rails_differ",
];

/// What else `rocebench why` can find the cause of.
const EXPLAINED: [&str; 5] =
    ["lost_packets", "receivers_not_ready", "stalled_qps", "starved_qps", "uneven_qps"];

/// Ends the first finding that `rocebench why` can explain with the command that does.
pub(super) fn add_command(findings: &mut [Finding], file: &ResultFile) {
    let is_explained = |id| SLOW_OR_LOSSY.contains(&id) || EXPLAINED.contains(&id);
    let explained = findings.iter_mut().find(|finding| is_explained(finding.id));
    if let (Some(finding), Some(command)) = (explained, why_command(file)) {
        finding.text += &format!(" To find out why: {command}.");
    }
}

/// Commands and options whose sweeps have no slowest case, by the words that they begin with.
const NO_WHY: [&str; 11] = [
    "why",
    "soak",
    "accept",
    "ib_",
    "--why",
    "--against",
    "--beside",
    "--slo",
    "--knee",
    "--loss-search",
    "--op=connect",
];

/// The command of a sweep with `--why`; `None` where that was done, or cannot be.
fn why_command(file: &ResultFile) -> Option<String> {
    let [_, words @ ..] = file.command_line.as_slice() else {
        return None;
    };
    let is_foreign = words.iter().any(|word| NO_WHY.iter().any(|start| word.starts_with(start)));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+[]".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let command: Vec<String> = quoted.collect();
    (!is_foreign).then(|| format!("`rocebench {} --why`", command.join(" ")))
}

/// Key of how many runs, or cases, are affected.
pub const COUNT: &str = "affected";
/// Key of how many there are.
pub const OF: &str = "of";

/// A figure without its unit, as columns have it, latency in microseconds: `9.410`.
pub(super) fn number(metric: Metric, value: f64) -> String {
    exact(metric.in_column(value))
}

/// Numbers with the unit of their metric: `4.700 of 9.400 Gb/s`, `p50 31.200 of 10.100 µs`.
pub(super) fn with_unit(metric: Metric, numbers: &str) -> String {
    match metric.unit() {
        "ns" => format!("{} {numbers} µs", metric.short_name()),
        unit => format!("{numbers} {unit}"),
    }
}

/// `9.410 Gb/s`, `p50 12.30 µs`.
pub(super) fn figure(metric: Metric, value: f64) -> String {
    with_unit(metric, &number(metric, value))
}

/// A share in percent: two digits that count.
pub(super) fn percent(share: f64) -> String {
    let percent = share.abs() * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} %")
}

/// How a figure compares with the usual one, by their ratio: `41 % less than`, `3.1 times as long as`.
pub(super) fn than(metric: Metric, ratio: f64) -> String {
    if metric.higher_is_better() {
        format!("{} less than", percent(1.0 - ratio))
    } else if ratio < 2.0 {
        format!("{} longer than", percent(ratio - 1.0))
    } else {
        format!("{ratio:.1} times as long as")
    }
}
