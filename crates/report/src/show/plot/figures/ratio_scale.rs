//! The logarithmic axis of ratios: 1 and the margin are always on it. It must not know what the ratios are of.

use super::ratios::Ratios;
use crate::show::plot::draw::text::{SMALL_PX, width_px};

/// Maps ratios, by their logarithm, to pixels.
pub(super) struct RatioScale {
    low: f64,
    high: f64,
    pub(super) left: f64,
    pub(super) right: f64,
}

impl RatioScale {
    /// Room for all ratios, the margin and 1, and for intervals as far as they do not dwarf them.
    pub(super) fn of(ratios: &Ratios, left: f64, right: f64) -> RatioScale {
        let margin = [1.0 - 1.5 * ratios.margin, 1.0 + 1.5 * ratios.margin];
        let points = || ratios.rows.iter().map(|row| row.ratio).chain(margin);
        let (least, most) = (
            points().fold(f64::INFINITY, f64::min),
            points().fold(0.0, f64::max),
        );
        let span = (most / least).sqrt().max(1.1);
        let ends = ratios.rows.iter().filter_map(|row| row.interval);
        let (low, high) = ends.fold((least, most), |(low, high), (from, to)| {
            (low.min(from), high.max(to))
        });
        RatioScale {
            low: low.max(least / span) / 1.01,
            high: high.min(most * span) * 1.01,
            left,
            right,
        }
    }

    pub(super) fn x(&self, ratio: f64) -> f64 {
        let part = (ratio.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        self.left + part * (self.right - self.left)
    }

    pub(super) fn holds(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Round ratios, 1 among them, with room between their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        const ROUND: [f64; 16] = [
            1.005, 1.01, 1.02, 1.03, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0,
            1000.0,
        ];
        const BELOW: [f64; 16] = [
            0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01,
            0.001,
        ];
        let label = |ratio: f64| {
            let text = format!("{ratio:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let half = |text: &str| width_px(text, SMALL_PX, false) / 2.0 + 8.0;
        let mut ticks = vec![(1.0, label(1.0))];
        for side in [ROUND, BELOW] {
            let (mut from, mut taken) = (self.x(1.0), half("1"));
            for ratio in side.into_iter().filter(|ratio| self.holds(*ratio)) {
                let (x, text) = (self.x(ratio), label(ratio));
                if (x - from).abs() >= taken + half(&text) {
                    (from, taken) = (x, half(&text));
                    ticks.push((ratio, text));
                }
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_the_margin_are_always_on_the_scale() {
        for values in [vec![1.0], vec![0.2, 0.4], vec![3.0, 800.0]] {
            let ratios = Ratios::of(&values);
            let scale = RatioScale::of(&ratios, 100.0, 500.0);
            for ratio in values.into_iter().chain([1.0, 0.97, 1.03]) {
                assert!(scale.holds(ratio), "{ratio}");
            }
            let ticks = scale.ticks();
            assert_eq!(ticks[0].0, 1.0);
            let mut at: Vec<f64> = ticks.iter().map(|(ratio, _)| scale.x(*ratio)).collect();
            at.sort_by(f64::total_cmp);
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] > 20.0), "{at:?}");
        }
    }

    #[test]
    fn an_endless_interval_does_not_dwarf_the_rest() {
        let mut ratios = Ratios::of(&[0.9, 1.1]);
        ratios.rows[0].interval = Some((1e-9, 1e9));
        let scale = RatioScale::of(&ratios, 0.0, 500.0);
        assert!(scale.x(1.1) - scale.x(0.9) > 100.0);
    }
}
