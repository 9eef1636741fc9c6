//! What a comparison says: the types of which the table, the documents and the figures are made.

use serde::{Deserialize, Serialize};
use settings::names;

use crate::observe::metric::Metric;
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
    #[serde(serialize_with = "results::compact::in_one_line")]
    pub base: Vec<f64>,
    /// Figures of the new side, in order.
    #[serde(serialize_with = "results::compact::in_one_line")]
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
