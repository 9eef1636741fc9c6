//! Noise is neither steadiness nor drift: rates that scatter, simulated with seeds.

use std::cell::RefCell;

use super::*;

const MS: u64 = 1_000_000;

/// Feeds a sample every `step_ms` and says after how many milliseconds it is steady.
fn steady_after_ms(
    messages_per_completion: u32,
    step_ms: u64,
    count_at_ms: impl Fn(u64) -> u64,
) -> Option<u64> {
    let mut detector = SteadyDetector::new(messages_per_completion);
    (0..=10_000).step_by(step_ms as usize).find(|&ms| detector.push(ms * MS, count_at_ms(ms)))
}

#[test]
fn a_late_sample_counts_by_its_own_time() {
    let mut detector = SteadyDetector::new(1);
    let times_ms = [0, 50, 130, 180, 240, 390, 440, 490, 700];
    let steady = times_ms.map(|ms| detector.push(ms * MS, ms * 1000));
    assert_eq!(steady.iter().position(|&steady| steady), Some(8));
}

/// Before a window of 50 ms an even flow is steady after 200 ms and one that scatters by 5 % mostly after 300 ms, but a
/// steep rise is none.
#[test]
fn a_short_window_takes_a_short_warm_up() {
    let after_ms = |rate: &dyn Fn(f64) -> f64, scatter: f64, seed: u64| {
        let mut noise = Noise::new(seed, 0.0);
        let mut detector = SteadyDetector::before(0.05, 1);
        let mut messages = 0.0;
        (0..=200u64).find_map(|step| {
            let is_steady = detector.push(step * 25 * MS, messages as u64);
            let moved = rate(step as f64 * 0.025) * (1.0 + scatter * noise.next());
            messages += moved.max(0.0) * 25_000.0;
            is_steady.then_some(step * 25)
        })
    };
    assert_eq!(after_ms(&|_| 1.0, 0.0, 0), Some(200));
    let soon = |seed: &u64| after_ms(&|_| 1.0, 0.05, *seed).is_some_and(|ms| ms <= 300);
    assert!((0..100).filter(soon).count() >= 80);
    let doubles = |at_s: f64| (1.0 + at_s).min(2.0);
    assert!(after_ms(&doubles, 0.0, 0).unwrap() >= 1_000);
}

#[test]
fn nothing_moving_is_never_steady() {
    assert_eq!(steady_after_ms(1, 50, |_| 0), None);
    assert_eq!(steady_after_ms(1, 50, |_| 5_000_000), None);
}

#[test]
fn a_see_saw_averages_out_but_not_at_once() {
    // 50 ms at full rate, 50 ms at a third of it, for ever.
    let after = steady_after_ms(1, 50, |ms: u64| {
        let (pairs, rest) = (ms / 100, ms % 100);
        pairs * 50 * 4 * 1000 + rest.min(50) * 3000 + rest.saturating_sub(50) * 1000
    })
    .unwrap();
    assert!((3000..=4000).contains(&after), "{after} ms");
}

#[test]
fn bursts_of_moderation_do_not_hide_an_even_flow() {
    // 2.5 completions of 100 messages fall into 50 ms: the intervals become longer instead.
    let after = steady_after_ms(100, 50, |ms: u64| ms * 5 / 100 * 100).unwrap();
    assert!((8 * 400..=8 * 500).contains(&after), "{after} ms");
}

#[test]
fn counts_that_go_back_are_not_progress() {
    let mut detector = SteadyDetector::new(1);
    for step in 0..20 {
        assert!(!detector.push(step * 50 * MS, 1_000_000 - step * 1000));
    }
}

#[test]
fn a_long_warm_up_keeps_no_more_than_it_needs() {
    let mut detector = SteadyDetector::new(1);
    (0..2_000).for_each(|step| {
        detector.push(step * 50 * MS, step * step);
    });
    assert_eq!(detector.intervals.len(), MOST_INTERVALS);
}

/// The default cap of a warm-up.
const CAP_S: f64 = 5.0;

/// When a rate that scatters by `scatter` from interval to interval is called steady, in seconds; `None` where the
/// cap ends the warm-up.
fn steady_after_s(
    rate: &dyn Fn(f64) -> f64,
    scatter: f64,
    alike_intervals: f64,
    seed: u64,
) -> Option<f64> {
    let mut noise = Noise::new(seed, alike_intervals);
    let mut detector = SteadyDetector::new(1);
    detector.push(0, 0);
    let mut messages = 0.0;
    let steps = (CAP_S / 0.05) as u64;
    (1..=steps).find_map(|step| {
        let middle_s = (step as f64 - 0.5) * 0.05;
        messages += (rate(middle_s) * (1.0 + scatter * noise.next())).max(0.0) * 1e6 * 0.05;
        let is_steady = detector.push(step * INTERVAL_NS, messages as u64);
        is_steady.then_some(step as f64 * 0.05)
    })
}

