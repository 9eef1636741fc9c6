//! What a set of results says: which case is best, where more of something gains nothing, which node is slow, and what looks
//! wrong. Differences that runs alone may make are told as such. Findings are values; `show::sentences` has their words.

mod best;
mod noise;
mod scaling;
mod subject;
mod wrong;

use serde::Serialize;

use crate::judge::mesh::{Matrix, Place};
use crate::observe::Metric;
use crate::results::model::ResultFile;
use subject::{Subject, subjects};

pub use scaling::Shape;
pub use wrong::{Problem, ProblemKind};

/// One thing that results say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The cases with the best figure, which runs do not tell apart.
    Best {
        /// By which metric.
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        /// The largest.
        high: f64,
        /// How many cases they are.
        cases: usize,
        /// How many are compared.
        of_cases: usize,
        /// Their names by what tells cases apart; of many what they share.
        names: Vec<String>,
    },
    /// Cases that runs do not tell apart, and whose figures are far apart all the same.
    NoClearWinner {
        /// By which metric.
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        /// The largest.
        high: f64,
        /// How many cases they are.
        cases: usize,
    },
    /// Runs are too few to tell how they scatter.
    FewRuns {
        /// Differences up to this share may be chance, by metric.
        chance: Vec<(Metric, f64)>,
    },
    /// What more of a setting gains.
    Scaling {
        /// By which metric.
        metric: Metric,
        /// How the figure goes.
        shape: Shape,
        /// Where it begins: the words of the setting, and the figure.
        from: (String, f64),
        /// Where it ends.
        to: (String, f64),
        /// What the cases share; empty where they differ in one setting alone.
        of: String,
    },
    /// A node or a path between two is slower than the others.
    Slow {
        /// By which metric.
        metric: Metric,
        /// Of which case, or rounds of a case.
        case: String,
        /// Which part of the node's traffic: `node`, `sends`, `receives`, `path`.
        part: &'static str,
        /// The node, or the two ends of the path.
        nodes: Vec<String>,
        /// The median over its flows.
        value: f64,
        /// The median over the flows of which nothing is told.
        usual: f64,
    },
    /// Something looks wrong.
    Wrong(Problem),
    /// Nothing of the kind was found.
    NothingWrong {
        /// In so many runs.
        runs: usize,
    },
}

impl Finding {
    /// Whether something is to be done about it.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Finding::Wrong(_) | Finding::Slow { .. })
    }

    /// Whether it is told where there is nothing else to tell.
    fn is_of_cases(&self) -> bool {
        !self.is_wrong() && !matches!(self, Finding::NothingWrong { .. })
    }
}

/// What results say, the best first and what is wrong last, the gravest of it first. Cases are compared where all results are
/// of the same nodes and devices.
pub fn findings(results: &[&ResultFile]) -> Vec<Finding> {
    let mut told = Vec::new();
    if let Some((subjects, metrics)) = compared(results) {
        told.extend(metrics.iter().filter_map(|it| best::best(&subjects, *it)));
        let few: Vec<Metric> = metrics
            .into_iter()
            .filter(|metric| subjects.iter().any(|it| it.has_few_runs(*metric)))
            .collect();
        if !few.is_empty() && told.iter().any(Finding::is_of_cases) {
            let chance = few.into_iter().map(|it| (it, noise::of_few_runs(it)));
            told.push(Finding::FewRuns {
                chance: chance.collect(),
            });
        }
        told.extend(scaling::scaling(&subjects, metrics[0]));
    }
    let wrong: Vec<Finding> = (wrong::problems(results).into_iter().map(Finding::Wrong))
        .chain(results.iter().flat_map(|file| slow(file)))
        .collect();
    if wrong.is_empty() && !told.is_empty() {
        told.push(Finding::NothingWrong {
            runs: wrong::runs(results).len(),
        });
    }
    told.extend(wrong);
    told
}

/// Nodes and paths that are slower than the others.
fn slow(file: &ResultFile) -> Vec<Finding> {
    let of_matrix = |matrix: &Matrix| -> Vec<Finding> {
        let found = matrix.outliers().into_iter().map(|outlier| {
            let name = |node: usize| matrix.name(node).to_owned();
            let (part, nodes) = match outlier.place {
                Place::Node(node) => ("node", vec![name(node)]),
                Place::From(node) => ("sends", vec![name(node)]),
                Place::To(node) => ("receives", vec![name(node)]),
                Place::Path(from, to) => ("path", vec![name(from), name(to)]),
            };
            Finding::Slow {
                metric: outlier.quantity,
                case: matrix.title(),
                part,
                nodes,
                value: outlier.value,
                usual: outlier.usual,
            }
        });
        found.collect()
    };
    Matrix::all(file).iter().flat_map(of_matrix).collect()
}

/// What is compared, and by which figures, that which scales first: transfers, or set-ups where there are no transfers.
fn compared<'a>(results: &[&'a ResultFile]) -> Option<(Vec<Subject<'a>>, [Metric; 2])> {
    let all = subjects(results)?;
    let (set_ups, transfers): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|subject| subject.case.config.is_set_up());
    let (subjects, metrics) = match transfers.is_empty() {
        true => (set_ups, [Metric::ConnectionsPerS, Metric::SetupP99Ns]),
        false => (transfers, [Metric::GbitPerS, Metric::P99Ns]),
    };
    (subjects.len() > 1).then_some((subjects, metrics))
}

#[cfg(test)]
mod tests;
