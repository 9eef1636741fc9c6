//! How long a sweep still takes: what its runs are to measure, and as much besides as those took that are over. It must
//! not know where that is shown.

use std::time::Duration;

use settings::Stop;

use crate::plan::{Case, Sweep};

/// What is known of the time of a sweep.
#[derive(Debug, Default)]
pub(in crate::cli) struct TimeLeft {
    /// Whether runs tell nothing of others: those of several cases that count messages.
    is_unknown: bool,
    /// What runs that are not over are to measure.
    planned: Duration,
    runs: u32,
    /// What runs that are over took besides: to connect, to warm up and to drain.
    besides: Duration,
    runs_over: u32,
}

impl TimeLeft {
    /// Before the first run.
    pub(in crate::cli) fn of(sweep: &Sweep) -> TimeLeft {
        let each = sweep.runs();
        let cases = u32::try_from(sweep.cases.len()).unwrap_or(u32::MAX);
        let planned: Duration = sweep.cases.iter().map(measures).sum();
        TimeLeft {
            is_unknown: cases > 1
                && sweep.cases.iter().any(|case| matches!(case.stop(), Stop::MessagesPerQp(_))),
            planned: planned.saturating_mul(each),
            runs: cases.saturating_mul(each),
            ..TimeLeft::default()
        }
    }

    /// There are more cases, of one run each.
    pub(in crate::cli) fn add(&mut self, cases: &[Case]) {
        self.planned += cases.iter().map(measures).sum::<Duration>();
        self.runs += u32::try_from(cases.len()).unwrap_or(u32::MAX);
    }

    /// A run is over that was to measure for `planned`, and took so long.
    pub(in crate::cli) fn run_over(&mut self, planned: Duration, took: Duration) {
        self.planned = self.planned.saturating_sub(planned);
        self.runs = self.runs.saturating_sub(1);
        self.besides += took.saturating_sub(planned);
        self.runs_over += 1;
    }

    /// How long it takes from the start of the next run on, about; `None` if that is not known.
    pub(in crate::cli) fn left(&self) -> Option<Duration> {
        if self.is_unknown {
            return None;
        }
        let besides = self.besides.checked_div(self.runs_over)?;
        Some(self.planned.saturating_add(besides.saturating_mul(self.runs)))
    }
}

/// How long a case is to measure; nothing of one that counts messages.
pub(in crate::cli) fn measures(case: &Case) -> Duration {
    match case.stop() {
        Stop::DurationNs(ns) => Duration::from_nanos(ns),
        Stop::MessagesPerQp(_) => Duration::ZERO,
    }
}

/// `1 h 5 min`, `2 min 30 s`, `45 s`, `1.5 s`.
pub(in crate::cli) fn for_people(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{} s", span.as_millis() as f64 / 1e3),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// `~2 min 30 s left`, in whole seconds.
pub(in crate::cli) fn left_text(left: Duration) -> String {
    let left = Duration::from_secs(left.as_secs_f64().ceil() as u64);
    format!("~{} left", for_people(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(flags: &[(&str, &str)]) -> Sweep {
        Sweep::new(&flags.iter().copied().collect()).unwrap()
    }

    #[test]
    fn what_is_left_is_known_from_the_first_run_on() {
        let sweep = sweep(&[("qps", "1,4"), ("duration", "2s"), ("runs", "2")]);
        let mut time = TimeLeft::of(&sweep);
        assert_eq!(time.left(), None);
        // Three runs of 2 s and 3 s besides, then 2 s.
        for (took, left) in [(5, 15), (3, 8)] {
            time.run_over(measures(&sweep.cases[0]), Duration::from_secs(took));
            assert_eq!(time.left(), Some(Duration::from_secs(left)));
        }
        for _ in 0..3 {
            time.run_over(measures(&sweep.cases[1]), Duration::from_secs(1));
        }
        // Also of more runs than were planned.
        assert_eq!(time.left(), Some(Duration::ZERO));
        time.add(&sweep.cases);
        assert!(time.left() > Some(Duration::from_secs(4)));
    }

    #[test]
    fn runs_that_count_messages_take_what_others_of_their_case_took() {
        let after_one = |flags: &[(&str, &str)]| {
            let sweep = sweep(flags);
            let mut time = TimeLeft::of(&sweep);
            time.run_over(measures(&sweep.cases[0]), Duration::from_secs(5));
            time.left()
        };
        let of_one_case = after_one(&[("iters", "1000"), ("runs", "2")]);
        assert_eq!(of_one_case, Some(Duration::from_secs(5)));
        assert_eq!(after_one(&[("iters", "1000"), ("size", "64,1M")]), None);
    }

    #[test]
    fn spans_read_well() {
        for (ms, text) in
            [(1_500, "1.5 s"), (45_000, "45 s"), (150_000, "2 min 30 s"), (3_900_000, "1 h 5 min")]
        {
            assert_eq!(for_people(Duration::from_millis(ms)), text);
        }
        assert_eq!(left_text(Duration::from_millis(39_100)), "~40 s left");
    }
}
