//! What a user can choose about a comparison, and what it says: the types of which the table, the documents and the figures are
//! made.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use settings::names;

use crate::observe::Metric;
use results::model::CaseConfig;
use statistics::median;

/// Version of [`Comparison`] as a document.
pub const COMPARISON_VERSION: u32 = 1;

/// New results beside old ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this layout; 1.
    pub comparison_version: u32,
    /// Where the base came from.
    pub base: Side,
    /// Where what is compared with it came from.
    pub new: Side,
    /// Each metric over all cases, which is asked first; none of a single case.
    pub over_all: Vec<OverAll>,
    /// What so many figures can settle, whatever they say; `null` when nothing was judged.
    pub reach: Option<Settles>,
    /// Every case that both sides have, in the order of the base.
    pub cases: Vec<CaseComparison>,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverAll {
    /// Cases that are in it; of a case with several flows or searches each of them is one.
    pub cases: usize,
    /// The figures and what they say. The margin is half of that of single cases.
    #[serde(flatten)]
    pub figures: MetricComparison,
}

/// What the figures can settle: whether something is worse by twice its margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settles {
    pub observation: Observation,
    /// Figures on a side, at least.
    pub count: usize,
    pub over_all: Reach,
    pub by_case: Reach,
}

/// How many questions can be settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    pub questions: usize,
    /// Those that are settled, or would be.
    pub settled: usize,
    /// About how many figures on each side would settle all; `null` when all are or no sensible number would.
    pub needed: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Observation {
        #[default]
        Run = "runs",
        /// The median of a file's runs: runs of one launch share its luck.
        Launch = "launches",
    }
}

/// One case on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseComparison {
    pub id: String,
    /// Its settings, as in the base.
    pub config: CaseConfig,
    /// Why the sides cannot be compared; empty when they can.
    pub not_comparable: Vec<String>,
    /// Why no verdict is given though the figures are shown; `null` when one is.
    pub no_verdict: Option<String>,
    /// Differences that the user asked to compare across.
    pub across: Vec<String>,
    /// What is worth knowing about the figures, such as interrupted runs that were left out.
    pub notes: Vec<String>,
    pub observation: Observation,
    pub base_count: usize,
    /// Figures of the new side.
    pub new_count: usize,
    /// Every metric that all runs of both sides have, flow by flow; none when they cannot be compared.
    pub metrics: Vec<MetricComparison>,
    /// Metrics that some runs have and others lack.
    pub missing: Vec<MissingMetric>,
}

/// A metric that cannot be compared, since some of the runs lack it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingMetric {
    pub metric: Metric,
    /// The flow that it is of; of a search, what was asked.
    pub flow: String,
    pub reason: String,
    /// Not comparable; or unclear, if runs had too few samples for it.
    pub verdict: Verdict,
}

/// One metric of one flow of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    pub metric: Metric,
    /// The flow that it is of; of a search, what was asked; empty over all cases, and of set-up without one.
    pub flow: String,
    /// Its unit; empty for a figure without one.
    pub unit: String,
    pub higher_is_better: bool,
    /// What does not matter: 0.03 is 3 %.
    pub margin: f64,
    /// Figures of the base, in order.
    #[serde(serialize_with = "results::model::in_one_line")]
    pub base: Vec<f64>,
    /// Figures of the new side, in order.
    #[serde(serialize_with = "results::model::in_one_line")]
    pub new: Vec<f64>,
    pub base_median: f64,
    /// Median of the new side.
    pub new_median: f64,
    /// `new_median` over `base_median`; `null` when the base's is 0.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval; `null` with too few figures.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Probability that chance sets the sides of any metric of any case apart so clearly; `null` with too few
    /// figures.
    pub p_corrected: Option<f64>,
    pub verdict: Verdict,
    /// Why it is unclear, and what would settle it.
    pub note: Option<String>,
    /// Unclear: figures a side that would settle it, roughly; `null` when no sensible number would.
    pub settled_with: Option<usize>,
}

