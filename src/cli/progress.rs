//! What is going on, on stderr: a live line where a person looks on, one line a case where a file or
//! a pipe does, nothing when quiet.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use settings::Rate;

use crate::coordinator::observer::TrialStart;

/// What the engine tells while it runs. Calls come from one thread.
pub trait Progress: Send {
    /// Case number `index` (from 0) of `total` starts; `run` counts from 1 to `runs`.
    fn case_started(&mut self, index: usize, total: usize, id: &str, run: u32, runs: u32);
    /// A trial of a search starts.
    fn trial_started(&mut self, index: usize, total: usize, id: &str, trial: TrialStart<'_>);
    /// Connect, warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, phase: &str, expected: Option<Duration>);
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64);
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, _elapsed: Duration) {}
    /// The run is over.
    fn case_finished(&mut self);
    /// A line that stays, above what is live.
    fn line(&mut self, text: &str);
    /// Does something that writes to the terminal, with what is live out of the way.
    fn suspend(&mut self, write: &mut dyn FnMut()) {
        write();
    }
}

/// The right one for this stderr.
pub fn for_stderr(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() {
        Box::new(Live::new(ProgressDrawTarget::stderr()))
    } else {
        Box::new(Lines::new(std::io::stderr()))
    }
}

/// Says nothing but what must be said.
pub struct Silent;

impl Progress for Silent {
    fn case_started(&mut self, _: usize, _: usize, _: &str, _: u32, _: u32) {}
    fn trial_started(&mut self, _: usize, _: usize, _: &str, _: TrialStart<'_>) {}
    fn phase(&mut self, _: &str, _: Option<Duration>) {}
    fn sample(&mut self, _: Duration, _: f64, _: f64) {}
    fn case_finished(&mut self) {}
    fn line(&mut self, _: &str) {}
}

/// `[3/12] send-shared-q4-64KiB, run 2 of 3`.
fn title(index: usize, total: usize, id: &str, run: u32, runs: u32) -> String {
    let place = format!("[{}/{total}] {id}", index.saturating_add(1));
    if runs > 1 {
        format!("{place}, run {run} of {runs}")
    } else {
        place
    }
}

/// `p99<20us: trial 12 at 812k/s, limit in 750k .. 875k/s, ~40 s left`.
fn trial_text(trial: TrialStart<'_>) -> String {
    let rate = |load| Rate::Messages(load).to_string();
    let TrialStart {
        asked,
        number,
        load,
        within,
        left,
    } = trial;
    let mut text = format!("{asked}: trial {number} at {}/s", rate(load));
    if let Some((low, high)) = within {
        let low = if low == 0 { "0".to_owned() } else { rate(low) };
        text += &format!(", limit in {low} .. {}/s", rate(high));
    }
    if let Some(left) = left {
        text += &format!(", ~{} s left", left.as_secs_f64().ceil());
    }
    text
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
    fn case_started(&mut self, index: usize, total: usize, id: &str, run: u32, runs: u32) {
        self.line(&title(index, total, id, run, runs));
    }
    fn trial_started(&mut self, index: usize, total: usize, id: &str, trial: TrialStart<'_>) {
        let place = title(index, total, id, 1, 1);
        self.line(&format!("{place}, {}", trial_text(trial)));
    }
    fn phase(&mut self, _: &str, _: Option<Duration>) {}
    fn sample(&mut self, _: Duration, _: f64, _: f64) {}
    fn case_finished(&mut self) {}
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }
}

/// A bar that moves through the phases of a run.
pub struct Live {
    /// Taken when the first case starts, so that nothing is drawn before.
    target: Option<ProgressDrawTarget>,
    bar: ProgressBar,
    phase: String,
    expected: Option<Duration>,
}

const BAR: &str = "{prefix} {bar:20} {msg}";

/// Of a trial the bounds are told, in one line of usual terminals.
const TRIAL: &str = "{prefix} {bar:10}";

/// A bar of this look.
pub(super) fn bar(target: ProgressDrawTarget, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), target);
    set_style(&bar, template);
    bar
}

