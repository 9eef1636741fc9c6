//! How evenly the QPs of a flow were served from interval to interval of a run: what each got of its share, and which
//! stood still. What chance explains is held against none.

use std::ops::Range;

use settings::{Settings, Stop};

use results::model::{FlowResult, QpTimeline};

/// Lengths that an interval may have: others were not measured.
const SECONDS_OF_INTERVAL: Range<f64> = 1e-6..1e9;

/// A QP stood still if its share of that time is so many completions: the chance of such a gap between Poisson arrivals is
/// 2 in 10^9.
const COMPLETIONS_OF_STALL: f64 = 20.0;

/// Below this Jain's index QPs are not served evenly, and a row says so.
pub const TOLD_BELOW: f64 = 0.99;

/// Below this one a flow, or an interval of it, is uneven enough to be drawn.
pub const DRAWN_BELOW: f64 = 0.98;

/// Below this one it is a problem: at 0.9 a tenth of the QPs may have had nothing.
pub const WRONG_BELOW: f64 = 0.9;

/// So many variances of a Poisson count are left to chance.
const VARIANCES_OF_CHANCE: f64 = 3.0;

/// A run is uneven if one interval of so many is, and two at least.
const INTERVALS_PER_UNEVEN: usize = 20;

#[derive(Clone, Debug, PartialEq)]
pub struct OverTime {
    /// Ends of the intervals, in seconds from the start of the window.
    pub ends_seconds: Vec<f64>,
    pub qps: Vec<QpOverTime>,
    /// Mean of Jain's index over the intervals, without what chance explains; 0 of one in which nothing moved.
    pub jain: f64,
    uneven_intervals: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QpOverTime {
    /// Index within the flow, from 0.
    pub index: usize,
    /// Its messages over its share: 1 is as many as the others, or as `--qp-weights` asks for.
    pub share: f64,
    /// The same of each interval. In a run with a message count, of those that the QP filled.
    pub cells: Vec<f64>,
    /// The longest time without a message, if it is too long for chance.
    pub stall: Option<Stall>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Its beginning, in seconds from the start of the window.
    pub from_seconds: f64,
    pub to_seconds: f64,
    /// The other QPs got at least half of their shares meanwhile.
    pub is_alone: bool,
}

impl Stall {
    pub fn seconds(&self) -> f64 {
        self.to_seconds - self.from_seconds
    }
}

impl QpOverTime {
    /// Length of its stall; 0 without one.
    pub fn stall_seconds(&self) -> f64 {
        self.stall.map_or(0.0, |stall| stall.seconds())
    }
}

impl OverTime {
    /// `None` without counts of each QP, with too few intervals, and where nothing moved.
    pub fn new(flow: &FlowResult, settings: &Settings) -> Option<OverTime> {
        let counts = Counts::new(flow.qp_timeline.as_ref()?, settings)?;
        let jains: Vec<f64> =
            (0..counts.ends.len()).map(|interval| counts.jain(interval)).collect();
        Some(OverTime {
            ends_seconds: counts.ends.to_vec(),
            qps: (0..counts.messages.len()).map(|qp| counts.qp(qp)).collect(),
            jain: jains.iter().sum::<f64>() / jains.len() as f64,
            uneven_intervals: jains.iter().filter(|jain| **jain < DRAWN_BELOW).count(),
        })
    }

    /// Whether a QP stood still, or the QPs were served unevenly for a part of the run.
    pub fn is_uneven(&self) -> bool {
        let most_even = (self.ends_seconds.len() / INTERVALS_PER_UNEVEN).max(2);
        self.uneven_intervals >= most_even || self.qps.iter().any(|qp| qp.stall.is_some())
    }

    /// The longest stall of a QP while others moved; 0 without one.
    pub fn longest_alone_seconds(&self) -> f64 {
        self.qps
            .iter()
            .filter_map(|qp| qp.stall)
            .filter(|stall| stall.is_alone)
            .map(|stall| stall.seconds())
            .fold(0.0, f64::max)
    }

    /// The QPs, those with the longest stalls first, then those furthest from their shares.
    pub fn worst_first(&self) -> Vec<&QpOverTime> {
        let mut qps: Vec<&QpOverTime> = self.qps.iter().collect();
        qps.sort_by(|one, other| {
            let by_stall = other.stall_seconds().total_cmp(&one.stall_seconds());
            by_stall.then((other.share - 1.0).abs().total_cmp(&(one.share - 1.0).abs()))
        });
        qps
    }
}

/// The counts of a file, found to fit each other.
struct Counts<'a> {
    ends: &'a [f64],
    messages: &'a [Vec<u64>],
    /// What each QP was to get over an even share.
    expected_shares: Vec<f64>,
    /// Intervals of each QP until it had sent all it had.
    active: Vec<usize>,
    /// Of those the last, which a QP with a message count does not fill.
    unfilled: usize,
    /// Messages a second of an even share.
    rate: f64,
    messages_per_completion: f64,
}

