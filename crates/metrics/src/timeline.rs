//! Throughput over time: counts sampled while a window runs, kept to a bounded number. Pure logic over samples that the
//! caller takes.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn of(pushes: &[(u64, u64)]) -> Timeline {
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
        assert_eq!(samples(&of(&pushes)), intervals);
    }

    #[test]
    fn a_short_rest_is_joined_and_a_short_window_is_one_interval() {
        assert_eq!(samples(&of(&[(10, 100), (13, 130)])), [(13, 130)]);
        assert_eq!(samples(&of(&[(2, 7)])), [(2, 7)]);
        assert_eq!(samples(&of(&[])), []);
        assert_eq!(of(&[]).longest_stall_ns(), 0);
    }

    #[test]
    fn it_ends_with_the_window_and_holds_all_of_it() {
        let mut timeline = of(&[]);
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
        let timeline = of(&pushes);
        assert_eq!(timeline.longest_stall_ns(), 22 * MS);
        let rates: Vec<f64> = timeline.rates_per_s().map(f64::round).collect();
        assert_eq!(rates, [10_000.0, 0.0, 0.0, 11_111.0, 100.0]);
        assert_eq!(of(&[(10, 1), (20, 2)]).longest_stall_ns(), 0);
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
}
