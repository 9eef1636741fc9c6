//! Every command of rocebench that a page shows is one that the program takes: sweeps are planned, the others parsed.
//! `tests/embedded/learn.rs` runs those of the lesson.

use std::path::Path;

use rocebench::cli::args;

use super::{blocks, files, page, run};

/// A line without its prompt, what a shell would do besides, and the explanation that stands further right.
fn command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let prompts = ["$ ", "server$ ", "client$ "];
    let prompt = prompts.iter().find(|prompt| line.starts_with(**prompt));
    let line = &line[prompt.map_or(0, |prompt| prompt.len())..];
    let line = line.strip_prefix("./rocebench-").map_or(line, |rest| {
        // A build of an old or a new revision.
        &rest[rest.find(' ').unwrap_or(0)..]
    });
    let words = line.strip_prefix("rocebench ").or_else(|| {
        let is_build = line.starts_with(' ');
        is_build.then(|| line.trim_start())
    })?;
    let ends = ["   ", " &", " | ", " > "];
    let end = ends.iter().filter_map(|end| words.find(end)).min();
    Some(words[..end.unwrap_or(words.len())].trim_end())
}

/// The words of a command, of which some stand in single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in command.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words
}

#[test]
fn every_command_that_a_page_shows_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let configs = "bench-configs";
    std::os::unix::fs::symlink(root.join(configs), folder.path().join(configs)).unwrap();
    let command_line = page("docs/command-line.md");
    let [sweep] = blocks(&command_line, "toml")[..] else {
        panic!("docs/command-line.md has another number of files");
    };
    std::fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    let flows = page("docs/flows.md");
    for file in blocks(&flows, "toml") {
        let name = file.lines().next().unwrap().trim_start_matches("# ");
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    // What `--token-file FILE` reads.
    std::fs::write(folder.path().join("FILE"), "secret").unwrap();
    let mut pages = files("docs", "md");
    pages.push(root.join("README.md"));
    pages.retain(|path| !path.ends_with("docs/learn.md"));
    let mut found = 0;
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = [blocks(&text, ""), blocks(&text, "sh")].concat();
        for command in blocks.iter().flat_map(|it| it.lines()).filter_map(command) {
            let words = words(command);
            let line = std::iter::once("rocebench".to_owned()).chain(words.clone());
            let parsed = args::command()
                .try_get_matches_from(line)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            if parsed.subcommand_name().is_none() {
                let is_host = |word: &str| ["HOST", "SERVER"].contains(&word);
                let mut words: Vec<&str> = words
                    .iter()
                    .map(String::as_str)
                    .map(|it| if is_host(it) { "192.0.2.7" } else { it })
                    .collect();
                if !words.contains(&"--dry-run") {
                    words.push("--dry-run");
                }
                run(&folder, &words);
            }
            found += 1;
        }
    }
    assert!(found > 40, "{found}");
}
