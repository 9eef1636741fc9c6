//! New results beside old ones: is a case valid and comparable, and is it slower? It reads result files only.

pub mod nodes;
mod options;
mod sides;
mod turns;

use std::path::Path;

use crate::observe::Metric;
use crate::observe::format::{each_once, rate_text};
use experiment::{Units, judge_together};
use results::load::{Found, Loaded};
use results::model::{
    COMPARISON_VERSION, CaseComparison, CaseFlow, Comparison, LoadSearch, LoadVerdict,
    MetricComparison, MissingMetric, Observation, Run, SearchEnd, Side, Verdict,
};
use results::text;
use sides::{
    Launch, Pairs, SideCase, SideFiles, differ, differences, observations, pair, runs,
    settings_that_differ, units,
};
use statistics::{LEAST_OBSERVATIONS, can_tell, fewest_a_side, median};

pub use options::{Aspect, GATE_MARGIN, GATE_METRICS, Margins, Options, aspect_names};
pub use sides::changes;

/// Compares what was found at two places.
pub fn compare(
    (base_path, found_base): (&Path, &Found),
    (new_path, found_new): (&Path, &Found),
    options: &Options,
) -> Comparison {
    let mut notes = Vec::new();
    let refused =
        found_base.refused.iter().chain(&found_new.refused).map(ToString::to_string).collect();
    let sides = [("base", found_base), ("new", found_new)]
        .map(|(name, found)| SideFiles::new(name, without_copies(&found.results, &mut notes)));
    let [base, new] = &sides;
    if base.files.iter().any(|file| new.files.iter().any(|it| file.is_copy_of(it))) {
        notes.push("the same result is on both sides, so it is compared with itself".to_owned());
    }
    let (nodes, judged) = nodes::compare(&sides, options);
    let Pairs { both, only_in_base, only_in_new } = pair(&base.files, &new.files, &judged);
    let cases = both.iter().map(|pair| case(&sides, pair, options));
    let (mut cases, units): (Vec<CaseComparison>, Vec<Units>) = cases.unzip();
    let (over_all, reach) = judge_together(&mut cases, &units, options.part);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        base: side(base_path, &base.files),
        new: side(new_path, &new.files),
        over_all,
        reach,
        cases,
        nodes,
        only_in_base,
        only_in_new,
        refused,
        notes,
    }
}

