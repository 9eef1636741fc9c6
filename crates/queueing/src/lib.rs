//! Queues whose waits are known: M/D/1 by formula ([`Md1`]), and one server message by message ([`Queue`]). Tests compare
//! what the program says with them.

use fastrand::Rng;

/// Probabilities below this are none.
const NOTHING: f64 = 1e-18;

/// The waiting time in the queue M/D/1 at a load below 1: Poisson arrivals, one server, the same service time for each. Exact, and
/// stable at any load: all terms are positive. Times are in service times.
pub struct Md1 {
    load: f64,
    /// Probability of at most this many in the queue, who is served not among them.
    at_most: Vec<f64>,
}

impl Md1 {
    /// The queue at this load; `None` unless it is above 0 and below 1.
    pub fn new(load: f64) -> Option<Md1> {
        (load > 0.0 && load < 1.0).then(|| Md1 { load, at_most: at_most_in_queue(load) })
    }

    /// The highest load at which a share of at least `quantile` waits at most `wait`.
    pub fn highest_load(quantile: f64, wait: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let mid = f64::midpoint(low, high);
            if Md1::new(mid).is_some_and(|queue| queue.wait_at_most(wait) >= quantile) {
                low = mid;
            } else {
                high = mid;
            }
        }
        low
    }

    /// The mean wait before service (Pollaczek and Khinchine).
    pub fn mean_wait(&self) -> f64 {
        self.load / (2.0 * (1.0 - self.load))
    }

    /// Probability of a wait of at most `wait`.
    ///
    /// For (k - 1) ≤ wait < k: Σ Q(k - 1 - j) a(j), over j from 0 to k - 1, where a(j) is the probability of j arrivals in
    /// k - wait, and Q(i) that of at most i in the queue (Franx 2001, "A simple solution for the M/D/c waiting time
    /// distribution", Oper. Res. Lett. 29, 221, for one server).
    pub fn wait_at_most(&self, wait: f64) -> f64 {
        if wait < 0.0 {
            return 0.0;
        }
        let last = wait as usize;
        let arrivals = self.load * (last as f64 + 1.0 - wait);
        let mut probability = (-arrivals).exp();
        let mut sum = 0.0;
        for j in 0..=last {
            sum += probability * self.at_most.get(last - j).unwrap_or(&1.0);
            probability *= arrivals / (j as f64 + 1.0);
            if probability < NOTHING {
                break;
            }
        }
        sum.min(1.0)
    }

    /// The wait that a share of `quantile`, below 1, does not exceed.
    pub fn wait_quantile(&self, quantile: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        if self.wait_at_most(0.0) >= quantile {
            return 0.0;
        }
        while self.wait_at_most(high) < quantile && high < self.at_most.len() as f64 {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.wait_at_most(middle) < quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }
}

/// Until they are 1. By the balance of steps up and down in the chain of numbers left behind, which has no subtraction
/// (Ramaswami 1988, "A stable recursion for the steady state vector in Markov chains of M/G/1 type", Stoch. Models 4, 183):
/// p(n + 1) a(0) = p(0) b(n) + Σ p(i) b(n + 1 - i), over i from 1 to n, where a(j) is the probability of j arrivals in a
/// service time and b(j) of more than j.
fn at_most_in_queue(load: f64) -> Vec<f64> {
    let more_than = more_arrivals_than(load);
    let none_arrives = (-load).exp();
    let mut in_system = vec![1.0 - load];
    // Nobody in the queue: none in the system, or one, who is served.
    let mut at_most = Vec::new();
    let mut sum = 1.0 - load;
    loop {
        let n = in_system.len() - 1;
        let first = n.saturating_sub(more_than.len()).max(1);
        let up = in_system[0] * or_nothing(&more_than, n)
            + (first..=n).map(|i| in_system[i] * or_nothing(&more_than, n + 1 - i)).sum::<f64>();
        let next = up / none_arrives;
        in_system.push(next);
        sum += next;
        at_most.push(sum.min(1.0));
        if next < NOTHING {
            return at_most;
        }
    }
}

fn or_nothing(probabilities: &[f64], index: usize) -> f64 {
    probabilities.get(index).copied().unwrap_or(0.0)
}

/// Probabilities of more than 0, 1, 2, … arrivals in a service time, while they are something.
fn more_arrivals_than(load: f64) -> Vec<f64> {
    let mut terms = vec![(-load).exp()];
    while let Some(last) = terms.last().copied().filter(|last| *last > NOTHING * 1e-6) {
        terms.push(last * load / terms.len() as f64);
    }
    // From the smallest, so that none is 1 less a sum.
    let mut sum = 0.0;
    let mut more = Vec::new();
    for term in terms.iter().rev() {
        more.push(sum);
        sum += term;
    }
    more.reverse();
    more
}

/// A queue with one server and no limit, message by message, as Lindley's recursion has it. [`Md1`] has the formulas. Times are in the unit of `service` and `mean_gap`.
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
