//! The program as a person or a CI job meets it: what is typed, files that are read, what is printed. No device.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod compare;
mod compare_files;
mod gate;
mod history;
mod hostile_text;
mod input;
mod manual;
mod odd_results;
mod perftest;
mod pictures;
mod plot;
mod recipe;

use std::path::Path;

use testing::process::{Call, Ended};
use testing::program::call;

/// The program in the project's folder.
fn program(args: &[&str]) -> Call {
    call("").env("COLUMNS", "100").args(args).within(env!("CARGO_MANIFEST_DIR"))
}

fn run(args: &[&str]) -> Ended {
    program(args).run()
}

fn run_in(folder: impl AsRef<Path>, args: &[&str]) -> Ended {
    program(args).within(folder).run()
}