impl<'a> Counts<'a> {
    fn new(timeline: &'a QpTimeline, settings: &Settings) -> Option<Counts<'a>> {
        let (ends, messages) = (&timeline.at_seconds[..], &timeline.messages[..]);
        let mut lengths =
            std::iter::once(&0.0).chain(ends).zip(ends).map(|(begin, end)| end - begin);
        let has_time = lengths.all(|seconds| SECONDS_OF_INTERVAL.contains(&seconds));
        let fit = messages.len() > 1 && messages.iter().all(|qp| qp.len() == ends.len());
        if !fit || !has_time || ends.len() < QpTimeline::FEWEST_INTERVALS {
            return None;
        }
        let is_timed = matches!(settings.stop(), Stop::DurationNs(_));
        let mut counts = Counts {
            ends,
            messages,
            expected_shares: expected_shares(settings, messages.len()),
            active: messages
                .iter()
                .map(|qp| match qp.iter().rposition(|&count| count > 0) {
                    _ if is_timed => ends.len(),
                    last => last.map_or(0, |at| at + 1),
                })
                .collect(),
            unfilled: usize::from(!is_timed),
            rate: 0.0,
            messages_per_completion: f64::from(settings.signal_every.max(1)),
        };
        let moved: f64 = messages.iter().flatten().map(|&count| count as f64).sum();
        let shares =
            (0..messages.len()).map(|qp| counts.expected_shares[qp] * counts.active_seconds(qp));
        counts.rate = moved / shares.sum::<f64>();
        (counts.rate > 0.0 && counts.rate.is_finite()).then_some(counts)
    }

    fn begin(&self, interval: usize) -> f64 {
        let before = interval.checked_sub(1);
        before.map_or(0.0, |before| self.ends[before])
    }

    fn seconds(&self, intervals: &Range<usize>) -> f64 {
        self.begin(intervals.end) - self.begin(intervals.start)
    }

    fn active_seconds(&self, qp: usize) -> f64 {
        self.begin(self.active[qp])
    }

    /// What the QP completed in some intervals over its share.
    fn share(&self, qp: usize, intervals: Range<usize>) -> f64 {
        let expected = self.expected(qp, &intervals);
        let moved: f64 = self.messages[qp][intervals].iter().map(|&count| count as f64).sum();
        if expected > 0.0 { moved / expected } else { 0.0 }
    }

    fn expected(&self, qp: usize, intervals: &Range<usize>) -> f64 {
        self.rate * self.expected_shares[qp] * self.seconds(intervals)
    }

    fn qp(&self, qp: usize) -> QpOverTime {
        let active = 0..self.active[qp];
        QpOverTime {
            index: qp,
            share: self.share(qp, active.clone()),
            cells: (0..active.end.saturating_sub(self.unfilled))
                .map(|at| self.share(qp, at..at + 1))
                .collect(),
            stall: self.stall(qp),
        }
    }

    fn stall(&self, qp: usize) -> Option<Stall> {
        let counts = &self.messages[qp][..self.active[qp]];
        let mut from = 0;
        let stretches = counts.chunk_by(|one, next| (*one == 0) == (*next == 0));
        let longest = stretches
            .filter_map(|stretch| {
                let intervals = from..from + stretch.len();
                from = intervals.end;
                (stretch[0] == 0).then_some(intervals)
            })
            .max_by(|a, b| self.seconds(a).total_cmp(&self.seconds(b)))?;
        let completions = self.expected(qp, &longest) / self.messages_per_completion;
        (completions >= COMPLETIONS_OF_STALL).then(|| Stall {
            from_seconds: self.begin(longest.start),
            to_seconds: self.begin(longest.end),
            is_alone: self.others_move(qp, &longest),
        })
    }

    /// Whether the others that still had messages got at least half of their shares.
    fn others_move(&self, qp: usize, intervals: &Range<usize>) -> bool {
        let (count, sum) = (0..self.messages.len())
            .filter(|other| *other != qp && self.active[*other] >= intervals.end)
            .map(|other| self.share(other, intervals.clone()))
            .fold((0, 0.0), |(count, sum), share| (count + 1, sum + share));
        count > 0 && sum >= 0.5 * f64::from(count)
    }

    /// Jain's index of an interval among the QPs that filled it, without what chance explains.
    fn jain(&self, interval: usize) -> f64 {
        let this = interval..interval + 1;
        let shares: Vec<f64> = (0..self.active.len())
            .filter(|qp| interval + self.unfilled < self.active[*qp])
            .map(|qp| self.share(qp, this.clone()))
            .collect();
        let count = shares.len() as f64;
        // Of a QP with an even share.
        let completions = self.rate * self.seconds(&this) / self.messages_per_completion;
        let mean = shares.iter().sum::<f64>() / count;
        if shares.len() < 2 || (mean == 0.0 && completions * count < COMPLETIONS_OF_STALL) {
            return 1.0;
        }
        if mean == 0.0 {
            return 0.0;
        }
        let squares = shares.iter().map(|share| share * share).sum::<f64>() / count;
        let chance = VARIANCES_OF_CHANCE / (completions * mean);
        1.0 / (1.0 + (squares / (mean * mean) - 1.0 - chance).max(0.0))
    }
}

/// What each QP was to get over an even share.
fn expected_shares(settings: &Settings, qps: usize) -> Vec<f64> {
    let weights = settings.qp_weights.as_ref();
    let mut shares = weights.map_or_else(Vec::new, settings::QpWeights::shares);
    shares.resize(qps, 1.0);
    shares
}

#[cfg(test)]
#[path = "evenness_tests.rs"]
mod tests;
