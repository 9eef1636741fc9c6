//! Where a document goes, and whether two go to one place.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::cli::terminal::errors::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard output, which then carries nothing else.
    Stdout,
    File(PathBuf),
}

impl From<PathBuf> for Sink {
    fn from(path: PathBuf) -> Sink {
        if path == Path::new("-") { Sink::Stdout } else { Sink::File(path) }
    }
}

/// A file by what the system knows it by (device and inode), or one to come by its directory and its name there.
#[derive(PartialEq, Eq)]
enum Identity {
    There(u64, u64),
    ToCome(u64, u64, OsString),
}

impl Identity {
    /// `None` where there is no such directory: writing there will say so.
    fn new(path: &Path) -> Option<Identity> {
        if let Ok(facts) = path.metadata() {
            return Some(Identity::There(facts.dev(), facts.ino()));
        }
        let directory = match path.parent()? {
            parent if parent.as_os_str().is_empty() => Path::new("."),
            parent => parent,
        };
        let facts = directory.metadata().ok()?;
        let name = path.file_name()?.to_owned();
        Some(Identity::ToCome(facts.dev(), facts.ino(), name))
    }
}

impl Sink {
    /// Whether a document there would take the place of one at `other`, however the two are spelled.
    fn is(&self, other: &Sink) -> bool {
        self == other || self.identity().is_some_and(|one| Some(one) == other.identity())
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Sink::Stdout => None,
            Sink::File(path) => Identity::new(path),
        }
    }
}

/// Checks that no two options send their documents to one place.
pub(in crate::cli) fn apart(sinks: &[(&str, &Sink)]) -> Result<(), Failure> {
    for (index, (two, sink)) in sinks.iter().enumerate() {
        if let Some((one, _)) = sinks[..index].iter().find(|(_, other)| sink.is(other)) {
            let place = match sink {
                Sink::File(path) => path.display().to_string(),
                Sink::Stdout => "stdout".to_owned(),
            };
            return Err(Failure::bad_input(format!("{one} and {two} both go to {place}"))
                .with_hint("give one of them a file of its own"));
        }
    }
    Ok(())
}
