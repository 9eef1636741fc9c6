//! The runs of a sweep as they finish: JSON Lines, in each line a result file with one run. It is what is left of a sweep
//! that is killed, and costs the same for every run.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::json::{ReadError, parse, whole};
use crate::model::{CaseResult, ResultFile};
use crate::whole_file::WriteError;

/// How names of journals end.
pub const EXTENSION: &str = "jsonl";

/// A journal that is written. It is empty before its first line, and gone if none comes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Bytes of the lines that are whole.
    bytes: u64,
}

impl Journal {
    /// Reserves a name in `folder`, for the journal and for files with these `endings`: `stem`, or where a file has that
    /// `stem-2`, `stem-3` and so on. No two processes get one, on one host or on several.
    ///
    /// # Errors
    /// The journal cannot be made.
    pub fn reserve(folder: &Path, stem: &str, endings: &[&str]) -> Result<Journal, WriteError> {
        let mut number = 0;
        loop {
            number += 1;
            let name = match number {
                1 => stem.to_owned(),
                more => format!("{stem}-{more}"),
            };
            let path = folder.join(format!("{name}.{EXTENSION}"));
            match File::options().append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WriteError::new(&path, "create it", error)),
                Ok(file) => {
                    let mut others = endings.iter().map(|ending| format!("{name}{ending}"));
                    if !others.any(|other| folder.join(other).exists()) {
                        return Ok(Journal { path, file: Some(file), bytes: 0 });
                    }
                    let _ = fs::remove_file(&path);
                }
            }
        }
    }

    /// The file of the same name with another ending, such as `.csv`.
    pub fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.with_extension("").into_os_string();
        name.push(ending);
        name.into()
    }

    /// Where it is, if it has a line and nobody has removed it.
    pub fn path(&self) -> Option<&Path> {
        (self.bytes > 0 && self.path.exists()).then_some(&self.path)
    }

    /// Adds the last run of a case of `result`, with what is known of the case and the nodes by now. With an error it is as
    /// it was before.
    ///
    /// # Errors
    /// The system's, also where another file is there.
    pub fn add(&mut self, result: &ResultFile, case: &str) -> Result<(), WriteError> {
        let mut cases = result.cases.iter().rev();
        let last = cases.find(|known| known.id == case).map(|case| CaseResult {
            id: case.id.clone(),
            config: case.config.clone(),
            runs: case.runs.last().cloned().into_iter().collect(),
            searches: case.searches.clone(),
            comparison: case.comparison.clone(),
            diagnosis: case.diagnosis.clone(),
        });
        self.append(&result.with_cases(last.into_iter().collect()))
            .map_err(|error| WriteError::new(&self.path, "append a run", error))
    }

    fn append(&mut self, line: &ResultFile) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                self.file.insert(File::options().append(true).create_new(true).open(&self.path)?)
            }
        };
        if let Err(error) = file.write_all(&text).and_then(|()| file.sync_data()) {
            // Half a line would be in the way of those to come.
            let _ = file.set_len(self.bytes);
            if self.bytes == 0 {
                self.remove();
            }
            return Err(error);
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Removes it: all that it has is in other files.
    pub fn remove(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.bytes == 0 {
            self.remove();
        }
    }
}

/// Reads a journal as the result file that its sweep would have written. Of a run that it has twice the later counts; a
/// last line that was cut off does not.
///
/// # Errors
/// With the file, the line and the reason.
pub fn read(path: &Path) -> Result<ResultFile, ReadError> {
    let text = whole(path)?;
    let mut lines: Vec<&[u8]> =
        text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).collect();
    if lines.is_empty() {
        // Nothing is not JSON, and is told so.
        lines.push(b"");
    }
    let mut result = ResultFile::default();
    for (index, line) in lines.into_iter().enumerate() {
        // An editor may have left an empty line.
        if index > 0 && line.trim_ascii().is_empty() {
            continue;
        }
        let later = parse(path, Some(index + 1), line)?;
        let mut cases = result.cases;
        later.cases.into_iter().for_each(|case| add(&mut cases, case));
        // A node's devices come with its first report.
        result = ResultFile { cases, ..later };
    }
    Ok(result)
}

