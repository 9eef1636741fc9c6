//! `rocebench ib_send_bw …`, and a link of such a name to the program: perftest's command lines as people have them in
//! their fingers and scripts.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;

use crate::cli::perftest::options::{self, OwnWords};
use crate::cli::terminal::errors::{self, Failure};
use perftest::Program;

/// Options that ask for words and not for a run.
const ASK: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// The size of messages of perftest's latency programs.
const LATENCY_SIZE: &str = "2";

/// A command line in rocebench's own words, which it shows where a program of perftest was named.
pub(in crate::cli) fn translate(
    typed: impl IntoIterator<Item = OsString>,
    command: &Command,
) -> Result<OwnWords, Failure> {
    let words: Vec<OsString> = typed.into_iter().collect();
    let Some((program, rest)) = named(&words) else {
        return options::translate(words, command);
    };
    let own = in_own_words(program, rest, command)?;
    if !asks(&own, &ASK) {
        let line: Vec<_> = own.words.iter().map(|it| it.to_string_lossy()).collect();
        errors::say(&format!("{} here: {}", program.name(), line.join(" ")));
    }
    Ok(own)
}

/// The program that is named, and the words after its name.
fn named(words: &[OsString]) -> Option<(Program, &[OsString])> {
    if let Some(program) =
        words.first().and_then(|word| Program::named(Path::new(word).file_name()?.to_str()?))
    {
        return Some((program, &words[1..]));
    }
    let program = words.get(1)?.to_str().and_then(Program::named)?;
    Some((program, &words[2..]))
}

/// A client where a host is named, else a server for one client.
fn in_own_words(
    program: Program,
    rest: &[OsString],
    command: &Command,
) -> Result<OwnWords, Failure> {
    let mut own = translated(&["rocebench"], rest, command)?;
    if own.plain == 0 && !asks(&own, &ASK) {
        return translated(&["rocebench", "serve", "--once"], rest, command);
    }
    let mut first = Vec::new();
    if !asks(&own, &["--op"]) {
        first.push(format!("--op={}", program.op()));
    }
    if program.is_latency() {
        first.push("--ping-pong".to_owned());
        if !asks(&own, &["-s", "--size"]) {
            first.push(format!("--size={LATENCY_SIZE}"));
        }
    }
    own.words.splice(1..1, first.into_iter().map(OsString::from));
    Ok(own)
}

fn translated(first: &[&str], rest: &[OsString], command: &Command) -> Result<OwnWords, Failure> {
    let words = first.iter().map(OsString::from).chain(rest.iter().cloned());
    options::translate(words, command)
}

/// Whether one of these options is given.
fn asks(own: &OwnWords, flags: &[&str]) -> bool {
    own.words.iter().map(|word| word.to_string_lossy()).any(|word| {
        flags.iter().any(|flag| {
            if flag.starts_with("--") {
                word.split('=').next() == Some(flag)
            } else {
                word.starts_with(flag)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    #[test]
    fn perftests_command_lines_are_rocebenchs() {
        for (typed, own) in [
            (
                "rocebench ib_send_bw -d mlx5_0 -q 16 -F host",
                "rocebench --op=send -d mlx5_0 -q 16 host",
            ),
            (
                "/usr/bin/ib_write_lat host -D 5 -s8",
                "rocebench --op=write --ping-pong host -D 5 -s8",
            ),
            ("ib_read_lat -a host", "rocebench --op=read --ping-pong host"),
            ("ib_send_lat host", "rocebench --op=send --ping-pong --size=2 host"),
            ("ib_atomic_bw -A CMP_AND_SWAP host", "rocebench --op=compare-swap host"),
            ("ib_atomic_bw host", "rocebench --op=fetch-add host"),
            ("ib_write_bw --write_with_imm host", "rocebench --op=write-imm host"),
            ("rocebench ib_send_bw -d mlx5_0 -q 4", "rocebench serve --once -d mlx5_0"),
            ("ib_send_bw --help", "rocebench --op=send --help"),
        ] {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let (program, rest) = named(&words).unwrap();
            let found = in_own_words(program, rest, &args::command()).unwrap();
            let found = found.words.join(std::ffi::OsStr::new(" "));
            let found = found.to_str().unwrap();
            // `-a` is a long list.
            let words = found.split(' ').filter(|it| !it.starts_with("--size=2,"));
            assert_eq!(words.collect::<Vec<_>>().join(" "), own);
        }
        for other in ["rocebench --op send ib_send_bw", "rocebench ib_send_xx"] {
            let words: Vec<OsString> = other.split(' ').map(OsString::from).collect();
            assert!(named(&words).is_none(), "{other}");
        }
    }
}
