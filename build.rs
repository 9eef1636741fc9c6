//! Records the git revision that the program is built from, for the result file's `tool.git`.

use std::path::Path;
use std::process::Command;

fn main() {
    // `src` and the manifests decide whether the build is dirty. They are named without git too: it may
    // be there the next time.
    for path in ["build.rs", "src", "crates", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Some(revision) = revision() {
        println!("cargo::rustc-env=ROCEBENCH_GIT={revision}");
    }
}

/// The revision, with `-dirty` for changes on top; `None` without git, or when this is not the top of a
/// git work tree (an unpacked archive inside another project's).
fn revision() -> Option<String> {
    let here = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR")?).canonicalize().ok()?;
    let top = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if here != top {
        return None;
    }
    // A commit appends to the log of HEAD.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        // Cargo takes a missing file for a changed one.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