fn add(cases: &mut Vec<CaseResult>, later: CaseResult) {
    // Runs of several cases may take turns.
    let Some(case) = cases.iter_mut().rev().find(|case| case.id == later.id) else {
        cases.push(later);
        return;
    };
    case.config = later.config;
    case.comparison = later.comparison;
    case.searches = later.searches;
    for run in later.runs {
        case.runs.retain(|earlier| earlier.run != run.run);
        case.runs.push(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CaseComparison;
    use crate::sample::{self, has};

    const FIRST: &str = "send-shared-q2-64KiB";
    const LAST: &str = "write-shared-q2-64KiB";

    /// One at exactly this path.
    fn made(path: &Path) -> Journal {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let journal = Journal::reserve(path.parent().unwrap(), stem, &[]).unwrap();
        assert_eq!(journal.path, path);
        journal
    }

    #[test]
    fn a_name_has_one_sweep() {
        let home = tempfile::tempdir().unwrap();
        let reserve = || Journal::reserve(home.path(), "r", &[".json", ".csv"]).unwrap();
        let name = |journal: &Journal| journal.path.file_name().unwrap().to_owned();
        let (one, mut two) = (reserve(), reserve());
        assert_eq!([name(&one), name(&two)], ["r.jsonl", "r-2.jsonl"]);
        assert_eq!(one.beside(".csv"), home.path().join("r.csv"));
        two.add(&sample::result(), LAST).unwrap();
        drop((one, two));
        // The first has left nothing, the second its runs; of another there is a document.
        fs::write(home.path().join("r-3.csv"), "").unwrap();
        let names = [0; 2].map(|_| reserve()).map(|journal| name(&journal));
        assert_eq!(names, ["r.jsonl", "r-4.jsonl"]);
    }

    /// What a sweep comes to, run by run.
    fn stages() -> Vec<ResultFile> {
        let whole = sample::result();
        let mut again = whole.cases[0].runs[0].clone();
        again.run += 1;
        let first = ResultFile { cases: vec![whole.cases[0].clone()], ..whole.clone() };
        let mut second = first.clone();
        second.cases[0].runs.push(again);
        let mut third = second.clone();
        third.nodes[1].devices = third.nodes[0].devices.clone();
        third.cases.push(whole.cases[1].clone());
        vec![first, second, third]
    }

    /// A folder, and the path of a journal in it that is not there yet.
    fn journal() -> (tempfile::TempDir, PathBuf, Journal) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        let journal = made(&path);
        (home, path, journal)
    }

    #[test]
    fn a_journal_reads_as_the_result_at_every_stage() {
        let (_home, path, mut journal) = journal();
        assert_eq!(journal.path(), None);
        for stage in stages() {
            journal.add(&stage, &stage.cases[stage.cases.len() - 1].id).unwrap();
            assert_eq!(read(&path).unwrap(), stage);
        }
        // As after a pair with perftest: the run that is there, with more known about it.
        let mut last = stages().pop().unwrap();
        last.cases[1].config.flows[0].path_mtu = Some(2048);
        journal.add(&last, LAST).unwrap();
        assert_eq!(read(&path).unwrap(), last);
        // As after each trial of a search.
        for trials in 1..=2 {
            last.cases[1].searches = vec![sample::search(trials)];
            journal.add(&last, LAST).unwrap();
            assert_eq!(read(&path).unwrap(), last);
        }
        // As where the runs of two cases take turns.
        let mut again = last.cases[0].runs[0].clone();
        again.run += 2;
        last.cases[0].runs.push(again);
        last.cases[0].comparison = Some(CaseComparison::default());
        journal.add(&last, FIRST).unwrap();
        assert_eq!(read(&path).unwrap(), last);
        last.cases[1].searches = vec![sample::search(3)];
        journal.add(&last, LAST).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        // As an editor may leave it.
        fs::write(&path, format!("\u{feff}{}", text.replace('\n', "\r\n\n"))).unwrap();
        assert_eq!(read(&path).unwrap(), last);
        // Cut off in the midst of a line.
        fs::write(&path, &text[..text.len() - 10]).unwrap();
        last.cases[1].searches = vec![sample::search(2)];
        assert_eq!(read(&path).unwrap(), last);
        journal.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_journal_is_told_with_its_line() {
        let (_home, path, mut journal) = journal();
        journal.add(&sample::result(), LAST).unwrap();
        let line = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{line}{{}}\n")).unwrap();
        let of_second_line = read(&path).unwrap_err().to_string();
        has(of_second_line, ["r.jsonl:2: not a rocebench result"]);
        fs::write(&path, "").unwrap();
        let of_nothing = read(&path).unwrap_err().to_string();
        has(of_nothing, ["r.jsonl:1: ", "empty"]);
    }

    #[test]
    fn a_line_that_cannot_be_written_leaves_no_half() {
        let (_home, path, mut journal) = journal();
        journal.add(&stages()[0], FIRST).unwrap();
        // A file that may only be read cannot be appended to.
        let whole = journal.file.replace(File::open(&path).unwrap());
        let error = journal.add(&stages()[0], FIRST).unwrap_err().to_string();
        assert!(error.contains("r.jsonl: append a run: "), "{error}");
        journal.file = whole;
        assert_eq!(read(&path).unwrap(), stages()[0]);
        // The first is not even half there.
        fs::remove_file(&path).unwrap();
        let mut read_only = made(&path);
        read_only.file = Some(File::open(&path).unwrap());
        read_only.add(&stages()[0], FIRST).unwrap_err();
        assert!(!path.exists());
    }
}
