//! Figures of two sides beside each other: what was compared, what the figures say, and why a question is open still.
//! Files that are compared, a gate's launches, a case beside perftest and a victim beside attackers all have this one
//! form.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;
use statistics::median;

use super::{CaseConfig, ResultFile};
use crate::metric::Metric;

/// Version of [`Comparison`] as a document.
pub const COMPARISON_VERSION: u32 = 2;

/// A new side beside the base.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this layout; 2.
    pub comparison_version: u32,
    /// The side that the other one is compared with, such as the build before a change.
    pub base: Side,
    /// What is compared with it.
    pub new: Side,
    /// Each metric over all cases, which is asked first; none of a single case, nor of rounds in turns.
    pub over_all: Vec<OverAll>,
    /// What so many figures can settle, whatever they say; `null` when nothing was judged together.
    pub reach: Option<Settles>,
    /// Every case that both sides have, in the order of the base.
    pub cases: Vec<CaseComparison>,
    /// Patterns over nodes that were not launched in turns: their nodes in place of their cases.
    pub nodes: Vec<NodesComparison>,
    /// Cases that only the base has.
    pub only_in_base: Vec<String>,
    /// Cases that only the new side has.
    pub only_in_new: Vec<String>,
    /// Files that could not be used, each with its line and the reason.
    pub refused: Vec<String>,
    /// What is worth knowing about the whole, such as a file that lay there twice.
    pub notes: Vec<String>,
}

/// One metric over all cases: the geometric mean of the cases' figures, launch by launch. Each case counts by how its
/// figures compare with its geometric mean on both sides, so `base` and `new` have no unit and lie about 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverAll {
    /// Cases that are in it; of a case with several flows or searches each of them is one.
    pub cases: usize,
    /// The figures and what they say. The margin is half of that of single cases.
    #[serde(flatten)]
    pub figures: MetricComparison,
}

/// What the figures can settle: whether something is worse by twice its margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settles {
    /// Whether one figure is that of a run, a launch or a round.
    pub observation: Observation,
    /// Figures on a side, at least.
    pub count: usize,
    /// Of the questions over all cases, one a metric.
    pub over_all: Reach,
    /// Of the questions case by case, one a metric of each flow.
    pub by_case: Reach,
}

/// How many questions can be settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reach {
    /// Questions that have a ratio: the base's median is not 0.
    pub questions: usize,
    /// Those that are settled, or would be.
    pub settled: usize,
    /// About how many figures on each side would settle all; `null` when all are or no sensible number would.
    pub needed: Option<usize>,
}

/// One of the two that are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// What was named on the command line.
    pub name: String,
    /// The result files, in order.
    pub files: Vec<String>,
    /// Git revisions of the programs that wrote them, each once.
    pub revisions: Vec<String>,
    /// When the first of them began, RFC 3339 in UTC.
    pub started_at: Option<String>,
}

names! {
    /// What one figure of the statistics is.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Observation {
        /// A run: a side has too few launches to be judged by them.
        #[default]
        Run = "runs",
        /// The median of a file's runs: runs of one launch share its luck.
        Launch = "launches",
        /// A run of either side, one right after the other.
        Round = "rounds",
    }
}

/// One case on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseComparison {
    /// Name of the case, by which those of the two sides are paired.
    pub id: String,
    /// Names of the base and of what is compared with it.
    pub sides: [String; 2],
    /// Its settings, as in the base.
    pub config: CaseConfig,
    /// Program and arguments of a base that is no case of ours; empty otherwise.
    pub base_command: Vec<String>,
    /// Why the sides cannot be compared; empty when they can.
    pub not_comparable: Vec<String>,
    /// Why no verdict is given though the figures are shown; `null` when one is.
    pub no_verdict: Option<String>,
    /// Differences that the user asked to compare across.
    pub across: Vec<String>,
    /// What is worth knowing about the figures, such as interrupted runs that were left out.
    pub notes: Vec<String>,
    /// Whether one figure is that of a run, a launch or a round.
    pub observation: Observation,
    /// Figures that the base has of each metric.
    pub base_count: usize,
    /// Figures of the new side.
    pub new_count: usize,
    /// Every metric that all runs of both sides have, flow by flow; none when they cannot be compared.
    pub metrics: Vec<MetricComparison>,
    /// Metrics that some runs have and others lack.
    pub missing: Vec<MissingMetric>,
    /// Each round, in order, where the sides were measured in turns; empty otherwise.
    pub rounds: Vec<Round>,
}

