//! From two sides' files to their comparison.

use std::path::Path;

use super::facts::{self, Fact};
use super::judge::{self, Over, Units};
use super::loads;
use super::model::{
    COMPARISON_VERSION, CaseComparison, Comparison, MetricComparison, Observation, Side, Verdict,
};
use super::options::{Aspect, Options};
use super::pairing::{self, Pairs};
use super::searches;
use super::side::{Figures, Launch, SideView, differences, figures, missing, observations, units};
use super::turns;
use crate::observe::metric::Metric;
use crate::results::load::{Found, Loaded};
use crate::text;

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
        notes.push("the same result is on both sides, so it is compared with itself".to_owned());
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
    let (mut cases, units): (Vec<CaseComparison>, Vec<Units>) = both
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
        .unzip();
    let Over { over_all, reach } = judge::judge(&mut cases, &units);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        base: side(base_path, &base),
        new: side(new_path, &new),
        over_all,
        reach,
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
                "{} has the same content as {} and is left out",
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

/// A case as it is before it is judged, with the runs that its figures are of.
fn case(sides: &[SideView<'_>; 2], options: &Options) -> (CaseComparison, Units) {
    let [base, new] = sides;
    let (Some(first), Some(other)) = (base.case.first(), new.case.first()) else {
        return Default::default();
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
    let base = base.launches(&mut found.not_comparable, &mut found.notes);
    let new = new.launches(&mut found.not_comparable, &mut found.notes);
    found.observation = if base.len().min(new.len()) >= turns::LEAST {
        Observation::Launch
    } else {
        Observation::Run
    };
    let count = |launches: &[Launch<'_>]| match found.observation {
        Observation::Launch => launches.len(),
        Observation::Run => launches.iter().map(|launch| launch.runs.len()).sum(),
    };
    (found.base_count, found.new_count) = (count(&base), count(&new));
    let units = [&base, &new].map(|side| units(side, found.observation));
    if !found.not_comparable.is_empty() {
        return (found, units);
    }
    if let Some(reason) = order(&base, &new) {
        if options.across.contains(&Aspect::Time) {
            found.across.push(reason);
        } else {
            found.no_verdict = Some(reason);
        }
    }
    for flow in first.flows() {
        let name = flow.name();
        found.notes.extend(loads::of_share(&flow, [&base, &new]));
        let keeps_up = loads::keeps_up(name, [&base, &new]);
        for metric in &options.metrics {
            let is_elsewhere = metric.is_of_setup() && !flow.is_first();
            if is_elsewhere || (metric.is_of_offer() && keeps_up) {
                continue;
            }
            let sides = [&base, &new].map(|side| figures(*metric, name, side));
            match sides {
                [Figures::All(base), Figures::All(new)] => {
                    let of = |side: &[Vec<f64>]| observations(side, found.observation);
                    let margin = options.margins.of(*metric);
                    let mut metric =
                        MetricComparison::unjudged(*metric, margin, of(&base), of(&new));
                    metric.flow = name.to_owned();
                    if found.no_verdict.is_some() {
                        metric.verdict = Verdict::NoVerdict;
                    }
                    found.metrics.push(metric);
                }
                [Figures::None, Figures::None] => {}
                _ => found
                    .missing
                    .push(missing(*metric, name, [("base", &base), ("new", &new)])),
            }
        }
    }
    if options.metrics.contains(&Metric::HighestLoad) {
        let margin = options.margins.of(Metric::HighestLoad);
        searches::add(&mut found, margin, [&base, &new]);
    }
    if found.metrics.is_empty() && found.missing.is_empty() {
        let reason = "none of the metrics is on both sides";
        found.not_comparable.push(reason.to_owned());
    }
    (found, units)
}

/// Why launches in this order are not judged.
fn order(base: &[Launch<'_>], new: &[Launch<'_>]) -> Option<String> {
    if let ([base], [new]) = (base, new)
        && base.runs.len() == 1
        && new.runs.len() == 1
    {
        return Some("one run each".to_owned());
    }
    fn times<'a>(launches: &[Launch<'a>]) -> Vec<&'a str> {
        let file = |launch: &Launch<'a>| launch.file.result.started_at.as_str();
        launches.iter().map(file).collect()
    }
    turns::reason_against(&times(base), &times(new))
}
