//! Result files by path: single files and folders of them. What cannot be used is reported, never guessed at, and the rest
//! is used still.

use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use crate::at_once::at_once;
use crate::journal;
use crate::json::{self, ReadError};
use crate::model::ResultFile;
use crate::text;

/// Files whose texts are in memory at a time.
const MOST_AT_ONCE: usize = 8;

/// One result file and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The path by which the file was read, as it was given or found in a folder.
    pub path: PathBuf,
    pub result: ResultFile,
}

impl Loaded {
    /// Whether both are one sweep's result, whatever their names: a copy is no further launch.
    pub fn is_copy_of(&self, other: &Loaded) -> bool {
        self.result == other.result
    }

    /// What is said of it beside its copy.
    pub fn left_out_beside(&self, copy: &Loaded) -> String {
        let [own, other] = [self, copy].map(|it| text::path(&it.path));
        format!("{own} has the same content as {other} and is left out")
    }
}

/// What was found under some paths.
#[derive(Debug, Default)]
pub struct Found {
    /// The results, in the order of the paths given and by name within a folder.
    pub results: Vec<Loaded>,
    /// Files that were named, or lay in a folder that was, and could not be used.
    pub refused: Vec<ReadError>,
}

/// Reads files, and the `*.json` and `*.json.gz` of folders (not of folders within them) with the journals of sweeps that came to none.
pub fn load<P: AsRef<Path>>(paths: &[P]) -> Found {
    let mut found = Found::default();
    for path in paths.iter().map(AsRef::as_ref) {
        if !path.is_dir() {
            found.add(&[path.to_owned()]);
            continue;
        }
        match json_files_of(path) {
            Ok(files) => found.add(&files),
            Err(error) => found.refused.push(ReadError::io(path, error)),
        }
    }
    found
}

impl Found {
    fn add(&mut self, files: &[PathBuf]) {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let results = at_once(cores.min(MOST_AT_ONCE), files, |path| {
            let is_journal = has_extension(path, journal::EXTENSION);
            if is_journal { journal::read(path) } else { json::read(path) }
        });
        for (path, result_or_reason) in files.iter().zip(results) {
            match result_or_reason {
                Ok(result) => self.results.push(Loaded { path: path.clone(), result }),
                Err(refused) => self.refused.push(refused),
            }
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

fn json_files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // A sweep that has no run yet, or came to none, has an empty one.
        let is_journal = has_extension(&path, journal::EXTENSION);
        let is_left = is_journal
            && !path.with_extension("json").exists()
            && path.metadata().is_ok_and(|facts| facts.len() > 0);
        let is_compressed =
            has_extension(&path, "gz") && has_extension(&path.with_extension(""), "json");
        let is_result = has_extension(&path, "json") || is_compressed;
        if (is_result || is_left) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use crate::sample;

    #[test]
    fn a_folder_gives_its_files_by_name_and_tells_what_it_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let results = [sample::open_loop(), sample::result()];
        for (name, result) in ["b.json", "a.json"].into_iter().zip(&results) {
            json::write(result, &path(name)).unwrap();
        }
        // The journal of a sweep that came to no file, and of one that did.
        for name in ["killed", "a"] {
            let mut journal = Journal::reserve(folder.path(), name, &[]).unwrap();
            let case = &results[1].cases[1].id;
            journal.add(&results[1], case).unwrap();
        }
        std::fs::write(path("c.json"), "{\"cases\": [").unwrap();
        std::fs::write(path("notes.txt"), "no result").unwrap();
        let found = load(&[folder.path()]);
        let paths: Vec<_> = found.results.iter().map(|loaded| loaded.path.clone()).collect();
        assert_eq!(paths, ["a.json", "b.json", "killed.jsonl"].map(path));
        assert_eq!(found.results[1].result, results[0]);
        assert_eq!(found.refused.len(), 1);
        assert!(found.refused[0].to_string().contains("c.json:1: "));
    }
}
