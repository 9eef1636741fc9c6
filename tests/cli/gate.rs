//! `rocebench gate`: which launches it makes, when it ends, and what it leaves. Its programs are scripts that bring results
//! which were prepared.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use testing::program::{Signal, send_signal};
use testing::wait::wait_until;

use crate::compare::{cases, launches, speed_up};
use crate::{Ran, has, program};

/// Brings the next of the results that lie beside it for its side, and says whose turn it was.
const BRINGS: &str = r#"
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
side=$(basename "$out")
echo "$side" >>"${0%/*}/order"
set -- "${0%/*}/$side"/*
mv "$1" "$out"
"#;

/// A folder with a program, and so many results for each side.
struct Gate {
    folder: TempDir,
}

impl Gate {
    fn of(script: &str) -> Gate {
        let folder = tempdir().unwrap();
        let path = folder.path().join("program");
        // Another process writes it: one that is open for writing cannot be run.
        let text = format!("#!/bin/sh\n{script}");
        let write = Command::new("sh").args(["-c", "printf %s \"$1\" >\"$2\"", "sh", &text]);
        assert!(write.arg(&path).status().unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Gate { folder }
    }

    /// New launches of such a file beside others of an unchanged one.
    fn against(name: &str, change: impl Fn(&mut Value, u32)) -> Gate {
        let gate = Gate::of(BRINGS);
        launches(&gate.path("base"), "base.json", 12, &change);
        launches(&gate.path("new"), name, 12, &change);
        gate
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let [program_is, out] = ["program", "out"].map(|it| self.path(it).display().to_string());
        let switch = format!("program={program_is}");
        let sides = ["gate", "--base", &switch, "--new", &switch];
        let rest = ["--out", &out, "--launches", "12"];
        program(&[&sides, &rest, more].concat())
    }

    fn run(&self, more: &[&str]) -> Ran {
        Ran::of(&mut self.command(more))
    }

    /// Results of each side that were measured.
    fn measured(&self) -> [usize; 2] {
        ["out/base", "out/new"].map(|side| fs::read_dir(self.path(side)).unwrap().count())
    }
}

fn unchanged(_: &mut Value, _: u32) {}

#[test]
fn equal_sides_end_at_the_first_look_with_a_report() {
    let gate = Gate::against("same.json", unchanged);
    let ran = gate.run(&[]).ends(0);
    assert_eq!(gate.measured(), [6, 6]);
    has(&ran.out, ["base base program=", "equal", "index.html"]);
    has(
        &ran.err,
        ["at most 12 a side, first look after 6", "it is clear"],
    );
    let order = fs::read_to_string(gate.path("order")).unwrap();
    let turns = "base new new base ".repeat(3);
    assert_eq!(order.replace('\n', " "), turns);
    for name in ["verdict.json", "verdict.md", "verdict.xml", "index.html"] {
        assert!(gate.path("out").join(name).exists(), "{name}");
    }
    let table = fs::read_to_string(gate.path("out/verdict.txt")).unwrap();
    assert!(ran.out.starts_with(&table), "{table}");
    // Paths in a report are those within it.
    let json = fs::read_to_string(gate.path("out/verdict.json")).unwrap();
    has(&json, ["\"base/00.json\"", "\"new/05.json\""]);
    // Nothing that was measured is lost.
    has(&gate.run(&[]).ends(2).err, ["has files already", "--out"]);
    assert_eq!(gate.measured(), [6, 6]);
}

#[test]
fn a_slower_side_ends_it_with_1() {
    let gate = Gate::against("slower.json", unchanged);
    let ran = gate.run(&["--quiet"]).ends(1);
    assert_eq!(gate.measured(), [6, 6]);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    has(&ran.err, ["1 of 2 cases regressed"]);
}

#[test]
fn what_stays_unclear_is_measured_until_nothing_is_left() {
    let gate = Gate::against("same.json", |result, launch| {
        for case in cases(result) {
            speed_up(case, 1.0 + 0.1 * f64::from(launch * 5 % 7));
        }
    });
    let ran = gate.run(&["--metrics", "bandwidth"]).ends(0);
    assert_eq!(gate.measured(), [12, 12]);
    has(&ran.err, ["not every case is clear"]);
    has(&ran.out, ["unclear"]);
}

#[test]
fn what_was_not_measured_alike_ends_it_at_once() {
    let gate = Gate::against("faults.json", unchanged);
    let ran = gate.run(&[]).ends(2);
    assert_eq!(gate.measured(), [1, 1]);
    has(&ran.err, ["not measured alike", "--across faults"]);
}

#[test]
fn a_launch_that_fails_ends_it_with_3_and_what_was_measured_is_kept() {
    let gate = Gate::against("same.json", unchanged);
    let command = "run=echo loading; echo no such driver >&2; exit 4";
    let ran = gate.run(&["--new", command]).ends(3);
    let told = "a launch of new failed: exit status: 4: no such driver";
    has(
        &ran.err,
        [
            told,
            "try it by itself: echo loading;",
            "gate: what was measured is kept",
        ],
    );
    assert_eq!(gate.measured(), [1, 0]);
    let ran = Gate::of("echo '  hint: x' >&2; exit 2").run(&[]).ends(3);
    has(
        &ran.err,
        ["a launch of base failed: exit status: 2: hint: x"],
    );
    let none = program(&["gate", "--new", "program=/no/such", "--out"]);
    let ran = Ran::of({ none }.arg(gate.path("other")).args(["--", "--dry-run"])).ends(3);
    has(&ran.err, ["a launch of new failed: cannot be started"]);
}

#[test]
fn a_budget_without_room_is_told_after_the_first_launches() {
    let gate = Gate::against("same.json", unchanged);
    let ran = gate.run(&["--budget", "1ms"]).ends(2);
    has(
        &ran.err,
        [
            "--budget 1ms is too small",
            "3 are the least",
            "has room for 6",
        ],
    );
    assert_eq!(gate.measured(), [1, 1]);
}

#[test]
fn an_interrupt_is_passed_on() {
    let gate = Gate::of(
        "trap 'echo ended >\"$0.ended\"; exit' INT; : >\"$0.began\"; while :; do sleep 0.01; done",
    );
    let mut child = gate.command(&[]).stderr(Stdio::null()).spawn().unwrap();
    let limit = Duration::from_secs(15);
    let is_there = |path: &Path| path.exists();
    wait_until("its launch", limit, || {
        is_there(&gate.path("program.began"))
    });
    send_signal(child.id(), Signal::Terminate);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(is_there(&gate.path("program.ended")));
}
