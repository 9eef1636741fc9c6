//! What a sweep leaves behind: rows on the terminal and lines in the journal as runs finish, the files at the end, and
//! a word about each failure.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::cli::sweep::format::Format;
use crate::cli::sweep::plan::RunPlan;
use crate::cli::sweep::sink::Sink;
use crate::cli::terminal::errors::{Failure, say};
use crate::cli::terminal::progress::{Place, Progress, TimeLeft, for_stderr, measures};
use crate::cli::terminal::{fit_for_stderr, screen};
use crate::coordinator::interface::{Observer, TrialStart};
use plan::Case;
use protocol::failure::RunFailure;
use report::judge::findings::{Finding, Findings};
use report::judge::threshold::Demands;
use report::show::sentences::sentence;
use report::show::{Table, in_turns, mesh};
use results::journal::Journal;
use results::model::{self, CaseConfig, LoadSearch, PerftestPair, ResultFile, Run};
use results::text::{Screen, printable};
use results::whole_file::{WriteError, prepare, prepare_directory, write_whole_until};
use settings::Settings;

/// A document that is written at the end.
struct Document {
    path: PathBuf,
    format: Format,
}

/// All outputs of one sweep.
pub(in crate::cli) struct Output {
    /// Those that every sweep has come first.
    documents: Vec<Document>,
    journal: Journal,
    /// The journal could not be written, and that was told.
    is_told: bool,
    on_stdout: Option<Format>,
    only_problems: bool,
    /// What is demanded of each flow, for tests.
    demands: Demands,
    table: Table<Box<dyn Write>>,
    /// Why the table could not be shown.
    unshown: Option<io::Error>,
    /// What was noted: each note is for the whole sweep.
    noted: BTreeSet<String>,
    progress: Box<dyn Progress>,
    case: String,
    /// The number of the run whose failure would have to be told.
    run: Option<u32>,
    /// When the run in progress began, and how long it is to measure.
    begun: Option<(Instant, Duration)>,
    /// `None` where it is not known how many runs there will be.
    time_left: Option<TimeLeft>,
}

impl Output {
    /// Prepares the files' folder, so that a sweep does not begin whose results have nowhere to go.
    ///
    /// # Errors
    /// The folder cannot be made or written to.
    pub(in crate::cli) fn open(plan: &RunPlan) -> Result<Output, Failure> {
        let folder = &plan.output.out_dir;
        let stem = file_stem(&results::utc_now());
        prepare_directory(folder).map_err(refused("--out"))?;
        let endings = Format::OF_SWEEP.map(Format::ending);
        let journal = Journal::reserve(folder, &stem, &endings).map_err(refused("--out"))?;
        let of_sweep = Format::OF_SWEEP
            .map(|format| Document { path: journal.beside(format.ending()), format });
        let mut documents = Vec::from(of_sweep);
        for (format, sink) in &plan.output.further {
            if let Sink::File(path) = sink {
                prepare(path).map_err(refused(format.option()))?;
                documents.push(Document { path: path.clone(), format: *format });
            }
        }
        let is_counted = plan.options.against.is_none()
            && plan.options.beside.is_none()
            && plan.options.searches.is_none();
        let on_stdout = plan.output.on_stdout();
        let only_problems = plan.output.only_problems;
        let (out, screen): (Box<dyn Write>, Screen) = match on_stdout {
            _ if only_problems => (Box::new(io::sink()), screen(&io::stdout())),
            Some(_) => (Box::new(io::stderr()), screen(&io::stderr())),
            None => (Box::new(io::stdout()), screen(&io::stdout())),
        };
        Ok(Output {
            documents,
            journal,
            is_told: false,
            on_stdout,
            only_problems,
            demands: plan.output.demands.clone(),
            table: Table::new(out, screen, &shown(&plan.options.sweep.cases))
                .with_columns_of(&plan.output.columns),
            unshown: None,
            noted: BTreeSet::new(),
            progress: for_stderr(plan.quiet || only_problems),
            case: String::new(),
            run: None,
            begun: None,
            time_left: is_counted.then(|| TimeLeft::new(&plan.options.sweep)),
        })
    }

    /// Keeps the last run, whatever comes after it.
    fn keep(&mut self, result: &ResultFile) {
        if let Err(error) = self.journal.add(result, &self.case)
            && !std::mem::replace(&mut self.is_told, true)
        {
            let text = format!("rocebench: warning: {error}; measuring goes on");
            self.progress.suspend(&mut || say(&text));
        }
    }