impl MetricComparison {
    /// The figures of both sides, before anything is said of them.
    pub(crate) fn unjudged(metric: Metric, margin: f64, base: Vec<f64>, new: Vec<f64>) -> Self {
        let [base_median, new_median] = [&base, &new].map(|side| median(side).unwrap_or_default());
        MetricComparison {
            metric,
            flow: String::new(),
            unit: metric.unit().to_owned(),
            higher_is_better: metric.higher_is_better(),
            margin,
            base_median,
            new_median,
            base,
            new,
            ratio: (base_median != 0.0).then(|| new_median / base_median),
            low: None,
            high: None,
            p_corrected: None,
            verdict: Verdict::Unclear,
            note: None,
            settled_with: None,
        }
    }
}

names! {
    /// What is said of a metric or a case, the worst last.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Verdict {
        /// Within the margin, and certain to be.
        Equal = "equal",
        /// Better by more than the margin.
        Improved = "improved",
        /// The runs do not decide it.
        Unclear = "unclear",
        /// It is so since the sides were not measured in a way that lets them be judged.
        NoVerdict = "unclear",
        /// The sides were not measured alike, or not validly.
        NotComparable = "not comparable",
        /// Worse by more than the margin.
        Regressed = "regressed",
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
        self.cases.iter().map(CaseComparison::verdict).chain(over_all).max()
    }

    /// Whether more launches would change nothing: something regressed, or every case is clear.
    pub fn is_settled(&self) -> bool {
        self.verdict() == Some(Verdict::Regressed)
            || self.cases.iter().all(|case| case.verdict() <= Verdict::Improved)
    }

    pub fn cases_with(&self, verdict: Verdict) -> usize {
        self.cases.iter().map(CaseComparison::verdict).filter(|it| *it == verdict).count()
    }
}

/// What a gate compares where nothing is asked for: what few launches settle.
pub const GATE_METRICS: [Metric; 4] =
    [Metric::GbitPerS, Metric::P50Ns, Metric::ConnectionsPerS, Metric::HighestLoad];

/// How much does not matter to a gate, at least.
pub const GATE_MARGIN: f64 = 0.05;

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub metrics: Vec<Metric>,
    /// How much does not matter.
    pub margins: Margins,
    /// Differences between the sides that do not stand in the way.
    pub across: Vec<Aspect>,
    /// The part of the chance of error that this look has: 1 of the only one, less where launches are added until it is
    /// clear.
    pub part: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            metrics: Metric::compared().collect(),
            margins: Margins::default(),
            across: Vec::new(),
            part: 1.0,
        }
    }
}

names! {
    /// A part of what was measured on what; results are comparable where all of it is the same.
    #[derive(PartialOrd, Ord)]
    Aspect {
        /// The machines: name, processor, cores, NUMA nodes, kernel, system, governor, rdma-core.
        Host = "host",
        /// The devices: name, library, driver, firmware, whether they are software.
        Device = "device",
        /// The links: speed, lanes, link layer, PCI.
        Link = "link",
        /// MTU of the path, the port and the network interface.
        Mtu = "mtu",
        /// What went wrong with packets on purpose.
        Faults = "faults",
        /// What was asked for beyond the case's name, such as the length of the window.
        Settings = "settings",
        /// When: launches of both sides in turns, so that what changes with time meets both alike.
        Time = "time",
    }
}

/// A word on the command line that is none of those known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum OptionError {
    #[error("\"{word}\" is not a metric; metrics are {}", Metric::short_names())]
    Metric { word: String },
    #[error("\"{word}\" is not a difference to compare across; they are {}", aspect_names())]
    Aspect { word: String },
    /// Not of the form METRIC=PERCENT.
    #[error("\"{word}\" is not a margin; write it as METRIC=PERCENT, such as p99=10%")]
    Margin { word: String },
    /// Not a percentage above 0 and below 100.
    #[error("\"{word}\" is not a percentage above 0 and below 100; write 3% or 0.5%")]
    Percent { word: String },
    #[error("{name} is given twice; leave one out")]
    Twice { name: &'static str },
}

