//! What a set of results says: which case is best, where more of something gains nothing, which node is slow, and what looks
//! wrong. Differences that runs alone may make are told as such. Findings are values; `show::sentences` has their words.

mod best;
mod finding;
mod noise;
mod scaling;
mod subject;
mod wrong;

use crate::judge::mesh::{Matrix, Place};
use crate::observe::Metric;
use crate::results::model::ResultFile;
use subject::{Subject, subjects};

pub use finding::{Finding, Shape};
pub use wrong::{Problem, ProblemKind};

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