/// The files without copies, such as `--json` beside `--out` leaves.
fn without_copies<'a>(files: &'a [Loaded], notes: &mut Vec<String>) -> Vec<&'a Loaded> {
    let mut kept: Vec<&Loaded> = Vec::new();
    for file in files {
        match kept.iter().find(|other| other.is_copy_of(file)) {
            Some(other) => notes.push(file.left_out_beside(other)),
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
        sides: [base, new].map(|side| side.name.to_owned()),
        config: first.config.clone(),
        ..CaseComparison::default()
    };
    let settings = settings_that_differ(&first.config, &other.config)
        .into_iter()
        .map(|text| (Aspect::Settings, text));
    let facts = differences(&base.facts(in_base), &new.facts(in_new));
    let of_facts = facts.iter().map(|fact| (fact.aspect, fact.whole_text()));
    for (aspect, text) in of_facts.chain(settings) {
        if options.across.contains(&aspect) {
            found.across.push(text);
        } else {
            found.not_comparable.push(format!("{text} [{aspect}]"));
        }
    }
    let counted = [(base, in_base), (new, in_new)]
        .map(|(side, cases)| side.launches(cases, &mut found.not_comparable, &mut found.notes));
    let in_rounds = turns::whole_rounds(sides, pair, counted, &mut found.notes);
    let launches = in_rounds.each_ref().map(Vec::as_slice);
    let [of_base, of_new] = launches.map(<[_]>::len);
    found.observation = if of_base.min(of_new) >= LEAST_OBSERVATIONS {
        Observation::Launch
    } else {
        Observation::Run
    };
    let units = launches.map(|side| units(side, found.observation));
    [found.base_count, found.new_count] = units.each_ref().map(Vec::len);
    if !found.not_comparable.is_empty() {
        return (found, units);
    }
    if can_tell(of_base, of_new, options.part) {
        match turns::check(&in_rounds, options.across.contains(&Aspect::Time)) {
            Ok(across) => found.across.extend(across),
            Err(reason) => found.no_verdict = Some(reason),
        }
    } else {
        let needed = fewest_a_side(options.part);
        found.no_verdict = Some(format!(
            "{of_base} and {of_new} launches count, and a verdict needs {needed} of each"
        ));
    }
    for flow in first.flows() {
        let name = flow.name();
        found.notes.extend(of_share(&flow, launches));
        let keeps_up = keeps_up(name, launches);
        for metric in &options.metrics {
            if flow.has(*metric) && !(metric.is_of_offer() && keeps_up) {
                add_metric(&mut found, *metric, name, launches, options);
            }
        }
    }
    if options.metrics.contains(&Metric::HighestLoad) {
        let margin = options.margins.of(Metric::HighestLoad);
        add_searches(&mut found, margin, launches);
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
fn add_metric(
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

/// Adds what launches of both sides found for each limit. The limit stands where other figures have their flow.
fn add_searches(found: &mut CaseComparison, margin: f64, sides: [&[Launch<'_>]; 2]) {
    for limit in each_once(
        sides.into_iter().flatten().flat_map(|it| &it.case.searches).map(|search| &*search.asked),
    ) {
        match figures(limit, margin, sides, found.observation) {
            Ok((figures, note)) => {
                found.metrics.push(figures);
                found.notes.push(note);
            }
            Err((verdict, reason)) => found.missing.push(MissingMetric {
                metric: Metric::HighestLoad,
                flow: limit.to_owned(),
                reason,
                verdict,
            }),
        }
    }
}

/// The figures of both sides and a sentence on their bounds; or why there are none.
fn figures(
    limit: &str,
    margin: f64,
    sides: [&[Launch<'_>]; 2],
    observation: Observation,
) -> Result<(MetricComparison, String), (Verdict, String)> {
    let [base, new] = sides.map(|side| of_launches(side, limit));
    let loads = [&base, &new].map(|side| -> Vec<Option<f64>> {
        side.iter().map(|search| highest_load(search.as_ref()?)).collect()
    });
    let [Some(old_loads), Some(now_loads)] =
        loads.each_ref().map(|loads| loads.iter().copied().collect::<Option<Vec<f64>>>())
    else {
        let [old, now] = loads.map(|loads| {
            let lacking = loads.iter().filter(|load| load.is_none()).count();
            format!("{lacking} of {}", loads.len())
        });
        let reason =
            format!("the search found no load in {old} base launches and {now} new launches");
        return Err((Verdict::NotComparable, reason));
    };
    let mut launches = sides.into_iter().flatten();
    if observation == Observation::Run && launches.any(|it| it.runs.len() > 1) {
        let reason = "launch 3 times a side, in turns: a search gives one figure a launch";
        return Err((Verdict::NoVerdict, reason.to_owned()));
    }
    // Bounds that overlap are no difference.
    let margin = [&base, &new].map(|side| width(side)).into_iter().fold(margin, f64::max);
    let note = differ(limit, bounds(&base), bounds(&new));
    let mut figures = MetricComparison::unjudged(Metric::HighestLoad, margin, old_loads, now_loads);
    figures.flow = limit.to_owned();
    Ok((figures, note))
}

/// Each launch's search for a limit.
fn of_launches<'a>(side: &[Launch<'a>], limit: &str) -> Vec<Option<&'a LoadSearch>> {
    side.iter()
        .map(|launch| {
            let mut searches = launch.case.searches.iter();
            searches.find(|search| search.asked == limit)
        })
        .collect()
}

/// The highest load that kept the limit; where none did, the lowest that broke it, above which the truth cannot be.
fn highest_load(search: &LoadSearch) -> Option<f64> {
    match search.end {
        SearchEnd::AllKeep => search.lower_per_second,
        SearchEnd::NoneKeeps => search.upper_per_second,
        SearchEnd::ScheduleNotKept | SearchEnd::Stopped => None,
        // How wide the bounds are is known with both of them alone.
        _ => search.upper_per_second.and(search.lower_per_second),
    }
}

/// By how much the upper bound is above the lower one, as a part of it: the median over launches.
fn width(side: &[Option<&LoadSearch>]) -> f64 {
    let widths: Vec<f64> = side
        .iter()
        .flatten()
        .filter_map(|search| Some(search.upper_per_second? / search.lower_per_second? - 1.0))
        .collect();
    median(&widths).unwrap_or(0.0)
}

/// `732.0 k/s to 744.0 k/s`, medians over launches.
fn bounds(side: &[Option<&LoadSearch>]) -> String {
    let searches = side.iter().flatten();
    let lower: Vec<f64> = searches.clone().filter_map(|it| it.lower_per_second).collect();
    let upper: Vec<f64> = searches.filter_map(|it| it.upper_per_second).collect();
    match (median(&lower).map(rate_text), median(&upper).map(rate_text)) {
        (Some(lower), Some(upper)) => format!("{lower} to {upper}"),
        (Some(lower), None) => format!("{lower}, the closed loop's maximum"),
        (None, Some(upper)) => format!("below {upper}"),
        (None, None) => "not known".to_owned(),
    }
}

/// Whether a flow kept up with its schedule, and lost nothing, in all runs of both sides: what it moved is then what was asked for. As the
/// question is put of both sides alike, a choice of metrics by it leaves the tests exact.
fn keeps_up(flow: &str, sides: [&[Launch<'_>]; 2]) -> bool {
    sides.into_iter().flat_map(runs).all(|run| {
        run.flow(flow).is_some_and(|flow| {
            let load = flow.load.as_ref();
            let all_came = flow.delivery.as_ref().is_none_or(|it| it.lost == 0);
            all_came && load.is_some_and(|load| load.verdict == LoadVerdict::Kept)
        })
    })
}

/// Which loads a share of the closed loop's maximum is on the two sides, each of its own maximum; `None` of other rates.
fn of_share(flow: &CaseFlow<'_>, sides: [&[Launch<'_>]; 2]) -> Option<String> {
    let rate = flow.settings.rate;
    rate.share()?;
    let [base, new] = sides.map(|side| {
        let rates: Vec<f64> = runs(side)
            .filter_map(|run| run.flow(flow.name())?.load.as_ref())
            .map(|load| load.asked_per_second)
            .collect();
        median(&rates).map(rate_text)
    });
    let label = match flow.label() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    Some(format!(
        "load {rate}{label} of each side's own closed loop: {} in the base, {} in the new results",
        base?, new?
    ))
}
