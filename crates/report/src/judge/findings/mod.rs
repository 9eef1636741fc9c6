//! What a set of results says: which case is best, where more of something gains nothing, which node is slow, and what looks
//! wrong. Differences that chance may explain are marked as such. Findings are values; `show::sentences` has their words.

mod best;
mod finding;
mod noise;
mod rails;
mod scaling;
mod subject;
mod wrong;

use crate::judge::mesh::{Fan, Mesh, NodesFinding};
use results::model::ResultFile;
use subject::Compared;

pub use finding::{Finding, Shape};
pub use rails::SlowRail;
pub use wrong::{Problem, ProblemKind};

/// All that a result says: computed once, for everybody who shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Of its cases and runs, the best first and what is wrong last, the gravest of it first.
    pub findings: Vec<Finding>,
    /// Of the nodes of its patterns.
    pub meshes: Vec<Mesh>,
    /// Of its incasts and outcasts.
    pub fans: Vec<Fan>,
}

impl Findings {
    pub fn new(result: &ResultFile) -> Findings {
        let meshes = Mesh::of_file(result);
        let mut findings = findings(&[result]);
        if meshes.iter().flat_map(|it| &it.findings).any(NodesFinding::is_wrong) {
            findings.retain(|it| !matches!(it, Finding::NothingWrong { .. }));
        }
        Findings { findings, meshes, fans: Fan::of_file(result) }
    }

    /// All of it, those of nodes last.
    pub fn all_findings(&self) -> Vec<Finding> {
        let of_meshes = self.meshes.iter().flat_map(|mesh| {
            mesh.findings.iter().map(|finding| (mesh.matrix.title.clone(), finding.clone()))
        });
        let of_fans = self.fans.iter().map(|fan| {
            (
                fan.points.last().map(|point| point.case.clone()).unwrap_or_default(),
                NodesFinding::Fan(fan.clone()),
            )
        });
        let of_nodes =
            of_meshes.chain(of_fans).map(|(case, finding)| Finding::Nodes { case, finding });
        self.findings.iter().cloned().chain(of_nodes).collect()
    }
}

/// What results say of cases and runs, the best first and what is wrong last, the gravest of it first. Cases are compared
/// where all results are of the same nodes and devices.
pub fn findings(results: &[&ResultFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    // A victim beside attackers is no choice between settings.
    let are_choices = results.iter().all(|it| it.beside.is_empty());
    if let Some(compared) = Compared::new(results).filter(|_| are_choices) {
        let [first, second] = compared.metrics.map(|it| (it, compared.subjects(it)));
        let (mut few, by_metric) = (Vec::new(), [&first, &second]);
        for (metric, subjects) in by_metric {
            found.extend(best::best(subjects, &compared.rows, *metric));
            if subjects.iter().any(|it| it.figures.are_of_few_runs) {
                few.push((*metric, noise::of_few_runs(*metric)));
            }
        }
        if !few.is_empty() && !found.is_empty() {
            found.push(Finding::FewRuns { chance: few });
        }
        found.extend(scaling::scaling(&first.1, &compared.rows, first.0));
    }
    let wrong = wrong::problems(results);
    let rails: Vec<_> = results.iter().flat_map(|it| rails::slow(it)).collect();
    if wrong.is_empty() && rails.is_empty() && !found.is_empty() {
        found.push(Finding::NothingWrong { runs: wrong::runs(results).len() });
    }
    found.extend(wrong.into_iter().map(Finding::Wrong));
    found.extend(rails.into_iter().map(|rail| match rail.rails {
        0..=2 => Finding::RailsDiffer(rail),
        _ => Finding::SlowRail(rail),
    }));
    found
}

#[cfg(test)]
mod tests;
