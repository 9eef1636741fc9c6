//! Where results go: what is left of a sweep that is killed, what is written in all, and what cannot be written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use results::load::load;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use testing::program::{STEP, Signal, call};
use testing::wait::{wait_for, wait_until};

const QUICK: &str = "-d soft0 --timeout 18 -n 10 --warmup 0 -s 64";

/// Files of a folder whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(end))
        .collect()
}

#[test]
fn of_a_sweep_that_is_killed_all_finished_runs_are_left() {
    let program = call(&format!("{QUICK} -q 1 --runs 1000 --quiet")).start();
    let results = program.folder().join("results");
    let journal = wait_for("a journal", STEP, || files(&results, ".jsonl").pop());
    // A kill may leave the beginning of a line, which is of a run that has not finished.
    let lines = || fs::read_to_string(&journal).unwrap().matches('\n').count();
    wait_until("four lines", STEP, || lines() >= 4);
    program.signal(Signal::Kill);
    let ended = program.wait();
    let runs = lines();
    assert_eq!(ended.results().len(), 1, "nothing unfinished is left");
    // It is read as a result is, by itself and in its folder.
    for path in [journal, results] {
        let found = load(&[path]);
        assert_eq!(found.results[0].result.cases[0].runs.len(), runs);
        assert!(found.refused.is_empty(), "{:?}", found.refused);
    }
}

#[test]
fn a_run_costs_the_same_however_many_came_before() {
    let program = call(&format!("{QUICK} -q 1 --runs 40 --quiet")).start();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let pid = Pid::from_raw(program.pid().cast_signed()).unwrap();
    waitid(WaitId::Pid(pid), options).unwrap();
    // Of the process that has ended and is not reaped.
    let io = fs::read_to_string(format!("/proc/{}/io", program.pid())).unwrap();
    let ended = program.wait().exits(0);
    let written: u64 =
        io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap();
    let results = ended.folder().join("results");
    let size: u64 =
        files(&results, "").into_iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    // The files, and a line for each run. Written whole after every run they would take 20 times their size.
    assert!(written < 4 * size, "{written} bytes for {size}");
    assert!(files(&results, ".jsonl").is_empty());
}

#[test]
fn what_a_killed_program_left_unfinished_is_removed() {
    let program = call(&format!("{QUICK} --json other/x.json"));
    let places = ["results", "other"].map(|name| program.folder().join(name));
    for place in &places {
        fs::create_dir(place).unwrap();
        fs::write(place.join(".rocebench-unfinished-1"), "half").unwrap();
    }
    let _ended = program.passes();
    for place in &places {
        assert!(files(place, "-1").is_empty());
    }
    assert!(places[1].join("x.json").exists());
}

#[test]
fn a_pipe_is_waited_for_until_one_interrupt() {
    for reader_comes in [true, false] {
        let call = call(&format!("{QUICK} --json pipe"));
        let pipe = call.folder().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let program = call.start();
        program.has_said("pipe waits for a reader");
        // All else is written.
        let results = program.folder().join("results");
        assert_eq!(files(&results, ".csv").len(), 3);
        if reader_comes {
            let document: Value = serde_json::from_reader(File::open(&pipe).unwrap()).unwrap();
            assert_eq!(document["cases"].as_array().unwrap().len(), 1);
        } else {
            program.signal(Signal::Interrupt);
        }
        let ended = program.wait().exits(i32::from(!reader_comes));
        let says = "cannot write pipe: open: no program reads it";
        assert_eq!(ended.stderr().contains(says), !reader_comes);
    }
}

#[test]
fn what_could_be_written_is_told_beside_what_could_not() {
    let ended = call(&format!("{QUICK} --json /dev/full"))
        .fails(&["cannot write /dev/full", "free some space"]);
    ended.shows(&["written to results/rocebench-", ".csv"]);
    assert!(!ended.stdout.contains("/dev/full"), "{}", ended.stdout);
    assert_eq!(ended.cases().len(), 1);
}

#[test]
fn a_full_stdout_is_told_by_all_that_print_there() {
    let plots = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample} -o {}", plots.path().display());
    for words in [QUICK, "--dry-run", "devices", &plot, "explain -d soft0", "--help", "--version"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = call(words).start_to(full).wait();
        ended.exits(1).says(&["No space left on device"]);
    }
}

