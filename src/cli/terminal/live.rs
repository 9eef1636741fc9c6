//! What is going on, live, where a person looks on at a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::coordinator::observer::TrialStart;
use report::observe::format::time_text;

use crate::cli::terminal::progress::{Lines, Place, Progress, Silent, title, trial_text};
use crate::cli::terminal::spark::Spark;
use crate::cli::terminal::time_left::left_text;

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

/// A bar that moves through the phases of a run.
pub struct Live {
    /// Taken when the first case starts, so that nothing is drawn before.
    target: Option<ProgressDrawTarget>,
    bar: ProgressBar,
    title: String,
    now: fn() -> Instant,
    /// When the sweep is over, about.
    end: Option<Instant>,
    phase: String,
    expected: Option<Duration>,
    rates: Spark,
    /// Of the seconds of this run.
    p99s: Latest,
    /// Of the runs that are over; told while this one has none.
    p99s_of_runs: Latest,
}

/// A p99 and those before it, in nanoseconds.
struct Latest {
    bars: Spark,
    last_ns: Option<u64>,
}

impl Latest {
    fn new() -> Latest {
        Latest { bars: Spark::new(P99_BARS), last_ns: None }
    }

    fn push(&mut self, p99_ns: u64) {
        self.bars.push(p99_ns as f64);
        self.last_ns = Some(p99_ns);
    }

    fn text(&self, name: &str) -> Option<String> {
        let time = time_text(self.last_ns? as f64);
        Some(format!("  {name} {} {time}", self.bars.bars()))
    }
}

/// The second line is cut where a terminal is narrow.
const BAR: &str = "{prefix}\n  {bar:6} {wide_msg}";

/// Of a trial the bounds are told, in one line of usual terminals.
const TRIAL: &str = "{prefix} {bar:10}";

/// Bars of throughput, and of p99.
const RATE_BARS: usize = 8;
const P99_BARS: usize = 5;

/// A bar of this look.
pub(in crate::cli) fn bar(target: ProgressDrawTarget, template: &str) -> ProgressBar {
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
            title: String::new(),
            now: Instant::now,
            end: None,
            phase: String::new(),
            expected: None,
            rates: Spark::new(RATE_BARS),
            p99s: Latest::new(),
            p99s_of_runs: Latest::new(),
        }
    }

    /// A run with this title begins.
    fn begin(&mut self, title: String, left: Option<Duration>, template: &str) {
        match self.target.take() {
            Some(target) => self.bar = bar(target, template),
            None => set_style(&self.bar, template),
        }
        self.title = title;
        self.end = left.and_then(|left| (self.now)().checked_add(left));
        self.p99s = Latest::new();
        self.phase("connect", None);
    }

    /// Draws the bar at this time of the phase, with the rates there. What a narrow terminal can best do without is last.
    fn draw(&mut self, elapsed: Duration, [gbit, mmsg]: [&str; 2]) {
        let left = self
            .end
            .map(|end| end.saturating_duration_since((self.now)()))
            .filter(|left| !left.is_zero())
            .map(left_text);
        self.bar.set_prefix(match left {
            Some(left) => format!("{}, {left}", self.title),
            None => self.title.clone(),
        });
        if let Some(expected) = self.expected {
            self.bar.set_position(millis(elapsed.min(expected)));
        }
        let p99 = self.p99s.text("p99").or_else(|| self.p99s_of_runs.text("last p99"));
        let (clock, p99) = (self.clock(elapsed), p99.unwrap_or_default());
        self.bar.set_message(format!("{clock}{gbit}{p99}{mmsg}"));
    }

    /// `measure 1.2/5.0 s`.
    fn clock(&self, elapsed: Duration) -> String {
        let of =
            self.expected.map(|span| format!("/{:.1}", span.as_secs_f64())).unwrap_or_default();
        format!("{} {:.1}{of} s", self.phase, elapsed.as_secs_f64())
    }
}

impl Progress for Live {
    fn run_started(&mut self, place: Place<'_>, left: Option<Duration>) {
        self.begin(title(place, None), left, BAR);
    }

    fn trial_started(&mut self, index: usize, total: usize, _: &str, trial: TrialStart<'_>) {
        let place = format!("[{}/{total}]", index.saturating_add(1));
        self.begin(format!("{place} {}", trial_text(trial)), None, TRIAL);
    }

    fn phase(&mut self, phase: &str, expected: Option<Duration>) {
        phase.clone_into(&mut self.phase);
        self.expected = expected;
        self.rates.clear();
        self.bar.set_length(expected.map_or(1, millis));
        self.bar.set_position(0);
        self.draw(Duration::ZERO, [""; 2]);
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        self.rates.push(gbit_per_s);
        let rates = self.rates.bars();
        let gbit = format!("  {rates} {gbit_per_s:.2} Gb/s");
        let mmsg = format!("  {mmsg_per_s:.3} Mmsg/s");
        self.draw(elapsed, [&gbit, &mmsg]);
    }

    fn shows_latency(&self) -> bool {
        true
    }

    fn latency(&mut self, p99_ns: u64) {
        self.p99s.push(p99_ns);
    }

    fn waiting(&mut self, elapsed: Duration) {
        self.draw(elapsed, [""; 2]);
    }

    fn run_finished(&mut self, p99_ns: Option<u64>) {
        if let Some(ns) = p99_ns {
            self.p99s_of_runs.push(ns);
        }
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
    use crate::tests::has;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, LazyLock, Mutex};

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
    fn a_terminal_sees_case_phase_and_rate() {
        let term = Recorder::default();
        let mut live = Live::new(ProgressDrawTarget::term_like(Box::new(term.clone())));
        // Time stands still.
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        live.now = || *START;
        let place = Place { index: 0, total: 2, id: "write-per-qp-q1-64B", run: 1, runs: 1 };
        live.run_started(place, None);
        live.run_finished(Some(17_500));
        live.run_finished(Some(35_000));
        live.run_started(place, Some(Duration::from_secs(3_900)));
        live.phase("measure", Some(Duration::from_secs(5)));
        live.line("above");
        live.sample(Duration::from_millis(2_300), 6.0, 0.25);
        live.sample(Duration::from_millis(2_500), 12.345, 0.5);
        live.bar.force_draw();
        live.latency(8_000);
        live.latency(16_000);
        live.sample(Duration::from_millis(2_600), 12.345, 0.5);
        live.bar.force_draw();
        let trial = TrialStart {
            goal: "knee 3",
            number: 2,
            load: 1_500,
            within: Some((1_000, 2_000)),
            left: None,
        };
        live.trial_started(0, 2, "write-per-qp-q1-64B", trial);
        live.bar.force_draw();
        let seen = term.0.lock().unwrap().clone();
        let told = [
            "above",
            "[1/2] write-per-qp-q1-64B, ~1 h 5 min left",
            "[1/2] knee 3: trial 2 at 1.5k/s, limit in 1k .. 2k/s ",
            "measure 2.5/5.0 s  ▄█ 12.35 Gb/s  last p99 ▄█ 35.0 µs  0.500 Mmsg/s",
            "measure 2.6/5.0 s  ▄██ 12.35 Gb/s  p99 ▄█ 16.0 µs  0.500 Mmsg/s",
        ];
        has(seen, told);
    }
}
