//! What a sweep leaves behind: rows on the terminal and lines in the journal as runs finish, the documents at the end, and
//! a word about each failure.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use crate::{
    cli::{
        every::EveryLines,
        perftest_rows::PerftestRows,
        progress::{AboveBar, TimeLeft, for_stderr},
        sweep::plan::{Format, RunPlan, Sink},
        terminal::{Failure, print, say, screen},
    },
    coordinator::interface::{Observer, SweepOptions, TrialStart},
};
use plan::Case;
use protocol::{endpoints::ConnectingEnds, failure::RunFailure};
use report::{
    judge::{finding::Finding, findings::Findings, stages::acceptance, threshold::Demands},
    show::{Table, check, compare, mesh, why},
};
use results::{
    journal::Journal,
    model::{
        self, CaseComparison, CaseConfig, Comparison, LoadSearch, ResultFile, Run, StageResult,
    },
    text::{Screen, printable, wrapped},
    whole_file::{WriteError, prepare, prepare_directory, write_whole_until},
};
use settings::Settings;

/// All outputs of one sweep: those that follow its runs, and the documents at its end.
pub(super) struct Output {
    /// Progress and remarks; none where only results and failures are shown.
    beside: Vec<Box<dyn Observer>>,
    rows: TableRows,
    failures: FailureLines,
    journal: JournalLines,
    documents: Documents,
    only_problems: bool,
    /// What stdout has in place of the table.
    perftest: Option<PerftestRows>,
    /// With stages a line for each, in place of rows of the table.
    stages: Option<StageLines>,
}

impl Output {
    /// Prepares the files' folder, so that a sweep does not begin whose results have nowhere to go.
    ///
    /// # Errors
    /// The folder cannot be made or written to.
    pub(super) fn open(plan: &RunPlan) -> Result<Output, Failure> {
        let form = &plan.output.perftest;
        let mut folder = plan.output.out_dir.clone();
        match prepare_directory(&folder) {
            // perftest writes no files, and so runs where none can be written.
            Err(_) if form.is_some() => folder = std::env::temp_dir(),
            prepared => prepared.map_err(refused("--out"))?,
        }
        let endings = Format::OF_SWEEP.map(Format::ending);
        let stem = file_stem(&results::utc_now());
        let journal = Journal::reserve(&folder, &stem, &endings).map_err(refused("--out"))?;
        let documents = Documents::prepare(plan, &journal)?;
        let above = AboveBar::new();
        let only_problems = plan.output.only_problems;
        let mut beside: Vec<Box<dyn Observer>> = Vec::new();
        if !plan.quiet && !only_problems {
            let SweepOptions { sweep, against, beside: rounds, searches, why, .. } = &plan.options;
            let is_counted = against.is_none()
                && rounds.is_none()
                && searches.is_none()
                && why.is_none_or(|request| !request.is_alone);
            let time = if is_counted { TimeLeft::new(sweep) } else { TimeLeft::unknown() };
            if form.is_none() {
                beside.push(for_stderr(&above, time));
            }
            if let Some(every) = plan.output.every {
                beside.push(Box::new(EveryLines::new(every, above.clone())));
            }
            beside.push(Box::new(Remarks { noted: BTreeSet::new(), above: above.clone() }));
        }
        let (out, screen) = documents.beside_them(only_problems || form.is_some());
        let stages = StageLines { on_stdout: documents.on_stdout.is_none(), above: above.clone() };
        Ok(Output {
            beside,
            rows: TableRows {
                table: Table::new(out, screen, &shown(&plan.options.sweep.cases))
                    .with_columns_of(&plan.output.columns),
                above: above.clone(),
                unshown: None,
            },
            failures: FailureLines { case: String::new(), run: None, above: above.clone() },
            journal: JournalLines { journal, case: String::new(), is_broken: false, above },
            documents,
            only_problems,
            perftest: form.clone().map(|form| PerftestRows::new(form, plan.output.period)),
            stages: plan.options.stages.is_some().then_some(stages),
        })
    }

