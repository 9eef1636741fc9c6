//! How steady throughput was over a run, to choose those to look at: 1 is steady, 0 stood still for a hundredth of it.
//! It must not know how it is drawn.

/// The slowest hundredth's part of the median, for throughput in intervals.
pub(super) fn of_rates(rates: impl Iterator<Item = f64>) -> f64 {
    let (middle, slow) = middle_and_slow(rates.collect());
    if middle > 0.0 { slow / middle } else { 0.0 }
}

/// The same of an open loop's messages in intervals. Arrivals by chance are not steady by themselves: what chance explains,
/// three standard deviations of a Poisson count, is not held against them.
pub(super) fn of_arrivals(messages: &[u64]) -> f64 {
    let (middle, slow) = middle_and_slow(messages.iter().map(|&count| count as f64).collect());
    match middle > 0.0 {
        true => ((slow + 3.0 * middle.sqrt()) / middle).min(1.0),
        false => 1.0,
    }
}

fn middle_and_slow(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    (at(values.len() / 2), at(values.len() / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_not_unsteady_and_a_stall_is() {
        let mut counts = vec![100; 100];
        counts.extend([75; 2]);
        assert!(of_rates(counts.iter().map(|&count| count as f64)) < 0.9);
        assert_eq!(of_arrivals(&counts), 1.0);
        counts[..2].fill(0);
        assert!(of_arrivals(&counts) < 0.4);
        // So few arrive that no interval can tell.
        assert_eq!(of_arrivals(&[0, 1, 0, 0, 2]), 1.0);
        assert_eq!(of_rates([0.0, 0.0].into_iter()), 0.0);
    }
}