    /// Tells once that the run has failed.
    fn tell(&mut self, failure: &model::Failure) {
        let Some(run) = self.run.take() else {
            return;
        };
        let mut text = format!("rocebench: {} (run {run}): {}", self.case, failure.message);
        if let Some(hint) = &failure.hint {
            text += &format!("\n  hint: {hint}");
        }
        self.progress.suspend(&mut || say(&text));
    }

    /// Shows something of the table. A closed stdout is nobody's loss but the table's.
    fn show(&mut self, show: impl Fn(&mut Table<Box<dyn Write>>) -> io::Result<()>) {
        let (table, unshown) = (&mut self.table, &mut self.unshown);
        self.progress.suspend(&mut || match show(table) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                unshown.get_or_insert(error);
            }
            _ => {}
        });
    }

    /// Writes what is written once, at the end. `stop` ends waiting for who reads it.
    ///
    /// # Errors
    /// The first document that could not be written; the others are told.
    pub(in crate::cli) fn close(
        mut self,
        result: &ResultFile,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let documents = std::mem::take(&mut self.documents);
        // Somebody may have removed it; what goes wrong here does so once more below, and is told.
        if let Some(folder) = documents.first().and_then(|first| first.path.parent()) {
            let _ = std::fs::create_dir_all(folder);
        }
        let findings = Findings::new(result);
        let mut failures = Vec::new();
        let mut written: Vec<&Path> = Vec::new();
        for Document { path, format } in &documents {
            let outcome = write_whole_until(
                path,
                stop,
                || {
                    say(&format!(
                        "rocebench: note: {} waits for a reader; Ctrl-C gives up",
                        path.display()
                    ));
                },
                |out| format.write_to(result, &findings, &self.demands, out),
            );
            match outcome {
                Ok(()) => written.push(path),
                Err(error) => failures.push(error.to_string()),
            }
        }
        let are_kept = documents[..Format::OF_SWEEP.len()]
            .iter()
            .all(|it| written.contains(&it.path.as_path()));
        let journal = self.journal.path().map(Path::to_owned);
        if !are_kept {
            written.extend(journal.as_deref());
        }
        let (to_stderr, only_problems) = (self.on_stdout.is_some(), self.only_problems);
        let every_finding = findings.all_findings();
        let problems: Vec<&Finding> = every_finding.iter().filter(|it| it.is_wrong()).collect();
        self.show(|table| {
            let mut out: Box<dyn Write> =
                if to_stderr { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
            if only_problems {
                let mut sentences = problems.iter().map(|it| sentence(it));
                return sentences.try_for_each(|it| writeln!(out, "{it}"));
            }
            in_turns::write_against_perftest(result, &mut out)?;
            in_turns::write_beside_attackers(result, &mut out)?;
            mesh::write(&findings, &mut out)?;
            table.summary(result, &findings, &written)
        });
        if are_kept {
            self.journal.remove();
        }
        let stdout = self.on_stdout.map_or(Ok(()), |format| {
            format.write_to(result, &findings, &self.demands, io::stdout().lock())
        });
        let unshown = self.unshown.map_or(Ok(()), Err);
        for error in [unshown, stdout].into_iter().filter_map(Result::err) {
            failures.push(format!("cannot write to stdout: {error}"));
        }
        if only_problems && !problems.is_empty() {
            failures.push(format!("problems: {}", problems.len()));
        }
        let mut rest = failures.into_iter();
        let Some(first) = rest.next() else {
            return Ok(());
        };
        for other in rest {
            say(&format!("rocebench: warning: {other}"));
        }
        Err(Failure::failed(first))
    }
}

fn refused(option: &'static str) -> impl Fn(WriteError) -> Failure {
    move |error: WriteError| Failure::new(format!("{option}: {error}"), error.is_bad_input(), None)
}

/// The settings of all rows to come: those of flows, or of the case where it measures set-up.
fn shown(cases: &[Case]) -> Vec<Settings> {
    cases
        .iter()
        .flat_map(|case| -> Vec<Settings> {
            if case.is_set_up() {
                vec![case.settings.clone()]
            } else {
                case.flows.iter().map(|flow| flow.settings.clone()).collect()
            }
        })
        .collect()
}

