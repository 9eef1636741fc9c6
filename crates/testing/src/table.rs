//! Tables of commands in text files: what is run, and what must be so of it. Whoever adds a case adds lines, and builds nothing.
//!
//! ```text
//! # A line of a comment.
//! usual -d soft0 --warmup 0       words after those of all commands below
//! & -d soft0 --memory 24M         starts a server with these words
//! file flows.toml                 a file beside the next command, of the lines after `|`; `HERE`, in it and in what follows, is
//!                                 a folder that all commands of the table share
//! | op = "write"
//! $ A=1 @ --op write -n 20        runs the program with A=1 in its environment; `@` is the names of all servers,
//!                                 and `@2`, here and in facts, that of the second
//!     --cq per-qp                 goes on
//! exit 2                          its exit status, which otherwise must be 0
//! whole 3                         all runs of 3 cases are whole
//! connects 5                      so is each case of set-up, of 5 rounds
//! nothing ran                     there is no result
//! stderr: no such device          these words are in `stderr`, `stdout` or a file that it wrote
//! stdout 2x: packets              in so many places
//! wide 80                         no line of stdout is wider
//! /cases/*/id = "a"               what is at this place of the result, or of the JSON that it printed, as `stdout/id`
//! stop                            ends the servers, each of which must end well
//! log: received                   what they said
//! ```
//!
//! In a place `*` is each item, and `[check=reach]` each in which that field has that value. What is there must be `=`, `!=`,
//! `<` or `>` a value, must `start` or `end` with a text or have it (`has`), or be of a length (`count`). Before a place, `some` demands it of one
//! item only, `any` of however many there are, `sum` of the sum of all, and `all` of their list; of `steps` an item and the next
//! must differ.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::check::{complete, connects};
use crate::process::{Call, Ended};
use crate::program::{Server, bare, call};

/// The root of the project, where tables say `ROOT`.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs the commands of the table in a file below the root of the project on this machine's embedded device, and demands what
/// it says of them.
///
/// # Panics
/// With the command and the fact that is not so.
pub fn holds(file: &str) {
    holds_with(file, call, |words| {
        Server::embedded_by(with_environment(words, |words| call(&format!("serve -p 0 {words}"))))
    });
}

/// The same on the kernel's devices of a guest of the lab, where servers are on `rxe1`.
pub fn holds_on_rxe(file: &str) {
    holds_with(file, bare, Server::with);
}

fn holds_with(file: &str, call: fn(&str) -> Call, serve: fn(&str) -> Server) {
    let text = fs::read_to_string(PathBuf::from(ROOT).join(file)).unwrap();
    let (usual, servers, files) = ("", Vec::new(), Vec::new());
    let here = tempfile::tempdir().unwrap();
    let mut bed = Bed { here, call, serve, usual, servers, files, commands: 0 };
    let lines = lines(&text);
    let mut rest = &lines[..];
    while let Some((line, after)) = rest.split_first() {
        let count = after.iter().take_while(|fact| !is_step(fact)).count();
        let (facts, others) = after.split_at(count);
        bed.step(line, facts, file);
        rest = others;
    }
    assert!(bed.commands > 0, "{file} has no command");
}

/// The lines without comments, each with those that go on with it.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match lines.last_mut() {
            Some(last) if line.starts_with("  ") => *last = format!("{last} {}", line.trim()),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn is_step(line: &str) -> bool {
    ["usual", "&", "$", "file", "stop"].contains(&line.split(' ').next().unwrap_or_default())
}

/// What the commands so far have left for the next one.
struct Bed<'a> {
    here: TempDir,
    call: fn(&str) -> Call,
    serve: fn(&str) -> Server,
    usual: &'a str,
    servers: Vec<Server>,
    files: Vec<(String, String)>,
    commands: usize,
}

impl<'a> Bed<'a> {
    fn step(&mut self, line: &'a str, facts: &'a [String], file: &str) {
        let (kind, words) = line.split_once(' ').unwrap_or((line, ""));
        let place = format!("{file}: {line}");
        match kind {
            "usual" => self.usual = words,
            "&" => self.servers.push((self.serve)(&self.named(words))),
            "file" => {
                let text = facts.iter().map(|content| content[1..].to_owned() + "\n").collect();
                self.files.push((self.named(words), text));
            }
            "$" => {
                self.commands += 1;
                let is_exit = |fact: &&String| fact.starts_with("exit ");
                let code = facts.iter().find(is_exit).map_or(0, |fact| fact[5..].parse().unwrap());
                let ended = self.call(words).run().exits(code);
                for fact in facts.iter().filter(|fact| !is_exit(fact)) {
                    if let Err(why) = is_so(&ended, &self.named(fact)) {
                        panic!("{place}\n  {fact}: {why}\n{}\n{}", ended.stdout, ended.stderr());
                    }
                }
            }
            _ => {
                let log: String = self.servers.drain(..).map(Server::end).collect();
                for fact in facts {
                    let (times, expected) = fact.split_once(": ").unwrap();
                    if let Err(why) = has(&log, times, expected) {
                        panic!("{place}\n  {fact}: {why}\n{log}");
                    }
                }
            }
        }
    }

    /// With the folder, and the names of single servers.
    fn named(&self, text: &str) -> String {
        let mut named = text.replace("HERE", self.here.path().to_str().unwrap());
        for (number, server) in (1..).zip(&self.servers) {
            named = named.replace(&format!("@{number}"), &server.name);
        }
        named
    }

    fn call(&mut self, words: &str) -> Call {
        let names: Vec<&str> = self.servers.iter().map(|server| &*server.name).collect();
        let words = self.named(&format!("{words} {}", self.usual)).replace('@', &names.join(","));
        let call = with_environment(&words.replace("ROOT", ROOT), self.call);
        self.files.drain(..).fold(call, |call, (name, text)| call.with_file(&name, &text))
    }
}