/// A pattern over nodes on both sides. Each node is compared by all its flows, and beside all other nodes: what is common to
/// all is no node's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodesComparison {
    /// The id of its case, or of its rounds, in the base.
    pub title: String,
    /// Ids of its cases on the new side.
    pub cases: Vec<String>,
    /// The metric by which nodes are compared.
    pub metric: Metric,
    /// What does not matter: 0.03 is 3 %.
    pub margin: f64,
    /// Files of the base that have it, such as one a night.
    pub base_count: usize,
    /// Files of the new side.
    pub new_count: usize,
    /// The median flow, new over base: what all nodes have in common.
    pub common_ratio: f64,
    /// Each node and rail, sending and receiving; of paths those that are slower.
    pub places: Vec<PlaceComparison>,
    /// Nodes without a figure that most files of the base have.
    pub missing: Vec<String>,
    /// Nodes that no file of the base has.
    pub added: Vec<String>,
    /// What else changed at a node, such as its firmware, by its name.
    pub changed: BTreeMap<String, Vec<String>>,
    /// Nodes have the embedded device, whose figures are those of their CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_embedded: bool,
}

names! {
    /// The flows by which a place is judged.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Direction {
        /// Those that its node posts.
        #[default]
        Sends = "sends",
        /// Those that go to its node.
        Receives = "receives",
        /// Those from one node to another.
        Path = "path",
    }
}

/// A node, a rail of it, or a path on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceComparison {
    /// The node, or both ends of a path.
    pub nodes: Vec<String>,
    /// The rail of the node; `null` of all its flows.
    pub rail: Option<String>,
    /// By which of its flows it is judged.
    pub direction: Direction,
    /// Flows that both sides have.
    pub flows: usize,
    /// Median of its flows in the base.
    pub base_median: f64,
    /// Median of its flows on the new side.
    pub new_median: f64,
    /// How its flows changed, beside those of the others: 1 is as they did.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval; `null` of a path.
    pub low: Option<f64>,
    /// Upper end of the ratio's 95 % interval; `null` of a path.
    pub high: Option<f64>,
    /// What ratio and interval say of the place.
    pub verdict: Verdict,
}

impl PlaceComparison {
    /// `node7`, `mlx5_0 of node7`, `node7>node9`.
    pub fn name(&self) -> String {
        let nodes = self.nodes.join(">");
        match &self.rail {
            Some(rail) => format!("{rail} of {nodes}"),
            None => nodes,
        }
    }
}

/// A round in which both sides were measured, one right after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its number, from 1, which its runs have too.
    pub number: u32,
    /// Name of the side that was measured first.
    pub first: String,
    /// Figures of the base, in the order of the case's metrics; empty when it came to none.
    #[serde(serialize_with = "super::in_one_line")]
    pub base: Vec<Option<f64>>,
    /// Figures of the new side.
    #[serde(serialize_with = "super::in_one_line")]
    pub new: Vec<Option<f64>>,
    /// Why the round failed and does not count; `null` if it did not fail.
    pub failure: Option<String>,
    /// Why its figures are in doubt, in a few words: the round does not count.
    pub doubt: Option<String>,
    /// Output of a program that failed; only the end of long output.
    pub output: Option<String>,
}

impl Round {
    /// Whether its figures count: it did not fail, and nothing casts doubt on it.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && self.doubt.is_none()
    }
}

/// A metric that cannot be compared, since some of the runs lack it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingMetric {
    /// The metric that some runs have and others lack.
    pub metric: Metric,
    /// The flow that it is of; of a search, what was asked.
    pub flow: String,
    /// How many runs lack it.
    pub reason: String,
    /// Not comparable; or unclear, if runs had too few samples for it.
    pub verdict: Verdict,
}

/// One metric of one flow of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricComparison {
    /// The metric.
    pub metric: Metric,
    /// The flow that it is of; of a search, what was asked; empty over all cases, over all flows, and of set-up without one.
    pub flow: String,
    /// Its unit; empty for a figure without one.
    pub unit: String,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// What does not matter: 0.03 is 3 %.
    pub margin: f64,
    /// Figures of the base, in order.
    #[serde(serialize_with = "super::in_one_line")]
    pub base: Vec<f64>,
    /// Figures of the new side, in order.
    #[serde(serialize_with = "super::in_one_line")]
    pub new: Vec<f64>,
    /// Median of the base; `null` without a figure.
    pub base_median: Option<f64>,
    /// Median of the new side; `null` without a figure.
    pub new_median: Option<f64>,
    /// The new side over the base; of rounds, the middle between the medians of those that begin with one and the other.
    /// `null` when the base's median is 0.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval, over all looks; `null` with too few figures.
    pub low: Option<f64>,
    /// Upper end of the ratio's 95 % interval; `null` with too few figures.
    pub high: Option<f64>,
    /// Probability that chance sets the sides of any metric of any case apart so clearly; `null` with too few
    /// figures, and of rounds.
    pub p_corrected: Option<f64>,
    /// What the figures say of the new side.
    pub verdict: Verdict,
    /// Why it is unclear, and what would settle it.
    pub note: Option<String>,
    /// Unclear: figures a side that would settle it, roughly; `null` when no sensible number would.
    pub settled_with: Option<usize>,
}