type Rate = Box<dyn Fn(f64) -> f64>;

/// Rates of warm-ups that take so long, from a part of the final rate, 1: on a line, and approaching it
/// exponentially, 95 % of the way in that time.
fn ramps() -> Vec<(String, Rate)> {
    let mut ramps: Vec<(String, Rate)> = Vec::new();
    for seconds in [1.0, 2.0, 5.0] {
        for from in [0.2, 0.5, 0.8] {
            let what = format!("{seconds} s from {from}");
            let linear = move |at: f64| from + (1.0 - from) * (at / seconds).min(1.0);
            let gradual = move |at: f64| 1.0 - (1.0 - from) * (-3.0 * at / seconds).exp();
            ramps.push((format!("{what}, linear"), Box::new(linear)));
            ramps.push((format!("{what}, exponential"), Box::new(gradual)));
        }
    }
    ramps
}

/// How many of some warm-ups are called steady below 97 % of the final rate, and the lowest rate of those.
fn early(rate: &dyn Fn(f64) -> f64, scatter: f64, times: u64) -> (usize, f64) {
    (0..times)
        .filter_map(|seed| steady_after_s(rate, scatter, 0.0, seed))
        .map(rate)
        .filter(|rate| *rate < 0.97)
        .fold((0, 1.0), |(count, least), rate| (count + 1, rate.min(least)))
}

#[test]
fn a_ramp_is_not_steady_before_it_ends() {
    for (name, rate) in ramps() {
        assert_eq!(early(&rate, 0.0, 1).0, 0, "{name}");
        for scatter in [0.003, 0.01, 0.03, 0.05] {
            let (count, least) = early(&rate, scatter, 25);
            let is_late = count <= 1 && least >= 0.95;
            assert!(is_late, "{name}, {scatter}: {count}, {least}");
        }
    }
}

#[test]
fn steep_ramps_are_seen_through_much_noise() {
    for (name, rate) in ramps() {
        // One that rises in 3 s by less than the noise hides is not told.
        let is_steep = !name.starts_with("5 s") || name == "5 s from 0.2, linear";
        for scatter in [0.15, 0.30].into_iter().filter(|_| is_steep) {
            assert!(early(&rate, scatter, 25).0 <= 1, "{name}, {scatter}");
        }
    }
}

#[test]
fn plain_noise_is_steady_within_the_cap() {
    let medians_s = [0.7, 1.6, 3.0, 3.0, 3.0, 3.0];
    let scatters = [0.003, 0.01, 0.03, 0.05, 0.15, 0.30];
    for (scatter, median_s) in scatters.into_iter().zip(medians_s) {
        for alike in [0.0, 2.0] {
            let mut known: Vec<f64> = (0..100)
                .filter_map(|seed| steady_after_s(&|_| 1.0, scatter, alike, seed))
                .collect();
            known.sort_by(f64::total_cmp);
            assert!(known.len() >= 99, "scatter {scatter}: {}", known.len());
            assert!(known[50] <= median_s + 0.01, "{scatter}: {} s", known[50]);
        }
    }
}

