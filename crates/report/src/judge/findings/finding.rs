//! What results may say, as values.

use serde::Serialize;

use super::rails::SlowRail;
use super::wrong::Problem;
use crate::judge::mesh::NodesFinding;
use crate::observe::Metric;

/// One thing that results say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The cases with the best figure, within the scatter of runs.
    Best {
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        high: f64,
        /// How many cases they are.
        cases: usize,
        of_cases: usize,
        /// Their names; of many cases the settings that they share.
        names: Vec<String>,
    },
    /// Cases within the scatter of runs whose figures are far apart nevertheless.
    NoClearWinner {
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        high: f64,
        /// How many cases they are.
        cases: usize,
    },
    /// Runs are too few to know how they scatter.
    FewRuns {
        /// Differences up to this share may be chance, by metric.
        chance: Vec<(Metric, f64)>,
    },
    /// What more of a setting gains.
    Scaling {
        metric: Metric,
        shape: Shape,
        /// Where it begins: the words of the setting, and the figure.
        from: (String, f64),
        to: (String, f64),
        /// What the cases share; empty where they differ in one setting alone.
        of: String,
    },
    /// A rail is slower than the others of its node.
    SlowRail(SlowRail),
    /// The same of two rails, which do not show which of them is as it should be.
    RailsDiffer(SlowRail),
    Wrong(Problem),
    /// Nothing of the kind was found.
    NothingWrong {
        runs: usize,
    },
    /// What the runs of a pattern say of its nodes.
    #[serde(untagged)]
    Nodes {
        /// The case, or the rounds of a case.
        case: String,
        #[serde(flatten)]
        finding: NodesFinding,
    },
}

impl Finding {
    /// Whether something is to be done about it.
    pub fn is_wrong(&self) -> bool {
        match self {
            Finding::Wrong(_) | Finding::SlowRail(_) | Finding::RailsDiffer(_) => true,
            Finding::Nodes { finding, .. } => finding.is_wrong(),
            _ => false,
        }
    }

    /// The case, or rounds of a case, that it is about; of several the first.
    pub fn case(&self) -> Option<&str> {
        match self {
            Finding::Wrong(problem) => Some(&problem.case),
            Finding::SlowRail(rail) | Finding::RailsDiffer(rail) => Some(&rail.case),
            Finding::Nodes { case, .. } => Some(case),
            _ => None,
        }
    }
}

/// How a figure goes over a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Its values differ by no more than runs scatter.
    Level,
    /// It is less at the second of two values.
    Falls,
    /// It is more at the second of two values.
    Grows,
    /// It grows up to the last value.
    StillGrows,
    /// It grows until a value, and no further.
    GrowsUntil,
    /// It is highest somewhere before the end, and falls from there.
    HighestThenFalls,
    Highest,
}
