//! A queue with one server, message by message, as Lindley's recursion has it. [`super::Md1`] has the formulas.

use fastrand::Rng;

/// One server, no limit. Times are in the unit of `service` and `mean_gap`.
pub struct Queue {
    service: f64,
    mean_gap: f64,
    /// Arrivals by chance (M/D/1); at equal distances without (D/D/1).
    poisson: Option<Rng>,
    at: f64,
    free: f64,
}

impl Queue {
    /// `poisson` makes arrivals by chance; without it they come at equal distances.
    pub fn new(service: f64, mean_gap: f64, poisson: Option<Rng>) -> Queue {
        Queue { service, mean_gap, poisson, at: 0.0, free: 0.0 }
    }

    /// When the next message arrives, and how long it takes, its service with it.
    pub fn arrival(&mut self) -> (f64, f64) {
        self.at += match &mut self.poisson {
            Some(rng) => -(1.0 - rng.f64()).ln() * self.mean_gap,
            None => self.mean_gap,
        };
        self.free = self.free.max(self.at) + self.service;
        (self.at, self.free - self.at)
    }

    /// The share of the next `messages` that take more than `limit`.
    pub fn share_above(&mut self, messages: u32, limit: f64) -> f64 {
        let above = (0..messages).filter(|_| self.arrival().1 > limit).count();
        above as f64 / f64::from(messages)
    }
}
