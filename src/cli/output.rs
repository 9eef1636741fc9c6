//! What a sweep leaves behind: rows on the terminal as runs finish, the files after every run, and a word
//! about each failure.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::control::coordinator::Observer;
use crate::control::message::printable;
use crate::plan::Case;
use crate::results::model::{CaseConfig, PerftestPair, ResultFile, Run};
use crate::results::{against, csv, json, table::Table};

use super::errors::{Failure, say};
use super::progress::{self, Progress};
use super::run::{RunPlan, Sink};

/// A document that is written again after every run.
struct Document {
    path: PathBuf,
    write: fn(&ResultFile, &Path) -> Result<(), String>,
}

/// All outputs of one sweep.
pub(super) struct Output {
    documents: Vec<Document>,
    json_to_stdout: bool,
    csv_to_stdout: bool,
    table: Table<Box<dyn Write>>,
    comparison_to_stderr: bool,
    progress: Box<dyn Progress>,
    /// What the last try to write the documents said.
    unwritten: Option<String>,
    case: String,
}

fn write_json(result: &ResultFile, path: &Path) -> Result<(), String> {
    json::write(result, path).map_err(|error| error.to_string())
}

fn write_csv(result: &ResultFile, path: &Path) -> Result<(), String> {
    csv::write(result, path).map_err(|error| error.to_string())
}

impl Output {
    /// Prepares the files' folder, so that a sweep does not begin whose results have nowhere to go.
    ///
    /// # Errors
    /// The folder cannot be made or written to.
    pub(super) fn open(plan: &RunPlan) -> Result<Output, Failure> {
        let folder = &plan.output.out_dir;
        let stem = file_stem(&crate::results::host::utc_now());
        prepare(folder)?;
        for sink in [&plan.output.json, &plan.output.csv] {
            if let Some(Sink::File(path)) = sink {
                prepare_file(path)?;
            }
        }
        let mut documents = vec![
            Document {
                path: folder.join(format!("{stem}.json")),
                write: write_json,
            },
            Document {
                path: folder.join(format!("{stem}.csv")),
                write: write_csv,
            },
        ];
        if let Some(Sink::File(path)) = &plan.output.json {
            documents.push(Document {
                path: path.clone(),
                write: write_json,
            });
        }
        if let Some(Sink::File(path)) = &plan.output.csv {
            documents.push(Document {
                path: path.clone(),
                write: write_csv,
            });
        }
        let out: Box<dyn Write> = if plan.output.stdout_is_taken() {
            Box::new(io::stderr())
        } else {
            Box::new(io::stdout())
        };
        Ok(Output {
            documents,
            json_to_stdout: plan.output.json == Some(Sink::Stdout),
            csv_to_stdout: plan.output.csv == Some(Sink::Stdout),
            table: Table::new(out),
            comparison_to_stderr: plan.output.stdout_is_taken(),
            progress: progress::for_stderr(plan.quiet),
            unwritten: None,
            case: String::new(),
        })
    }

    fn write_documents(&mut self, result: &ResultFile) {
        let error = self
            .documents
            .iter()
            .find_map(|document| (document.write)(result, &document.path).err());
        if let (Some(error), None) = (&error, &self.unwritten) {
            let text = format!("rocebench: warning: {error}; measuring goes on");
            self.progress.suspend(&mut || say(&text));
        }
        self.unwritten = error;
    }

    /// Writes what is written once, at the end.
    ///
    /// # Errors
    /// A document that could not be written.
    pub(super) fn close(mut self, result: &ResultFile) -> Result<(), Failure> {
        if self.unwritten.is_some() {
            // Room may have been made meanwhile.
            self.write_documents(result);
        }
        let files: Vec<&Path> = match self.unwritten {
            None => self
                .documents
                .iter()
                .map(|document| document.path.as_path())
                .collect(),
            Some(_) => Vec::new(),
        };
        // A closed stdout is nobody's loss but the table's.
        let table = &mut self.table;
        let to_stderr = self.comparison_to_stderr;
        self.progress.suspend(&mut || {
            let _ = match to_stderr {
                true => against::write(result, &mut io::stderr()),
                false => against::write(result, &mut io::stdout()),
            };
            let _ = table.summary(result, &files);
        });
        let stdout = if self.json_to_stdout {
            json::write_to(result, io::stdout().lock())
        } else if self.csv_to_stdout {
            csv::write_to(result, io::stdout().lock())
        } else {
            Ok(())
        };
        stdout.map_err(|error| Failure::failed(format!("cannot write to stdout: {error}")))?;
        match self.unwritten {
            None => Ok(()),
            Some(error) => Err(Failure::failed(error)),
        }
    }
}

