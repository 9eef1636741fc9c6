//! Latencies of some QPs of an end, for a thread that reads them while they are recorded.
//!
//! A look takes each cache line of counters that a worker has written since the last one from that worker, which waits
//! about 100 ns for each to come back. Latencies of a QP lie in some 100 lines, so 16 QPs cost their workers together
//! about 160 µs a look.

use std::sync::OnceLock;

use metrics::histogram::{LiveCounters, Samples};

use super::pattern::mix;

/// The most QPs that are watched.
const MOST: usize = 16;

/// Recorders of some QPs, spread evenly over all.
pub(super) struct Watched {
    /// One QP of each group of so many is watched.
    group: usize,
    qps: usize,
    recorders: Box<[OnceLock<LiveCounters>]>,
}

impl Watched {
    pub(super) fn new(qps: usize) -> Watched {
        let group = qps.div_ceil(MOST).max(1);
        Watched {
            group,
            qps,
            recorders: (0..qps.div_ceil(group)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Keeps a recorder of this QP, if it is one of those; the first one that is offered.
    pub(super) fn offer(&self, qp: usize, samples: &Samples) {
        let number = qp / self.group;
        let of_group = self.group.min(self.qps.saturating_sub(number * self.group)).max(1);
        // At random, because equal distances would be those of the QPs of one worker.
        if qp % self.group == mix(number as u64) as usize % of_group
            && let Some(recorder) = self.recorders.get(number)
        {
            let _ = recorder.set(samples.live());
        }
    }

    pub(super) fn recorders(&self) -> Vec<LiveCounters> {
        self.recorders.iter().filter_map(|recorder| recorder.get().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics::histogram::Digits;

    #[test]
    fn a_few_qps_of_all_workers_are_watched() {
        let samples = Samples::new(Digits::Two);
        for (qps, expected) in [(0, 0), (1, 1), (16, 16), (64, 16), (1000, 16)] {
            let watched = Watched::new(qps);
            let mut of_workers = [0; 4];
            for qp in 0..qps {
                let before = watched.recorders().len();
                watched.offer(qp, &samples);
                watched.offer(qp, &samples);
                of_workers[qp % 4] += watched.recorders().len() - before;
            }
            assert_eq!(watched.recorders().len(), expected, "{qps} QPs");
            if qps >= 16 {
                assert!(of_workers.iter().all(|&count| count > 0), "{of_workers:?}");
            }
        }
    }
}
