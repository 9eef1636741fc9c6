//! Steps in a series of single figures, such as one of each night or commit: from which of them on figures are larger or
//! smaller, and by how much. A test of permutation: other orders of the same figures show how far apart chance sets two parts
//! of the series, whatever their distribution is. A series with a step is parted there, and each part is asked again (binary
//! segmentation; A. J. Scott, M. Knott, "A Cluster Analysis Method for Grouping Means in the Analysis of Variance", Biometrics 30
//! (1974)).

use fastrand::Rng;

use super::deals::count;
use super::distributions::{median, spread};
use super::ratio::{LEAST_OBSERVATIONS, RatioEstimate, ratio};

/// Chance that any of the series that are judged together has a step, where none changed: half of what is promised.
const CHANCE: f64 = 0.005;

/// Orders that are drawn: at least so many, and so many of which chance alone may set a place apart as much as the real one.
const FEWEST_ORDERS: f64 = 2_000.0;
const ALLOWED: f64 = 4.0;

/// Where the drawing starts, so that the same figures always give the same answer.
const SEED: u64 = 0x1128_2026;

/// A figure that is further from the median than so many times the scatter counts as if it were there.
const FAR: f64 = 3.0;

/// Statistics that differ by less are the same figures added in another order.
const ROUNDING: f64 = 1e-9;

/// A step of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the first figure behind it.
    pub at: usize,
    /// The figures behind it, up to the next step, over those before it, from the last step on. The interval supposes that its
    /// place is known.
    pub estimate: RatioEstimate,
}

/// The steps of a series of positive figures, in its order, as one of so many series that are judged together: the chance of
/// error is that of all of them.
pub fn steps(figures: &[f64], together: usize) -> Vec<Step> {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let mut edges = vec![0];
    search(&logs, 0, chance(together), &mut edges);
    edges.push(figures.len());
    edges
        .windows(3)
        .filter_map(|edge| {
            let [before, behind] = [0, 1].map(|side| &figures[edge[side]..edge[side + 1]]);
            Some(Step { at: edge[1], estimate: ratio(before, behind, 0.95)? })
        })
        .collect()
}

/// Fewer figures cannot show a step in one of so many series that are judged together.
pub fn fewest_for_a_step(together: usize) -> usize {
    // Two orders set both halves apart as far as can be.
    (2 * LEAST_OBSERVATIONS..)
        .find(|figures| 2.0 / count(figures / 2, figures.div_ceil(2)) <= chance(together))
        .unwrap_or(usize::MAX)
}

fn chance(together: usize) -> f64 {
    CHANCE / together.max(1) as f64
}

/// Adds the indices of steps in a part of a series that begins at `first`.
fn search(logs: &[f64], first: usize, chance: f64, edges: &mut Vec<usize>) {
    if let Some(at) = largest_step(logs, chance) {
        search(&logs[..at], first, chance, edges);
        edges.push(first + at);
        search(&logs[at..], first + at, chance, edges);
    }
}

/// Where the parts before and behind differ most, if they do by more than chance.
fn largest_step(logs: &[f64], chance: f64) -> Option<usize> {
    let mut scores = scores(logs)?;
    let weights = weights(scores.len());
    let (at, real) = most_apart(&scores, &weights);
    let orders = FEWEST_ORDERS.max(ALLOWED / chance);
    // The real order is one of them.
    let allowed = (orders * chance).round() as usize;
    let mut as_large = 1;
    let mut rng = Rng::with_seed(SEED);
    for _ in 1..orders as usize {
        rng.shuffle(&mut scores);
        as_large += usize::from(most_apart(&scores, &weights).1 >= real * (1.0 - ROUNDING));
        if as_large > allowed {
            return None;
        }
    }
    (real > 0.0).then_some(at)
}

/// How far figures are from their median, in units of their scatter, less the mean of that; `None` of too few, or of figures
/// that are not positive for the most part.
fn scores(logs: &[f64]) -> Option<Vec<f64>> {
    let middle = median(logs).filter(|_| logs.len() >= 2 * LEAST_OBSERVATIONS)?;
    let scatter = spread(logs).filter(|it| middle.is_finite() && it.is_finite())?;
    let units = logs.iter().map(|log| (log - middle) / scatter.max(f64::MIN_POSITIVE));
    let mut scores: Vec<f64> = units.map(|score| score.clamp(-FAR, FAR)).collect();
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    for score in &mut scores {
        *score -= mean;
    }
    Some(scores)
}

