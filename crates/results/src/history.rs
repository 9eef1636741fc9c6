//! A folder of results over time: a file for each, named by when it was begun and by what it says, so that names are in the
//! order of time and the same result has one name, whatever file it came from. Two that add at once do not meet.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use rustix::io::Errno;
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

use crate::model::{ResultFile, Run};
use crate::whole_file::{Directory, WriteError, prepare_directory};

/// Compressed results up to this size are kept whole, so that a month of them has 30 MiB.
const MOST_BYTES: usize = 1 << 20;

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It has this name now.
    New(String),
    /// It was there already, under this name.
    Known(String),
    /// It says no time at which it was begun.
    Undated,
}

/// Adds a result to a folder, which is made where there is none. Of one above a MiB that is left out which single runs alone
/// are looked at by: histograms, single QPs, throughput over time and counters.
///
/// # Errors
/// The step that failed, with the system's reason; the folder is then as it was.
pub fn add(folder: &Path, result: &ResultFile) -> Result<Added, WriteError> {
    let begun = OffsetDateTime::parse(&result.started_at, &Rfc3339).ok();
    let Some(at) = begun.and_then(|begun| begun.checked_to_offset(UtcOffset::UTC)) else {
        return Ok(Added::Undated);
    };
    prepare_directory(folder)?;
    let written = |step, error| WriteError::new(folder, step, error);
    let name = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z-{:08x}.json.gz",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        mark(result)
    );
    if folder.join(&name).exists() {
        return Ok(Added::Known(name));
    }
    let whole = to_json(result).and_then(|json| compressed(&json));
    let stored = match whole.map_err(|error| written("write", error))? {
        large if large.len() > MOST_BYTES => {
            to_json(&lean(result)).and_then(|json| compressed(&json))
        }
        small => Ok(small),
    };
    let directory = Directory::open(folder).map_err(|error| written("open it", error.into()))?;
    let file =
        directory.new_file().map_err(|error| written("create a file there", error.into()))?;
    stored
        .and_then(|bytes| {
            let mut out: &File = file.file();
            out.write_all(&bytes)?;
            out.sync_all()
        })
        .map_err(|error| written("write", error))?;
    match file.publish(&name) {
        Ok(()) => {
            // Some file systems cannot sync a directory.
            let _ = directory.sync();
            Ok(Added::New(name))
        }
        Err(Errno::EXIST) => Ok(Added::Known(name)),
        Err(error) => Err(written("give it its name", error.into())),
    }
}

/// By which a result is known beside its time: who measured it, with which words, and when its runs began. Figures are not
/// in it, since they may lose their last digit from file to file.
fn mark(result: &ResultFile) -> u32 {
    let nodes = result.nodes.iter().flat_map(|node| [&node.name, &node.host.hostname]);
    let cases = result.cases.iter().flat_map(|case| {
        let runs = case.runs.iter().map(|run| &run.started_at);
        std::iter::once(&case.id).chain(runs)
    });
    let mut hasher = crc32fast::Hasher::new();
    for word in
        [&result.started_at].into_iter().chain(&result.command_line).chain(nodes).chain(cases)
    {
        hasher.update(word.as_bytes());
        hasher.update(b"\0");
    }
    hasher.finalize()
}

fn to_json(result: &ResultFile) -> io::Result<Vec<u8>> {
    serde_json::to_vec(result).map_err(io::Error::from)
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Without what single runs alone are looked at by.
pub fn lean(result: &ResultFile) -> ResultFile {
    let mut lean = result.clone();
    lean.cases.iter_mut().flat_map(|case| &mut case.runs).for_each(shorten);
    lean
}

/// Leaves out of a run what it alone is looked at by.
pub fn shorten(run: &mut Run) {
    leave_out_parts(run);
    for flow in &mut run.flows {
        let times = [&mut flow.latency_ns, &mut flow.service_ns];
        let others = [&mut flow.lateness_ns, &mut flow.notice_ns];
        for latency in times.into_iter().chain(others).flatten() {
            latency.histogram = None;
        }
        if let Some(bandwidth) = &mut flow.bandwidth_gbit_per_s {
            bandwidth.histogram_kbit_per_s = None;
        }
    }
}

/// Leaves out of a run its single QPs, its courses over time, and counters.
pub fn leave_out_parts(run: &mut Run) {
    for node in &mut run.nodes {
        (node.counters, node.state) = (None, None);
    }
    for flow in &mut run.flows {
        flow.qps.clear();
        (flow.timeline, flow.qp_timeline) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use crate::sample::{self, mesh::Mesh};

    #[test]
    fn a_result_is_there_once_and_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let history = folder.path().join("history");
        let result = sample::result();
        let Added::New(name) = add(&history, &result).unwrap() else {
            panic!("it was not there");
        };
        assert_eq!(add(&history, &result).unwrap(), Added::Known(name.clone()));
        let stamp: String =
            result.started_at.chars().take(19).filter(|it| !"-:".contains(*it)).collect();
        assert!(name.starts_with(&format!("{stamp}Z-")), "{name}");
        let found = load(&[&history]);
        assert_eq!(found.results.len(), 1, "{:?}", found.refused);
        assert_eq!(found.results[0].result, result);
        // What was left out elsewhere makes no other result.
        assert_eq!(add(&history, &lean(&result)).unwrap(), Added::Known(name));
        let undated = ResultFile { started_at: "../yesterday".to_owned(), ..result };
        assert_eq!(add(&history, &undated).unwrap(), Added::Undated);
    }

    #[test]
    fn a_month_of_64_nodes_has_less_than_100_mb() {
        let folder = tempfile::tempdir().unwrap();
        let mesh = Mesh { histograms: true, ..Mesh::new(64).runs(1) };
        let Added::New(name) = add(folder.path(), &mesh.pairs()).unwrap() else {
            panic!("it was not there");
        };
        let path = folder.path().join(name);
        let bytes = path.metadata().unwrap().len();
        assert!(bytes * 31 < 100_000_000, "{bytes}");
        let cut = folder.path().join("cut.json.gz");
        std::fs::write(&cut, &std::fs::read(&path).unwrap()[..1000]).unwrap();
        let found = load(&[folder.path()]);
        assert_eq!((found.results.len(), found.refused.len()), (1, 1));
    }

    #[test]
    fn of_several_that_add_at_once_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::result();
        let added: Vec<Added> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| add(folder.path(), &result).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(added.iter().filter(|it| matches!(it, Added::New(_))).count(), 1);
        assert_eq!(load(&[folder.path()]).results.len(), 1);
    }
}