impl MetricComparison {
    /// The figures of both sides, before anything is said of them.
    pub fn unjudged(metric: Metric, margin: f64, base: Vec<f64>, new: Vec<f64>) -> Self {
        let [base_median, new_median] = [&base, &new].map(|side| median(side));
        MetricComparison {
            metric,
            flow: String::new(),
            unit: metric.unit().to_owned(),
            higher_is_better: metric.higher_is_better(),
            margin,
            ratio: base_median
                .zip(new_median)
                .filter(|(of_base, _)| *of_base != 0.0)
                .map(|(of_base, of_new)| of_new / of_base),
            base_median,
            new_median,
            base,
            new,
            low: None,
            high: None,
            p_corrected: None,
            verdict: Verdict::Unclear,
            note: None,
            settled_with: None,
        }
    }

    /// `1.52 [1.48, 1.57]`: how many times worse the new side is, with the interval where there is one.
    pub fn harm_text(&self) -> Option<String> {
        let (harm, interval) = self.harm()?;
        Some(match interval {
            Some((low, high)) => format!("{harm:.2} [{low:.2}, {high:.2}]"),
            None => format!("{harm:.2}"),
        })
    }

    /// How many times worse the new side is, with the ends of the interval: 2 for half of the throughput, or twice the
    /// latency.
    pub fn harm(&self) -> Option<(f64, Option<(f64, f64)>)> {
        let (ratio, interval) = (self.ratio?, self.low.zip(self.high));
        Some(if self.higher_is_better {
            (1.0 / ratio, interval.map(|(low, high)| (1.0 / high, 1.0 / low)))
        } else {
            (ratio, interval)
        })
    }
}

names! {
    /// What is said of the new side's metric or case, the worst last.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Verdict {
        /// Within the margin, and certain to be.
        Equal = "equal",
        /// Better by more than the margin.
        Faster = "faster",
        /// The runs do not decide it.
        #[default]
        Unclear = "unclear",
        /// It is so since the sides were not measured in a way that lets them be judged.
        NoVerdict = "unclear",
        /// The sides were not measured alike, or not validly.
        NotComparable = "not comparable",
        /// Worse by more than the margin.
        Slower = "slower",
    }
}

impl CaseComparison {
    /// The worst of its metrics' verdicts.
    pub fn verdict(&self) -> Verdict {
        if !self.not_comparable.is_empty() {
            return Verdict::NotComparable;
        }
        let missing = self.missing.iter().map(|missing| missing.verdict);
        self.metrics
            .iter()
            .map(|metric| metric.verdict)
            .chain(missing)
            .max()
            .unwrap_or(Verdict::NotComparable)
    }
}

impl Comparison {
    /// What the cases of a result came to that were measured in turns with another; `None` without one.
    pub fn in_turns(result: &ResultFile) -> Option<Comparison> {
        let cases: Vec<CaseComparison> =
            result.cases.iter().filter_map(|case| case.comparison.clone()).collect();
        let side = |place: usize| {
            let mut names: Vec<&str> = cases.iter().map(|case| &*case.sides[place]).collect();
            names.dedup();
            Side { name: names.join(", "), ..Side::default() }
        };
        let (base, new) = (side(0), side(1));
        cases.first()?;
        Some(Comparison {
            comparison_version: COMPARISON_VERSION,
            base,
            new,
            cases,
            ..Comparison::default()
        })
    }

    /// Metrics over all cases with this verdict.
    pub fn over_all_with(&self, verdict: Verdict) -> Vec<&MetricComparison> {
        self.over_all
            .iter()
            .map(|over_all| &over_all.figures)
            .filter(|it| it.verdict == verdict)
            .collect()
    }

    /// The worst that is said of anything; `None` without a case.
    pub fn verdict(&self) -> Option<Verdict> {
        let over_all = self.over_all.iter().map(|it| it.figures.verdict);
        let places = self.nodes.iter().flat_map(|nodes| &nodes.places).map(|place| place.verdict);
        self.cases.iter().map(CaseComparison::verdict).chain(over_all).chain(places).max()
    }

    /// Whether more launches would change nothing: something is slower, or every case is clear.
    pub fn is_settled(&self) -> bool {
        self.verdict() == Some(Verdict::Slower)
            || self.cases.iter().all(|case| case.verdict() <= Verdict::Faster)
    }

    /// How many cases have this verdict.
    pub fn cases_with(&self, verdict: Verdict) -> usize {
        self.cases.iter().map(CaseComparison::verdict).filter(|it| *it == verdict).count()
    }
}
