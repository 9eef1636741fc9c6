//! What holds for all sources: within a crate no folder imports one that imports it, and tests state facts.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod arrows;
mod modules;
mod test_code;

use std::collections::BTreeSet;

use arrows::{Arrows, circles};

/// Arrows between files of all crates, by paths from the root of the project.
fn files() -> Arrows {
    let mut crates = modules::Crates::default();
    for (name, root) in modules::roots() {
        crates.read(&name, &root);
    }
    crates.arrows()
}

fn report(circles: &[Vec<String>], arrows: &Arrows) -> String {
    let mut text = String::new();
    for circle in circles {
        text += "\n";
        for from in circle {
            for (to, names) in arrows.get(from).into_iter().flatten() {
                if circle.contains(to) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    text += &format!("  {from} -> {to}: {}\n", names.join(", "));
                }
            }
        }
    }
    text
}

/// What lies in a folder and below it is one.
#[test]
fn no_folder_imports_one_that_imports_it() {
    let files = files();
    assert!(files.len() > 200, "only {} files import others", files.len());
    let mut found = BTreeSet::new();
    let folders: BTreeSet<&str> =
        files.keys().flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..at])).collect();
    for parent in &folders {
        // The folder below `parent` that a file lies in, or is the face of.
        let child = |file: &str| {
            let rest = file.strip_prefix(parent)?.strip_prefix('/')?;
            let name = rest.split('/').next()?.trim_end_matches(".rs");
            let folder = format!("{parent}/{name}");
            folders.contains(folder.as_str()).then_some(folder)
        };
        let mut between = Arrows::new();
        for (from, imports) in &files {
            for (to, names) in imports {
                if let (Some(from), Some(to)) = (child(from), child(to))
                    && from != to
                {
                    let into = between.entry(from).or_default().entry(to).or_default();
                    into.extend(names.iter().cloned());
                }
            }
        }
        let circles = circles(&between);
        if !circles.is_empty() {
            found.insert(report(&circles, &between));
        }
    }
    let found: String = found.into_iter().collect();
    assert!(found.is_empty(), "circles of folders:\n{found}");
}
