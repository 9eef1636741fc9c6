//! What holds for all sources. Imports go one way: no file of `src` or `crates` imports one that imports it, by however many steps, no folder one
//! that imports it, and a room of `src` imports only what the table in docs/dev/architecture.md says.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod arrows;
mod modules;
mod test_code;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use arrows::{Arrows, circles};

/// Arrows between files of all crates, by paths from the root of the project.
fn files() -> &'static Arrows {
    static FILES: LazyLock<Arrows> = LazyLock::new(|| {
        let mut crates = modules::Crates::default();
        for (name, root) in modules::roots() {
            crates.read(&name, &root);
        }
        crates.arrows()
    });
    &FILES
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

#[test]
fn no_file_imports_one_that_imports_it() {
    let arrows = files();
    assert!(arrows.len() > 300, "only {} files import others", arrows.len());
    let found = circles(arrows);
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), report(&found, arrows));
}

/// Folders: what lies in a folder and below it is one.
#[test]
fn no_folder_imports_one_that_imports_it() {
    let files = files();
    let mut found = BTreeSet::new();
    let folders: BTreeSet<&str> =
        files.keys().flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..at])).collect();
    for parent in folders {
        // The children of one folder, files and folders alike.
        let child = |file: &str| {
            let rest = file.strip_prefix(parent)?.strip_prefix('/')?;
            let name = rest.split('/').next()?.trim_end_matches(".rs");
            Some(format!("{parent}/{name}"))
        };
        let mut between = Arrows::new();
        for (from, imports) in files {
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

/// The rooms of the table in docs/dev/architecture.md with what each imports; a room is a folder of `src` or a crate.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(modules::root().join("docs/dev/architecture.md")).unwrap();
    let words = |cell: &str| -> BTreeSet<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(|word| word.trim_end_matches('/').to_owned())
            .collect()
    };
    page.lines()
        .skip_while(|line| !line.starts_with("| room |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .flat_map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let uses = words(cells[3]);
            words(cells[1]).into_iter().map(move |room| (room, uses.clone()))
        })
        .collect()
}

#[test]
fn rooms_import_what_the_table_says() {
    let room = |file: &str| {
        let mut parts = file.split('/');
        match parts.next()? {
            "crates" => Some(parts.next()?.to_owned()),
            _ => Some(parts.next()?.trim_end_matches(".rs").to_owned()),
        }
    };
    let table = table();
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, imports) in files() {
        for (to, names) in imports {
            let (from_room, to_room) = (room(from).unwrap(), room(to).unwrap());
            if from_room != to_room && !["lib", "main"].contains(&from_room.as_str()) {
                let uses = table
                    .get(&from_room)
                    .unwrap_or_else(|| panic!("docs/dev/architecture.md has no room {from_room}"));
                assert!(
                    uses.contains(&to_room),
                    "{from} imports {names:?} of {to}, which docs/dev/architecture.md does not have in the row of {from_room}"
                );
                real.entry(from_room).or_default().insert(to_room);
            }
        }
    }
    for (importer, uses) in &table {
        let unused: Vec<_> = uses
            .iter()
            .filter(|used| !real.get(importer).is_some_and(|imported| imported.contains(*used)))
            .collect();
        assert!(
            unused.is_empty(),
            "docs/dev/architecture.md has {importer} use {unused:?}, and it does not"
        );
    }
}