/// The names of all aspects with commas between them, as errors and help list them.
pub fn aspect_names() -> String {
    Aspect::ALL.iter().map(|aspect| aspect.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Metric {
    type Err = OptionError;

    fn from_str(word: &str) -> Result<Metric, OptionError> {
        Metric::from_name(word.trim()).ok_or_else(|| OptionError::Metric { word: word.to_owned() })
    }
}

impl FromStr for Aspect {
    type Err = OptionError;

    fn from_str(word: &str) -> Result<Aspect, OptionError> {
        let mut aspects = Aspect::ALL.iter().copied();
        let found = aspects.find(|aspect| aspect.name() == word.trim());
        found.ok_or_else(|| OptionError::Aspect { word: word.to_owned() })
    }
}

/// How much of each metric does not matter; the default where nothing was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Margins(BTreeMap<Metric, f64>);

impl Margins {
    /// The margin of a metric: 0.03 is 3 %.
    pub fn of(&self, metric: Metric) -> f64 {
        self.0.get(&metric).copied().unwrap_or_else(|| metric.default_margin())
    }

    /// The same with at least this of each metric for which nothing was said.
    #[must_use]
    pub fn or_at_least(mut self, least: f64) -> Margins {
        for metric in Metric::compared() {
            let usual = metric.default_margin().max(least);
            self.0.entry(metric).or_insert(usual);
        }
        self
    }
}

impl FromStr for Margins {
    type Err = OptionError;

    /// Reads `bandwidth=3%,p99=10%`: a metric and a percentage above 0 and below 100, each metric once.
    fn from_str(words: &str) -> Result<Margins, OptionError> {
        let mut margins = BTreeMap::new();
        for word in words.split(',') {
            let (name, percent) = word
                .split_once('=')
                .ok_or_else(|| OptionError::Margin { word: word.to_owned() })?;
            let metric: Metric = name.parse()?;
            let margin = percent
                .trim()
                .strip_suffix('%')
                .and_then(|number| number.trim().parse::<f64>().ok())
                .filter(|percent| *percent > 0.0 && *percent < 100.0)
                .ok_or_else(|| OptionError::Percent { word: percent.to_owned() })?;
            if margins.insert(metric, margin / 100.0).is_some() {
                return Err(OptionError::Twice { name: metric.short_name() });
            }
        }
        Ok(Margins(margins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    #[test]
    fn margins_are_percentages_of_metrics() {
        let margins: Margins = "bandwidth=2.5%, latency_p99_ns=12 %".parse().unwrap();
        assert!((margins.of(Metric::GbitPerS) - 0.025).abs() < 1e-12);
        assert!((margins.of(Metric::P99Ns) - 0.12).abs() < 1e-12);
        assert!((margins.of(Metric::MmsgPerS) - 0.05).abs() < 1e-12);
        let margins = margins.or_at_least(0.05);
        let some = [Metric::GbitPerS, Metric::P50Ns, Metric::CpuSecondsPerGb];
        assert_eq!(some.map(|it| margins.of(it)), [0.025, 0.05, 0.1]);
    }

    #[test]
    fn what_is_no_margin_says_what_one_is() {
        for (words, text) in [
            ("3%", "p99=10%"),
            ("p98=3%", "p99.9"),
            ("p99=3", "3% or 0.5%"),
            ("p99=0%", "above 0"),
            ("p99=NaN%", "above 0"),
            ("p99=1%,p99=2%", "twice"),
        ] {
            has(words.parse::<Margins>().unwrap_err().to_string(), [text]);
        }
    }

    #[test]
    fn every_name_is_understood() {
        for metric in Metric::compared() {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(metric.short_name().parse(), Ok(metric));
        }
        for &aspect in Aspect::ALL {
            assert_eq!(aspect.name().parse(), Ok(aspect));
        }
        assert!("cpus".parse::<Metric>().is_err() && "all".parse::<Aspect>().is_err());
    }
}
