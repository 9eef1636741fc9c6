//! `rocebench gate`: which launches it makes, when it ends, and what it leaves. Its programs are scripts that bring results
//! which were prepared.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use testing::program::{Signal, send_signal};
use testing::wait::wait_until;

use crate::compare::{cases, launches, speed_up};
use crate::{Ran, has, program};

/// Brings the next of the results that lie beside it for its side, and says whose turn it was and what is switched.
const BRINGS: &str = r#"
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
side=$(basename "$out")
echo "$side$A${LD_LIBRARY_PATH%%:*}" >>"${0%/*}/order"
set -- "${0%/*}/$side"/*
mv "$1" "$out"
"#;

/// A folder with a program, and results for each side.
struct Gate(TempDir);

impl Gate {
    fn new(script: &str) -> Gate {
        let gate = Gate(tempdir().unwrap());
        // Another process writes it: one that is open for writing cannot be run.
        let write = "printf '#!/bin/sh\n%s' \"$1\" >\"$2\"; chmod +x \"$2\"";
        let path = gate.path("program").display().to_string();
        let done = Command::new("sh").args(["-c", write, "sh", script, &path]).status();
        assert!(done.unwrap().success());
        gate
    }

    /// New launches of such a file beside others of an unchanged one.
    fn against(name: &str, change: impl Fn(&mut Value, u32)) -> Gate {
        let gate = Gate::new(BRINGS);
        launches(&gate.path("base"), "base.json", 12, &change);
        launches(&gate.path("new"), name, 12, &change);
        gate
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let switch = format!("program={}", self.path("program").display());
        let sides = ["gate", "--base", &switch, "--new", &switch];
        let mut command = program(&[&sides[..], &["--launches", "12"], more].concat());
        command.arg("--out").arg(self.path("out"));
        command
    }

    fn run(&self, more: &[&str]) -> Ran {
        Ran::new(&mut self.command(more))
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
    let switches = "--base env=A==1 --base lib=/usr --new lib=/etc";
    let switches: Vec<&str> = switches.split(' ').collect();
    let ran = gate.run(&switches).ends(0);
    assert_eq!(gate.measured(), [6, 6]);
    has(&ran.err, ["at most 12 a side", "it is clear"]);
    let order = fs::read_to_string(gate.path("order")).unwrap();
    let turns = "base=1/usr new/etc new/etc base=1/usr new/etc base=1/usr base=1/usr new/etc \
                 base=1/usr new/etc new/etc base=1/usr ";
    assert_eq!(order.replace('\n', " "), turns);
    let read = |name| fs::read_to_string(gate.path("out").join(name)).unwrap();
    has(&ran.out, ["base program=", "index.html"]);
    assert!(ran.out.starts_with(&read("verdict.txt")));
    has(&read("verdict.json"), ["\"verdict\": \"equal\""]);
    has(&read("verdict.xml"), ["failures=\"0\""]);
    has(&(read("verdict.md") + &read("index.html")), ["</html>"]);
    // Nothing that was measured is lost.
    has(&gate.run(&[]).ends(2).err, ["has files already", "--out"]);
    assert_eq!(gate.measured(), [6, 6]);
}

#[test]
fn a_slower_side_ends_it_with_1() {
    let gate = Gate::against("slower.json", unchanged);
    let ran = gate.run(&["--quiet"]).ends(1);
    assert_eq!(gate.measured(), [6, 6]);
    has(&ran.err, ["; 1 of 2 cases slower"]);
    assert!(!ran.err.contains("gate: "), "{}", ran.err);
}

#[test]
fn what_stays_unclear_is_measured_until_nothing_is_left() {
    for (strict, status) in [("--quiet", 0), ("--strict=cases", 1)] {
        let gate = Gate::against("same.json", |result, launch| {
            for case in cases(result) {
                speed_up(case, 1.0 - 0.08 * f64::from(launch * 5 % 7));
            }
        });
        let ran = gate.run(&["--metrics", "bandwidth", strict]).ends(status);
        assert_eq!(gate.measured(), [12, 12]);
        let sentence = match status {
            0 => "",
            _ => "not every case is clear",
        };
        has(&ran.err, [sentence]);
        has(&ran.out, ["unclear"]);
    }
}

#[test]
fn what_more_launches_would_not_help_ends_after_the_first() {
    let (faults, small) = ("--across faults", "--budget 1ms is too small");
    let gate = Gate::against("faults.json", unchanged);
    has(&gate.run(&["--budget", "10m"]).ends(2).err, [faults]);
    assert_eq!(gate.measured(), [1, 1]);
    let hurried = Gate::against("same.json", unchanged);
    has(&hurried.run(&["--budget", "1ms"]).ends(2).err, [small]);
}

#[test]
fn a_launch_that_fails_ends_it_with_3_and_what_was_measured_is_kept() {
    let gate = Gate::against("same.json", unchanged);
    let command = "run=echo loading; echo no such driver >&2; exit 4";
    let ran = gate.run(&["--new", command]).ends(3);
    has(&ran.err, ["a launch of new failed: exit status: 4: no "]);
    has(&ran.err, ["by itself: echo loading;", "is kept: rocebench"]);
    assert_eq!(gate.measured(), [1, 0]);
    let broken = Gate::new("printf 'error: x\n  hint: y\n' >&2; exit 2");
    let failure = "a launch of base failed: exit status: 2: error: x\n";
    has(&broken.run(&[]).ends(3).err, [failure]);
    fs::remove_file(broken.path("program")).unwrap();
    has(&broken.run(&[]).ends(3).err, ["cannot be started"]);
    // The reason comes first, and how options are written behind it.
    let unknown =
        Gate::new("printf 'error: no --qqs\n\nUsage: x\n\nFor more, try --help\n' >&2; exit 2");
    has(&unknown.run(&[]).ends(3).err, ["exit status: 2: error: no --qqs"]);
}

#[test]
fn a_side_that_hangs_or_leaves_no_result_is_named() {
    let hangs = Gate::new("while :; do sleep 0.01; done");
    let late = hangs.run(&["--budget", "300ms"]).ends(2);
    has(&late.err, ["--budget 300ms is too small: a launch of base did not end within it"]);
    let silent = Gate::new("exit 0");
    has(&silent.run(&[]).ends(3).err, ["a launch of base ended well and left 0 results"]);
    let nowhere = Gate::against("same.json", unchanged);
    let refused = nowhere.run(&["--new", "lib=/nonexistent"]).ends(2);
    has(&refused.err, ["--new lib=/nonexistent: there is no such folder"]);
    assert!(!nowhere.path("out").exists());
}

#[test]
fn an_interrupt_is_passed_on() {
    let ends = "trap ': >\"$0.ended\"; exit' INT; : >\"$0.began\"; ";
    let gate = Gate::new(&(ends.to_owned() + "while :; do sleep 0.01; done"));
    let mut child = gate.command(&[]).stderr(Stdio::null()).spawn().unwrap();
    let began = gate.path("program.began");
    wait_until("its launch", Duration::from_secs(15), || began.exists());
    send_signal(child.id(), Signal::Terminate);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(gate.path("program.ended").exists());
}