impl Observer for Output {
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32) {
        self.case.clone_from(&case.id);
        self.progress
            .case_started(index, total, &case.id, run, runs);
    }

    fn phase(&mut self, name: &str, expected: Option<Duration>) {
        self.progress.phase(name, expected);
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        self.progress.sample(elapsed, gbit_per_s, mmsg_per_s);
    }

    fn waiting(&mut self, elapsed: Duration) {
        self.progress.waiting(elapsed);
    }

    fn pair_finished(&mut self, case: &Case, pair: &PerftestPair, result: &ResultFile) {
        self.progress.case_finished();
        if let (Some(own), Some(theirs), None) = (pair.rocebench, pair.perftest, &pair.failure) {
            let comparison = result.cases.last().and_then(|it| it.perftest.as_ref());
            let metric = comparison.map_or("", |it| it.metric.as_str());
            let figures = against::figures(metric, own, theirs);
            let text = format!("  pair {}: {figures}", pair.run);
            self.progress.line(&text);
        }
        // What rocebench's run failed of has been told.
        if let Some(failure) = pair.failure.as_ref().filter(|_| pair.rocebench.is_some()) {
            let mut text = format!("rocebench: {} (pair {}): {failure}", case.id, pair.run);
            if let Some(line) = last_words(failure, pair.output.as_deref()) {
                text += &format!("\n  it said: {line}");
            }
            self.progress.suspend(&mut || say(&text));
        }
        self.write_documents(result);
    }

    fn run_finished(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile) {
        self.progress.case_finished();
        let table = &mut self.table;
        self.progress.suspend(&mut || {
            let _ = table.run(config, run);
        });
        if let Some(failure) = &run.failure {
            let mut text = format!(
                "rocebench: {} (run {}): {}",
                self.case, run.run, failure.message
            );
            if let Some(hint) = &failure.hint {
                text += &format!("\n  hint: {hint}");
            }
            self.progress.suspend(&mut || say(&text));
        }
        self.write_documents(result);
    }

    fn note(&mut self, text: &str) {
        let text = format!("rocebench: note: {text}");
        self.progress.line(&text);
    }
}

/// The last line that says something in what the failing end of perftest printed; all of it is in the JSON file.
fn last_words(failure: &str, output: Option<&str>) -> Option<String> {
    let output = output?;
    let at = output.find("--- server:").unwrap_or(output.len());
    let (client, server) = output.split_at(at);
    let line = if failure.contains("server") {
        server
    } else {
        client
    }
    .lines()
    .rev()
    .map(str::trim)
    .find(|line| !line.starts_with("---") && line.contains(char::is_alphabetic))?;
    Some(printable(line, 200))
}

/// `2026-11-20T12:00:00.5Z` as a file's name: `rocebench-20261120T120000Z`.
fn file_stem(now: &str) -> String {
    let seconds = now.split(['.', 'Z']).next().unwrap_or_default();
    let digits: String = seconds
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    format!("rocebench-{digits}Z-{}", std::process::id())
}

/// Makes the folder and sees that a file can be made in it.
fn prepare(folder: &Path) -> Result<(), Failure> {
    let refused = |error: io::Error| {
        Failure::bad_input(format!(
            "cannot write results to {}: {error}",
            folder.display()
        ))
        .with_hint("choose a folder that you may write to with --out")
    };
    fs::create_dir_all(folder).map_err(refused)?;
    tempfile::NamedTempFile::new_in(folder).map_err(refused)?;
    Ok(())
}

/// Sees that a file at `path` can be made or replaced.
fn prepare_file(path: &Path) -> Result<(), Failure> {
    let refused = |error: io::Error| {
        Failure::bad_input(format!("cannot write {}: {error}", path.display()))
            .with_hint("choose a path in a folder that is there and that you may write to")
    };
    if path.is_dir() {
        return Err(refused(io::ErrorKind::IsADirectory.into()));
    }
    // A file is written under a temporary name beside its own; a pipe or a device as it is.
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    if !is_special {
        // As when it is written: a link stays, and the file that it leads to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|folder| *folder != Path::new(""));
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(refused)?;
    }
    Ok(())
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
        assert_eq!(
            last_words("x", Some("--- client: x\n--- server: y\nz")),
            None
        );
        assert_eq!(last_words("x", None), None);
    }

    #[test]
    fn files_are_named_by_time() {
        let stem = file_stem("2026-11-20T12:00:00.5Z");
        assert!(stem.starts_with("rocebench-20261120T120000Z-"), "{stem}");
    }
}