    /// What follows the runs. The progress comes first, so that no line stands for a run that is over.
    pub(super) fn observers(&mut self) -> Observers<'_> {
        let mut list: Vec<&mut dyn Observer> = Vec::new();
        for observer in &mut self.beside {
            list.push(&mut **observer);
        }
        match &mut self.stages {
            Some(lines) => list.push(lines),
            None => list.push(&mut self.rows),
        }
        if let Some(rows) = &mut self.perftest {
            list.push(rows);
        }
        list.push(&mut self.failures);
        list.push(&mut self.journal);
        Observers(list)
    }

    /// Writes what is written once, at the end. `stop` ends waiting for who reads it.
    ///
    /// # Errors
    /// The first document that could not be written; warnings name the others.
    pub(super) fn close(mut self, result: &ResultFile, stop: &AtomicBool) -> Result<(), Failure> {
        let findings = Findings::new(result);
        let (mut written, mut failures) = self.documents.write_files(result, &findings, stop);
        let are_kept = self.documents.of_sweep().iter().all(|it| written.contains(&&*it.path));
        let journal = self.journal.journal.path().map(Path::to_owned);
        if !are_kept {
            written.extend(journal.as_deref());
        }
        let problems: Vec<&Finding> = findings.iter().filter(|it| it.is_problem()).collect();
        let (mut out, screen) = self.documents.beside_them(self.perftest.is_some());
        let only_problems = self.only_problems;
        if let Some(rows) = self.perftest.take() {
            match rows.end() {
                Ok(missed) => failures.extend(missed.map(str::to_owned)),
                Err(error) => _ = self.rows.unshown.get_or_insert(error),
            }
            problems.iter().for_each(|it| say(&format!("rocebench: note: {}", it.text)));
        }
        self.rows.show(|table| {
            if let Some(text) = acceptance(&result.stages) {
                for line in wrapped(&text, screen.columns.saturating_add(1)) {
                    writeln!(out, "{line}")?;
                }
                return table.summary(result, &Findings::default(), &written);
            }
            if only_problems {
                return problems.iter().try_for_each(|it| writeln!(out, "{}", it.text));
            }
            if let Some(comparison) = Comparison::in_turns(result) {
                writeln!(out)?;
                compare::write_table(&comparison, &mut out)?;
                writeln!(out)?;
            }
            mesh::write(&findings, &mut out)?;
            check::write(&findings, &mut out)?;
            why::write(result, screen, &mut out)?;
            table.summary(result, &findings, &written)
        });
        if are_kept {
            self.journal.journal.remove();
        }
        let stdout = self.documents.write_to_stdout(result, &findings);
        let unshown = self.rows.unshown.map_or(Ok(()), Err);
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

/// `2026-11-20T12:00:00.5Z` as a file's name: `rocebench-20261120T120000Z`.
fn file_stem(now: &str) -> String {
    let seconds = now.split(['.', 'Z']).next().unwrap_or_default();
    let digits: String = seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("rocebench-{digits}Z")
}

pub fn refused(option: &'static str) -> impl Fn(WriteError) -> Failure {
    move |error: WriteError| Failure::new(format!("{option}: {error}"), error.is_bad_input(), None)
}

/// A document that is written at the end.
struct Document {
    path: PathBuf,
    format: Format,
}

/// The files of a sweep, and what goes to stdout in the table's place.
struct Documents {
    /// Those that every sweep has come first.
    files: Vec<Document>,
    on_stdout: Option<Format>,
    /// What is demanded of each flow, for tests.
    demands: Demands,
}

impl Documents {
    /// Checks that the files can be written, those of every sweep beside its journal.
    fn prepare(plan: &RunPlan, journal: &Journal) -> Result<Documents, Failure> {
        let of_sweep = Format::OF_SWEEP
            .map(|format| Document { path: journal.beside(format.ending()), format });
        let mut files = Vec::from(of_sweep);
        for (format, sink) in &plan.output.further {
            if let Sink::File(path) = sink {
                prepare(path).map_err(refused(format.option()))?;
                files.push(Document { path: path.clone(), format: *format });
            }
        }
        let demands = plan.output.demands.clone();
        Ok(Documents { files, on_stdout: plan.output.on_stdout(), demands })
    }

    /// Where the table goes, which makes room for a document on stdout.
    fn beside_them(&self, is_hidden: bool) -> (Box<dyn Write>, Screen) {
        match self.on_stdout {
            _ if is_hidden => (Box::new(io::sink()), screen(&io::stdout())),
            Some(_) => (Box::new(io::stderr()), screen(&io::stderr())),
            None => (Box::new(io::stdout()), screen(&io::stdout())),
        }
    }

    fn of_sweep(&self) -> &[Document] {
        &self.files[..Format::OF_SWEEP.len()]
    }

    /// The files that were written, and why others were not.
    fn write_files(
        &self,
        result: &ResultFile,
        findings: &Findings,
        stop: &AtomicBool,
    ) -> (Vec<&Path>, Vec<String>) {
        // Somebody may have removed it; what goes wrong here does so once more below, and is said.
        if let Some(folder) = self.files.first().and_then(|first| first.path.parent()) {
            let _ = std::fs::create_dir_all(folder);
        }
        let (mut written, mut failures): (Vec<&Path>, _) = (Vec::new(), Vec::new());
        for Document { path, format } in &self.files {
            let outcome = write_whole_until(
                path,
                stop,
                || {
                    say(&format!(
                        "rocebench: note: {} waits for a reader; Ctrl-C gives up",
                        path.display()
                    ));
                },
                |out| format.write_to(result, findings, &self.demands, out),
            );
            match outcome {
                Ok(()) => written.push(path),
                Err(error) => failures.push(error.to_string()),
            }
        }
        (written, failures)
    }

    fn write_to_stdout(&self, result: &ResultFile, findings: &Findings) -> io::Result<()> {
        self.on_stdout.map_or(Ok(()), |format| {
            format.write_to(result, findings, &self.demands, io::stdout().lock())
        })
    }
}

/// Small observers of a sweep, called in this order.
pub(super) struct Observers<'a>(Vec<&'a mut dyn Observer>);

