//! What a node and its device did over the time of its windows, in intervals: what may have slowed its flows down. The thread
//! that steers a run reads it, never a worker; where intervals become too many they are joined in pairs.

use std::collections::{BTreeMap, BTreeSet};

use results::model::{NodeFact, NodeState};

use crate::counters::{Growth, Reading};

/// The interval that is aimed at, in nanoseconds: above the 10 ms for which the kernel keeps an adapter's counters before it asks
/// for them again (`lifespan`), unless that was changed.
pub const INTERVAL_NS: u64 = 100_000_000;

/// Intervals that are kept; even, so that joining pairs leaves none over.
const MOST_INTERVALS: usize = 512;

/// Of a window with fewer its sums tell as much.
pub const FEWEST_INTERVALS: usize = 5;

const FACTS: usize = NodeFact::ALL.len();

/// Each fact's sum over time since the first look: the fact times seconds. `None` where it is not known.
pub type Sums = [Option<f64>; FACTS];

struct Interval {
    end_ns: u64,
    length_ns: u64,
    sums: Sums,
    /// Counters that grew.
    grown: BTreeMap<String, u64>,
}

impl Interval {
    fn join(self, next: Interval) -> Interval {
        let mut grown = self.grown;
        for (name, count) in next.grown {
            *grown.entry(name).or_default() += count;
        }
        let mut sums = self.sums;
        for (sum, other) in sums.iter_mut().zip(next.sums) {
            *sum = sum.zip(other).map(|(one, two)| one + two);
        }
        Interval { end_ns: next.end_ns, length_ns: self.length_ns + next.length_ns, sums, grown }
    }

    /// A fact's mean.
    fn mean(&self, fact: usize) -> Option<f64> {
        self.sums[fact].map(|sum| sum / (self.length_ns as f64 * 1e-9))
    }
}

/// Collects what is read.
pub struct StateTimeline {
    interval_ns: u64,
    last: Option<(u64, Sums, Option<Reading>)>,
    intervals: Vec<Interval>,
    path_events: u64,
}

impl StateTimeline {
    /// Of counters that are new after this `lifespan`.
    pub fn new(lifespan_ns: u64) -> StateTimeline {
        let interval_ns = INTERVAL_NS.max(lifespan_ns);
        StateTimeline { interval_ns, last: None, intervals: Vec::new(), path_events: 0 }
    }

    /// Whether the next interval is over.
    pub fn is_due(&self, at_ns: u64) -> bool {
        self.last.as_ref().is_none_or(|(last_ns, ..)| at_ns >= last_ns + self.interval_ns)
    }

    /// Takes what is known at `at_ns` from the opening of the window. The first look begins the first interval.
    pub fn push(&mut self, at_ns: u64, sums: Sums, reading: Option<Reading>) {
        if let Some((last_ns, before, first)) = self.last.take()
            && at_ns > last_ns
        {
            let mut of_interval = sums;
            for (sum, old) in of_interval.iter_mut().zip(before) {
                *sum = sum.zip(old).map(|(new, old)| (new - old).max(0.0));
            }
            let grown = first.zip(reading.clone()).map(grown).unwrap_or_default();
            for (name, count) in &grown {
                if reading.as_ref().is_some_and(|it| it.meaning(name).is_some()) {
                    self.path_events += count;
                }
            }
            self.keep(Interval {
                end_ns: at_ns,
                length_ns: at_ns - last_ns,
                sums: of_interval,
                grown,
            });
        }
        self.last = Some((at_ns, sums, reading));
    }

    fn keep(&mut self, interval: Interval) {
        if self.intervals.len() == MOST_INTERVALS {
            self.interval_ns *= 2;
            let mut halves = std::mem::take(&mut self.intervals).into_iter();
            while let (Some(one), Some(other)) = (halves.next(), halves.next()) {
                self.intervals.push(one.join(other));
            }
        }
        self.intervals.push(interval);
    }

    /// Events on the path of packets so far; `None` without counters.
    pub fn path_events(&self) -> Option<u64> {
        let (.., reading) = self.last.as_ref()?;
        reading.as_ref().map(|_| self.path_events)
    }

