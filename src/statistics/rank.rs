//! The exact rank test of two samples (Wilcoxon 1945, Mann and Whitney 1947): how often labels dealt at
//! random would set them apart so clearly.

use std::collections::HashMap;
use std::sync::Arc;

/// Above this many figures in the smaller sample the normal approximation serves.
const EXACT_UP_TO: usize = 40;

/// Tables of the test for the sample sizes met so far.
#[derive(Debug, Default)]
pub(super) struct RankTest {
    /// Probability of at most so many inversions, by the sizes of the samples.
    tables: HashMap<(usize, usize), Arc<[f64]>>,
}

impl RankTest {
    /// Probability, with both sides drawn from one distribution, that `new` lies above `base` at least so
    /// clearly. Ties count against it.
    pub(super) fn p_above(&mut self, base: &[f64], new: &[f64]) -> f64 {
        let mut sorted = new.to_vec();
        sorted.sort_by(f64::total_cmp);
        let inversions: usize = base
            .iter()
            .map(|value| sorted.partition_point(|other| other <= value))
            .sum();
        let (few, many) = (base.len().min(new.len()), base.len().max(new.len()));
        if few > EXACT_UP_TO || many > 4 * EXACT_UP_TO {
            return p_of_many(inversions as f64, few as f64, many as f64);
        }
        let table = self
            .tables
            .entry((few, many))
            .or_insert_with(|| table(few, many));
        table.get(inversions).copied().unwrap_or(1.0)
    }
}

/// The least p that samples of these sizes can give: that of full separation.
pub(super) fn least_p(base: usize, new: usize) -> f64 {
    // 1 / C(base + new, base)
    (1..=base).fold(1.0, |p, k| p * k as f64 / (new + k) as f64)
}

/// Cumulative probabilities of 0, 1, 2, … inversions.
fn table(few: usize, many: usize) -> Arc<[f64]> {
    // Where the last figure of all belongs: to the one sample or to the other.
    let mut counts: Vec<Vec<f64>> = vec![vec![1.0]; many + 1];
    for i in 1..=few {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=many {
            let mut ways = vec![0.0; i * j + 1];
            for (u, count) in next[j - 1].iter().enumerate() {
                ways[u] += count;
            }
            for (u, count) in counts[j].iter().enumerate() {
                ways[u + j] += count;
            }
            next.push(ways);
        }
        counts = next;
    }
    let ways = &counts[many];
    let all: f64 = ways.iter().sum();
    ways.iter()
        .scan(0.0, |sum, count| {
            *sum += count;
            Some(*sum / all)
        })
        .collect()
}

/// The normal approximation with its correction for continuity.
fn p_of_many(inversions: f64, base: f64, new: f64) -> f64 {
    let deviation = (base * new * (base + new + 1.0) / 12.0).sqrt();
    let z = (inversions + 0.5 - base * new / 2.0) / deviation;
    let tail = super::special::normal_above(z.abs());
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_separation_is_one_deal_of_all() {
        let mut test = RankTest::default();
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((test.p_above(&low, &high) - 1.0 / 252.0).abs() < 1e-12);
        assert!((test.p_above(&high, &low) - 1.0).abs() < 1e-12);
        assert!((least_p(5, 5) - 1.0 / 252.0).abs() < 1e-15);
        assert!((least_p(3, 4) - 1.0 / 35.0).abs() < 1e-15);
    }

    #[test]
    fn the_table_is_that_of_the_books() {
        // Counts of inversions for two samples of three: 1 1 2 3 3 3 3 2 1 1 of 20.
        let found = table(3, 3);
        let expected = [1, 2, 4, 7, 10, 13, 16, 18, 19, 20].map(|n| f64::from(n) / 20.0);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn ties_never_help() {
        let mut test = RankTest::default();
        assert!((test.p_above(&[1.0; 6], &[1.0; 6]) - 1.0).abs() < 1e-12);
        let with_tie = test.p_above(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]);
        assert!((with_tie - 2.0 / 20.0).abs() < 1e-12);
    }

    #[test]
    fn many_figures_are_approximated_closely() {
        let exact = table(40, 40);
        for inversions in [400, 500, 600, 700, 800, 1000] {
            let near = p_of_many(inversions as f64, 40.0, 40.0);
            assert!((near - exact[inversions]).abs() < 2e-3, "{inversions}");
        }
    }
}
