//! The program as a person or a CI job meets it: what is typed, files that are read, what is printed. No device.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod compare;
mod compare_files;
mod gate;
mod hostile_text;
mod input;
mod manual;
mod odd_results;
mod perftest;
mod pictures;
mod plot;

use std::path::Path;
use std::process::Command;

/// The program, with nothing of this machine's environment that it reads.
fn program(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rocebench"));
    for variable in ["ROCEBENCH_TOKEN", "ROCEBENCH_LOG"] {
        command.env_remove(variable);
    }
    command.args(args).env("COLUMNS", "100");
    command
}

/// What a program printed, and how it ended.
struct Ran {
    what: String,
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn new(command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        Ran { what: format!("{:?}", command.get_args()), code: output.status.code(), out, err }
    }

    /// Demands this exit code.
    #[track_caller]
    fn ends(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{}: {}", self.what, self.err);
        self
    }
}

fn run(args: &[&str]) -> Ran {
    Ran::new(&mut program(args))
}

fn run_in(folder: impl AsRef<Path>, args: &[&str]) -> Ran {
    Ran::new(program(args).current_dir(folder))
}

/// The text has all of these words.
#[track_caller]
fn has<const N: usize>(text: &str, words: [&str; N]) {
    for part in words {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}
