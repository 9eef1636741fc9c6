//! Which rail of a node is slower than its others. Each flow is compared with those that the same flow has over other
//! rails at once, so that it does not matter what else differs between flows.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::noise::Figures;
use crate::judge::mesh::{groups, title};
use crate::observe::{Metric, standing};
use results::model::{CaseResult, FlowConfig, FlowResult, ResultFile, Run};
use statistics::median;

/// A rail that is slower than the others of its node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowRail {
    /// The case, or the rounds of a case.
    pub case: String,
    pub metric: Metric,
    /// The node and the rail; of flows that all go between the same two rails both ends.
    pub ends: Vec<(String, String)>,
    /// The median over its flows.
    pub value: f64,
    /// The median over the flows of the node's other rails.
    pub usual: f64,
    pub rails: usize,
}

/// An end of flows at a rail: the node, whether they go to it, and the rail.
type End = (String, bool, String);

#[derive(Default)]
struct Moved {
    /// Of each run that counts.
    figures: Vec<f64>,
    /// The same over the median of all rails of the same flow in the run.
    ratios: Vec<f64>,
    /// Which flows they are, by case and place.
    flows: BTreeSet<(usize, usize)>,
}

/// The rails of a result that are slower than others of their node.
pub(super) fn slow(result: &ResultFile) -> Vec<SlowRail> {
    groups(result).into_iter().flat_map(|cases| of_cases(&cases)).collect()
}

fn of_cases(cases: &[&CaseResult]) -> Vec<SlowRail> {
    let metric = if cases.first().is_some_and(|case| case.config.is_closed_loop()) {
        Metric::GbitPerS
    } else {
        Metric::P50Ns
    };
    let mut ends: BTreeMap<End, Moved> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        for run in &case.runs {
            add(&mut ends, number, (case, run), metric);
        }
    }
    let sides: BTreeSet<(&String, bool)> = ends.keys().map(|(node, to, _)| (node, *to)).collect();
    let mut found: Vec<(SlowRail, &BTreeSet<(usize, usize)>)> = Vec::new();
    for side in sides {
        let rails: Vec<(&End, &Moved)> =
            ends.iter().filter(|((node, to, _), _)| (node, *to) == side).collect();
        for ((node, _, rail), moved, usual) in slow_ones(&rails, metric) {
            let end = (node.clone(), rail.clone());
            // With no other flows it is not known at which end the cause is.
            if let Some((same, _)) = found.iter_mut().find(|(_, flows)| **flows == moved.flows) {
                same.ends.push(end);
                continue;
            }
            // It is slow in both directions.
            if found.iter().any(|(other, _)| other.ends.contains(&end)) {
                continue;
            }
            let slow = SlowRail {
                case: title(cases),
                metric,
                ends: vec![end],
                value: median(&moved.figures).unwrap_or(usual),
                usual,
                rails: rails.len(),
            };
            found.push((slow, &moved.flows));
        }
    }
    found.into_iter().map(|(slow, _)| slow).collect()
}

/// Adds what the flows of a run moved to the rails at their ends.
fn add(
    ends: &mut BTreeMap<End, Moved>,
    number: usize,
    (case, run): (&CaseResult, &Run),
    metric: Metric,
) {
    // All that one flow has become, by its name.
    let mut over: BTreeMap<&str, Vec<(usize, &FlowConfig, f64)>> = BTreeMap::new();
    for (place, (config, flow)) in case.config.flows.iter().zip(&run.flows).enumerate() {
        if let Some((name, _)) = config.over_rails()
            && standing::counts(run, flow)
            && let Some(figure) = metric.of(run, Some::<&FlowResult>(flow))
        {
            over.entry(name).or_default().push((place, config, figure));
        }
    }
    for rails in over.values().filter(|it| it.len() > 1) {
        let figures: Vec<f64> = rails.iter().map(|(.., figure)| *figure).collect();
        let Some(middle) = median(&figures).filter(|middle| *middle > 0.0) else {
            continue;
        };
        for (place, config, figure) in rails {
            let Some((_, [from, to])) = config.over_rails() else {
                continue;
            };
            for (node, is_to, rail) in [(&config.from, false, from), (&config.to, true, to)] {
                let end = (node.clone(), is_to, rail.to_owned());
                let moved = ends.entry(end).or_default();
                moved.figures.push(*figure);
                moved.ratios.push(figure / middle);
                moved.flows.insert((number, *place));
            }
        }
    }
}

