//! One side: its files, and the runs of a case that count.

use super::facts::{self, Fact};
use super::model::Observation;
use super::pairing::SideCase;
use crate::observe::standing::{self, LeftOut, Standing};
use results::load::Loaded;
use results::model::{CaseResult, Run};
use results::text;
use statistics::{Unit, median};

/// The files of a side, with the facts of each.
pub(super) struct SideFiles<'a> {
    pub(super) name: &'static str,
    pub(super) files: Vec<&'a Loaded>,
    facts: Vec<Vec<Fact>>,
}

/// A file's runs of a case that count.
pub(super) struct Launch<'a> {
    /// Of the file, within its side.
    number: usize,
    pub(super) file: &'a Loaded,
    pub(super) case: &'a CaseResult,
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> SideFiles<'a> {
    pub(super) fn new(name: &'static str, files: Vec<&'a Loaded>) -> SideFiles<'a> {
        let facts = files.iter().map(|file| facts::of_file(&file.result));
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
                    .chain(facts::of_case(&case.config))
                    .collect()
            })
            .collect()
    }

    /// The runs of a case that count; what is wrong with others goes to `bad`, what was left out to `notes`.
    pub(super) fn launches(
        &self,
        case: &SideCase<'a>,
        bad: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Vec<Launch<'a>> {
        let mut not_counted = LeftOut::default();
        let mut launches = Vec::new();
        for &(number, case) in case {
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
        Observation::Launch => by_launch.iter().filter_map(|values| median(values)).collect(),
    })
}

/// Which runs a side's observations are of, in the same order.
pub(super) fn units(side: &[Launch<'_>], observation: Observation) -> Vec<Unit> {
    side.iter()
        .flat_map(|launch| {
            let runs: Vec<Option<u32>> = match observation {
                Observation::Run => launch.runs.iter().map(|run| Some(run.run)).collect(),
                Observation::Launch => vec![None],
            };
            runs.into_iter().map(|run| Unit { launch: launch.number, run })
        })
        .collect()
}