impl Observer for Output {
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32) {
        self.case.clone_from(&case.id);
        self.run = Some(run);
        let place = Place { index, total, id: &case.id, run, runs };
        let left = self.time_left.as_ref().and_then(TimeLeft::left);
        self.progress.run_started(place, left);
        self.begun = Some((Instant::now(), measures(case)));
    }

    fn cases_added(&mut self, cases: &[Case]) {
        if let Some(time) = &mut self.time_left {
            time.add(cases);
        }
    }

    fn trial_started(&mut self, index: usize, total: usize, case: &Case, trial: TrialStart<'_>) {
        // The result of the search has the failures of its trials.
        self.run = None;
        self.progress.trial_started(index, total, &case.id, trial);
    }

    fn search_finished(&mut self, _: &Case, _: &LoadSearch, result: &ResultFile) {
        self.progress.run_finished(None);
        self.keep(result);
    }

    fn phase(&mut self, name: &str, expected: Option<Duration>) {
        tracing::debug!("phase {name}");
        self.progress.phase(name, expected);
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        self.progress.sample(elapsed, gbit_per_s, mmsg_per_s);
    }

    fn shows_latency(&self) -> bool {
        self.progress.shows_latency()
    }

    fn latency(&mut self, p99_ns: u64) {
        self.progress.latency(p99_ns);
    }

    fn waiting(&mut self, elapsed: Duration) {
        self.progress.waiting(elapsed);
    }

    fn pair_finished(&mut self, case: &Case, pair: &PerftestPair, result: &ResultFile) {
        self.progress.run_finished(None);
        if let (Some(own), Some(theirs), None) = (pair.rocebench, pair.perftest, &pair.failure) {
            let comparison = result.cases.last().and_then(|it| it.perftest.as_ref());
            let metric = comparison.map_or("", |it| it.metric.as_str());
            let figures = in_turns::figures(metric, own, theirs);
            let text = format!("  pair {}: {figures}", pair.run);
            self.progress.line(&text);
        }
        // What rocebench's run failed of has been told.
        if let Some(failure) = pair.failure.as_ref().filter(|_| pair.rocebench.is_some()) {
            let mut text = format!("rocebench: {} (pair {}): {failure}", case.id, pair.run);
            if let Some(line) = last_words(failure, pair.output.as_deref()) {
                text += &format!("\n  its output: {line}");
            }
            self.progress.suspend(&mut || say(&text));
        }
        self.keep(result);
    }

    fn failed(&mut self, failure: &RunFailure) {
        self.tell(&failure.to_result());
    }

    fn run_finished(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile) {
        if let (Some(time), Some((begun, planned))) = (&mut self.time_left, self.begun.take()) {
            time.run_over(planned, begun.elapsed());
        }
        let worst = run
            .flows
            .iter()
            .filter_map(|flow| flow.latency_ns.as_ref())
            .filter_map(|latency| latency.p99)
            .max();
        self.progress.run_finished(worst);
        self.show(|table| table.run(config, run));
        if let Some(failure) = &run.failure {
            self.tell(failure);
        }
        self.keep(result);
    }

    fn note(&mut self, text: &str) {
        if self.only_problems || !self.noted.insert(text.to_owned()) {
            return;
        }
        let text = format!("rocebench: note: {text}");
        self.progress.line(&fit_for_stderr(&text));
    }
}

/// The last line that says something in what the failing end of perftest printed; all of it is in the JSON file.
fn last_words(failure: &str, output: Option<&str>) -> Option<String> {
    let output = output?;
    let at = output.find("--- server:").unwrap_or(output.len());
    let (client, server) = output.split_at(at);
    let line = if failure.contains("server") { server } else { client }
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.starts_with("---") && line.contains(char::is_alphabetic))?;
    Some(printable(line, 200))
}

/// `2026-11-20T12:00:00.5Z` as a file's name: `rocebench-20261120T120000Z`.
fn file_stem(now: &str) -> String {
    let seconds = now.split(['.', 'Z']).next().unwrap_or_default();
    let digits: String = seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("rocebench-{digits}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_failed_has_the_last_word() {
        let output = "--- client: x (exit status: 1)\nboom \n ----\n\n--- server: x\nnoise\n";
        let words = |failure| last_words(failure, Some(output));
        assert_eq!(words("ib_send_bw: exit status: 1").as_deref(), Some("boom"));
        assert_eq!(words("ib_send_bw's server: died").as_deref(), Some("noise"));
        let no_words = "--- client: x\n--- server: y\nz";
        assert_eq!(last_words("x", Some(no_words)), None);
        assert_eq!(last_words("x", None), None);
    }

    #[test]
    fn files_are_named_by_time() {
        let stem = file_stem("2026-11-20T12:00:00.5Z");
        assert_eq!(stem, "rocebench-20261120T120000Z");
    }
}
