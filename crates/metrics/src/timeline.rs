//! Throughput over time, of a flow and of each of its QPs: counts sampled while a window runs, kept to a bounded number by
//! longer intervals. Pure logic over samples that the caller takes.

use results::model;

/// The interval that is aimed at, in nanoseconds.
pub const INTERVAL_NS: u64 = 10_000_000;

/// Samples that are kept. A window with more has neighbours joined and its interval doubled.
pub const MOST_SAMPLES: usize = 6_000;

/// What was done up to the end of one interval since the end of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// End of the interval, from the start of the window.
    pub at_ns: u64,
    pub messages: u64,
}

/// Collects samples of a count that only grows.
#[derive(Clone, Debug)]
pub struct Timeline {
    interval_ns: u64,
    samples: Vec<Sample>,
    /// Time and count at the end of the last sample.
    closed: (u64, u64),
    /// Time and count that were pushed last.
    seen: (u64, u64),
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            interval_ns: INTERVAL_NS,
            samples: Vec::with_capacity(MOST_SAMPLES),
            closed: (0, 0),
            seen: (0, 0),
        }
    }
}

impl Timeline {
    /// Takes the messages completed since the window's start, `at_ns` into it. Calls may come at any
    /// distance; what is closer than an interval is joined.
    pub fn push(&mut self, at_ns: u64, messages: u64) {
        self.seen = (at_ns, messages);
        if at_ns.saturating_sub(self.closed.0) >= self.interval_ns {
            self.close();
        }
    }

    /// Ends the window at `end_ns`, when `messages` were completed in it. Samples that were taken later are cut
    /// back to it, and a rest shorter than half an interval is joined to the interval before it.
    pub fn finish(&mut self, end_ns: u64, messages: u64) {
        while let Some(last) = self.samples.pop_if(|last| last.at_ns > end_ns) {
            self.closed = (
                self.samples.last().map_or(0, |sample| sample.at_ns),
                self.closed.1 - last.messages,
            );
        }
        self.seen = (end_ns, messages);
        let rest_ns = self.seen.0.saturating_sub(self.closed.0);
        let rest = self.seen.1.saturating_sub(self.closed.1);
        match self.samples.last_mut() {
            Some(last) if rest_ns < self.interval_ns / 2 => {
                last.at_ns += rest_ns;
                last.messages += rest;
                self.closed = self.seen;
            }
            _ if rest_ns > 0 => self.close(),
            _ => {}
        }
    }

    /// The interval that was aimed at in the end, in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Messages a second in each interval, oldest first.
    pub fn rates_per_s(&self) -> impl Iterator<Item = f64> {
        self.lengths_ns().map(|(length_ns, messages)| messages as f64 / (length_ns as f64 / 1e9))
    }

    /// The longest row of intervals without a message.
    pub fn longest_stall_ns(&self) -> u64 {
        let mut stall_ns = 0;
        self.lengths_ns()
            .map(|(length_ns, messages)| {
                stall_ns = if messages == 0 { stall_ns + length_ns } else { 0 };
                stall_ns
            })
            .max()
            .unwrap_or(0)
    }

    /// Length of each interval, and its messages.
    fn lengths_ns(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(0).chain(self.samples.iter().map(|sample| sample.at_ns));
        self.samples
            .iter()
            .zip(starts)
            .map(|(sample, start_ns)| (sample.at_ns.saturating_sub(start_ns), sample.messages))
    }

    fn close(&mut self) {
        if self.samples.len() == MOST_SAMPLES {
            self.widen();
        }
        self.samples.push(Sample {
            at_ns: self.seen.0,
            messages: self.seen.1.saturating_sub(self.closed.1),
        });
        self.closed = self.seen;
    }

    fn widen(&mut self) {
        self.interval_ns *= 2;
        self.samples = self
            .samples
            .chunks(2)
            .filter_map(|pair| {
                Some(Sample {
                    at_ns: pair.last()?.at_ns,
                    messages: pair.iter().map(|sample| sample.messages).sum(),
                })
            })
            .collect();
        self.samples.reserve(MOST_SAMPLES - self.samples.len());
    }
}

/// Intervals that are kept: as many as a figure has room for. Even, so that joining pairs leaves none over.
const MOST_INTERVALS: usize = 128;

/// Room that there is at least: joined in pairs, as many are left as tell something.
const LEAST_ROOM: usize = 2 * model::QpTimeline::FEWEST_INTERVALS;

/// Counts that a node keeps in a run, those of all its flows together.
pub const MOST_COUNTS: usize = LEAST_ROOM * model::QpTimeline::MOST_QPS;

/// Collects samples of counts that only grow.
#[derive(Clone, Debug)]
pub struct QpTimeline {
    interval_ns: u64,
    most_intervals: usize,
    qps: usize,
    /// End of each interval, from the start of the window.
    ends_ns: Vec<u64>,
    /// What each QP had completed by then, since its own start: those of the first interval first.
    counts: Vec<u64>,
}

