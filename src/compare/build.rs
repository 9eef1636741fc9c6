//! From two sides' files to their comparison.

use std::collections::BTreeMap;
use std::path::Path;

use super::facts::{self, Fact};
use super::metric::Metric;
use super::model::{
    COMPARISON_VERSION, CaseComparison, Comparison, MetricComparison, Observation, Side, Verdict,
};
use super::options::{Aspect, Options};
use super::pairing::{self, Pairs, SideCase};
use super::valid::{self, Validity};
use crate::results::load::{Found, Loaded};
use crate::results::model::Run;
use crate::statistics::{self, Answer, Question, Unsettled, median};
use crate::text;

/// In so many files on both sides a case's figures are the files' medians.
const LAUNCHES: usize = 3;

/// Compares what was found at two places.
pub fn compare(
    (base_path, base): (&Path, &Found),
    (new_path, new): (&Path, &Found),
    options: &Options,
) -> Comparison {
    let mut notes = Vec::new();
    let refused = base.refused.iter().chain(&new.refused);
    let refused = refused.map(ToString::to_string).collect();
    let base = without_copies(&base.results, &mut notes);
    let new = without_copies(&new.results, &mut notes);
    if base
        .iter()
        .any(|file| new.iter().any(|other| file.result == other.result))
    {
        notes.push("a result is on both sides: it is compared with itself".to_owned());
    }
    let Pairs {
        both,
        only_in_base,
        only_in_new,
    } = pairing::pair(&base, &new);
    let facts = |side: &[&Loaded]| -> Vec<Vec<Fact>> {
        side.iter()
            .map(|file| facts::of_file(&file.result))
            .collect()
    };
    let (base_facts, new_facts) = (facts(&base), facts(&new));
    let mut cases: Vec<CaseComparison> = both
        .iter()
        .map(|(in_base, in_new)| {
            let sides = [
                SideView {
                    case: in_base,
                    files: &base,
                    facts: &base_facts,
                    name: "base",
                },
                SideView {
                    case: in_new,
                    files: &new,
                    facts: &new_facts,
                    name: "new",
                },
            ];
            case(&sides, options)
        })
        .collect();
    judge(&mut cases);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        base: side(base_path, &base),
        new: side(new_path, &new),
        cases,
        only_in_base,
        only_in_new,
        refused,
        notes,
    }
}

/// The files without those that say the same again, as `--json` beside `--out` leaves them.
fn without_copies<'a>(files: &'a [Loaded], notes: &mut Vec<String>) -> Vec<&'a Loaded> {
    let mut kept: Vec<&Loaded> = Vec::new();
    for file in files {
        match kept.iter().find(|other| other.result == file.result) {
            Some(other) => notes.push(format!(
                "{} says the same as {} and is left out",
                text::path(&file.path),
                text::path(&other.path)
            )),
            None => kept.push(file),
        }
    }
    kept
}

fn side(path: &Path, files: &[&Loaded]) -> Side {
    let mut revisions: Vec<String> = Vec::new();
    for file in files {
        let tool = &file.result.tool;
        let revision = tool.git.clone().unwrap_or_else(|| tool.version.clone());
        if !revisions.contains(&revision) {
            revisions.push(revision);
        }
    }
    Side {
        name: text::path(path),
        files: files.iter().map(|file| text::path(&file.path)).collect(),
        revisions,
        started_at: files
            .iter()
            .map(|file| file.result.started_at.clone())
            .min(),
    }
}

/// A case of one side with the files it is in.
struct SideView<'a> {
    case: &'a SideCase<'a>,
    files: &'a [&'a Loaded],
    facts: &'a [Vec<Fact>],
    name: &'static str,
}

impl SideView<'_> {
    /// The runs that count, by file; what is wrong with others goes to `bad`, what was left out to `notes`.
    fn runs(&self, bad: &mut Vec<String>, notes: &mut Vec<String>) -> Vec<Vec<&Run>> {
        let (mut stopped, mut doubtful, mut all) = (0, BTreeMap::new(), 0);
        let mut by_file = Vec::new();
        for (file, case) in &self.case.files {
            let mut counting = Vec::new();
            for run in &case.runs {
                all += 1;
                match valid::of_run(run) {
                    Validity::Counts => counting.push(run),
                    Validity::Stopped => stopped += 1,
                    Validity::Doubtful(kind) => *doubtful.entry(kind.name()).or_insert(0) += 1,
                    Validity::Bad(reason) => {
                        let path = self.files.get(*file).map(|file| text::path(&file.path));
                        let path = path.unwrap_or_default();
                        bad.push(format!("run {} in {path} {reason}", run.run));
                    }
                }
            }
            if !counting.is_empty() {
                by_file.push(counting);
            }
        }
        if stopped > 0 {
            notes.push(format!(
                "{stopped} of {all} {} runs were stopped by the user and do not count",
                self.name
            ));
        }
        for (kind, count) in doubtful {
            notes.push(format!(
                "{count} of {all} {} runs are marked \"{kind}\" and do not count",
                self.name
            ));
        }
        if by_file.is_empty() && bad.is_empty() {
            bad.push(format!("the {} side has no run that counts", self.name));
        }
        by_file
    }
}

