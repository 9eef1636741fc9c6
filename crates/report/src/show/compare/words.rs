//! Figures and sums of a comparison in words that the table and the Markdown share.

use settings::listed;

use crate::judge::compare::model::{
    CaseComparison, Comparison, MetricComparison, MissingMetric, Observation, Verdict,
};
use crate::observe::format::some_of;
use crate::observe::metric::Metric;
use crate::results::model::{FORWARD, FlowConfig};

/// `21.10 Gb/s`, `12.40 µs`, `1.234 M/s`.
pub(super) fn value(metric: Metric, value: f64) -> String {
    metric.text(value)
}

/// What a figure's flow is called; nothing of `forward`, which is what cases have that name none.
pub(super) fn flow(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty() && *name != FORWARD)
}

/// What programs read as the name of what was measured: the case, and the flow behind a slash.
pub(super) fn subject(case: &CaseComparison, metric: &MetricComparison) -> String {
    match flow(&metric.flow) {
        Some(flow) => format!("{}/{flow}", case.id),
        None => case.id.clone(),
    }
}

/// `12.0 µs -> 13.3 µs, +11.1 %, 95 % interval +10.4 … +11.8 %`.
pub(super) fn figures_of(metric: &MetricComparison) -> String {
    format!(
        "{} -> {}, {}, 95 % interval {}",
        value(metric.metric, metric.base_median),
        value(metric.metric, metric.new_median),
        change(metric.ratio),
        interval(metric)
    )
}

/// What people read as the name of a figure: `bandwidth`, `bandwidth of reverse`.
pub(super) fn figure(metric: Metric, of: &str) -> String {
    match flow(of) {
        Some(flow) => format!("{} of {flow}", metric.short_name()),
        None => metric.short_name().to_owned(),
    }
}

/// A ratio as a change: `-10.4 %`.
pub(super) fn change(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{} %", percent(ratio)))
}

/// `-12.1 … -8.9 %`.
pub(super) fn interval(metric: &MetricComparison) -> String {
    match (metric.low, metric.high) {
        (Some(low), Some(high)) => format!("{} … {} %", percent(low), percent(high)),
        _ => "-".to_owned(),
    }
}

fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 0.05 {
        return "0.0".to_owned();
    }
    if percent.abs() >= 1e4 {
        return format!("{percent:+.0e}");
    }
    format!("{percent:+.*}", usize::from(percent.abs() < 99.95))
}

/// What one figure is: `runs`, `launches`.
pub(super) fn figures(observation: Observation) -> &'static str {
    match observation {
        Observation::Run => "runs",
        Observation::Launch => "launches",
    }
}

/// `unclear, ~14 runs`: the verdict and what would settle it.
pub(super) fn verdict(metric: &MetricComparison, observation: Observation) -> String {
    let word = metric.verdict.name();
    match (metric.verdict, metric.settled_with) {
        (Verdict::Unclear, Some(count)) => format!("{word}, ~{count} {}", figures(observation)),
        _ => word.to_owned(),
    }
}

/// What the figures can settle, before anything is said of what they show; `None` when nothing was judged.
pub(super) fn reach(comparison: &Comparison) -> Option<String> {
    let settles = comparison.reach?;
    let (count, what) = (settles.count, figures(settles.observation));
    let families = [
        (settles.over_all, "over all cases"),
        (settles.by_case, "case by case"),
    ];
    let asked = families.iter().filter(|(reach, _)| reach.questions > 0);
    let parts: Vec<String> = asked
        .map(|(reach, which)| format!("{} of {} questions {which}", reach.settled, reach.questions))
        .collect();
    let text = format!(
        "{count} {what} a side settle {}: is it worse by twice its margin?",
        parts.join(" and ")
    );
    let open = families
        .iter()
        .filter(|(reach, _)| reach.settled < reach.questions);
    let needed: Vec<Option<usize>> = open.map(|(reach, _)| reach.needed).collect();
    if needed.is_empty() {
        return Some(text);
    }
    let needed: Option<Vec<usize>> = needed.into_iter().collect();
    Some(match needed.and_then(|needed| needed.into_iter().max()) {
        Some(needed) => format!(
            "{text} For all of them measure about {needed} a side, or ask fewer (--metrics)."
        ),
        None => format!("{text} No practical number settles all of them: ask fewer (--metrics)."),
    })
}

/// What one figure over all cases is.
pub(super) fn observation(comparison: &Comparison) -> Observation {
    comparison
        .reach
        .map(|settles| settles.observation)
        .unwrap_or_default()
}

/// `over all 18 cases`; `over all 36 flows` where cases have several.
pub(super) fn over_all_cases(comparison: &Comparison) -> String {
    let most = comparison
        .over_all
        .iter()
        .map(|over_all| over_all.cases)
        .max();
    let most = most.unwrap_or_default();
    let what = match most > comparison.cases.len() {
        true => "flow",
        false => "case",
    };
    format!("over all {}", count(most, what))
}

/// `10 files, 4f2c1aa`.
pub(super) fn side(side: &crate::judge::compare::model::Side) -> String {
    let files = count(side.files.len(), "file");
    let mut text = format!("{} ({files}", side.name);
    for revision in &side.revisions {
        text += ", ";
        text += revision;
    }
    text + ")"
}

/// `1 case`, `2 cases`.
pub(super) fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The sum: `over all cases p50 regressed; 18 cases: 1 regressed, 2 unclear, 15 equal`.
pub(super) fn summary(comparison: &Comparison) -> String {
    let over_all = over_all(comparison);
    let cases = by_case(comparison);
    match over_all {
        Some(text) => format!("{text}; {cases}"),
        None => cases,
    }
}

