//! Nine ways in which figures scatter.

use fastrand::Rng;
use settings::names;

names! {
    /// How figures scatter.
    Noise {
        /// Normal.
        Normal = "normal",
        /// Skewed.
        Lognormal = "lognormal",
        /// Student's t with three degrees of freedom, and one figure in twenty ten spreads off.
        HeavyTails = "heavy tails, outliers",
        /// Two modes, equally often.
        TwoModes = "two modes",
        /// Launches differ, the five runs within one are alike; a figure is a launch's median.
        Launches = "between launches",
        /// Each turn resembles the one before it (0.6), as on a machine that warms and cools.
        Correlated = "from turn to turn",
        /// Cases scatter differently: by 1, 1/4, 4 and 2 spreads, in turn.
        Uneven = "uneven cases",
        /// Skewed, and one figure in 33 fifteen spreads off.
        Stalls = "rare stalls",
        /// Whole spreads only, so that many figures are the same.
        Steps = "in steps",
    }
}

impl Noise {
    /// One deviation, in units of the spread, for the better.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Noise::Normal | Noise::Launches | Noise::Correlated | Noise::Uneven => normal(rng),
            Noise::Lognormal => ((0.8 * normal(rng)).exp() - 1.377) / 1.305,
            Noise::HeavyTails => {
                let chi = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
                let outlier = if rng.f64() < 0.05 { -10.0 } else { 0.0 };
                normal(rng) / chi.sqrt() / 3f64.sqrt() + outlier
            }
            Noise::TwoModes => {
                let mode = if rng.bool() { 1.0 } else { -1.0 };
                mode + 0.1 * normal(rng)
            }
            Noise::Stalls => {
                let stall = if rng.f64() < 0.03 { -15.0 } else { 0.0 };
                1.0 + (1.0 - rng.f64()).ln() + stall
            }
            Noise::Steps => normal(rng).round(),
        }
    }

    /// How much a case scatters, in spreads.
    pub fn of_case(self, case: usize) -> f64 {
        match self {
            Noise::Uneven => [1.0, 0.25, 4.0, 2.0][case % 4],
            _ => 1.0,
        }
    }
}

/// A standard normal deviation.
pub fn normal(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