fn set_style(bar: &ProgressBar, template: &str) {
    // The templates are constant; the default style is a fine second choice.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Live {
    /// A bar on `target`, from the first case on.
    pub fn new(target: ProgressDrawTarget) -> Live {
        Live {
            target: Some(target),
            bar: ProgressBar::hidden(),
            phase: String::new(),
            expected: None,
        }
    }

    /// A run with this title begins.
    fn begin(&mut self, title: String, template: &str) {
        match self.target.take() {
            Some(target) => self.bar = bar(target, template),
            None => set_style(&self.bar, template),
        }
        self.bar.set_prefix(title);
        self.phase("connect", None);
    }

    /// `measure 1.2/5.0 s`.
    fn clock(&self, elapsed: Duration) -> String {
        let of = self
            .expected
            .map(|span| format!("/{:.1}", span.as_secs_f64()))
            .unwrap_or_default();
        format!("{} {:.1}{of} s", self.phase, elapsed.as_secs_f64())
    }
}

impl Progress for Live {
    fn case_started(&mut self, index: usize, total: usize, id: &str, run: u32, runs: u32) {
        self.begin(title(index, total, id, run, runs), BAR);
    }

    fn trial_started(&mut self, index: usize, total: usize, _: &str, trial: TrialStart<'_>) {
        let place = format!("[{}/{total}]", index.saturating_add(1));
        self.begin(format!("{place} {}", trial_text(trial)), TRIAL);
    }

    fn phase(&mut self, phase: &str, expected: Option<Duration>) {
        phase.clone_into(&mut self.phase);
        self.expected = expected;
        self.bar.set_length(expected.map_or(1, millis));
        self.bar.set_position(0);
        self.bar.set_message(self.clock(Duration::ZERO));
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        if let Some(expected) = self.expected {
            self.bar.set_position(millis(elapsed.min(expected)));
        }
        let clock = self.clock(elapsed);
        self.bar.set_message(format!(
            "{clock}  {gbit_per_s:.2} Gbit/s  {mmsg_per_s:.3} Mmsg/s"
        ));
    }

    fn waiting(&mut self, elapsed: Duration) {
        if let Some(expected) = self.expected {
            self.bar.set_position(millis(elapsed.min(expected)));
        }
        let clock = self.clock(elapsed);
        self.bar.set_message(clock);
    }

    fn case_finished(&mut self) {
        self.bar.set_message("");
    }

    fn line(&mut self, text: &str) {
        if self.target.is_some() {
            // Before the first case there is no bar to write above.
            let _ = writeln!(std::io::stderr(), "{text}");
        } else {
            self.bar.println(text);
        }
    }

    fn suspend(&mut self, write: &mut dyn FnMut()) {
        self.bar.suspend(write);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal that remembers the lines that were drawn.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<String>>);

    impl TermLike for Recorder {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_pipe_gets_one_line_a_run() {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out);
        lines.case_started(2, 12, "send-shared-q4-64KiB", 1, 1);
        lines.phase("measure", None);
        lines.sample(Duration::from_secs(1), 1.0, 1.0);
        lines.case_finished();
        lines.case_started(3, 12, "read-shared-q4-64KiB", 2, 3);
        let trial = TrialStart {
            asked: "p99<20us",
            number: 12,
            load: 812_000,
            within: Some((0, 875_000)),
            left: Some(Duration::from_millis(39_100)),
        };
        lines.trial_started(0, 1, "q4", trial);
        lines.line("note");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "[3/12] send-shared-q4-64KiB\n[4/12] read-shared-q4-64KiB, run 2 of 3\n\
             [1/1] q4, p99<20us: trial 12 at 812k/s, limit in 0 .. 875k/s, ~40 s left\nnote\n"
        );
    }

    #[test]
    fn a_terminal_sees_case_phase_and_rate() {
        let term = Recorder::default();
        let mut live = Live::new(ProgressDrawTarget::term_like(Box::new(term.clone())));
        live.case_started(0, 2, "write-per-qp-q1-64B", 1, 1);
        live.phase("measure", Some(Duration::from_secs(5)));
        live.line("above");
        live.sample(Duration::from_millis(2_500), 12.345, 0.5);
        live.bar.force_draw();
        let trial = TrialStart {
            asked: "knee 3",
            number: 2,
            load: 1_500,
            within: Some((1_000, 2_000)),
            left: None,
        };
        live.trial_started(0, 2, "write-per-qp-q1-64B", trial);
        live.bar.force_draw();
        let seen = term.0.lock().unwrap().clone();
        assert!(seen.contains("above"), "{seen}");
        assert!(seen.contains("[1/2] write-per-qp-q1-64B "), "{seen}");
        let told = "[1/2] knee 3: trial 2 at 1.5k/s, limit in 1k .. 2k/s ";
        assert!(seen.contains(told), "{seen}");
        assert!(
            seen.contains("measure 2.5/5.0 s  12.35 Gbit/s  0.500 Mmsg/s"),
            "{seen}"
        );
    }
}
