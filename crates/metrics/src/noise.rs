//! Rates that scatter, for the simulations of this module's tests.

/// Normal deviates with mean 0 and deviation 1, each like the one before it (AR(1)), the same for a seed.
pub(super) struct Noise {
    random: fastrand::Rng,
    alike: f64,
    last: f64,
}

impl Noise {
    /// `steps` is after how many deviates the likeness has fallen to 1/e; 0 for deviates that know nothing of each
    /// other.
    pub(super) fn new(seed: u64, steps: f64) -> Noise {
        let mut noise = Noise {
            random: fastrand::Rng::with_seed(seed),
            alike: if steps > 0.0 { (-1.0 / steps).exp() } else { 0.0 },
            last: 0.0,
        };
        noise.last = noise.normal();
        noise
    }

    pub(super) fn next(&mut self) -> f64 {
        let own = (1.0 - self.alike * self.alike).sqrt();
        self.last = self.alike * self.last + own * self.normal();
        self.last
    }

    /// Box and Muller's.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.f64()).cos()
    }
}
