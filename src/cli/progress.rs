//! What is shown of a sweep while it runs: a live bar at a terminal, one line a run in a file or a pipe; and how long it
//! still takes.

use std::{
    collections::VecDeque,
    io::{IsTerminal as _, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    cli::terminal::{fit_for_stderr, say},
    coordinator::interface::{Observer, TrialStart},
};
use plan::{Case, Sweep};
use report::observe::format::time_text;
use results::{
    model::{CaseComparison, CaseConfig, LoadSearch, ResultFile, Run},
    numbers::for_people,
};
use settings::{Rate, Stop};

/// The right one for this stderr: a bar, which `above` keeps whole, or lines.
pub(super) fn for_stderr(above: &AboveBar, time: TimeLeft) -> Box<dyn Observer> {
    if std::io::stderr().is_terminal() {
        Box::new(Live::new(above, ProgressDrawTarget::stderr(), time))
    } else {
        Box::new(Lines { out: std::io::stderr(), time })
    }
}

/// Where text goes that stays on stderr while a sweep runs: above the bar, once one is drawn.
#[derive(Clone)]
pub(super) struct AboveBar {
    bar: ProgressBar,
}

impl AboveBar {
    pub(super) fn new() -> AboveBar {
        AboveBar { bar: bar(ProgressDrawTarget::hidden(), BAR) }
    }

    /// Writes a line that stays, or several on a narrow terminal.
    pub(super) fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            say(text);
        } else {
            self.bar.println(fit_for_stderr(text));
        }
    }

    /// Does something that writes to the terminal, with the bar out of the way.
    pub(super) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

/// Which run of a sweep.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    /// Number of its case, from 0.
    index: usize,
    total: usize,
    id: &'a str,
    /// Its number in the case, from 1.
    run: u32,
    runs: u32,
}

