//! Whether throughput rose or fell through a window: pure logic over the window's intervals, and over straight lines through
//! points.
//!
//! The window is cut into 16 parts of one length. Two shapes are fitted to their throughput: a straight line, and two
//! levels, one for each half. Either is a drift when it is at least 5 % of the mean, and when Student's t of it against
//! the parts' scatter is at least 5.5 (14 degrees of freedom).
//!
//! False alarms, by simulation: noise without memory is marked in 1 of 10,000 windows, and noise whose memory (to 1/e) is a 30th of
//! the window in 0.5 % at most. Noise with a memory of a tenth of the window or more cannot be told from a drift.

use super::timeline::Sample;

/// The line of least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) mean: f64,
    /// Growth of the value for 1 of the place.
    pub(super) slope: f64,
    /// Standard error of the slope, from the values' scatter about the line.
    pub(super) slope_error: f64,
}

impl Line {
    /// Through at least three points, place and value, not all at one place; `None` of less.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Line> {
        let free = points.len().checked_sub(2).filter(|&free| free > 0)?;
        let place = mean(points.iter().map(|point| point.0));
        let value = mean(points.iter().map(|point| point.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - place).powi(2)).sum();
        let common: f64 = points.iter().map(|(x, y)| (x - place) * (y - value)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = common / spread;
        let scatter =
            points.iter().map(|(x, y)| (y - value - slope * (x - place)).powi(2)).sum::<f64>()
                / free as f64;
        Some(Line { mean: value, slope, slope_error: (scatter / spread).sqrt() })
    }
}

/// Arithmetic mean; NaN of nothing.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Parts of the window; even, so that it has halves.
const PARTS: usize = 16;
/// Intervals that a part must have on average.
const INTERVALS_A_PART: usize = 3;
/// The least change that is told, relative to the mean rate.
const LEAST_CHANGE: f64 = 0.05;
/// Student's t from which on a change is told.
const LEAST_T: f64 = 5.5;

/// A change of throughput within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// By how much throughput rose (above 0) or fell, relative to its mean.
    pub change: f64,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Steadily, from the beginning of the window to its end.
    Line,
    /// From the mean of the window's first half to that of its second.
    Halves,
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (verb, percent) = if self.change < 0.0 {
            ("fell", -self.change * 100.0)
        } else {
            ("rose", self.change * 100.0)
        };
        let place = match self.shape {
            Shape::Line => "through the window",
            Shape::Halves => "from the first half of the window to the second",
        };
        write!(f, "throughput {verb} by {percent:.0} % {place}")
    }
}

/// The drift of a window whose intervals these are, the first from 0; `None` for one that has none, or has too few
/// intervals to tell.
pub fn drift(intervals: &[Sample]) -> Option<Drift> {
    if intervals.len() < PARTS * INTERVALS_A_PART {
        return None;
    }
    let parts = messages_by_part(intervals)?;
    let average = mean(parts.iter().copied());
    let points: Vec<(f64, f64)> =
        parts.iter().zip(0..).map(|(&messages, at)| (f64::from(at), messages)).collect();
    let line = Line::through(&points)?;
    let (first, second) = parts.split_at(PARTS / 2);
    let means = [first, second].map(|half| mean(half.iter().copied()));
    let squares: f64 = [first, second]
        .into_iter()
        .zip(means)
        .map(|(half, mean)| half.iter().map(|part| (part - mean).powi(2)).sum::<f64>())
        .sum();
    let scatter = squares / (PARTS - 2) as f64;
    let [first, second] = means;
    [
        (Shape::Line, line.slope * PARTS as f64, line.slope_error * PARTS as f64),
        (Shape::Halves, second - first, (scatter * 4.0 / PARTS as f64).sqrt()),
    ]
    .into_iter()
    .map(|(shape, change, error)| (Drift { change: change / average, shape }, change.abs() / error))
    .filter(|(drift, t)| *t >= LEAST_T && drift.change.abs() >= LEAST_CHANGE)
    .max_by(|(_, one), (_, other)| one.total_cmp(other))
    .map(|(drift, _)| drift)
}

/// Messages in each part of the window, spread evenly within an interval; `None` of a window without messages.
fn messages_by_part(intervals: &[Sample]) -> Option<[f64; PARTS]> {
    let end_ns = intervals.last()?.at_ns as f64;
    let part_ns = end_ns / PARTS as f64;
    let mut parts = [0.0; PARTS];
    let mut began_ns = 0.0;
    for interval in intervals {
        let ended_ns = interval.at_ns as f64;
        let rate = interval.messages as f64 / (ended_ns - began_ns);
        for (part, from_ns) in parts.iter_mut().zip((0..).map(|index| f64::from(index) * part_ns)) {
            let both_ns = ended_ns.min(from_ns + part_ns) - began_ns.max(from_ns);
            if both_ns > 0.0 {
                *part += rate * both_ns;
            }
        }
        began_ns = ended_ns;
    }
    (parts.iter().sum::<f64>() > 0.0).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::noise::Noise;
    use super::*;

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
                let noise = std::cell::RefCell::new(Noise::new(seed, alike));
                drift(&window(count, |at: f64| {
                    rate(at) * (1.0 + scatter * noise.borrow_mut().next())
                }))
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
        let told = |rate: &dyn Fn(f64) -> f64| drift(&window(100, rate)).map(|it| it.to_string());
        let fell = told(&|at| 1.06 - 0.12 * at);
        assert_eq!(fell.unwrap(), "throughput fell by 12 % through the window");
        let rose = told(&|at| if at < 0.5 { 0.9 } else { 1.1 });
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
}