/// Methods that call that of each observer.
macro_rules! to_each {
    ($($name:ident($($argument:ident: $of:ty),*);)*) => {
        $(fn $name(&mut self, $($argument: $of),*) {
            for observer in &mut self.0 {
                observer.$name($($argument),*);
            }
        })*
    };
}

impl Observer for Observers<'_> {
    to_each! {
        run_started(index: usize, total: usize, case: &Case, run: u32, runs: u32);
        trial_started(index: usize, total: usize, case: &Case, trial: TrialStart<'_>);
        search_finished(case: &Case, search: &LoadSearch, result: &ResultFile);
        connects(ends: ConnectingEnds<'_>);
        sample(elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64);
        latency(p99_ns: u64);
        path_events(count: u64);
        waiting(elapsed: Duration);
        failed(failure: &RunFailure);
        runs_added(cases: &[Case]);
        run_finished(config: &CaseConfig, run: &Run, result: &ResultFile);
        round_finished(case: &Case, so_far: &CaseComparison, result: &ResultFile);
        step(title: &str, text: &str);
        diagnosed(case: &Case, result: &ResultFile);
        stage_finished(stage: &StageResult);
        note(text: &str);
    }

    fn phase(&mut self, name: &str, expected: Option<Duration>) {
        tracing::debug!("phase {name}");
        for observer in &mut self.0 {
            observer.phase(name, expected);
        }
    }

    fn shows_latency(&self) -> bool {
        self.0.iter().any(|observer| observer.shows_latency())
    }
}

/// Notes, each once: they are for the whole sweep; and the figures of rounds.
struct Remarks {
    noted: BTreeSet<String>,
    above: AboveBar,
}

impl Observer for Remarks {
    fn round_finished(&mut self, _: &Case, so_far: &CaseComparison, _: &ResultFile) {
        if let (Some(round), Some(figures)) = (so_far.rounds.last(), so_far.metrics.first())
            && let [Some(Some(base)), Some(Some(new))] = [round.base.first(), round.new.first()]
        {
            let [base, new] = [base, new].map(|figure| figures.metric.text(*figure));
            let ([base_side, new_side], number) = (&so_far.sides, round.number);
            self.above.line(&format!("  round {number}: {new_side} {new}, {base_side} {base}"));
        }
    }

    fn step(&mut self, _: &str, text: &str) {
        self.above.line(&format!("rocebench: {text}"));
    }

    fn note(&mut self, text: &str) {
        if self.noted.insert(text.to_owned()) {
            self.above.line(&format!("rocebench: note: {text}"));
        }
    }
}

/// A line of a stage, or several on a narrow screen.
pub fn stage_text(stage: &StageResult, columns: usize) -> String {
    let head = format!("{:<10} {:<11}", stage.name, stage.verdict.word());
    let width = columns.saturating_sub(head.len() + 1).max(40);
    let lines = wrapped(&stage.text, width);
    let mut text = String::new();
    for (number, line) in lines.into_iter().enumerate() {
        let start = if number == 0 { &*head } else { "" };
        text += &format!("{start:<22} {line}\n");
    }
    text
}

struct StageLines {
    on_stdout: bool,
    above: AboveBar,
}

impl Observer for StageLines {
    fn stage_finished(&mut self, stage: &StageResult) {
        self.above.suspend(|| {
            let text = stage_text(stage, screen(&io::stdout()).columns);
            if self.on_stdout {
                // What cannot be printed now cannot be at the end either, and is said then.
                let _ = print(&text);
            } else {
                say(text.trim_end());
            }
        });
    }
}

struct TableRows {
    table: Table<Box<dyn Write>>,
    above: AboveBar,
    /// Why the table could not be shown.
    unshown: Option<io::Error>,
}

impl TableRows {
    /// Shows something of the table. A closed stdout is nobody's loss but the table's.
    fn show(&mut self, show: impl FnOnce(&mut Table<Box<dyn Write>>) -> io::Result<()>) {
        if let Err(error) = self.above.suspend(|| show(&mut self.table))
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.unshown.get_or_insert(error);
        }
    }
}