/// `[3/12] send-shared-q4-64KiB, run 2 of 3, ~2 min 5 s left`.
fn title(place: Place<'_>, left: Option<Duration>) -> String {
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
fn trial_text(trial: TrialStart<'_>) -> String {
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

/// One line for each run that starts; when `out` is closed they are lost.
struct Lines<W> {
    out: W,
    time: TimeLeft,
}

impl<W: Write> Observer for Lines<W> {
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32) {
        let place = Place { index, total, id: &case.id, run, runs };
        let _ = writeln!(self.out, "{}", title(place, self.time.left()));
        self.time.run_begins(case);
    }

    fn trial_started(&mut self, index: usize, total: usize, case: &Case, trial: TrialStart<'_>) {
        let (number, id) = (index.saturating_add(1), &case.id);
        let _ = writeln!(self.out, "[{number}/{total}] {id}, {}", trial_text(trial));
    }

    fn runs_added(&mut self, cases: &[Case]) {
        self.time.add(cases);
    }

    fn run_finished(&mut self, _: &CaseConfig, _: &Run, _: &ResultFile) {
        self.time.run_ends();
    }
}

/// How long a sweep still takes: what its runs are to measure, and as much besides as those took that are over.
#[derive(Debug, Default)]
pub(super) struct TimeLeft {
    /// Whether the number of runs is not known, or runs tell nothing of others: those of several cases that count messages.
    is_unknown: bool,
    /// What runs that are not over are to measure.
    planned: Duration,
    runs: u32,
    /// What runs that are over took besides: to connect, to warm up and to drain.
    besides: Duration,
    runs_over: u32,
    /// When the run in progress began, and how long it is to measure.
    begun: Option<(Instant, Duration)>,
}

impl TimeLeft {
    /// Of a sweep with more runs than its own, nobody knows how many.
    pub(super) fn unknown() -> TimeLeft {
        TimeLeft { is_unknown: true, ..TimeLeft::default() }
    }

    /// As long as no run has begun.
    pub(super) fn new(sweep: &Sweep) -> TimeLeft {
        let cases = &sweep.cases;
        TimeLeft {
            is_unknown: cases.len() > 1
                && cases.iter().any(|case| matches!(case.stop(), Stop::MessagesPerQp(_))),
            planned: cases.iter().map(|case| measures(case).saturating_mul(case.runs)).sum(),
            runs: cases.iter().map(|case| case.runs).sum(),
            ..TimeLeft::default()
        }
    }

    /// Each of these cases has a run more.
    fn add(&mut self, cases: &[Case]) {
        self.planned += cases.iter().map(measures).sum::<Duration>();
        self.runs += u32::try_from(cases.len()).unwrap_or(u32::MAX);
    }

    fn run_begins(&mut self, case: &Case) {
        self.begun = Some((Instant::now(), measures(case)));
    }

    fn run_ends(&mut self) {
        if let Some((begun, planned)) = self.begun.take() {
            self.run_over(planned, begun.elapsed());
        }
    }

    /// A run is over that was to measure for `planned`, and took so long.
    fn run_over(&mut self, planned: Duration, took: Duration) {
        self.planned = self.planned.saturating_sub(planned);
        self.runs = self.runs.saturating_sub(1);
        self.besides += took.saturating_sub(planned);
        self.runs_over += 1;
    }

    /// How long it takes from the start of the next run on, about; `None` if that is not known.
    fn left(&self) -> Option<Duration> {
        if self.is_unknown {
            return None;
        }
        let besides = self.besides.checked_div(self.runs_over)?;
        Some(self.planned.saturating_add(besides.saturating_mul(self.runs)))
    }
}

/// How long a case is to measure; nothing of one that counts messages.
fn measures(case: &Case) -> Duration {
    match case.stop() {
        Stop::DurationNs(ns) => Duration::from_nanos(ns),
        Stop::MessagesPerQp(_) => Duration::ZERO,
    }
}

/// `~2 min 30 s left`, in whole seconds.
fn left_text(left: Duration) -> String {
    let left = Duration::from_secs(left.as_secs_f64().ceil() as u64);
    format!("~{} left", for_people(left))
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last figures of a series.
#[derive(Debug)]
struct Spark {
    most: usize,
    figures: VecDeque<f64>,
}

impl Spark {
    /// None so far, and at most so many.
    fn new(most: usize) -> Spark {
        Spark { most, figures: VecDeque::new() }
    }

    /// One more; the oldest goes where there are too many.
    fn push(&mut self, figure: f64) {
        if self.figures.len() == self.most {
            self.figures.pop_front();
        }
        self.figures.push_back(figure);
    }

    fn clear(&mut self) {
        self.figures.clear();
    }

    /// A bar for each, from 0 to the largest: what varies little is level.
    fn bars(&self) -> String {
        let largest = self.figures.iter().copied().fold(0.0, f64::max);
        self.figures
            .iter()
            .map(|figure| {
                let share = if largest > 0.0 { figure / largest } else { 0.0 };
                let height = (share * BARS.len() as f64).ceil() as usize;
                BARS[height.clamp(1, BARS.len()) - 1]
            })
            .collect()
    }
}

/// A bar that moves through the phases of a run.
struct Live {
    /// Taken when the first case starts, so that nothing is drawn before.
    target: Option<ProgressDrawTarget>,
    bar: ProgressBar,
    time: TimeLeft,
    title: String,
    now: fn() -> Instant,
    /// When the sweep is over, about.
    end: Option<Instant>,
    phase: String,
    expected: Option<Duration>,
    rates: Spark,
    /// Of the seconds of this run.
    p99s: Latest,
    /// Of the runs that are over; shown while this one has none.
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

/// Of a trial the bounds are shown, in one line of usual terminals.
const TRIAL: &str = "{prefix} {bar:10}";

/// Bars of throughput, and of p99.
const RATE_BARS: usize = 8;
const P99_BARS: usize = 5;

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
    /// The bar below `above` on `target`, from the first case on.
    fn new(above: &AboveBar, target: ProgressDrawTarget, time: TimeLeft) -> Live {
        Live {
            target: Some(target),
            bar: above.bar.clone(),
            time,
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
        if let Some(target) = self.target.take() {
            self.bar.set_draw_target(target);
        }
        set_style(&self.bar, template);
        self.title = title;
        self.end = left.and_then(|left| (self.now)().checked_add(left));
        self.p99s = Latest::new();
        self.phase("connect", None);
    }

    /// A run is over, with this p99 in nanoseconds.
    fn end(&mut self, p99_ns: Option<u64>) {
        if let Some(ns) = p99_ns {
            self.p99s_of_runs.push(ns);
        }
        self.bar.set_message("");
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

    /// The time in the phase, such as `measure 1.2/5.0 s`.
    fn clock(&self, elapsed: Duration) -> String {
        let of =
            self.expected.map(|span| format!("/{:.1}", span.as_secs_f64())).unwrap_or_default();
        format!("{} {:.1}{of} s", self.phase, elapsed.as_secs_f64())
    }
}

impl Observer for Live {
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32) {
        let place = Place { index, total, id: &case.id, run, runs };
        self.begin(title(place, None), self.time.left(), BAR);
        self.time.run_begins(case);
    }

    fn trial_started(&mut self, index: usize, total: usize, _: &Case, trial: TrialStart<'_>) {
        let place = format!("[{}/{total}]", index.saturating_add(1));
        self.begin(format!("{place} {}", trial_text(trial)), None, TRIAL);
    }

    fn step(&mut self, title: &str, _: &str) {
        self.begin(title.to_owned(), None, BAR);
    }

    fn runs_added(&mut self, cases: &[Case]) {
        self.time.add(cases);
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

    fn run_finished(&mut self, _: &CaseConfig, run: &Run, _: &ResultFile) {
        self.time.run_ends();
        let latencies = run.flows.iter().filter_map(|flow| flow.latency_ns.as_ref());
        self.end(latencies.filter_map(|latency| latency.p99).max());
    }

    fn round_finished(&mut self, _: &Case, _: &CaseComparison, _: &ResultFile) {
        self.end(None);
    }

    fn search_finished(&mut self, _: &Case, _: &LoadSearch, _: &ResultFile) {
        self.end(None);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, LazyLock, Mutex};

    use indicatif::TermLike;

    use results::sample::has;

    use super::*;

    /// A case of this name.
    fn case(id: &str) -> Case {
        let mut case = sweep(&[]).cases.remove(0);
        id.clone_into(&mut case.id);
        case
    }

    /// So long is left.
    fn left(planned: Duration) -> TimeLeft {
        TimeLeft { planned, runs_over: 1, ..TimeLeft::default() }
    }

    #[test]
    fn a_pipe_gets_one_line_a_run() {
        let mut out = Vec::new();
        let mut lines = Lines { out: &mut out, time: TimeLeft::unknown() };
        lines.run_started(2, 12, &case("send-shared-q4-64KiB"), 1, 1);
        lines.phase("measure", None);
        lines.sample(Duration::from_secs(1), 1.0, 1.0);
        lines.time = left(Duration::from_millis(64_200));
        lines.run_started(3, 12, &case("read-shared-q4-64KiB"), 2, 3);
        let trial = TrialStart {
            goal: "p99<20us",
            number: 12,
            load: 812_000,
            within: Some((0, 875_000)),
            left: Some(Duration::from_millis(39_100)),
        };
        lines.trial_started(0, 1, &case("q4"), trial);
        let expected = "[3/12] send-shared-q4-64KiB\n[4/12] read-shared-q4-64KiB, run 2 of 3, ~1 min 5 s left\n\
                        [1/1] q4, p99<20us: trial 12 at 812k/s, limit in 0 .. 875k/s, ~40 s left\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    fn sweep(flags: &[(&str, &str)]) -> Sweep {
        Sweep::new(&flags.iter().copied().collect()).unwrap()
    }

    #[test]
    fn what_is_left_is_known_from_the_first_run_on() {
        let sweep = sweep(&[("qps", "1,4"), ("duration", "2s"), ("runs", "2")]);
        let mut time = TimeLeft::new(&sweep);
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
            let mut time = TimeLeft::new(&sweep);
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

    #[test]
    fn bars_are_shares_of_the_largest() {
        let mut spark = Spark::new(5);
        assert_eq!(spark.bars(), "");
        for figure in [100.0, 0.0, 1.0, 4.0, 7.5, 8.0] {
            spark.push(figure);
        }
        assert_eq!(spark.bars(), "▁▁▄██");
        spark.clear();
        spark.push(0.0);
        assert_eq!(spark.bars(), "▁");
    }

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
        let above = AboveBar::new();
        let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
        let mut live = Live::new(&above, target, TimeLeft::unknown());
        // Time stands still.
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        live.now = || *START;
        let case = case("write-per-qp-q1-64B");
        live.run_started(0, 2, &case, 1, 1);
        live.end(Some(17_500));
        live.end(Some(35_000));
        live.time = left(Duration::from_secs(3_900));
        live.run_started(0, 2, &case, 1, 1);
        live.phase("measure", Some(Duration::from_secs(5)));
        above.line("above");
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
        live.trial_started(0, 2, &case, trial);
        live.bar.force_draw();
        let seen = term.0.lock().unwrap().clone();
        let parts = [
            "above",
            "[1/2] write-per-qp-q1-64B, ~1 h 5 min left",
            "[1/2] knee 3: trial 2 at 1.5k/s, limit in 1k .. 2k/s ",
            "measure 2.5/5.0 s  ▄█ 12.35 Gb/s  last p99 ▄█ 35.0 µs  0.500 Mmsg/s",
            "measure 2.6/5.0 s  ▄██ 12.35 Gb/s  p99 ▄█ 16.0 µs  0.500 Mmsg/s",
        ];
        has(seen, parts);
    }
}