/// By how much the square of the sum up to each figure counts: as the square of the difference of two means over its
/// variance. 0 with too few figures on a side.
fn weights(figures: usize) -> Vec<f64> {
    let sides = (1..=figures).map(|before| (before, figures - before));
    sides
        .map(|(before, behind)| match before.min(behind) {
            ..LEAST_OBSERVATIONS => 0.0,
            _ => 1.0 / (before * behind) as f64,
        })
        .collect()
}

/// Index of the first figure behind the place where both parts differ most, and by how much.
fn most_apart(scores: &[f64], weights: &[f64]) -> (usize, f64) {
    let (mut sum, mut most) = (0.0, (0, 0.0));
    for (at, (score, weight)) in (1..).zip(scores.iter().zip(weights)) {
        sum += score;
        let apart = sum * sum * weight;
        if apart > most.1 {
            most = (at, apart);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: usize = 1_000;

    fn normal(rng: &mut Rng) -> f64 {
        let (u, v) = (1.0 - rng.f64(), rng.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Student's t with three degrees of freedom.
    fn heavy(rng: &mut Rng) -> f64 {
        let chi = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
        normal(rng) / chi.sqrt()
    }

    fn series(rng: &mut Rng, figures: usize, noise: fn(&mut Rng) -> f64) -> Vec<f64> {
        (0..figures).map(|_| 10.0 * (0.03 * noise(rng)).exp()).collect()
    }

    /// `docs/dev/statistics.md` promises 1 in 100.
    #[test]
    fn a_series_without_a_change_has_no_step_whatever_its_tails_and_outliers_are() {
        for (seed, noise) in [normal, heavy].into_iter().enumerate() {
            for outlier in [1.0, 0.5] {
                let mut rng = Rng::with_seed(seed as u64);
                let mut false_alarms = 0;
                for _ in 0..SERIES {
                    let mut figures = series(&mut rng, 60, noise);
                    figures[rng.usize(..60)] *= outlier;
                    false_alarms += usize::from(!steps(&figures, 1).is_empty());
                }
                assert!(false_alarms <= SERIES / 100, "{seed} {outlier}: {false_alarms}");
            }
        }
    }

    /// Promised: 95 in 100 within five figures of its place.
    #[test]
    fn a_step_of_a_tenth_is_found_where_it_is() {
        // In the longer series one figure is half of what it should be.
        for (figures, place, together, outlier) in
            [(60, 30, 1, 0.5), (60, 15, 1, 0.5), (60, 45, 20, 0.5), (30, 20, 20, 1.0)]
        {
            let mut rng = Rng::with_seed(7);
            let found = (0..SERIES / 5).filter(|_| {
                let mut figures = series(&mut rng, figures, normal);
                figures[place..].iter_mut().for_each(|figure| *figure *= 0.9);
                figures[place / 2] *= outlier;
                matches!(steps(&figures, together)[..], [step] if step.at.abs_diff(place) <= 5)
            });
            let count = found.count();
            assert!(count >= SERIES / 5 * 95 / 100, "{figures} {place} {together}: {count}");
        }
    }

    #[test]
    fn steps_have_their_size_and_their_interval() {
        let mut rng = Rng::with_seed(3);
        let mut figures = series(&mut rng, 60, normal);
        figures[20..40].iter_mut().for_each(|figure| *figure *= 0.7);
        let found = steps(&figures, 1);
        assert_eq!(found.iter().map(|step| step.at).collect::<Vec<_>>(), [20, 40]);
        for (step, change) in found.iter().zip([0.7, 1.0 / 0.7]) {
            let RatioEstimate { ratio, low, high, .. } = step.estimate;
            assert!(
                low < change && change < high && (ratio / change - 1.0).abs() < 0.05,
                "{step:?}"
            );
        }
        assert_eq!(steps(&figures, 1), found);
    }

    #[test]
    fn few_figures_equal_ones_and_none_that_are_positive_have_no_step() {
        for (together, fewest) in [(1, 11), (10, 15), (128, 19)] {
            assert_eq!(fewest_for_a_step(together), fewest);
        }
        let halves = |count: usize| [vec![10.0; count / 2], vec![5.0; count.div_ceil(2)]].concat();
        assert_eq!(steps(&halves(10), 1), []);
        assert_eq!(steps(&halves(16), 1).len(), 1);
        for figures in [vec![], vec![3.0; 30], vec![0.0; 30], vec![-1.0; 30], vec![f64::NAN; 30]] {
            assert_eq!(steps(&figures, 1), [], "{figures:?}");
        }
    }
}