/// The call of these words, of which the first may be variables.
fn with_environment(words: &str, call: impl FnOnce(&str) -> Call) -> Call {
    let variables: Vec<&str> = words
        .split_whitespace()
        .take_while(|word| {
            word.split_once('=').is_some_and(|(name, _)| {
                name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
            })
        })
        .collect();
    let rest: Vec<&str> = words.split_whitespace().skip(variables.len()).collect();
    variables
        .iter()
        .filter_map(|variable| variable.split_once('='))
        .fold(call(&rest.join(" ")), |call, (name, value)| call.env(name, value))
}

/// Whether a fact is so, or why not.
fn is_so(ended: &Ended, fact: &str) -> Result<(), String> {
    // A place in a result has a comparison behind it.
    let of_text =
        fact.split_once(": ").filter(|(place, _)| !(place.contains('/') && place.contains(' ')));
    if let Some((place, words)) = of_text {
        let text = match place.split(' ').next().unwrap_or_default() {
            "stdout" => ended.stdout.clone(),
            "stderr" => ended.stderr().to_owned(),
            name => fs::read_to_string(ended.folder().join(name)).map_err(|it| it.to_string())?,
        };
        return has(&text, place, words);
    }
    let (first, rest) = fact.split_once(' ').ok_or("this is no fact")?;
    match first {
        "whole" => {
            assert_eq!(ended.cases().len(), rest.parse::<usize>().unwrap(), "{}", ended.stderr());
            complete(ended);
        }
        "connects" => {
            ended.result().cases.iter().for_each(|case| connects(case, rest.parse().unwrap()));
        }
        "nothing" if ended.json().is_null() => {}
        "nothing" => return Err("there is a result".to_owned()),
        "wide" => {
            let most: usize = rest.parse().unwrap();
            let wide = ended.stdout.lines().find(|line| line.chars().count() > most);
            return wide.map_or(Ok(()), |line| Err(line.to_owned()));
        }
        "some" | "any" | "sum" | "all" | "steps" => return compare(ended, first, rest),
        _ => return compare(ended, "each", fact),
    }
    Ok(())
}

/// Whether a text has these words: in so many places, where `place` ends with `2x`.
fn has(text: &str, place: &str, words: &str) -> Result<(), String> {
    let found = text.matches(&words.replace("\\n", "\n")).count();
    let is_so = match place.split_once(' ') {
        Some((_, times)) => times.trim_end_matches('x').parse() == Ok(found),
        None => found > 0,
    };
    if is_so { Ok(()) } else { Err(format!("{found} times")) }
}

/// Whether what is at a place of a result compares so with a value, such as `/cases/*/id = "a"`.
fn compare(ended: &Ended, of: &str, fact: &str) -> Result<(), String> {
    // A value that is looked for may have blanks, and stands in brackets.
    let end = fact
        .match_indices(' ')
        .map(|(at, _)| at)
        .find(|at| fact[..*at].matches('[').count() == fact[..*at].matches(']').count())
        .unwrap_or(fact.len());
    let (place, comparison) = fact.split_at(end);
    let (is, value) =
        comparison.trim_start().split_once(' ').unwrap_or((comparison.trim_start(), ""));
    let (document, path) = match place.strip_prefix("stdout/") {
        Some(path) => (&ended.document(), path),
        None => (ended.json(), place.trim_start_matches('/')),
    };
    let items = at(document, path)?;
    let wanted = match value {
        "" => Value::Null,
        text => serde_json::from_str(text).map_err(|error| error.to_string())?,
    };
    let is_so = |found: &Value| match (is, found) {
        ("=", found) => *found == wanted,
        ("!=", found) => *found != wanted,
        ("<", found) => found.as_f64() < wanted.as_f64() && found.is_number(),
        (">", found) => found.as_f64() > wanted.as_f64(),
        ("has", Value::String(text)) => text.contains(wanted.as_str().unwrap()),
        ("starts", Value::String(text)) => text.starts_with(wanted.as_str().unwrap()),
        ("ends", Value::String(text)) => text.ends_with(wanted.as_str().unwrap()),
        ("count", Value::Array(list)) => Some(list.len() as u64) == wanted.as_u64(),
        _ => false,
    };
    let holds = match of {
        "some" => items.iter().any(|item| is_so(item)),
        "sum" => is_so(&items.iter().filter_map(|item| item.as_f64()).sum::<f64>().into()),
        "all" => is_so(&items.iter().map(|item| (*item).clone()).collect()),
        "steps" => items.len() > 1 && items.windows(2).all(|pair| pair[0] != pair[1]),
        of => (of == "any" || !items.is_empty()) && items.iter().all(|item| is_so(item)),
    };
    if holds { Ok(()) } else { Err(format!("{items:?}")) }
}

/// All values at a place of a document.
fn at<'a>(document: &'a Value, path: &str) -> Result<Vec<&'a Value>, String> {
    let mut values = vec![document];
    for part in path.split('/') {
        let mut next = Vec::new();
        for value in values {
            let filter =
                part.strip_prefix('[').and_then(|part| part.trim_end_matches(']').split_once('='));
            match (value, filter) {
                (Value::Array(items), Some((key, wanted))) => {
                    next.extend(items.iter().filter(|item| item[key] == wanted));
                }
                (Value::Array(items), None) if part == "*" => next.extend(items),
                (Value::Object(fields), None) if part == "*" => next.extend(fields.values()),
                (value, _) => {
                    let found = value.pointer(&format!("/{part}"));
                    next.push(found.ok_or_else(|| format!("there is no {part} in {value}"))?);
                }
            }
        }
        values = next;
    }
    Ok(values)
}
