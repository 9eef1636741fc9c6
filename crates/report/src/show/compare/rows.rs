//! A comparison as rows, one a figure: the names, figures and verdicts that all its documents share.

use serde::Serialize;

use crate::judge::compare::model::{
    CaseComparison, Comparison, MetricComparison, Observation, Verdict,
};
use crate::observe::Metric;
use results::model::FORWARD;

#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// Of which case; `None` over all cases.
    pub(super) case: Option<&'a CaseComparison>,
    pub(super) figures: &'a MetricComparison,
    pub(super) observation: Observation,
}

/// What [`Row::cells`] are.
pub(super) const HEAD: [&str; 6] = ["metric", "base", "new", "change", "95 % interval", "verdict"];

#[derive(Serialize)]
pub(super) struct Change<'a> {
    finding: Verdict,
    case: &'a str,
    flow: &'a str,
    metric: Metric,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    sentence: String,
}

pub(super) fn over_all(comparison: &Comparison) -> impl Iterator<Item = Row<'_>> {
    let reach = comparison.reach.as_ref();
    let observation = reach.map(|reach| reach.observation).unwrap_or_default();
    comparison.over_all.iter().map(move |over_all| Row {
        case: None,
        figures: &over_all.figures,
        observation,
    })
}

pub(super) fn of_case(case: &CaseComparison) -> impl Iterator<Item = Row<'_>> {
    case.metrics.iter().map(|figures| Row {
        case: Some(case),
        figures,
        observation: case.observation,
    })
}

pub(super) fn of_cases(comparison: &Comparison) -> impl Iterator<Item = Row<'_>> {
    comparison.cases.iter().flat_map(of_case)
}

impl<'a> Row<'a> {
    pub(super) fn has_changed(&self) -> bool {
        has_changed(self.figures.verdict)
    }

    /// What programs read as the name of what was measured: the case, and the flow behind a slash.
    pub(super) fn subject(&self) -> String {
        let id = self.case.map_or("over all cases", |case| &case.id);
        match flow(&self.figures.flow) {
            Some(flow) => format!("{id}/{flow}"),
            None => id.to_owned(),
        }
    }

    /// Name, medians of both sides, change, its interval, and the verdict with what would settle it.
    pub(super) fn cells(&self) -> [String; 6] {
        let figures = self.figures;
        let [base, new] = [figures.base_median, figures.new_median].map(|value| match self.case {
            Some(_) => figures.metric.text(value),
            None => String::new(),
        });
        let word = figures.verdict.name();
        let verdict = match (figures.verdict, figures.settled_with) {
            (Verdict::Unclear, Some(count)) => {
                format!("{word}, ~{count} {}", self.observation)
            }
            _ => word.to_owned(),
        };
        let change =
            figures.ratio.map_or_else(|| "-".to_owned(), |figures| percent(figures) + " %");
        let interval = match (figures.low, figures.high) {
            (Some(low), Some(high)) => format!("{} … {} %", percent(low), percent(high)),
            _ => "-".to_owned(),
        };
        [name(figures.metric, &figures.flow), base, new, change, interval, verdict]
    }

    /// `12.0 µs -> 13.3 µs, +11.1 %, 95 % interval +10.4 … +11.8 %`; over all cases without medians.
    pub(super) fn text(&self) -> String {
        let [_, base, new, change, interval, _] = self.cells();
        let change = format!("{change}, 95 % interval {interval}");
        match self.case {
            Some(_) => format!("{base} -> {new}, {change}"),
            None => change,
        }
    }

    /// What changed for certain; `None` where it is not.
    pub(super) fn change(&self) -> Option<Change<'a>> {
        let figures = self.figures;
        let id = self.case.map_or("over all cases", |case| &case.id);
        let (name, word) = (name(figures.metric, &figures.flow), figures.verdict.name());
        self.has_changed().then(|| Change {
            finding: figures.verdict,
            case: self.case.map_or("", |case| &case.id),
            flow: &figures.flow,
            metric: figures.metric,
            ratio: figures.ratio,
            low: figures.low,
            high: figures.high,
            sentence: format!("{id}, {name} {word}: {}.", self.text()),
        })
    }
}

pub(super) fn has_changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regressed | Verdict::Improved)
}

/// What a figure's flow is called; nothing of `forward`, which is what cases have that name none.
pub(super) fn flow(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty() && *name != FORWARD)
}

/// What people read as the name of a figure: `bandwidth`, `bandwidth of reverse`.
pub(super) fn name(metric: Metric, of: &str) -> String {
    match flow(of) {
        Some(flow) => format!("{} of {flow}", metric.short_name()),
        None => metric.short_name().to_owned(),
    }
}

fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        ..0.05 => "0.0".to_owned(),
        1e4.. => format!("{percent:+.0e}"),
        away => format!("{percent:+.*}", usize::from(away < 99.95)),
    }
}