impl Observer for TableRows {
    fn run_finished(&mut self, config: &CaseConfig, run: &Run, _: &ResultFile) {
        self.show(|table| table.run(config, run));
    }
}

/// A line for each run or round that fails.
struct FailureLines {
    case: String,
    /// The number of the run whose failure is still to be reported; none during a trial: the result of the search has the
    /// failures of its trials.
    run: Option<u32>,
    above: AboveBar,
}

impl FailureLines {
    /// Reports once that the run has failed.
    fn report(&mut self, failure: &model::Failure) {
        let Some(run) = self.run.take() else {
            return;
        };
        let mut text = format!("rocebench: {} (run {run}): {}", self.case, failure.message);
        if let Some(hint) = &failure.hint {
            text += &format!("\n  hint: {hint}");
        }
        self.above.suspend(|| say(&text));
    }
}

impl Observer for FailureLines {
    fn run_started(&mut self, _: usize, _: usize, case: &Case, run: u32, _: u32) {
        self.case.clone_from(&case.id);
        self.run = Some(run);
    }

    fn trial_started(&mut self, _: usize, _: usize, _: &Case, _: TrialStart<'_>) {
        self.run = None;
    }

    /// What failed of an experiment is in its result.
    fn step(&mut self, _: &str, _: &str) {
        self.run = None;
    }

    fn failed(&mut self, failure: &RunFailure) {
        self.report(&failure.to_result());
    }

    fn run_finished(&mut self, _: &CaseConfig, run: &Run, _: &ResultFile) {
        if let Some(failure) = &run.failure {
            self.report(failure);
        }
    }

    fn round_finished(&mut self, case: &Case, so_far: &CaseComparison, _: &ResultFile) {
        // What a run of ours failed of has been said.
        let round = (so_far.rounds.last())
            .filter(|round| !so_far.base_command.is_empty() && !round.new.is_empty());
        if let Some((round, failure)) = round.and_then(|it| Some((it, it.failure.as_ref()?))) {
            let mut text = format!("rocebench: {} (round {}): {failure}", case.id, round.number);
            if let Some(line) = last_words(failure, round.output.as_deref()) {
                text += &format!("\n  its output: {line}");
            }
            self.above.suspend(|| say(&text));
        }
    }
}

/// The last line that says something in what the failing end of perftest printed; all of it is in the JSON file.
fn last_words(failure: &str, output: Option<&str>) -> Option<String> {
    let both = output?;
    let (client, server) = both.split_at(both.find("--- server:").unwrap_or(both.len()));
    let line = if failure.contains("server") { server } else { client }
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.starts_with("---") && line.contains(char::is_alphabetic))?;
    Some(printable(line, 200))
}

/// Keeps each run, round and search, whatever comes after it.
struct JournalLines {
    journal: Journal,
    case: String,
    /// It could not be written, and that was reported.
    is_broken: bool,
    above: AboveBar,
}

impl JournalLines {
    fn keep(&mut self, result: &ResultFile) {
        if let Err(error) = self.journal.add(result, &self.case)
            && !std::mem::replace(&mut self.is_broken, true)
        {
            let text = format!("rocebench: warning: {error}; measuring goes on");
            self.above.suspend(|| say(&text));
        }
    }
}

impl Observer for JournalLines {
    fn run_started(&mut self, _: usize, _: usize, case: &Case, _: u32, _: u32) {
        self.case.clone_from(&case.id);
    }

    fn run_finished(&mut self, _: &CaseConfig, _: &Run, result: &ResultFile) {
        self.keep(result);
    }

    fn round_finished(&mut self, case: &Case, _: &CaseComparison, result: &ResultFile) {
        self.case.clone_from(&case.id);
        self.keep(result);
    }

    fn search_finished(&mut self, _: &Case, _: &LoadSearch, result: &ResultFile) {
        self.keep(result);
    }

    fn diagnosed(&mut self, case: &Case, result: &ResultFile) {
        self.case.clone_from(&case.id);
        self.keep(result);
    }
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
