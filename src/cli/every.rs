//! `--every`: a line each so often while a run measures, for whoever runs long; and at its end the worst second.

use std::time::Duration;

use crate::{cli::progress::AboveBar, coordinator::interface::Observer};
use report::observe::format::time_text;
use results::{
    model::{CaseConfig, ResultFile, Run},
    utc_now,
};

/// Nodes say no more often how far they are.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);

/// Stretches of a window of one length, one after the other. Each ends with the first sample behind its end.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    length: Duration,
    /// The run is in its measurement window.
    is_open: bool,
    /// When the next one is to end.
    due: Duration,
    begun: Duration,
    last: Duration,
    /// 10^9 bits and 10^6 messages since it began.
    gbit: f64,
    mmsg: f64,
}

/// What was moved in a stretch.
#[derive(Debug, PartialEq)]
pub(super) struct Moved {
    pub(super) seconds: f64,
    pub(super) gbit: f64,
    pub(super) mmsg: f64,
}

impl Stretches {
    pub(super) fn new(length: Duration) -> Stretches {
        let due = length.max(BETWEEN_SAMPLES);
        Stretches { length: due, due, ..Stretches::default() }
    }

    /// A phase of a run begins: of the window, or another.
    pub(super) fn phase(&mut self, name: &str) {
        *self = Stretches { is_open: name == "measure", ..Stretches::new(self.length) };
    }

    /// Takes the rate since the last sample; what was moved, if the stretch ends with it.
    pub(super) fn add(
        &mut self,
        elapsed: Duration,
        gbit_per_s: f64,
        mmsg_per_s: f64,
    ) -> Option<Moved> {
        let since_last = elapsed.saturating_sub(self.last).as_secs_f64();
        self.last = elapsed;
        self.gbit += gbit_per_s * since_last;
        self.mmsg += mmsg_per_s * since_last;
        if !self.is_open || elapsed < self.due {
            return None;
        }
        let seconds = elapsed.saturating_sub(self.begun).as_secs_f64();
        let moved = Moved { seconds, gbit: self.gbit, mmsg: self.mmsg };
        while self.due <= elapsed {
            self.due += self.length;
        }
        (self.begun, self.gbit, self.mmsg) = (elapsed, 0.0, 0.0);
        Some(moved)
    }
}

/// What a run says while its window is open.
pub(super) struct EveryLines {
    above: AboveBar,
    /// When the window opened, in UTC; `None` before.
    opened_at: Option<String>,
    stretches: Stretches,
    /// The highest since the last line; of that line where none is new.
    p99_ns: Option<u64>,
    is_p99_shown: bool,
    /// Since the window opened, and as they were at the last line.
    path_events: Option<u64>,
    shown_path_events: u64,
}

impl EveryLines {
    pub(super) fn new(every: Duration, above: AboveBar) -> EveryLines {
        EveryLines {
            above,
            opened_at: None,
            stretches: Stretches::new(every),
            p99_ns: None,
            is_p99_shown: false,
            path_events: None,
            shown_path_events: 0,
        }
    }

    /// Takes a sample; the line, if it is due.
    fn text(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) -> Option<String> {
        let moved = self.stretches.add(elapsed, gbit_per_s, mmsg_per_s)?;
        let [gbit, mmsg] = [moved.gbit, moved.mmsg].map(|sum| sum / moved.seconds);
        let mut text = format!("{:8.1} s  {gbit:.2} Gb/s  {mmsg:.3} Mmsg/s", elapsed.as_secs_f64());
        if let Some(ns) = self.p99_ns {
            text += &format!("  p99 {}", time_text(ns as f64));
        }
        if let Some(events) = self.path_events {
            text += &format!("  {} path events", events.saturating_sub(self.shown_path_events));
            self.shown_path_events = events;
        }
        self.is_p99_shown = true;
        Some(text)
    }
}

impl Observer for EveryLines {
    fn phase(&mut self, phase: &str, _: Option<Duration>) {
        if phase == "measure" {
            let blank = EveryLines::new(self.stretches.length, self.above.clone());
            *self = EveryLines { opened_at: Some(utc_now()), ..blank };
        }
        self.stretches.phase(phase);
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        if let Some(text) = self.text(elapsed, gbit_per_s, mmsg_per_s) {
            self.above.line(&text);
        }
    }

    fn shows_latency(&self) -> bool {
        true
    }

    fn latency(&mut self, p99_ns: u64) {
        let before_ns = self.p99_ns.filter(|_| !self.is_p99_shown);
        self.p99_ns = before_ns.max(Some(p99_ns));
        self.is_p99_shown = false;
    }

    fn path_events(&mut self, count: u64) {
        self.path_events = Some(count);
    }