/// The rails of a node that are slower than its others by more than the runs scatter, each with the median of those.
fn slow_ones<'a>(rails: &[(&'a End, &'a Moved)], metric: Metric) -> Vec<(&'a End, &'a Moved, f64)> {
    let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
    let mut by_worth: Vec<(f64, (&End, &Moved))> = rails
        .iter()
        .map(|rail| (sign * median(&rail.1.ratios).unwrap_or_default(), *rail))
        .collect();
    by_worth.sort_by(|(one, _), (two, _)| one.total_cmp(two));
    let sorted: Vec<(&End, &Moved)> = by_worth.into_iter().map(|(_, rail)| rail).collect();
    // Less than half may be slow; the last one that stands out from what is faster, so that several do not hide each other.
    let most = (rails.len().saturating_sub(1) / 2).max(1);
    let count = (1..=most)
        .rev()
        .find(|number| {
            let (slow, others) = sorted.split_at((*number).min(sorted.len()));
            let last = slow.split_at(number.saturating_sub(1)).1;
            ratios(last, metric)
                .zip(ratios(others, metric))
                .is_some_and(|(slow, others)| !slow.may_equal(&others))
        })
        .unwrap_or(0);
    let (slow, others) = sorted.split_at(count.min(sorted.len()));
    let of_others: Vec<f64> =
        others.iter().flat_map(|(_, moved)| &moved.figures).copied().collect();
    let usual = median(&of_others).unwrap_or_default();
    slow.iter().map(|(end, moved)| (*end, *moved, usual)).collect()
}

fn ratios(rails: &[(&End, &Moved)], metric: Metric) -> Option<Figures> {
    let ratios: Vec<f64> = rails.iter().flat_map(|(_, moved)| &moved.ratios).copied().collect();
    Figures::new(metric, &ratios)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::findings::{Finding, Findings};
    use results::model::{CLIENT, SERVER};
    use results::sample;

    /// A case with a flow over each rail, of which each run moved so much in Gb/s.
    fn over_rails(runs: &[&[f64]]) -> ResultFile {
        let mut file = sample::result();
        file.cases.truncate(1);
        let case = &mut file.cases[0];
        let (config, run) = (case.config.flows[0].clone(), case.runs[0].clone());
        let rails = 0..runs[0].len();
        let over = |rail: usize, name: &str| format!("{name}@mlx5_{rail}");
        case.config.flows = rails
            .map(|rail| FlowConfig {
                name: over(rail, "forward"),
                from_device: Some(format!("mlx5_{rail}")),
                to_device: Some(format!("mlx5_{rail}")),
                ..config.clone()
            })
            .collect();
        case.runs = runs
            .iter()
            .map(|figures| {
                let mut run = run.clone();
                let flow = run.flows[0].clone();
                run.flows = figures
                    .iter()
                    .enumerate()
                    .map(|(rail, gbit_per_s)| {
                        let mut flow = flow.clone();
                        flow.name = over(rail, "forward");
                        flow.totals.gbit_per_s = Some(*gbit_per_s);
                        flow
                    })
                    .collect();
                run
            })
            .collect();
        file
    }

    fn names(file: &ResultFile) -> Vec<String> {
        slow(file).into_iter().map(|it| it.ends[0].1.clone()).collect()
    }

    #[test]
    fn the_rail_that_is_slower_than_the_others_is_told_with_both_of_its_ends() {
        let file = over_rails(&[&[98.0, 97.0, 49.0, 99.0]]);
        let told = slow(&file);
        let ends = [CLIENT, SERVER].map(|node| (node.to_owned(), "mlx5_2".to_owned()));
        assert_eq!((told.len(), &told[0].ends[..]), (1, &ends[..]));
        assert_eq!((told[0].value, told[0].usual, told[0].rails), (49.0, 98.0, 4));
        let findings = Findings::new(&file).findings;
        assert!(findings.iter().any(|it| matches!(it, Finding::SlowRail(_)) && it.is_wrong()));
        // Several do not hide each other.
        let eight = over_rails(&[&[98.0, 97.0, 49.0, 99.0, 98.0, 97.0, 45.0, 99.0]]);
        assert_eq!(names(&eight), ["mlx5_6", "mlx5_2"]);
    }

    #[test]
    fn what_runs_scatter_makes_no_slow_rail() {
        let few: [&[f64]; 3] = [&[98.0, 92.0, 95.0, 99.0], &[98.0, 70.0], &[50.0]];
        let found = few.map(|run| names(&over_rails(&[run])).len());
        assert_eq!(found, [0, 1, 0]);
        let both_ways =
            over_rails(&[&[98.0, 70.0, 97.0], &[75.0, 98.0, 97.0], &[98.0, 97.0, 70.0]]);
        assert_eq!(names(&both_ways).len(), 0);
        let same: &[f64] = &[98.0, 97.0, 90.0];
        assert_eq!(names(&over_rails(&[same; 3])), ["mlx5_2"]);
        assert_eq!(names(&over_rails(&[same])).len(), 0);
    }

    #[test]
    fn of_two_rails_none_is_known_to_be_usual() {
        let findings = Findings::new(&over_rails(&[&[98.0, 70.0]])).findings;
        assert!(matches!(&findings[..], [Finding::RailsDiffer(_)]), "{findings:?}");
    }
}
