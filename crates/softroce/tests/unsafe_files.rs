//! Where unsafe code may stand. A file that is not listed here has none.

// Helpers of tests fail as tests do.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The C interface as a whole, the system calls, and where the transport touches registered memory or lends it to a
/// GSO batch of packets.
const ALLOWED: [&str; 15] = [
    "verbs/",
    "net/sockets.rs",
    "net/tests.rs",
    "net/gso_batch.rs",
    "net/wakeup.rs",
    "transport/copy.rs",
    "transport/fetches.rs",
    "transport/messages.rs",
    "transport/replies.rs",
    "transport/send_queue.rs",
    "transport/gso_batches.rs",
    "transport/transmit.rs",
    "transport/unreliable.rs",
    // Functions whose callers vouch for memory.
    "transport/nic.rs",
    "transport/qp.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines of code with the word, comments left out.
fn unsafe_lines(text: &str) -> usize {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .filter(|code| code.contains("unsafe ") || code.contains("unsafe("))
        .count()
}

#[test]
fn unsafe_code_stands_in_the_named_files_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() > 50, "{} files", found.len());
    let mut used = 0;
    for path in found {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let lines = unsafe_lines(&fs::read_to_string(&path).unwrap());
        let allowed = ALLOWED.iter().any(|start| name.starts_with(start));
        assert!(
            lines == 0 || allowed,
            "{name}: {lines} lines of unsafe code"
        );
        used += usize::from(lines > 0 && allowed);
    }
    assert!(used > 10, "the words are no longer found");
}
