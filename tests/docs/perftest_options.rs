//! The table of perftest's options in docs/against-perftest.md, made from the program's.

use perftest::{Here, OPTIONS, PerftestOption};
use rocebench::cli::args;

use super::generated::Table;

pub const TABLE: Table = Table {
    page: "docs/against-perftest.md",
    begin: "<!-- perftest's options: made from crates/perftest/src/options.rs -->\n",
    end: "<!-- end of perftest's options -->\n",
};

/// `-q`, `--qp N`.
fn spelling(option: &PerftestOption) -> String {
    let letter = option.letter.map(|letter| format!("`-{letter}`"));
    let names = [Some(option.name), option.other_name];
    let names = names.into_iter().flatten().map(|name| match option.value {
        Some(value) => format!("`--{name} {value}`"),
        None => format!("`--{name}`"),
    });
    letter.into_iter().chain(names).collect::<Vec<_>>().join(", ")
}

/// The same for rocebench's flag.
fn own_spelling(flag: &str) -> String {
    let command = args::command();
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|it| it.get_long() == Some(flag));
    let letter = argument.and_then(clap::Arg::get_short);
    match letter {
        Some(letter) => format!("`-{letter}`, `--{flag}`"),
        None => format!("`--{flag}`"),
    }
}

fn answer(option: &PerftestOption) -> String {
    match option.here {
        Here::Unchanged => "the same".to_owned(),
        Here::Flag(flag) => own_spelling(flag),
        Here::Setting(flag, value) => format!("`--{flag} {value}`"),
        Here::Prefixed(flag, prefix) => {
            let value = option.value.unwrap_or_default();
            format!("`--{flag} {prefix}{value}`")
        }
        Here::OneOf(meanings, otherwise) => {
            let meanings = meanings
                .iter()
                .map(|(text, meaning)| match meaning {
                    Some((flag, value)) => format!("`{text}`: `--{flag} {value}`"),
                    None => format!("`{text}`: nothing to do"),
                })
                .collect::<Vec<_>>()
                .join("; ");
            format!("{meanings}; else refused: {otherwise}")
        }
        Here::Printed(..) => "the same, after a program's name".to_owned(),
        Here::Ipv6 => "`--bind ::`: HOST's address is one of IPv6, and so is the GID".to_owned(),
        Here::Rate(_) => {
            "`--rate`, with `--pace device` for `HW` and `--arrivals fixed` for `SW`".to_owned()
        }
        Here::Already(why) => format!("nothing to do: {why}"),
        Here::Not(instead) => format!("refused: {instead}"),
    }
}

/// A row for each option; those that have one answer share a row.
fn table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for option in OPTIONS.iter() {
        let (spelling, here) = (spelling(option), answer(option));
        match rows.iter_mut().find(|(_, other)| *other == here) {
            Some((spellings, _))
                if matches!(
                    option.here,
                    Here::Ipv6 | Here::Not(_) | Here::Printed(..) | Here::Rate(_)
                ) =>
            {
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
    TABLE.holds(&table());
}

#[test]
fn the_readme_says_how_many_of_them_are_taken() {
    let taken =
        OPTIONS.len() - OPTIONS.iter().filter(|option| matches!(option.here, Here::Not(_))).count();
    let sentence = format!("{taken} of its {} options are accepted", OPTIONS.len());
    assert!(super::page("README.md").contains(&sentence), "{sentence}");
}
