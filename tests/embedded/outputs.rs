//! Where results go: what is left of a sweep that is killed, what is written in all, and what cannot be written.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use report::results::load::load;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use crate::program::{Program, said, signal, wait_for, with_others};

const QUICK: &str = "-d soft0 --timeout 18 -n 10 --warmup 0 -s 64";

/// The program at work, with its stderr piped.
fn started(program: &mut Program) -> Child {
    let (out, err) = (Stdio::null(), Stdio::piped());
    program.command.stdout(out).stderr(err).spawn().unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// Files of a folder whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_str().unwrap().ends_with(end))
        .collect()
}

#[test]
fn of_a_sweep_that_is_killed_all_finished_runs_are_left() {
    let _machine = with_others();
    let mut program = Program::new(&format!("{QUICK} -q 1 --runs 1000 --quiet"));
    let results = program.folder().join("results");
    let mut child = started(&mut program);
    let journal = wait_for(|| files(&results, ".jsonl").pop(), || "no journal".into());
    let lines = || fs::read_to_string(&journal).unwrap().lines().count();
    wait_for(
        || (lines() > 20).then_some(()),
        || format!("{} lines", lines()),
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = lines();
    assert_eq!(files(&results, "").len(), 1, "nothing unfinished is left");
    // It is read as a result is, by itself and in its folder.
    for path in [journal, results] {
        let found = load(&[path]);
        assert_eq!(found.results[0].result.cases[0].runs.len(), runs);
        assert!(found.refused.is_empty(), "{:?}", found.refused);
    }
}

#[test]
fn a_run_costs_the_same_however_many_came_before() {
    let _machine = with_others();
    let mut program = Program::new(&format!("{QUICK} -q 1 --runs 60 --quiet"));
    let mut child = started(&mut program);
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid(&child)), ended).unwrap();
    // Of the process that has ended and is not reaped.
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    assert!(child.wait().unwrap().success());
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    let written: u64 = written.unwrap().parse().unwrap();
    let results = program.folder().join("results");
    let sizes = files(&results, "")
        .into_iter()
        .map(|path| fs::metadata(path).unwrap().len());
    let size: u64 = sizes.sum();
    // The files, and a line for each run. Written whole after every run they would take 30 times their size.
    assert!(written < 4 * size, "{written} bytes for {size}");
    assert!(files(&results, ".jsonl").is_empty());
}

#[test]
fn what_a_killed_program_left_unfinished_is_removed() {
    let _machine = with_others();
    let mut program = Program::new(&format!("{QUICK} --json other/x.json"));
    let places = ["results", "other"].map(|name| program.folder().join(name));
    for place in &places {
        fs::create_dir(place).unwrap();
        fs::write(place.join(".rocebench-unfinished-1"), "half").unwrap();
    }
    program.run_here().exits(0);
    for place in &places {
        assert!(files(place, "-1").is_empty());
    }
    assert!(places[1].join("x.json").exists());
}

#[test]
fn a_pipe_is_waited_for_until_one_interrupt() {
    let _machine = with_others();
    for reader_comes in [true, false] {
        let mut program = Program::new(&format!("{QUICK} --json pipe"));
        let pipe = program.folder().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let mut child = started(&mut program);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("pipe waits for a reader") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it never waits");
        }
        // All else is written.
        let results = program.folder().join("results");
        assert_eq!(files(&results, ".csv").len(), 3);
        if reader_comes {
            let document: Value = serde_json::from_reader(File::open(&pipe).unwrap()).unwrap();
            assert_eq!(document["cases"].as_array().unwrap().len(), 1);
        } else {
            signal(&child, Signal::SIGINT);
        }
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(i32::from(!reader_comes)), "{said}");
        assert_eq!(
            said.contains("cannot write pipe: open: no program reads it"),
            !reader_comes
        );
    }
}

#[test]
fn what_could_be_written_is_told_beside_what_could_not() {
    let _machine = with_others();
    let ended = Program::new(&format!("{QUICK} --json /dev/full"))
        .run()
        .exits(1)
        .says(&["cannot write /dev/full", "free some space"]);
    ended.shows(&["written to results/rocebench-", ".csv"]);
    assert!(!ended.stdout.contains("/dev/full"), "{}", ended.stdout);
    assert_eq!(ended.cases().len(), 1);
}

#[test]
fn a_full_stdout_is_told_by_all_that_print_there() {
    let _machine = with_others();
    let plots = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample} -o {}", plots.path().display());
    for words in [
        QUICK,
        "--dry-run",
        "devices",
        &plot,
        "explain -d soft0",
        "--help",
        "--version",
    ] {
        let mut program = Program::new(words);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let child = program.command.stdout(full).stderr(Stdio::piped()).spawn();
        let (code, said) = said(child.unwrap());
        assert_eq!(code, Some(1), "{words}: {said}");
        assert!(said.contains("No space left on device"), "{words}: {said}");
    }
}

#[test]
fn a_place_that_does_not_do_is_bad_input() {
    let _machine = with_others();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample}");
    for words in [QUICK, &plot] {
        let program = Program::new(&format!("{words} --out taken"));
        fs::write(program.folder().join("taken"), "").unwrap();
        program.run().exits(2).says(&[
            "cannot write taken: create the directory: File exists",
            "a file is there",
        ]);
    }
    for place in ["taken/x", "none/x"] {
        let program = Program::new(&format!("{QUICK} --json {place}"));
        fs::write(program.folder().join("taken"), "").unwrap();
        let says = format!("--json: cannot write {place}: open its directory: ");
        program.run().exits(2).says(&[&says]);
    }
}

#[test]
fn an_address_that_is_none_is_bad_input_everywhere() {
    for words in [
        "-n 10",
        "--dry-run",
        "serve",
        "devices",
        "doctor",
        "explain",
        "send /etc/hostname HOST",
    ] {
        Program::new(words)
            .env("SOFTROCE_ADDRESS", "x")
            .run()
            .exits(2)
            .says(&["the variable SOFTROCE_ADDRESS: `x` is not an IP address"]);
    }
}

#[test]
fn a_flow_below_what_was_asked_for_fails_the_sweep_and_its_test() {
    let _machine = with_others();
    let run = |least: &str| {
        let words = format!("{QUICK} -q 1 --fail-below {least} --junit report.xml");
        let mut program = Program::new(&words);
        let ended = program.run_here();
        (
            ended,
            fs::read_to_string(program.folder().join("report.xml")).unwrap(),
        )
    };
    let (ended, xml) = run("0.000001Gb");
    ended.exits(0);
    assert!(
        xml.contains("tests=\"2\"") && xml.contains("failures=\"0\""),
        "{xml}"
    );
    let (ended, xml) = run("9000Gb");
    let words = "error: --fail-below 9000Gb: 1 of 1 flow fails: forward: ";
    ended.exits(1).says(&[words, " Gb/s, below 9000"]);
    assert!(
        xml.contains("failures=\"1\"") && xml.contains("below 9000"),
        "{xml}"
    );
}
