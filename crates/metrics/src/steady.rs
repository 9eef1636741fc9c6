//! When a warm-up has done its work: the rule of `--warmup auto`. Pure logic over samples that the caller takes.
//!
//! Throughput is counted in intervals of at least 50 ms, and at least 20 signalled completions, so that moderation's
//! bursts do not look like a change. A straight line is laid through the last 8, 16, 32 … intervals and through all of
//! them. Throughput is steady when one of these lines shows that
//! - it would change by less than 2.5 % in the next 2 s: its slope and twice the slope's standard error together; or
//! - it has scattered too much to show so little for 3 s, and the slope is within twice its standard error.
//!
//! So an even flow is steady after 400 ms, one that scatters by 1 % from interval to interval after about 1.5 s, and one
//! that scatters by 5 % or more after 3 s. The cap of the warm-up ends one that never gets there.
//!
//! A window shorter than 2 s is measured before so much can change. All times above are then shorter in its proportion,
//! down to a tenth of a second ahead: intervals of 25 ms, and 300 ms for what scatters.
//!
//! What this cannot tell: a rise slower than the noise (with a scatter of 15 % one of less than about 4 % a second),
//! and a plateau of half a second before a further rise. The window's own test ([`drift`]) may still find them.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;

use crate::timeline::Sample;

/// The shortest interval, in nanoseconds; sampling more often than this gains nothing.
pub const INTERVAL_NS: u64 = 50_000_000;
/// The same before short windows.
const LEAST_INTERVAL_NS: u64 = 25_000_000;

/// Intervals of the shortest line.
const FEWEST_INTERVALS: usize = 8;
const MOST_INTERVALS: usize = 256;
/// Signalled completions in an interval, so that one more or less is no more than 5 %.
const COMPLETIONS: u64 = 20;
/// How far ahead a change is judged, in seconds: over the window, within these bounds.
const AHEAD_S: RangeInclusive<f64> = 0.1..=2.0;
/// The change in that time that does not matter, relative to the rate.
const MOST_CHANGE: f64 = 0.025;
/// Standard errors that a slope may be off.
const ERRORS: f64 = 2.0;
/// How long noise must have averaged out where it hides so small a change, in times of that; and at least, in seconds.
const NOISY_TIMES: f64 = 1.5;
const LEAST_NOISY_S: f64 = 0.3;

/// Watches a count of messages until it grows steadily.
#[derive(Clone, Debug)]
pub struct SteadyDetector {
    min_messages: u64,
    ahead_s: f64,
    interval_ns: u64,
    /// Where the open interval began: time and count.
    open: Option<(u64, u64)>,
    /// The last closed intervals, oldest first.
    intervals: VecDeque<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    began_s: f64,
    ended_s: f64,
    messages_per_s: f64,
}

impl SteadyDetector {
    /// `messages_per_completion` is how many messages one completion retires (`signal_every`).
    pub fn new(messages_per_completion: u32) -> Self {
        SteadyDetector::before(f64::INFINITY, messages_per_completion)
    }

    /// The same before a window of so many seconds.
    pub fn before(window_s: f64, messages_per_completion: u32) -> Self {
        let ahead_s = window_s.clamp(*AHEAD_S.start(), *AHEAD_S.end());
        let interval_ns = INTERVAL_NS as f64 * ahead_s / AHEAD_S.end();
        SteadyDetector {
            ahead_s,
            interval_ns: (interval_ns as u64).max(LEAST_INTERVAL_NS),
            min_messages: COMPLETIONS * u64::from(messages_per_completion.max(1)),
            open: None,
            intervals: VecDeque::with_capacity(MOST_INTERVALS),
        }
    }

    /// Takes a sample: all messages completed so far, and when that was, in nanoseconds from any fixed
    /// moment. Says whether throughput is steady now.
    pub fn push(&mut self, at_ns: u64, messages: u64) -> bool {
        let Some((since_ns, before)) = self.open else {
            self.open = Some((at_ns, messages));
            return false;
        };
        let elapsed_ns = at_ns.saturating_sub(since_ns);
        let moved = messages.saturating_sub(before);
        if elapsed_ns >= self.interval_ns && moved >= self.min_messages {
            if self.intervals.len() == MOST_INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(Interval {
                began_s: since_ns as f64 / 1e9,
                ended_s: at_ns as f64 / 1e9,
                messages_per_s: moved as f64 / elapsed_ns as f64 * 1e9,
            });
            self.open = Some((at_ns, messages));
        }
        self.is_steady()
    }

    fn is_steady(&self) -> bool {
        let intervals = self.intervals.len();
        let doubled = std::iter::successors(Some(FEWEST_INTERVALS), |count| Some(count * 2));
        doubled
            .take_while(|&count| count < intervals)
            .chain((intervals >= FEWEST_INTERVALS).then_some(intervals))
            .any(|count| self.is_steady_over(count))
    }

    /// Whether the last `count` intervals show it.
    fn is_steady_over(&self, count: usize) -> bool {
        let last = self.intervals.range(self.intervals.len() - count..);
        let points: Vec<(f64, f64)> = last
            .clone()
            .map(|interval| ((interval.began_s + interval.ended_s) / 2.0, interval.messages_per_s))
            .collect();
        let (Some(line), Some(first), Some(end)) =
            (Line::through(&points), last.clone().next(), self.intervals.back())
        else {
            return false;
        };
        let (slope, error) = (line.slope.abs(), ERRORS * line.slope_error);
        let lasted_s = end.ended_s - first.began_s;
        let noisy_s = (NOISY_TIMES * self.ahead_s).max(LEAST_NOISY_S);
        (slope + error) * self.ahead_s <= MOST_CHANGE * line.mean
            || lasted_s >= noisy_s && slope <= error
    }
}

/// The line of least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    mean: f64,
    /// Growth of the value for 1 of the place.
    slope: f64,
    /// Standard error of the slope, from the values' scatter about the line.
    slope_error: f64,
}

impl Line {
    /// Through at least three points, place and value, not all at one place; `None` of less.
    fn through(points: &[(f64, f64)]) -> Option<Line> {
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
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
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

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Whether throughput rose or fell through a window whose intervals these are, the first from 0; `None` where it did not,
/// or where there are too few intervals to tell.
///
/// The window is cut into 16 parts of one length. Two shapes are fitted to their throughput: a straight line, and two
/// levels, one for each half. Either is a drift when it is at least 5 % of the mean, and when Student's t of it against
/// the parts' scatter is at least 5.5 (14 degrees of freedom).
///
/// False alarms, by simulation: noise without memory is marked in 1 of 10,000 windows, and noise whose memory (to 1/e) is
/// a 30th of the window in 0.5 % at most. Noise with a memory of a tenth of the window or more cannot be told from a drift.
pub fn drift(intervals: &[Sample]) -> Option<Drift> {
    if intervals.len() < PARTS * INTERVALS_A_PART {
        return None;
    }
    let parts = messages_by_part(intervals)?;
    let average = mean(parts.iter().copied());
    let points: Vec<(f64, f64)> =
        parts.iter().zip(0..).map(|(&messages, at)| (f64::from(at), messages)).collect();
    let line = Line::through(&points)?;
    let (first_half, second_half) = parts.split_at(PARTS / 2);
    let [first, second] = [first_half, second_half].map(|half| mean(half.iter().copied()));
    let squares: f64 = [(first_half, first), (second_half, second)]
        .into_iter()
        .map(|(half, mean)| half.iter().map(|part| (part - mean).powi(2)).sum::<f64>())
        .sum();
    let scatter = squares / (PARTS - 2) as f64;
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
#[path = "steady_tests.rs"]
mod tests;