fn case(sides: &[SideView<'_>; 2], options: &Options) -> CaseComparison {
    let [base, new] = sides;
    let (Some(first), Some(other)) = (base.case.first(), new.case.first()) else {
        return CaseComparison::default();
    };
    let mut found = CaseComparison {
        id: first.id.clone(),
        config: first.config.clone(),
        ..CaseComparison::default()
    };
    for (aspect, text) in differences(base, new) {
        if options.across.contains(&aspect) {
            found.across.push(text);
        } else {
            found.not_comparable.push(format!("{text} [{aspect}]"));
        }
    }
    for text in pairing::settings_that_differ(&first.config, &other.config) {
        if options.across.contains(&Aspect::Settings) {
            found.across.push(text);
        } else {
            found
                .not_comparable
                .push(format!("{text} [{}]", Aspect::Settings));
        }
    }
    let base_runs = base.runs(&mut found.not_comparable, &mut found.notes);
    let new_runs = new.runs(&mut found.not_comparable, &mut found.notes);
    found.observation = if base_runs.len() >= LAUNCHES && new_runs.len() >= LAUNCHES {
        Observation::Launch
    } else {
        Observation::Run
    };
    let count = |runs: &[Vec<&Run>]| match found.observation {
        Observation::Launch => runs.len(),
        Observation::Run => runs.iter().map(Vec::len).sum(),
    };
    (found.base_count, found.new_count) = (count(&base_runs), count(&new_runs));
    if !found.not_comparable.is_empty() {
        return found;
    }
    for metric in &options.metrics {
        let base = figures(*metric, &base_runs, found.observation);
        let new = figures(*metric, &new_runs, found.observation);
        match (base.is_empty(), new.is_empty()) {
            (true, true) => {}
            (false, false) => found.metrics.push(unjudged(*metric, base, new, options)),
            (base, _) => {
                let missing = if base { "base" } else { "new results" };
                let name = metric.short_name();
                found
                    .notes
                    .push(format!("{name} is not compared: the {missing} lack it"));
            }
        }
    }
    if found.metrics.is_empty() {
        let reason = "none of the metrics is on both sides";
        found.not_comparable.push(reason.to_owned());
    }
    found
}

fn differences(base: &SideView<'_>, new: &SideView<'_>) -> Vec<(Aspect, String)> {
    let file_facts = |side: &SideView<'_>| -> Vec<Vec<Fact>> {
        let of = |(file, case): &(usize, &crate::results::model::CaseResult)| {
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

/// A side's figures of a metric; none when one of its runs lacks it, since a part is no fair sample.
pub(super) fn figures(metric: Metric, by_file: &[Vec<&Run>], observation: Observation) -> Vec<f64> {
    let of = |run: &&Run| metric.of(run).filter(|value| value.is_finite());
    let all: Option<Vec<Vec<f64>>> = by_file
        .iter()
        .map(|runs| runs.iter().map(of).collect())
        .collect();
    let all = all.unwrap_or_default();
    match observation {
        Observation::Run => all.concat(),
        Observation::Launch => all.iter().filter_map(|values| median(values)).collect(),
    }
}

fn unjudged(metric: Metric, base: Vec<f64>, new: Vec<f64>, options: &Options) -> MetricComparison {
    MetricComparison {
        metric,
        unit: metric.unit().to_owned(),
        higher_is_better: metric.higher_is_better(),
        margin: options.margins.of(metric),
        base_median: median(&base).unwrap_or_default(),
        new_median: median(&new).unwrap_or_default(),
        base,
        new,
        ratio: None,
        low: None,
        high: None,
        p_corrected: None,
        verdict: Verdict::Unclear,
        note: None,
        settled_with: None,
    }
}

/// Judges all metrics of all cases together.
fn judge(cases: &mut [CaseComparison]) {
    let questions: Vec<Question> = cases
        .iter()
        .enumerate()
        .flat_map(|(group, case)| {
            case.metrics.iter().map(move |metric| Question {
                group,
                base: &metric.base,
                new: &metric.new,
                margin: metric.margin,
                higher_is_better: metric.higher_is_better,
            })
        })
        .collect();
    let answers = statistics::judge(&questions);
    let observations: Vec<Observation> = cases.iter().map(|case| case.observation).collect();
    let metrics = cases
        .iter_mut()
        .zip(observations)
        .flat_map(|(case, observation)| {
            case.metrics
                .iter_mut()
                .map(move |metric| (metric, observation))
        });
    for ((metric, observation), answer) in metrics.zip(&answers) {
        apply(metric, answer, observation);
    }
}

fn apply(metric: &mut MetricComparison, answer: &Answer, observation: Observation) {
    if let Some(estimate) = answer.estimate {
        metric.ratio = Some(estimate.ratio);
        if estimate.high.is_finite() {
            (metric.low, metric.high) = (Some(estimate.low), Some(estimate.high));
        }
    }
    metric.p_corrected = answer.p_corrected;
    metric.verdict = match answer.verdict {
        statistics::Verdict::Better => Verdict::Improved,
        statistics::Verdict::Equal => Verdict::Equal,
        statistics::Verdict::Worse => Verdict::Regressed,
        statistics::Verdict::Unclear => Verdict::Unclear,
    };
    let what = match observation {
        Observation::Run => "runs",
        Observation::Launch => "launches",
    };
    let (note, count) = match answer.unsettled {
        None => (None, None),
        Some(_) if metric.ratio.is_none() => (
            Some("the base's median is 0, so there is no ratio".to_owned()),
            None,
        ),
        Some(Unsettled::TooFew { needed }) => (
            Some(format!("needs at least {needed} {what} a side")),
            Some(needed),
        ),
        Some(Unsettled::TooMany { questions, needed }) => (
            Some(format!(
                "the sides lie apart, but so they do by chance among {questions} figures that differ so much: \
                 needs at least {needed} {what} a side, or fewer metrics"
            )),
            Some(needed),
        ),
        Some(Unsettled::Noise { about: Some(about) }) => (
            Some(format!(
                "the {what} scatter too much; about {about} a side may settle it"
            )),
            Some(about),
        ),
        Some(Unsettled::Noise { about: None }) => (
            Some(format!(
                "the {what} scatter too much for any sensible number of them"
            )),
            None,
        ),
    };
    (metric.note, metric.settled_with) = (note, count);
}
