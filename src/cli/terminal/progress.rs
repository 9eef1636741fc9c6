//! What is told of a sweep while it runs, and how it is written: one line a run in a file or a pipe, nothing when quiet. It
//! must not know terminals.

use std::time::Duration;

use settings::Rate;

use crate::coordinator::observer::TrialStart;

use crate::cli::terminal::time_left::left_text;

/// Which run of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Number of its case, from 0.
    pub index: usize,
    pub total: usize,
    pub id: &'a str,
    /// Its number in the case, from 1.
    pub run: u32,
    pub runs: u32,
}

/// What the engine tells while it runs. Calls come from one thread.
pub trait Progress: Send {
    /// A run starts; the sweep still takes about `left`, where that is known.
    fn run_started(&mut self, place: Place<'_>, left: Option<Duration>);
    /// A trial of a search starts.
    fn trial_started(&mut self, index: usize, total: usize, id: &str, trial: TrialStart<'_>);
    /// Connect, warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, _phase: &str, _expected: Option<Duration>) {}
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, _elapsed: Duration, _gbit_per_s: f64, _mmsg_per_s: f64) {}
    fn shows_latency(&self) -> bool {
        false
    }
    /// The p99 of the last second of the run, in nanoseconds.
    fn latency(&mut self, _p99_ns: u64) {}
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, _elapsed: Duration) {}
    /// The run is over, with this p99 in nanoseconds.
    fn run_finished(&mut self, _p99_ns: Option<u64>) {}
    /// A line that stays, above what is live.
    fn line(&mut self, text: &str);
    /// Does something that writes to the terminal, with what is live out of the way.
    fn suspend(&mut self, write: &mut dyn FnMut()) {
        write();
    }
}

/// Says nothing but what must be said.
pub struct Silent;

impl Progress for Silent {
    fn run_started(&mut self, _: Place<'_>, _: Option<Duration>) {}
    fn trial_started(&mut self, _: usize, _: usize, _: &str, _: TrialStart<'_>) {}
    fn line(&mut self, _: &str) {}
}

/// `[3/12] send-shared-q4-64KiB, run 2 of 3, ~2 min 5 s left`.
pub(in crate::cli) fn title(place: Place<'_>, left: Option<Duration>) -> String {
    let Place { index, total, id, run, runs } = place;
    let mut text = format!("[{}/{total}] {id}", index.saturating_add(1));
    if runs > 1 {
        text += &format!(", run {run} of {runs}");
    }
    if let Some(left) = left {
        text += &format!(", {}", left_text(left));
    }
    text
}

/// `p99<20us: trial 12 at 812k/s, limit in 750k .. 875k/s, ~40 s left`.
pub(in crate::cli) fn trial_text(trial: TrialStart<'_>) -> String {
    let TrialStart { goal, number, load, within, left } = trial;
    let mut text = format!("{goal}: trial {number} at {}/s", rate_text(load));
    if let Some((low, high)) = within {
        let low = if low == 0 { "0".to_owned() } else { rate_text(low) };
        text += &format!(", limit in {low} .. {}/s", rate_text(high));
    }
    if let Some(left) = left {
        text += &format!(", {}", left_text(left));
    }
    text
}

fn rate_text(load: u64) -> String {
    Rate::Messages(load).to_string()
}

/// One line for each run that starts.
pub struct Lines<W> {
    out: W,
}

impl<W: std::io::Write + Send> Lines<W> {
    /// Lines to `out`; when it is closed they are lost.
    pub fn new(out: W) -> Lines<W> {
        Lines { out }
    }
}

impl<W: std::io::Write + Send> Progress for Lines<W> {
    fn run_started(&mut self, place: Place<'_>, left: Option<Duration>) {
        self.line(&title(place, left));
    }
    fn trial_started(&mut self, index: usize, total: usize, id: &str, trial: TrialStart<'_>) {
        let number = index.saturating_add(1);
        self.line(&format!("[{number}/{total}] {id}, {}", trial_text(trial)));
    }
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_one_line_a_run() {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out);
        let place = |index, id, run, runs| Place { index, total: 12, id, run, runs };
        lines.run_started(place(2, "send-shared-q4-64KiB", 1, 1), None);
        lines.phase("measure", None);
        lines.sample(Duration::from_secs(1), 1.0, 1.0);
        lines.run_finished(None);
        let left = Some(Duration::from_millis(64_200));
        lines.run_started(place(3, "read-shared-q4-64KiB", 2, 3), left);
        let trial = TrialStart {
            goal: "p99<20us",
            number: 12,
            load: 812_000,
            within: Some((0, 875_000)),
            left: Some(Duration::from_millis(39_100)),
        };
        lines.trial_started(0, 1, "q4", trial);
        lines.line("note");
        let told = "[3/12] send-shared-q4-64KiB\n[4/12] read-shared-q4-64KiB, run 2 of 3, ~1 min 5 s left\n\
                    [1/1] q4, p99<20us: trial 12 at 812k/s, limit in 0 .. 875k/s, ~40 s left\nnote\n";
        assert_eq!(String::from_utf8(out).unwrap(), told);
    }
}
