//! `rocebench gate`: which launches it makes, when it ends, and what it leaves. Its programs are scripts that bring results
//! which were prepared.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use results::sample::has;
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use testing::process::{Call, Ended, Signal, script};
use testing::wait::wait_until;

use crate::compare::{cases, launches, speed_up};
use crate::program;

/// Brings the next of the results that lie beside it for its side, and says whose turn it was and what is switched.
const BRINGS: &str = r#"
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
side=$(basename "$out")
libraries=${LD_LIBRARY_PATH%%:*}
echo "$side$A/${libraries##*/}" >>"${0%/*}/order"
set -- "${0%/*}/$side"/*
mv "$1" "$out"
"#;

/// A folder with a program, and results for each side.
struct Gate(TempDir);

impl Gate {
    fn new(text: &str) -> Gate {
        let gate = Gate(tempdir().unwrap());
        for (program, libraries) in [("program", "usr"), ("other", "etc")] {
            script(&gate.path(program), text);
            fs::create_dir(gate.path(libraries)).unwrap();
            fs::write(gate.path(libraries).join("libibverbs.so.1"), "").unwrap();
        }
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

    /// A switch whose value is a file or folder of this gate.
    fn switch(&self, key: &str, name: &str) -> String {
        format!("{key}={}", self.path(name).display())
    }

    fn call(&self, more: &[&str]) -> Call {
        let [base, new] = ["program", "other"].map(|name| self.switch("program", name));
        let sides = ["gate", "--base", &base, "--new", &new];
        let words = [&sides[..], &["--launches", "12"], more, &["--out"]].concat();
        program(&words).arg(self.path("out"))
    }

    fn run(&self, more: &[&str]) -> Ended {
        self.call(more).run()
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
    let [usr, etc] = ["usr", "etc"].map(|name| gate.switch("lib", name));
    let ran = gate.run(&["--base", "env=A==1", "--base", &usr, "--new", &etc]).exits(0);
    assert_eq!(gate.measured(), [6, 6]);
    has(ran.stderr(), ["at most 12 a side", "it is clear"]);
    let order = fs::read_to_string(gate.path("order")).unwrap();
    let turns = "base=1/usr new/etc new/etc base=1/usr new/etc base=1/usr base=1/usr new/etc \
                 base=1/usr new/etc new/etc base=1/usr ";
    assert_eq!(order.replace('\n', " "), turns);
    let read = |name| fs::read_to_string(gate.path("out").join(name)).unwrap();
    has(&ran.stdout, ["base program=", "index.html"]);
    assert!(ran.stdout.starts_with(&read("verdict.txt")));
    has(read("verdict.json"), ["\"verdict\": \"equal\""]);
    has(read("verdict.xml"), ["failures=\"0\""]);
    has(&(read("verdict.md") + &read("index.html")), ["</html>"]);
    // Nothing that was measured is lost.
    has(gate.run(&[]).exits(2).stderr(), ["has files already", "--out"]);
    assert_eq!(gate.measured(), [6, 6]);
}

#[test]
fn a_slower_side_ends_it_with_1() {
    let gate = Gate::against("slower.json", unchanged);
    let ran = gate.run(&["--quiet"]).exits(1);
    assert_eq!(gate.measured(), [6, 6]);
    has(ran.stderr(), ["; 1 of 2 cases slower"]);
    assert!(!ran.stderr().contains("gate: "), "{}", ran.stderr());
}

#[test]
fn what_stays_unclear_is_measured_until_nothing_is_left() {
    for (strict, status) in [("--quiet", 0), ("--strict=cases", 3)] {
        let gate = Gate::against("same.json", |result, launch| {
            for case in cases(result) {
                speed_up(case, 1.0 - 0.08 * f64::from(launch * 5 % 7));
            }
        });
        let ran = gate.run(&["--metrics", "bandwidth", strict]).exits(status);
        assert_eq!(gate.measured(), [12, 12]);
        let sentence = match status {
            0 => "",
            _ => "not every case is clear",
        };
        has(ran.stderr(), [sentence]);
        has(&ran.stdout, ["unclear"]);
    }
}

/// Three of the base's first launches and four of the new side's last ones: the five rounds between them count.
#[test]
fn doubtful_launches_drop_out_and_break_no_turns() {
    let gate = Gate::new(BRINGS);
    for (side, file, doubtful) in [("base", "base.json", 0..3), ("new", "slower.json", 8..12)] {
        launches(&gate.path(side), file, 12, |result, launch| {
            let runs = cases(result).iter_mut().flat_map(|it| it["runs"].as_array_mut().unwrap());
            for run in runs.filter(|_| doubtful.contains(&launch)) {
                let doubts = serde_json::json!([{ "kind": "edge_missed", "message": "late" }]);
                run["flows"][0]["window"]["doubts"] = doubts;
            }
        });
    }
    gate.run(&[]).exits(1);
    let verdict = fs::read_to_string(gate.path("out/verdict.json")).unwrap();
    has(verdict, ["in turns: 7 beside one that does not count"]);
}

#[test]
fn what_more_launches_would_not_help_ends_after_the_first() {
    let (faults, small) = ("--across faults", "--budget 1ms is too small");
    let gate = Gate::against("faults.json", unchanged);
    has(gate.run(&["--budget", "10m"]).exits(2).stderr(), [faults]);
    assert_eq!(gate.measured(), [1, 1]);
    let hurried = Gate::against("same.json", unchanged);
    has(hurried.run(&["--budget", "1ms"]).exits(2).stderr(), [small]);
}

#[test]
fn a_launch_that_fails_ends_it_with_3_and_what_was_measured_is_kept() {
    let gate = Gate::against("same.json", unchanged);
    let command = "run=echo loading; echo no such driver >&2; exit 4";
    let ran = gate.run(&["--new", command]).exits(3);
    has(ran.stderr(), ["a launch of new failed: exit status: 4: no "]);
    has(ran.stderr(), ["by itself: echo loading;", "is kept: rocebench"]);
    assert_eq!(gate.measured(), [1, 0]);
    let broken = Gate::new("printf 'error: x\n  hint: y\n' >&2; exit 2");
    let failure = "a launch of base failed: exit status: 2: error: x\n";
    has(broken.run(&[]).exits(3).stderr(), [failure]);
    fs::remove_file(broken.path("program")).unwrap();
    has(broken.run(&[]).exits(3).stderr(), ["cannot be started"]);
    // The reason comes first, and how options are written behind it.
    let unknown =
        Gate::new("printf 'error: no --qqs\n\nUsage: x\n\nFor more, try --help\n' >&2; exit 2");
    has(unknown.run(&[]).exits(3).stderr(), ["exit status: 2: error: no --qqs"]);
}

#[test]
fn a_side_that_hangs_or_leaves_no_result_is_named() {
    let hangs = Gate::new("while :; do sleep 0.01; done");
    let late = hangs.run(&["--budget", "300ms"]).exits(2);
    has(late.stderr(), ["--budget 300ms is too small: a launch of base did not end within it"]);
    let silent = Gate::new("exit 0");
    has(silent.run(&[]).exits(3).stderr(), ["a launch of base ended well and left 0 results"]);
    let nowhere = Gate::against("same.json", unchanged);
    let refused = nowhere.run(&["--new", "lib=/nonexistent"]).exits(2);
    has(refused.stderr(), ["--new lib=/nonexistent: there is no such folder"]);
    assert!(!nowhere.path("out").exists());
}

#[test]
fn sides_that_nothing_is_switched_on_are_refused_before_a_launch() {
    let gate = Gate::new("exit 4");
    fs::hard_link(gate.path("program"), gate.path("link")).unwrap();
    fs::create_dir(gate.path("empty")).unwrap();
    let [one, link] = ["program", "link"].map(|name| gate.switch("program", name));
    let [usr, again, empty] = ["usr", "usr/../usr", "empty"].map(|name| gate.switch("lib", name));
    let same = "both sides are the same";
    for (base, new, words) in [
        (one.as_str(), link.as_str(), same),
        (&usr, &again, same),
        ("env=A=1", "env=A=1", same),
        ("run=true", "run=true", same),
        ("env=A=1", &empty, "empty: there is no library in this folder"),
    ] {
        let sides = ["gate", "--base", base, "--new", new, "--out"];
        let ran = program(&sides).arg(gate.path("out")).run().exits(2);
        has(ran.stderr(), [words, "hint: "]);
    }
    let inherits = ["gate", "--new", "env=INHERITED=1", "--out"];
    let call = program(&inherits).arg(gate.path("out")).env("INHERITED", "1");
    has(call.run().exits(2).stderr(), [same]);
    assert!(!gate.path("out").exists());
}

#[test]
fn an_interrupt_is_passed_on() {
    let ends = "trap ': >\"$0.ended\"; exit' INT; : >\"$0.began\"; ";
    let gate = Gate::new(&(ends.to_owned() + "while :; do sleep 0.01; done"));
    let measuring = gate.call(&[]).start();
    let began = gate.path("program.began");
    wait_until("its launch", Duration::from_secs(15), || began.exists());
    measuring.signal(Signal::Terminate);
    measuring.wait().exits(3);
    assert!(gate.path("program.ended").exists());
}