/// What has changed over all cases: `over all cases bandwidth and p50 regressed`; `None` when nothing has.
fn over_all(comparison: &Comparison) -> Option<String> {
    let changed = [Verdict::Regressed, Verdict::Improved]
        .into_iter()
        .filter_map(|verdict| {
            let names = comparison.over_all_with(verdict);
            let names: Vec<&str> = names
                .iter()
                .map(|figures| figures.metric.short_name())
                .collect();
            (!names.is_empty()).then(|| format!("{} {}", listed(&names), verdict.name()))
        });
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| format!("over all cases {}", changed.join(", ")))
}

fn by_case(comparison: &Comparison) -> String {
    let mut parts = Vec::new();
    for verdict in [
        Verdict::Regressed,
        Verdict::NotComparable,
        Verdict::Unclear,
        Verdict::Improved,
        Verdict::Equal,
    ] {
        // Two verdicts have this word.
        let has_word = |case: &&CaseComparison| case.verdict().name() == verdict.name();
        let cases = comparison.cases.iter().filter(has_word).count();
        if cases > 0 {
            parts.push(format!("{cases} {}", verdict.name()));
        }
    }
    if parts.is_empty() {
        return "no case is on both sides".to_owned();
    }
    let cases = count(comparison.cases.len(), "case");
    format!("{cases}: {}", parts.join(", "))
}

/// The cases, worst first; among equals in the order of the base.
pub(super) fn worst_first(comparison: &Comparison) -> Vec<&CaseComparison> {
    let mut cases: Vec<&CaseComparison> = comparison.cases.iter().collect();
    cases.sort_by_key(|case| std::cmp::Reverse(case.verdict()));
    cases
}

/// Names that a person takes in: the first, and how many more.
pub(super) fn some<T: AsRef<str>>(names: &[T]) -> String {
    some_of(names, 6)
}

/// Why figures are not judged, each reason once: `one run each: unclear`, and of how many cases where it is not all.
pub(super) fn no_verdicts(comparison: &Comparison) -> Vec<String> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for reason in comparison
        .cases
        .iter()
        .filter_map(|case| case.no_verdict.as_deref())
    {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cases)) => *cases += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let of = |(reason, cases): (&str, usize)| {
        let word = Verdict::NoVerdict.name();
        match cases == comparison.cases.len() {
            true => format!("{reason}: {word}"),
            false => format!("{reason}: {word} ({})", count(cases, "case")),
        }
    };
    reasons.into_iter().map(of).collect()
}

/// `p99: not comparable: 1 of 10 base runs ...`.
pub(super) fn missing(missing: &MissingMetric) -> String {
    let name = figure(missing.metric, &missing.flow);
    let word = missing.verdict.name();
    format!("{name}: {word}: {}", missing.reason)
}

/// What counts as equal: `equal is within: bandwidth 3 %, p99 10 %; half of it over all cases`; `None` without a figure.
pub(super) fn margins(comparison: &Comparison) -> Option<String> {
    let mut margins: Vec<(Metric, f64)> = Vec::new();
    for metric in comparison.cases.iter().flat_map(|case| &case.metrics) {
        // Those of searches are as wide as their bounds, at least.
        match margins
            .iter_mut()
            .find(|(known, _)| *known == metric.metric)
        {
            Some((_, widest)) => *widest = widest.max(metric.margin),
            None => margins.push((metric.metric, metric.margin)),
        }
    }
    margins.sort_by_key(|(metric, _)| *metric);
    let margin = |(metric, margin): &(Metric, f64)| {
        let percent = (margin * 1e4).round() / 1e2;
        format!("{} {percent} %", metric.short_name())
    };
    let margins: Vec<String> = margins.iter().map(margin).collect();
    let half = match comparison.over_all.is_empty() {
        true => "",
        false => "; half of it over all cases",
    };
    (!margins.is_empty()).then(|| format!("equal is within: {}{half}", margins.join(", ")))
}

/// What is to be known of the whole beside the cases.
pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = margins(comparison).into_iter().collect();
    for (ids, side) in [
        (&comparison.only_in_base, "the base"),
        (&comparison.only_in_new, "the new results"),
    ] {
        if !ids.is_empty() {
            remarks.push(format!("only in {side}: {}", some(ids)));
        }
    }
    if comparison.cases.iter().any(keeps_up) {
        remarks.push(
            "note: while an open loop keeps up, its throughput is the offered one: it is judged by its latency and \
             CPU time"
                .to_owned(),
        );
    }
    remarks.extend(comparison.notes.iter().map(|note| format!("note: {note}")));
    remarks.extend(
        comparison
            .refused
            .iter()
            .map(|text| format!("refused: {text}")),
    );
    if comparison.cases.iter().any(one_launch) {
        remarks.push(
            "note: with fewer than 3 launches a side each run is one figure. Differences between launches can look \
             like a change: launch the sweep 10 times a side, in turns"
                .to_owned(),
        );
    }
    remarks
}

/// Whether a flow has a load and no figure of what it moved.
fn keeps_up(case: &CaseComparison) -> bool {
    let is_kept = |(index, flow): (usize, &FlowConfig)| {
        let is_open = !case.config.flow(index).is_closed_loop();
        let mut own = case
            .metrics
            .iter()
            .filter(|figures| figures.flow == flow.name);
        is_open && own.clone().next().is_some() && !own.any(|figures| figures.metric.is_of_offer())
    };
    case.config.flows.iter().enumerate().any(is_kept)
}

fn one_launch(case: &CaseComparison) -> bool {
    let is_judged = case.not_comparable.is_empty() && case.no_verdict.is_none();
    case.observation == Observation::Run && is_judged
}