/// What each QP completed in each interval of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QpIntervals {
    /// The interval that was aimed at.
    pub interval_ns: u64,
    /// End of each interval, from the start of the window.
    pub ends_ns: Vec<u64>,
    /// Messages of each QP in each interval.
    pub messages: Vec<Vec<u64>>,
}

/// Intervals that so many QPs have among `counts`; `None` where they are too few, and of a single QP, whose timeline is the
/// flow's.
pub fn most_intervals(qps: usize, counts: usize) -> Option<usize> {
    let most = counts.checked_div(qps)?.min(MOST_INTERVALS) / 2 * 2;
    (qps > 1 && most >= LEAST_ROOM).then_some(most)
}

impl QpTimeline {
    /// Makes room for at most `counts`; `None` where [`most_intervals`] has none. A window whose length is known has
    /// intervals of one length from the start.
    pub fn new(qps: usize, counts: usize, window_ns: Option<u64>) -> Option<QpTimeline> {
        let most_intervals = most_intervals(qps, counts)?;
        let each_ns = window_ns.unwrap_or(0).div_ceil(most_intervals as u64);
        Some(QpTimeline {
            interval_ns: each_ns.next_multiple_of(INTERVAL_NS).max(INTERVAL_NS),
            most_intervals,
            qps,
            ends_ns: Vec::with_capacity(most_intervals),
            counts: Vec::with_capacity(most_intervals * qps),
        })
    }

    /// Takes a sample if an interval is over `at_ns` into the window; `read` fills in what each QP has completed since its
    /// own start. It allocates nothing.
    pub fn push(&mut self, at_ns: u64, read: impl FnOnce(&mut [u64])) {
        if self.ends_ns.len() == self.most_intervals && self.is_over(at_ns) {
            self.widen();
        }
        if self.is_over(at_ns) {
            let from = self.counts.len();
            self.counts.resize(from + self.qps, 0);
            read(&mut self.counts[from..]);
            self.ends_ns.push(at_ns);
        }
    }

    fn is_over(&self, at_ns: u64) -> bool {
        let began_ns = self.ends_ns.last().copied().unwrap_or(0);
        at_ns.saturating_sub(began_ns) >= self.interval_ns
    }

    /// Joins neighbours: counts since the start are those of the second one.
    fn widen(&mut self) {
        self.interval_ns *= 2;
        let joined = self.ends_ns.len() / 2;
        for kept in 0..joined {
            let second = 2 * kept + 1;
            self.ends_ns[kept] = self.ends_ns[second];
            let row = second * self.qps..(second + 1) * self.qps;
            self.counts.copy_within(row, kept * self.qps);
        }
        self.ends_ns.truncate(joined);
        self.counts.truncate(joined * self.qps);
    }

