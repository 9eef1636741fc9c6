//! A metric over all cases: the geometric mean of its figures, launch by launch.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::asked::{Asked, Figures, Question};
use super::joint::Unit;

/// What does not matter over all cases is this part of what does not matter in one. Single cases move by chance of
/// layout and placement; their mean hardly does.
const PART_OF_MARGIN: f64 = 0.5;

/// A metric's figures over all cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    pub metric: usize,
    /// Cases that are in it.
    pub cases: usize,
    /// What does not matter: 0.015 for 1.5 %.
    pub margin: f64,
    pub higher_is_better: bool,
    /// Figures of the base, by launch: the geometric mean over cases of the case's figure over the case's
    /// geometric mean on both sides.
    pub base: Vec<f64>,
    /// Figures of the new side.
    pub new: Vec<f64>,
    units: [Vec<Unit>; 2],
}

impl Pooled {
    /// Pools each metric over the cases that were measured in the same launches: over the largest number of
    /// cases of which that is so. Nothing where it is one.
    pub(super) fn of(asked: &[Asked<'_>]) -> Vec<Pooled> {
        let mut cases: HashMap<usize, HashSet<usize>> = HashMap::new();
        for one in asked {
            cases.entry(one.block).or_default().insert(one.question.case);
        }
        let Some((_, std::cmp::Reverse(block))) =
            cases.into_iter().map(|(block, cases)| (cases.len(), std::cmp::Reverse(block))).max()
        else {
            return Vec::new();
        };
        let mut by_metric: BTreeMap<usize, Vec<&Asked<'_>>> = BTreeMap::new();
        for one in asked.iter().filter(|one| one.block == block && one.enough().is_some()) {
            by_metric.entry(one.question.metric).or_default().push(one);
        }
        by_metric.into_values().filter_map(|parts| Pooled::one(&parts)).collect()
    }

    fn one(parts: &[&Asked<'_>]) -> Option<Pooled> {
        let first = parts.first().filter(|_| parts.len() > 1)?.question;
        let mut sums: [BTreeMap<Unit, (f64, f64)>; 2] = Default::default();
        for part in parts {
            let logs = part.enough()?;
            let count: usize = logs.iter().map(|side| side.len()).sum();
            let centre = logs.iter().copied().flatten().sum::<f64>() / count as f64;
            let figures = [part.question.base, part.question.new];
            for ((sums, figures), logs) in sums.iter_mut().zip(figures).zip(logs) {
                for (unit, log) in figures.units.iter().zip(logs) {
                    let (sum, count) = sums.entry(*unit).or_default();
                    *sum += log - centre;
                    *count += 1.0;
                }
            }
        }
        let [base, new] = sums
            .each_ref()
            .map(|sums| sums.values().map(|(sum, count)| (sum / count).exp()).collect());
        Some(Pooled {
            metric: first.metric,
            cases: parts.len(),
            margin: first.margin * PART_OF_MARGIN,
            higher_is_better: first.higher_is_better,
            base,
            new,
            units: sums.map(|sums| sums.into_keys().collect()),
        })
    }

    pub(super) fn question(&self) -> Question<'_> {
        let [base, new] = &self.units;
        Question {
            case: 0,
            metric: self.metric,
            base: Figures { units: base, values: &self.base },
            new: Figures { units: new, values: &self.new },
            margin: self.margin,
            higher_is_better: self.higher_is_better,
        }
    }
}
