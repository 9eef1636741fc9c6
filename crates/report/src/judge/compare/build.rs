//! From two sides' files to their comparison.

use std::path::Path;

use super::facts;
use super::judge::{self, Over, Units};
use super::loads;
use super::model::{
    COMPARISON_VERSION, CaseComparison, Comparison, MetricComparison, MissingMetric, Observation,
    Side, Verdict,
};
use super::options::{Aspect, Options};
use super::pairing::{self, Pairs, SideCase};
use super::searches;
use super::side::{Launch, SideFiles, observations, runs, units};
use super::turns;
use crate::observe::format::each_once;
use crate::observe::metric::Metric;
use results::load::{Found, Loaded};
use results::model::Run;
use results::text;

/// Compares what was found at two places.
pub fn compare(
    (base_path, base): (&Path, &Found),
    (new_path, new): (&Path, &Found),
    options: &Options,
) -> Comparison {
    let mut notes = Vec::new();
    let refused = base.refused.iter().chain(&new.refused).map(ToString::to_string).collect();
    let sides = [("base", base), ("new", new)]
        .map(|(name, found)| SideFiles::new(name, without_copies(&found.results, &mut notes)));
    let [base, new] = &sides;
    if base.files.iter().any(|file| new.files.iter().any(|it| file.result == it.result)) {
        notes.push("the same result is on both sides, so it is compared with itself".to_owned());
    }
    let Pairs { both, only_in_base, only_in_new } = pairing::pair(&base.files, &new.files);
    let cases = both.iter().map(|pair| case(&sides, pair, options));
    let (mut cases, units): (Vec<CaseComparison>, Vec<Units>) = cases.unzip();
    let Over { over_all, reach } = judge::judge(&mut cases, &units, options.part);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        base: side(base_path, &base.files),
        new: side(new_path, &new.files),
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
    let revisions = files
        .iter()
        .map(|file| &file.result.tool)
        .map(|it| it.git.clone().unwrap_or_else(|| it.version.clone()));
    let started = files.iter().map(|file| file.result.started_at.clone());
    Side {
        name: text::path(path),
        files: files.iter().map(|file| text::path(&file.path)).collect(),
        revisions: each_once(revisions),
        started_at: started.min(),
    }
}

/// A case as it is before it is judged, with the runs that its figures are of.
fn case(
    sides: &[SideFiles<'_>; 2],
    pair: &[SideCase<'_>; 2],
    options: &Options,
) -> (CaseComparison, Units) {
    let ([base, new], [in_base, in_new]) = (sides, pair);
    let (Some((_, first)), Some((_, other))) = (in_base.first(), in_new.first()) else {
        return Default::default();
    };
    let mut found = CaseComparison {
        id: first.id.clone(),
        config: first.config.clone(),
        ..CaseComparison::default()
    };
    let settings = pairing::settings_that_differ(&first.config, &other.config)
        .into_iter()
        .map(|text| (Aspect::Settings, text));
    let facts = facts::differences(&base.facts(in_base), &new.facts(in_new));
    for (aspect, text) in facts.into_iter().chain(settings) {
        if options.across.contains(&aspect) {
            found.across.push(text);
        } else {
            found.not_comparable.push(format!("{text} [{aspect}]"));
        }
    }
    let base_launches = base.launches(in_base, &mut found.not_comparable, &mut found.notes);
    let new_launches = new.launches(in_new, &mut found.not_comparable, &mut found.notes);
    let launches = [base_launches.as_slice(), &new_launches];
    found.observation = if base_launches.len().min(new_launches.len()) >= turns::LEAST {
        Observation::Launch
    } else {
        Observation::Run
    };
    let units = launches.map(|side| units(side, found.observation));
    [found.base_count, found.new_count] = units.each_ref().map(Vec::len);
    if !found.not_comparable.is_empty() {
        return (found, units);
    }
    if let Some(reason) = order(&base_launches, &new_launches) {
        if options.across.contains(&Aspect::Time) {
            found.across.push(reason);
        } else {
            found.no_verdict = Some(reason);
        }
    }
    for flow in first.flows() {
        let name = flow.name();
        found.notes.extend(loads::of_share(&flow, launches));
        let keeps_up = loads::keeps_up(name, launches);
        for metric in &options.metrics {
            let is_elsewhere = metric.is_of_setup() && !flow.is_first();
            if !(is_elsewhere || metric.is_of_offer() && keeps_up) {
                add(&mut found, *metric, name, launches, options);
            }
        }
    }
    if options.metrics.contains(&Metric::HighestLoad) {
        let margin = options.margins.of(Metric::HighestLoad);
        searches::add(&mut found, margin, launches);
    }
    if found.no_verdict.is_some() {
        for metric in &mut found.metrics {
            metric.verdict = Verdict::NoVerdict;
        }
    }
    if found.metrics.is_empty() && found.missing.is_empty() {
        let reason = "none of the metrics is on both sides";
        found.not_comparable.push(reason.to_owned());
    }
    (found, units)
}

/// Adds a metric of a flow. Where some runs lack it, those that have it are no fair sample of all.
fn add(
    found: &mut CaseComparison,
    metric: Metric,
    flow: &str,
    sides: [&[Launch<'_>]; 2],
    options: &Options,
) {
    let figure = |run: &Run| metric.of(run, run.flow(flow));
    if let [Some(base), Some(new)] = sides.map(|side| observations(side, found.observation, figure))
    {
        let margin = options.margins.of(metric);
        let mut compared = MetricComparison::unjudged(metric, margin, base, new);
        compared.flow = flow.to_owned();
        found.metrics.push(compared);
        return;
    }
    if sides.into_iter().flat_map(runs).all(|run| figure(run).is_none()) {
        return;
    }
    let [base, new] = sides.map(|side| {
        let lacking = runs(side).filter(|run| figure(run).is_none()).count();
        (lacking, runs(side).count())
    });
    let mut lacking = sides.into_iter().flat_map(runs).filter(|run| figure(run).is_none());
    let (verdict, verb) = if lacking.all(|run| metric.has_samples(run, run.flow(flow))) {
        (Verdict::Unclear, "have too few samples for it")
    } else {
        (Verdict::NotComparable, "lack it")
    };
    found.missing.push(MissingMetric {
        metric,
        flow: flow.to_owned(),
        reason: format!(
            "{} of {} base runs and {} of {} new runs {verb}",
            base.0, base.1, new.0, new.1
        ),
        verdict,
    });
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
        launches.iter().map(|launch| launch.file.result.started_at.as_str()).collect()
    }
    turns::reason_against(&times(base), &times(new))
}
