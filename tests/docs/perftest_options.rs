//! The table of perftest's options in docs/against-perftest.md, made from the program's.

use rocebench::cli::args;
use rocebench::perftest::{Here, OPTIONS, PerftestOption};

use super::page;

const PAGE: &str = "docs/against-perftest.md";
const BEGIN: &str = "<!-- perftest's options: made from src/perftest/options.rs -->\n";
const END: &str = "<!-- end of perftest's options -->\n";

/// The page before the table, the table, and the page after it; `None` for a page without one.
pub fn parts(page: &str) -> Option<[&str; 3]> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some([before, table, after])
}

/// `-q`, `--qp N`.
fn spelling(option: &PerftestOption) -> String {
    let letter = option.letter.map(|letter| format!("`-{letter}`"));
    let names = [Some(option.name), option.other_name];
    let names = names.into_iter().flatten().map(|name| match option.value {
        Some(value) => format!("`--{name} {value}`"),
        None => format!("`--{name}`"),
    });
    letter
        .into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The same for rocebench's flag.
fn own_spelling(flag: &str) -> String {
    let command = args::command();
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|it| it.get_long() == Some(flag));
    let letter = argument.and_then(|it| it.get_short());
    match letter {
        Some(letter) => format!("`-{letter}`, `--{flag}`"),
        None => format!("`--{flag}`"),
    }
}

fn here(option: &PerftestOption) -> String {
    match option.here {
        Here::Unchanged => "the same".to_owned(),
        Here::Flag(flag) => own_spelling(flag),
        Here::Setting(flag, value) => format!("`--{flag} {value}`"),
        Here::OneOf(meanings, otherwise) => {
            let meanings = meanings.iter().map(|(text, meaning)| match meaning {
                Some((flag, value)) => format!("`{text}`: `--{flag} {value}`"),
                None => format!("`{text}`: nothing to do"),
            });
            let meanings = meanings.collect::<Vec<_>>().join("; ");
            format!("{meanings}; else refused: {otherwise}")
        }
        Here::Already(why) => format!("nothing to do: {why}"),
        Here::Not(instead) => format!("refused: {instead}"),
    }
}

/// A row for each option; those that have one answer share a row.
fn table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for option in OPTIONS {
        let (spelling, here) = (spelling(option), here(option));
        match rows.iter_mut().find(|(_, other)| *other == here) {
            Some((spellings, _)) if matches!(option.here, Here::Not(_)) => {
                *spellings += &format!(", {spelling}");
            }
            _ => rows.push((spelling, here)),
        }
    }
    let mut table = "\n| perftest | rocebench |\n|---|---|\n".to_owned();
    for (spellings, here) in rows {
        table += &format!("| {spellings} | {here} |\n");
    }
    table + "\n"
}

#[test]
fn perftests_options_are_as_in_the_program() {
    let text = page(PAGE);
    let [before, found, after] = parts(&text).expect("the page has the table's marks");
    let made = table();
    if std::env::var_os("UPDATE_SETTINGS").is_some() {
        let path = format!("{}/{PAGE}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, [before, BEGIN, &made, END, after].concat()).unwrap();
        return;
    }
    assert!(
        found == made,
        "{PAGE} has not the table of perftest's options: UPDATE_SETTINGS=1 writes it anew"
    );
}