    fn run_finished(&mut self, _: &CaseConfig, run: &Run, _: &ResultFile) {
        let opened_at = self.opened_at.take();
        if let Some(text) = opened_at.and_then(|opened_at| worst_second(run, &opened_at)) {
            self.above.line(&format!("  {text}"));
        }
    }
}

/// The second of a window in which all flows together moved least, of a result whose intervals are longer as many as they are;
/// `None` of a window of less than two such.
fn worst_second(run: &Run, opened_at: &str) -> Option<String> {
    let flows = run.flows.iter();
    let timelines: Vec<_> =
        flows.filter_map(|flow| Some((flow, flow.timeline.as_ref()?))).collect();
    let interval =
        timelines.iter().map(|(_, timeline)| timeline.interval_seconds).reduce(f64::max)?;
    let seconds = interval.ceil().max(1.0);
    let ends = timelines.iter().filter_map(|(_, timeline)| timeline.at_seconds.last());
    let whole = (ends.copied().reduce(f64::min)? / seconds).floor();
    if whole < 2.0 {
        return None;
    }
    let mut sums = vec![0.0; whole as usize];
    for (flow, timeline) in timelines {
        let gbit = flow.totals.bytes as f64 * 8e-9 / flow.totals.messages.max(1) as f64;
        let mut from = 0.0;
        for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
            let rate = messages as f64 * gbit / (to - from);
            // An interval may lie across the edge of seconds.
            for (index, sum) in (0_u32..).zip(&mut sums).skip((from / seconds) as usize) {
                let begin = f64::from(index) * seconds;
                if begin >= to {
                    break;
                }
                *sum += rate * (to.min(begin + seconds) - from.max(begin)).max(0.0);
            }
            from = to;
        }
    }
    let (index, least) =
        (0_u32..).zip(&sums).min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let what = if seconds > 1.0 { format!("{seconds} seconds") } else { "second".to_owned() };
    Some(format!(
        "worst {what}: {:.2} Gb/s ({:.2} on average), {} s after {}Z",
        least / seconds,
        sums.iter().sum::<f64>() / whole / seconds,
        f64::from(index) * seconds,
        opened_at.split(['.', 'Z']).next().unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use results::{model::Timeline, sample};

    use super::*;

    #[test]
    fn a_line_has_the_mean_of_its_time_and_the_highest_p99() {
        let mut lines = EveryLines::new(Duration::from_secs(1), AboveBar::new());
        lines.phase("measure", None);
        let at = |line: &mut EveryLines, ms| line.text(Duration::from_millis(ms), 8.0, 1.0);
        assert_eq!(at(&mut lines, 500), None);
        lines.latency(9_000);
        lines.latency(7_000);
        lines.path_events(3);
        let first = "     1.0 s  8.00 Gb/s  1.000 Mmsg/s  p99 9.00 µs  3 path events";
        assert_eq!(at(&mut lines, 1_040).as_deref(), Some(first));
        assert_eq!(at(&mut lines, 1_900), None);
        lines.path_events(5);
        let second = "     2.0 s  8.00 Gb/s  1.000 Mmsg/s  p99 9.00 µs  2 path events";
        assert_eq!(at(&mut lines, 2_000).as_deref(), Some(second));
        lines.latency(7_000);
        let third = at(&mut lines, 7_500).unwrap();
        assert!(third.contains("p99 7.00 µs  0 path events"), "{third}");
        assert_eq!(at(&mut lines, 7_600), None);
    }

    #[test]
    fn the_worst_second_is_of_all_flows_together() {
        let flow = |at_seconds: &[f64], messages: &[u64]| {
            let mut flow = sample::flow_of("a", 125_000_000, messages);
            flow.timeline = Some(Timeline {
                interval_seconds: at_seconds[0],
                at_seconds: at_seconds.to_vec(),
                messages: messages.to_vec(),
                longest_stall_seconds: None,
            });
            flow
        };
        // A message is 1 Gb. Of the second flow's six messages between 1.5 s and 3 s a third is in the second second.
        let steady = flow(&[1.0, 2.0, 3.0, 3.2], &[5, 5, 5, 0]);
        let other = flow(&[0.5, 1.5, 3.0], &[3, 4, 6]);
        let text = |flows| worst_second(&sample::run(flows), "2026-11-28T13:04:12.5Z");
        let of_two = "worst second: 9.00 Gb/s (9.33 on average), 1 s after 2026-11-28T13:04:12Z";
        assert_eq!(text(vec![steady, other]).as_deref(), Some(of_two));
        let slow = "worst 2 seconds: 3.00 Gb/s (3.25 on average), 2 s after 2026-11-28T13:04:12Z";
        assert_eq!(text(vec![flow(&[1.5, 3.0, 4.5], &[6, 3, 6])]).as_deref(), Some(slow));
        assert_eq!(text(vec![flow(&[1.0], &[5])]), None);
    }
}