#[test]
fn a_line_has_the_slope_and_error_of_the_textbook() {
    // y = 1 + 2x with errors 1, -2 and 1: squares 6, one degree of freedom, places spread 2.
    let line = Line::through(&[(0.0, 2.0), (1.0, 1.0), (2.0, 6.0)]).unwrap();
    assert!((line.mean - 3.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12);
    assert!((line.slope_error - 3f64.sqrt()).abs() < 1e-12);
}

#[test]
fn no_line_goes_through_less_than_three_places() {
    assert_eq!(Line::through(&[]), None);
    assert_eq!(Line::through(&[(0.0, 1.0), (1.0, 2.0)]), None);
    assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
}

const MESSAGES: f64 = 10_000.0;

/// A window of `count` intervals of 10 ms whose rate goes as `rate` does from 0 to 1.
fn window(count: usize, rate: impl Fn(f64) -> f64) -> Vec<Sample> {
    (0..count)
        .map(|index| Sample {
            at_ns: (index as u64 + 1) * 10_000_000,
            messages: (rate((index as f64 + 0.5) / count as f64) * MESSAGES).max(0.0) as u64,
        })
        .collect()
}

/// The share of windows that are marked, of 2,000 with noise of that deviation.
fn marked(count: usize, scatter: f64, alike: f64, rate: impl Fn(f64) -> f64) -> f64 {
    const TIMES: u64 = 2_000;
    (0..TIMES)
        .filter(|&seed| {
            let noise = RefCell::new(Noise::new(seed, alike));
            drift(&window(count, |at: f64| rate(at) * (1.0 + scatter * noise.borrow_mut().next())))
                .is_some()
        })
        .count() as f64
        / TIMES as f64
}

#[test]
fn noise_is_no_drift() {
    for (count, scatter, alike) in [
        (50, 0.05, 0.0),
        (50, 0.6, 0.0),
        (100, 0.2, 0.0),
        (100, 0.6, 0.0),
        (300, 0.2, 0.0),
        (100, 0.2, 3.0),
        (300, 0.2, 3.0),
        (300, 0.6, 10.0),
    ] {
        let share = marked(count, scatter, alike, |_| 1.0);
        let most = if alike > 0.0 { 0.005 } else { 0.001 };
        assert!(share <= most, "{count}, {scatter}, {alike}: {share}");
    }
}

#[test]
fn windows_that_rise_or_fall_are_marked() {
    for (share, least) in [
        (marked(300, 0.05, 0.0, |at| 1.0 + 0.1 * (at - 0.5)), 0.95),
        (marked(300, 0.2, 0.0, |at| 1.0 - 0.5 * at), 0.95),
        (marked(300, 0.05, 0.0, |at| if at < 0.5 { 1.0 } else { 0.8 }), 0.99),
        (marked(300, 0.05, 0.0, |at: f64| 1.0 - 0.5 * (-5.0 * at).exp()), 0.9),
    ] {
        assert!(share >= least, "{share}, not {least}");
    }
}

#[test]
fn a_drift_is_told_with_its_size() {
    let drift_text = |rate: &dyn Fn(f64) -> f64| drift(&window(100, rate)).map(|it| it.to_string());
    let fell = drift_text(&|at| 1.06 - 0.12 * at);
    assert_eq!(fell.unwrap(), "throughput fell by 12 % through the window");
    let rose = drift_text(&|at| if at < 0.5 { 0.9 } else { 1.1 });
    let says = "throughput rose by 20 % from the first half of the window to the second";
    assert_eq!(rose.unwrap(), says);
}

#[test]
fn small_changes_short_windows_and_silence_are_no_drift() {
    assert_eq!(drift(&window(100, |at| 1.0 + 0.049 * at)), None);
    assert_eq!(drift(&window(47, |at| 1.0 + at)), None);
    assert!(drift(&window(48, |at| 1.0 + at)).is_some());
    assert_eq!(drift(&window(100, |_| 0.0)), None);
    assert_eq!(drift(&[]), None);
}

#[test]
fn one_stall_is_no_drift() {
    for stalled in [0.0..0.1, 0.45..0.55, 0.9..1.0] {
        let rate = |at: f64| if stalled.contains(&at) { 0.0 } else { 1.0 };
        assert_eq!(drift(&window(300, rate)), None, "{stalled:?}");
    }
}

#[test]
fn intervals_of_any_length_count_by_their_time() {
    // The thread that samples was away for 200 ms at an even rate.
    let mut intervals = window(100, |_| 1.0);
    let joined: Vec<Sample> = intervals.drain(20..40).collect();
    intervals[20].messages += joined.iter().map(|it| it.messages).sum::<u64>();
    assert_eq!(drift(&intervals), None);
    let parts = messages_by_part(&intervals).unwrap();
    let is_even = |part: &f64| (part / (100.0 * MESSAGES / 16.0) - 1.0).abs() < 1e-9;
    assert!(parts.iter().all(is_even));
}

/// Normal deviates with mean 0 and deviation 1, each like the one before it (AR(1)), the same for a seed.
struct Noise {
    random: fastrand::Rng,
    alike: f64,
    last: f64,
}

impl Noise {
    /// `steps` is after how many deviates the likeness has fallen to 1/e; 0 for deviates that know nothing of each
    /// other.
    fn new(seed: u64, steps: f64) -> Noise {
        let mut noise = Noise {
            random: fastrand::Rng::with_seed(seed),
            alike: if steps > 0.0 { (-1.0 / steps).exp() } else { 0.0 },
            last: 0.0,
        };
        noise.last = noise.normal();
        noise
    }

    fn next(&mut self) -> f64 {
        let own = (1.0 - self.alike * self.alike).sqrt();
        self.last = self.alike * self.last + own * self.normal();
        self.last
    }

    /// By G. Box and M. Muller's transform (1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.f64()).cos()
    }
}
