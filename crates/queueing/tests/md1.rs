//! Waiting times of M/D/1, by which `scripts/open-loop` judges real runs: against Erlang's sum, published figures, and
//! a queue that is simulated message by message.
#![allow(missing_docs, clippy::unwrap_used)]

use queueing::Md1;

/// Erlang's own formula of 1909: (1 - ρ) Σ (ρ (i - t))^i / i! e^(-ρ (i - t)), over i from 0 to t. Its signs alternate, so that it is
/// exact for short waits only.
fn erlang(load: f64, wait: f64) -> f64 {
    let mut factorial = 1.0;
    let mut sum = 0.0;
    for i in 0..=wait as i32 {
        let i_time = load * (f64::from(i) - wait);
        factorial *= f64::from(i.max(1));
        sum += i_time.powi(i) / factorial * (-i_time).exp();
    }
    (1.0 - load) * sum
}

#[test]
fn short_waits_are_those_of_erlangs_sum() {
    for load in [0.05, 0.3, 0.5, 0.7, 0.9, 0.95] {
        let queue = Md1::new(load).unwrap();
        for wait in [0.0, 0.2, 0.999, 1.0, 1.5, 3.0, 4.7, 6.25, 8.0] {
            let (found, exact) = (queue.wait_at_most(wait), erlang(load, wait));
            let error = (found - exact).abs();
            assert!(error < 1e-9, "{load} {wait}: {found}, not {exact}");
        }
    }
}

#[test]
fn the_mean_is_the_integral_of_the_distribution_and_the_tail_is_exponential() {
    for load in [0.3, 0.5, 0.7, 0.8, 0.9, 0.98] {
        let queue = Md1::new(load).unwrap();
        let step = 0.002;
        let mean: f64 = (0..500_000)
            .map(|at| (f64::from(at) + 0.5) * step)
            .map(|wait| (1.0 - queue.wait_at_most(wait)) * step)
            .sum();
        let error = (mean / queue.mean_wait() - 1.0).abs();
        assert!(error < 1e-4, "{load}: {mean}");
        // P(wait > t) falls as e^(-θ t), where θ = ρ (e^θ - 1) has a root above 0 (Cramér and Lundberg).
        let (mut low, mut high): (f64, f64) = (1e-6, 50.0);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if load * middle.exp_m1() < middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        let at = 4.0 / low + 2.0;
        let fall =
            ((1.0 - queue.wait_at_most(at)) / (1.0 - queue.wait_at_most(at + 2.0))).ln() / 2.0;
        assert!((fall / low - 1.0).abs() < 1e-3, "{load}: {fall}, not {low}");
    }
}

#[test]
fn quantiles_are_where_the_distribution_reaches_them() {
    for load in [0.01, 0.3, 0.9, 0.99] {
        let queue = Md1::new(load).unwrap();
        for quantile in [0.5, 0.9, 0.99, 0.999, 0.9999] {
            let wait = queue.wait_quantile(quantile);
            if 1.0 - load >= quantile {
                assert_eq!(wait, 0.0);
            } else {
                let found = queue.wait_at_most(wait);
                assert!((found - quantile).abs() < 1e-9, "{load} {quantile}: {wait}");
            }
        }
    }
    let none = [0.0, 1.0, -0.5, 1.2, f64::NAN];
    assert!(none.iter().all(|load| Md1::new(*load).is_none()));
}

/// Lindley's recursion over two million messages.
#[test]
fn a_simulated_queue_waits_as_long() {
    for (load, within) in [(0.3, 0.01), (0.7, 0.02), (0.9, 0.05)] {
        let queue = Md1::new(load).unwrap();
        let mut random = fastrand::Rng::with_seed(1909);
        let mut wait = 0.0_f64;
        let mut waits: Vec<f64> = (0..2_000_000)
            .map(|_| {
                wait = (wait + 1.0 + (1.0 - random.f64()).ln() / load).max(0.0);
                wait
            })
            .collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        waits.sort_by(f64::total_cmp);
        let p99 = waits[waits.len() / 100 * 99];
        for (found, exact) in [(mean, queue.mean_wait()), (p99, queue.wait_quantile(0.99))] {
            let error = (found / exact - 1.0).abs();
            assert!(error < within, "{load}: {found}, not {exact}");
        }
    }
}

#[test]
fn the_load_of_a_limit_is_found_again() {
    for load in [0.3, 0.57, 0.9] {
        let wait = Md1::new(load).unwrap().wait_quantile(0.99);
        let found = Md1::highest_load(0.99, wait);
        assert!((found - load).abs() < 1e-6, "{load}: {found}");
    }
    assert_eq!(Md1::highest_load(0.99, -0.1), 0.0);
}