    /// What was seen; `None` of a short window. Facts that stayed at 0, and counters that did not grow, are left out.
    pub fn finish(self) -> Option<NodeState> {
        if self.intervals.len() < FEWEST_INTERVALS {
            return None;
        }
        let facts = NodeFact::ALL.iter().enumerate().filter_map(|(index, fact)| {
            let means = self.intervals.iter().map(|it| it.mean(index).map(rounded));
            let values: Vec<Option<f64>> = means.collect();
            values.iter().flatten().any(|value| *value > 0.0).then_some((*fact, values))
        });
        let names: BTreeSet<&String> =
            self.intervals.iter().flat_map(|it| it.grown.keys()).collect();
        let counters = names.into_iter().map(|name| {
            let grown = self.intervals.iter().map(|it| it.grown.get(name).copied().unwrap_or(0));
            (name.clone(), grown.collect())
        });
        let ends = self.intervals.iter().map(|it| rounded(it.end_ns as f64 * 1e-9));
        Some(NodeState {
            at_seconds: ends.collect(),
            facts: facts.collect(),
            counters: counters.collect(),
        })
    }
}

/// What counters grew by from one reading to the next, where that is known.
fn grown((before, now): (Reading, Reading)) -> BTreeMap<String, u64> {
    let mut growth = Growth::since(before);
    growth.add(now);
    growth
        .by_counter()
        .into_iter()
        .filter_map(|(name, count)| Some((name, count.filter(|count| *count > 0)?)))
        .collect()
}

/// To four digits behind the point, which no fact is exact to.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(outstanding: f64) -> Sums {
        let mut sums: Sums = [None; FACTS];
        sums[0] = Some(outstanding);
        sums
    }

    fn reading(gaps: u64) -> Option<Reading> {
        Some(Reading::of_embedded(vec![("out_of_sequence", gaps), ("still", 7)]))
    }

    #[test]
    fn facts_are_means_of_intervals_and_counters_what_they_grew_by() {
        let mut timeline = StateTimeline::new(10_000_000);
        // 16 for 0.1 s, then 8 for 0.1 s; the counter grows by 412 in the third interval.
        let mut sum = 0.0;
        timeline.push(0, sums(0.0), reading(3));
        for interval in 1..=6_u64 {
            sum += if interval % 2 == 1 { 1.6 } else { 0.8 };
            assert!(timeline.is_due(interval * INTERVAL_NS));
            assert!(!timeline.is_due(interval * INTERVAL_NS - 1));
            timeline.push(
                interval * INTERVAL_NS,
                sums(sum),
                reading(if interval < 3 { 3 } else { 415 }),
            );
        }
        assert_eq!(timeline.path_events(), Some(412));
        let state = timeline.finish().unwrap();
        assert_eq!(state.at_seconds, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
        let expected = [16.0, 8.0, 16.0, 8.0, 16.0, 8.0].map(Some).to_vec();
        assert_eq!(state.facts, BTreeMap::from([(NodeFact::ALL[0], expected)]));
        let gaps = vec![0, 0, 412, 0, 0, 0];
        assert_eq!(state.counters, BTreeMap::from([("out_of_sequence".to_owned(), gaps)]));
    }

    #[test]
    fn a_short_window_has_none_and_a_long_one_no_more_than_a_figure_shows() {
        let state = |intervals: u64| {
            let mut timeline = StateTimeline::new(0);
            for interval in 0..=intervals {
                let at_ns = interval * INTERVAL_NS;
                if timeline.is_due(at_ns) {
                    timeline.push(at_ns, sums(interval as f64), reading(interval));
                }
            }
            timeline.finish()
        };
        assert_eq!(state(FEWEST_INTERVALS as u64 - 1), None);
        // A day: nothing is lost.
        let day = state(864_000).unwrap();
        assert!(day.at_seconds.len() <= MOST_INTERVALS, "{}", day.at_seconds.len());
        let end = *day.at_seconds.last().unwrap();
        let sum: u64 = day.counters["out_of_sequence"].iter().sum();
        assert_eq!(rounded(sum as f64 * 0.1), end);
        // Counters that are kept for longer are not looked at more often.
        let mut slow = StateTimeline::new(250_000_000);
        slow.push(0, sums(0.0), None);
        assert_eq!([249_999_999, 250_000_000].map(|ns| slow.is_due(ns)), [false, true]);
    }
}