#[test]
fn sweeps_at_once_have_a_name_each() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("results");
    let words = format!("{QUICK} --out {}", out.display());
    let started: Vec<_> = (0..3).map(|_| call(&words).start()).collect();
    for program in started {
        let _ended = program.wait().exits(0);
    }
    assert_eq!(files(&out, ".json").len(), 3);
    assert!(files(&out, ".jsonl").is_empty());
    assert_eq!(load(&[&out]).results.len(), 3);
}

#[test]
fn a_folder_that_is_removed_meanwhile_is_made_again() {
    let program = call(&format!("{QUICK} -q 1 --runs 200 --quiet")).start();
    let results = program.folder().join("results");
    wait_until("a line", STEP, || {
        let journal = files(&results, ".jsonl").pop();
        journal.is_some_and(|path| fs::metadata(path).is_ok_and(|it| it.len() > 0))
    });
    fs::remove_dir_all(&results).unwrap();
    let ended = program.wait().exits(0);
    assert_eq!(ended.runs().len(), 200);
}

#[test]
fn two_documents_do_not_go_to_one_file_however_it_is_spelled() {
    let refused = call(&format!("{QUICK} --json linked/same --csv ./same"));
    std::os::unix::fs::symlink(".", refused.folder().join("linked")).unwrap();
    refused.is_refused(&["--json and --csv both go to ./same"]);
    let linked = call(&format!("{QUICK} --json one --csv other"));
    let path = |name| linked.folder().join(name);
    fs::write(path("one"), "").unwrap();
    fs::hard_link(path("one"), path("other")).unwrap();
    linked.is_refused(&["--json and --csv both go to other"]);
}

#[test]
fn a_place_that_does_not_do_is_bad_input() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample}");
    for words in [QUICK, &plot] {
        let call = call(&format!("{words} --out taken")).with_file("taken", "");
        call.is_refused(&[
            "cannot write taken: create the directory: File exists",
            "a file is there",
        ]);
    }
    for place in ["taken/x", "none/x"] {
        let call = call(&format!("{QUICK} --json {place}")).with_file("taken", "");
        let says = format!("--json: cannot write {place}: open its directory: ");
        call.is_refused(&[&says]);
    }
}

#[test]
fn an_address_that_is_none_is_bad_input_everywhere() {
    for words in
        ["-n 10", "--dry-run", "serve", "devices", "doctor", "explain", "send /etc/hostname HOST"]
    {
        call(words)
            .env("SOFTROCE_ADDRESS", "x")
            .is_refused(&["the variable SOFTROCE_ADDRESS: `x` is not an IP address"]);
    }
}

#[test]
fn a_flow_below_what_was_asked_for_fails_the_sweep_and_its_test() {
    let run = |least: &str| {
        let words = format!("{QUICK} -q 1 --fail-below {least} --junit report.xml");
        let ended = call(&words).run();
        let xml = fs::read_to_string(ended.folder().join("report.xml")).unwrap();
        (ended, xml)
    };
    let (ended, xml) = run("0.000001Gb");
    ended.exits(0);
    assert!(xml.contains("tests=\"2\"") && xml.contains("failures=\"0\""), "{xml}");
    let (failed, failing_xml) = run("9000Gb");
    let words = "error: --fail-below 9000Gb: 1 of 1 flow fails: forward: ";
    failed.exits(1).says(&[words, " Gb/s, below 9000"]);
    assert!(
        failing_xml.contains("failures=\"1\"") && failing_xml.contains("below 9000"),
        "{failing_xml}"
    );
}

/// Nothing is printed and the exit status is 0 where nothing is wrong, else each problem is a line.
#[test]
fn only_problems_are_lines_of_their_own_and_a_failure() {
    for (words, is_surely_wrong) in [("-n 40", false), ("-n 400 --faults drop=10%,seed=7", true)] {
        let ended =
            call(&format!("-d soft0 --only-problems --op write -s 64K --warmup 0 {words}")).run();
        let problems: Vec<&str> = ended.json()["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["severity"] == "problem")
            .map(|it| it["text"].as_str().unwrap())
            .collect();
        assert!(!problems.is_empty() || !is_surely_wrong);
        assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), problems);
        let (code, says) = match problems.len() {
            0 => (0, String::new()),
            count => (1, format!("problems: {count}")),
        };
        assert_eq!(ended.stderr().is_empty(), code == 0);
        ended.exits(code).says(&[&says]);
    }
}