    /// Ends the window at `end_ns`. `before` is what each QP had completed when it opened, `by_end` when it closed; what was
    /// sampled outside is no part of it. A rest shorter than half an interval is joined to the interval before it. The sum
    /// of a QP is what it completed in the window.
    pub fn finish(mut self, end_ns: u64, before: &[u64], by_end: &[u64]) -> QpIntervals {
        while self.ends_ns.pop_if(|at_ns| *at_ns >= end_ns).is_some() {}
        let is_full = self.ends_ns.len() == self.most_intervals;
        self.ends_ns
            .pop_if(|last_ns: &mut u64| is_full || end_ns - *last_ns < self.interval_ns / 2);
        let messages = (0..self.qps)
            .map(|qp| {
                let first = before.get(qp).copied().unwrap_or(0);
                let last = by_end.get(qp).copied().unwrap_or(0).max(first);
                let sampled =
                    self.counts.iter().skip(qp).step_by(self.qps).take(self.ends_ns.len()).copied();
                let mut counted = first;
                sampled
                    .chain((end_ns > 0).then_some(last))
                    .map(|count| {
                        let so_far = count.clamp(counted, last);
                        so_far - std::mem::replace(&mut counted, so_far)
                    })
                    .collect()
            })
            .collect();
        self.ends_ns.extend((end_ns > 0).then_some(end_ns));
        QpIntervals { interval_ns: self.interval_ns, ends_ns: self.ends_ns, messages }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn timeline_from(pushes: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::default();
        for &(at_ms, messages) in pushes {
            timeline.push(at_ms * MS, messages);
        }
        let (at_ms, messages) = pushes.last().copied().unwrap_or_default();
        timeline.finish(at_ms * MS, messages);
        timeline
    }

    fn samples(timeline: &Timeline) -> Vec<(u64, u64)> {
        timeline.samples().iter().map(|sample| (sample.at_ns / MS, sample.messages)).collect()
    }

    #[test]
    fn an_interval_holds_what_was_done_in_it() {
        let pushes = [(4, 40), (10, 100), (15, 150), (22, 220), (33, 220), (40, 300)];
        // The rest of 7 ms is long enough to stand alone.
        let intervals = [(10, 100), (22, 120), (33, 0), (40, 80)];
        assert_eq!(samples(&timeline_from(&pushes)), intervals);
    }

    #[test]
    fn a_short_rest_is_joined_and_a_short_window_is_one_interval() {
        assert_eq!(samples(&timeline_from(&[(10, 100), (13, 130)])), [(13, 130)]);
        assert_eq!(samples(&timeline_from(&[(2, 7)])), [(2, 7)]);
        assert_eq!(samples(&timeline_from(&[])), []);
        assert_eq!(timeline_from(&[]).longest_stall_ns(), 0);
    }

    #[test]
    fn it_ends_with_the_window_and_holds_all_of_it() {
        let mut timeline = timeline_from(&[]);
        for (at, count) in [(10, 100), (20, 200), (30, 290)] {
            timeline.push(at * MS, count);
        }
        let mut late = timeline.clone();
        timeline.finish(60 * MS, 300);
        // What nobody sampled is there.
        let intervals = [(10, 100), (20, 100), (30, 90), (60, 10)];
        assert_eq!(samples(&timeline), intervals);
        late.finish(26 * MS, 290);
        assert_eq!(samples(&late), [(10, 100), (20, 100), (26, 90)]);
        late.finish(23 * MS, 290);
        assert_eq!(samples(&late), [(10, 100), (23, 190)]);
    }

    #[test]
    fn rates_and_stalls_are_those_of_the_intervals() {
        let pushes = [(10, 100), (20, 100), (32, 100), (40, 300), (50, 300), (60, 301)];
        let timeline = timeline_from(&pushes);
        assert_eq!(timeline.longest_stall_ns(), 22 * MS);
        let rates: Vec<f64> = timeline.rates_per_s().map(f64::round).collect();
        assert_eq!(rates, [10_000.0, 0.0, 0.0, 11_111.0, 100.0]);
        assert_eq!(timeline_from(&[(10, 1), (20, 2)]).longest_stall_ns(), 0);
    }

    #[test]
    fn a_long_window_has_longer_intervals() {
        let mut timeline = Timeline::default();
        (1..=20_000u64).for_each(|i| timeline.push(i * 10 * MS, i * 5));
        timeline.finish(200_000 * MS, 100_000);
        assert_eq!(timeline.interval_ns(), 40 * MS);
        assert!(timeline.samples().len() <= MOST_SAMPLES);
        let messages = timeline.samples().iter().map(|sample| sample.messages);
        assert_eq!(messages.sum::<u64>(), 100_000);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_time_goes_on(steps in prop::collection::vec((0u64..40, 0u64..1000), 0..200)) {
            let mut timeline = Timeline::default();
            let (mut at, mut count) = (0, 0);
            for (step_ms, more) in steps {
                // A count without time is not seen by an interval of no length.
                at += step_ms.max(1) * MS;
                count += more;
                timeline.push(at, count);
            }
            timeline.finish(at, count);
            prop_assert_eq!(timeline.samples().iter().map(|sample| sample.messages).sum::<u64>(), count);
            prop_assert!(timeline.samples().is_sorted_by(|a, b| a.at_ns < b.at_ns));
            prop_assert_eq!(timeline.samples().last().map_or(0, |last| last.at_ns), at);
        }
    }

    fn qp_timeline(window_ms: Option<u64>) -> QpTimeline {
        QpTimeline::new(2, MOST_COUNTS, window_ms.map(|ms| ms * MS)).unwrap()
    }

    fn push_qps(timeline: &mut QpTimeline, at_ms: u64, counts: [u64; 2]) {
        timeline.push(at_ms * MS, |into| into.copy_from_slice(&counts));
    }

    #[test]
    fn an_interval_holds_what_each_qp_did_in_it() {
        let mut timeline = qp_timeline(None);
        for (at_ms, counts) in [
            (4, [104, 204]),
            (10, [110, 210]),
            (15, [115, 210]),
            (21, [121, 210]),
            (31, [131, 240]),
        ] {
            push_qps(&mut timeline, at_ms, counts);
        }
        let intervals = timeline.finish(38 * MS, &[100, 200], &[138, 245]);
        assert_eq!(intervals.ends_ns, [10, 21, 31, 38].map(|ms| ms * MS));
        assert_eq!(intervals.messages, [[10, 11, 10, 7], [10, 0, 30, 5]]);
    }

    #[test]
    fn what_was_sampled_outside_the_window_is_no_part_of_it() {
        let mut timeline = qp_timeline(None);
        // A worker opens its window late, and goes on behind its end.
        for (at_ms, counts) in [(10, [90, 10]), (20, [120, 20]), (30, [130, 90])] {
            push_qps(&mut timeline, at_ms, counts);
        }
        let intervals = timeline.clone().finish(30 * MS, &[100, 0], &[125, 30]);
        assert_eq!(intervals.ends_ns, [10, 20, 30].map(|ms| ms * MS));
        assert_eq!(intervals.messages, [[0, 20, 5], [10, 10, 10]]);
        let shorter = timeline.clone().finish(23 * MS, &[100, 0], &[125, 30]);
        assert_eq!(shorter.ends_ns, [10, 23].map(|ms| ms * MS));
        assert_eq!(shorter.messages, [[0, 25], [10, 20]]);
        let nothing = timeline.finish(0, &[0, 0], &[0, 0]);
        assert!(nothing.ends_ns.is_empty());
        assert_eq!(nothing.messages, [[0_u64; 0]; 2]);
    }

    #[test]
    fn a_window_of_known_length_has_one_interval_length_and_another_grows() {
        assert_eq!(qp_timeline(Some(1_000)).interval_ns, 10 * MS);
        assert_eq!(qp_timeline(Some(5_000)).interval_ns, 40 * MS);
        for window_ms in [Some(20_000), None] {
            let mut timeline = qp_timeline(window_ms);
            let room = (timeline.counts.as_ptr(), timeline.ends_ns.as_ptr());
            (1..=2_000).for_each(|tick| push_qps(&mut timeline, tick * 10, [tick, tick * 3]));
            assert_eq!(
                (timeline.counts.as_ptr(), timeline.ends_ns.as_ptr()),
                room,
                "it allocates nothing"
            );
            let intervals = timeline.finish(20_000 * MS, &[0, 0], &[2_000, 6_000]);
            assert_eq!(intervals.interval_ns, 160 * MS);
            assert_eq!(intervals.ends_ns.len(), 125);
            assert_eq!(intervals.messages[1][7..9], [48, 48]);
        }
    }

    #[test]
    fn many_qps_have_few_intervals_and_too_many_none() {
        for (qps, most) in [
            (1, None),
            (2, Some(128)),
            (128, Some(128)),
            (1_000, Some(16)),
            (1_024, Some(16)),
            (1_025, None),
        ] {
            assert_eq!(most_intervals(qps, MOST_COUNTS), most, "{qps}");
        }
        assert_eq!(most_intervals(0, MOST_COUNTS), None);
        assert_eq!(most_intervals(4, 67), Some(16));
    }

    #[test]
    fn any_window_has_enough_intervals_to_tell_something() {
        for (qps, window_ms) in [2, 700, 1_024].into_iter().flat_map(|qps| {
            let lengths = [100, 200, 300, 500, 1_000, 1_280, 7_000];
            lengths.map(|window_ms| (qps, window_ms))
        }) {
            for tick_us in [10_000, 10_300, 11_000] {
                for known_ns in [Some(window_ms * MS), None] {
                    let mut timeline = QpTimeline::new(qps, MOST_COUNTS, known_ns).unwrap();
                    let ticks = window_ms * 1_000 / tick_us;
                    (1..=ticks).for_each(|tick| timeline.push(tick * tick_us * 1_000, |_| ()));
                    let zeros = vec![0; qps];
                    let intervals = timeline.finish(window_ms * MS, &zeros, &zeros).ends_ns.len();
                    assert!(
                        intervals >= model::QpTimeline::FEWEST_INTERVALS,
                        "{intervals} of {qps} QPs in {window_ms} ms, {known_ns:?}, {tick_us} us"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_message_of_a_qp_is_lost_and_time_goes_on(
            steps in prop::collection::vec((0u64..40, 0u64..1000, 0u64..1000), 0..400),
            before in 0u64..500,
            beyond in 0u64..50,
        ) {
            let mut timeline = qp_timeline(None);
            let (mut at, mut counts) = (0, [before, 0]);
            for (step_ms, one, other) in steps {
                at += step_ms;
                counts = [counts[0] + one, counts[1] + other];
                push_qps(&mut timeline, at, counts);
            }
            let intervals = timeline.finish((at + beyond) * MS, &[before, 0], &counts);
            prop_assert!(intervals.ends_ns.is_sorted_by(|a, b| a < b));
            prop_assert!(intervals.ends_ns.len() <= MOST_INTERVALS);
            prop_assert_eq!(intervals.ends_ns.last().map_or(0, |last| last / MS), at + beyond);
            if at + beyond > 0 {
                let sums: Vec<u64> = intervals.messages.iter().map(|qp| qp.iter().sum()).collect();
                prop_assert_eq!(sums, vec![counts[0] - before, counts[1]]);
            }
        }
    }
}
