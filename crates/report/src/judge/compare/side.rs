//! One side of a case: on what it was measured, which of its runs count, and what they have of a metric. It must not
//! judge.

use super::facts::{self, Fact};
use super::model::{MissingMetric, Observation, Verdict};
use super::options::Aspect;
use super::pairing::SideCase;
use crate::observe::metric::Metric;
use crate::observe::standing::{self, LeftOut, Standing};
use crate::results::load::Loaded;
use crate::results::model::{CaseResult, Run};
use crate::text;
use statistics::{Unit, median};

/// A case of one side with the files it is in.
pub(super) struct SideView<'a> {
    pub(super) case: &'a SideCase<'a>,
    pub(super) files: &'a [&'a Loaded],
    pub(super) facts: &'a [Vec<Fact>],
    pub(super) name: &'static str,
}

/// A file's runs of a case that count.
pub(super) struct Launch<'a> {
    /// Of the file, within its side.
    pub(super) number: usize,
    pub(super) file: &'a Loaded,
    pub(super) case: &'a CaseResult,
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> SideView<'a> {
    /// The runs that count; what is wrong with others goes to `bad`, what was left out to `notes`.
    pub(super) fn launches(
        &self,
        bad: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Vec<Launch<'a>> {
        let mut not_counted = LeftOut::default();
        let mut launches = Vec::new();
        for (number, case) in &self.case.files {
            let Some(file) = self.files.get(*number).copied() else {
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
                launches.push(Launch {
                    number: *number,
                    file,
                    case,
                    runs,
                });
            }
        }
        let LeftOut {
            all,
            stopped,
            doubtful,
            ..
        } = not_counted;
        let mut left_out = Vec::new();
        if stopped > 0 {
            left_out.push(format!(
                "{stopped} of {all} {} runs were stopped by the user",
                self.name
            ));
        }
        for (kind, count) in doubtful {
            left_out.push(format!(
                "{count} of {all} {} runs are marked \"{}\" ({})",
                self.name,
                kind.name(),
                standing::reason(kind).remedy
            ));
        }
        if launches.is_empty() && bad.is_empty() {
            let left_out = left_out.join("; ");
            let name = self.name;
            bad.push(match &*left_out {
                "" => format!("the {name} side has no run that counts"),
                why => format!("the {name} side has no run that counts: {why}"),
            });
        } else {
            notes.extend(left_out.into_iter().map(|text| text + " and do not count"));
        }
        launches
    }
}

/// On what the sides of a case were measured differently.
pub(super) fn differences(base: &SideView<'_>, new: &SideView<'_>) -> Vec<(Aspect, String)> {
    let file_facts = |side: &SideView<'_>| -> Vec<Vec<Fact>> {
        let of = |(file, case): &(usize, &CaseResult)| {
            let mut facts = side.facts.get(*file).cloned().unwrap_or_default();
            facts.extend(facts::of_case(&case.config));
            facts
        };
        side.case.files.iter().map(of).collect()
    };
    let (base, new) = (file_facts(base), file_facts(new));
    fn slices(facts: &[Vec<Fact>]) -> Vec<&[Fact]> {
        facts.iter().map(Vec::as_slice).collect()
    }
    facts::differences(&slices(&base), &slices(&new))
}

/// What a side's runs have of a metric.
pub(super) enum Figures {
    /// Every run has it; by launch.
    All(Vec<Vec<f64>>),
    /// Some have it.
    Some,
    /// No run has it.
    None,
}

/// What a side's runs have of a metric of their flow with this name.
pub(super) fn figures(metric: Metric, flow: &str, side: &[Launch<'_>]) -> Figures {
    let of = |run: &Run| metric.of(run, run.flow(flow));
    let of_launch = |launch: &Launch<'_>| launch.runs.iter().map(|run| of(run)).collect();
    let all: Option<Vec<Vec<f64>>> = side.iter().map(of_launch).collect();
    match all {
        Some(all) => Figures::All(all),
        None if runs(side).any(|run| of(run).is_some()) => Figures::Some,
        None => Figures::None,
    }
}

/// All runs that count.
pub(super) fn runs<'a>(side: &'a [Launch<'_>]) -> impl Iterator<Item = &'a Run> {
    side.iter().flat_map(|launch| launch.runs.iter().copied())
}

/// One figure an observation: each run's, or each launch's median.
pub(super) fn observations(side: &[Vec<f64>], observation: Observation) -> Vec<f64> {
    match observation {
        Observation::Run => side.concat(),
        Observation::Launch => side.iter().filter_map(|values| median(values)).collect(),
    }
}

/// Which runs a side's observations are of, in the same order.
pub(super) fn units(side: &[Launch<'_>], observation: Observation) -> Vec<Unit> {
    let of_launch = |launch: &Launch<'_>| -> Vec<Unit> {
        let unit = |run| Unit {
            launch: launch.number,
            run,
        };
        match observation {
            Observation::Run => launch.runs.iter().map(|run| unit(Some(run.run))).collect(),
            Observation::Launch => vec![unit(None)],
        }
    };
    side.iter().flat_map(of_launch).collect()
}

/// A metric that some runs lack: those that have it are no fair sample of all.
pub(super) fn missing(
    metric: Metric,
    flow: &str,
    sides: [(&str, &[Launch<'_>]); 2],
) -> MissingMetric {
    let lacks = |run: &&Run| metric.of(run, run.flow(flow)).is_none();
    let lacking = |side: &[Launch<'_>]| runs(side).filter(lacks).count();
    let parts = sides.map(|(name, side)| {
        let (count, all) = (lacking(side), runs(side).count());
        format!("{count} of {all} {name} runs")
    });
    let has_samples = |run: &Run| metric.has_samples(run, run.flow(flow));
    let is_of_few_samples = sides
        .iter()
        .all(|(_, side)| runs(side).filter(lacks).all(has_samples));
    let [base, new] = parts;
    let (verdict, verb) = match is_of_few_samples {
        true => (Verdict::Unclear, "have too few samples for it"),
        false => (Verdict::NotComparable, "lack it"),
    };
    MissingMetric {
        metric,
        flow: flow.to_owned(),
        reason: format!("{base} and {new} {verb}"),
        verdict,
    }
}
