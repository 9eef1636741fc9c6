//! Whether a metric stepped from one result file to the next.

use crate::observe::Metric;
use crate::show::plot::draw::number;
use crate::show::plot::rows::sample::Sample;
use statistics::{RatioEstimate, Verdict, ratio, verdict};

/// Runs that an interval needs on each side.
const LEAST_RUNS: usize = 3;

/// From a file to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) estimate: RatioEstimate,
    /// Better or worse beyond the metric's margin; `None` if neither, or if there are too few runs.
    pub(super) better: Option<bool>,
    few: bool,
}

/// The step to each sample from the one before with figures; `None` where there is nothing to compare.
pub(super) fn steps(samples: &[&Sample<'_>], metric: Metric) -> Vec<Option<Step>> {
    let mut before: Vec<f64> = Vec::new();
    let mut steps = Vec::with_capacity(samples.len());
    for sample in samples {
        let now: Vec<f64> = sample.values(metric).filter(|value| value.is_finite()).collect();
        steps.push(step(&before, &now, metric));
        if !now.is_empty() {
            before = now;
        }
    }
    steps
}

fn step(before: &[f64], now: &[f64], metric: Metric) -> Option<Step> {
    let estimate = ratio(before, now, 0.95)?;
    let few = before.len() < LEAST_RUNS || now.len() < LEAST_RUNS;
    let word = verdict(&estimate, metric.default_margin(), metric.higher_is_better());
    let better = match word {
        Verdict::Better if !few => Some(true),
        Verdict::Worse if !few => Some(false),
        _ => None,
    };
    Some(Step { estimate, better, few })
}

impl Step {
    /// The change in percent with its interval, and the word for it.
    pub(super) fn words(&self, metric: Metric) -> String {
        let RatioEstimate { ratio, low, high, .. } = self.estimate;
        let [ratio, low, high] = [ratio, low, high].map(change_in_percent);
        if self.few {
            return format!("{ratio} (too few runs to judge)");
        }
        let word = match self.better {
            Some(true) => "better",
            Some(false) => "worse",
            None => "no clear step",
        };
        let name = metric.short_name();
        format!("{name} {ratio} ({low} to {high}), {word}")
    }
}

fn change_in_percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let sign = if change >= 0.05 { "+" } else { "" };
    format!("{sign}{}\u{a0}%", number::fixed(change, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_runs_and_a_margin() {
        let of = |before: &[f64], now: &[f64]| step(before, now, Metric::GbitPerS).unwrap().better;
        assert_eq!(of(&[100.0, 101.0, 100.5], &[90.0, 90.5, 91.0]), Some(false));
        assert_eq!(of(&[90.0, 90.5, 91.0], &[100.0, 101.0, 100.5]), Some(true));
        assert_eq!(of(&[100.0, 101.0, 100.5], &[100.2, 101.0, 100.4]), None);
        assert_eq!(of(&[100.0, 101.0], &[50.0, 50.5]), None);
        assert_eq!(step(&[], &[1.0], Metric::GbitPerS), None);
    }
}
