//! `rocebench compare`: verdicts, exit codes and documents.

use std::fs;
use std::path::Path;

use results::json;
use results::model::{Comparison, ResultFile, Verdict};
use results::sample::{
    has,
    mesh::{Mesh, Slow},
};
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use testing::process::Ended;

use crate::{run, run_in};

pub(crate) fn data(name: &str) -> String {
    format!("tests/data/compare/{name}")
}

pub(crate) fn compare(args: &[&str]) -> Ended {
    run(&[&["compare"], args].concat())
}

/// Demands the exit code; gives the comparison.
#[track_caller]
pub(crate) fn compared(code: i32, args: &[&str]) -> Comparison {
    let ran = compare(&[args, &["--json", "-"]].concat()).exits(code);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr()))
}

pub(crate) fn cases(result: &mut Value) -> &mut Vec<Value> {
    result["cases"].as_array_mut().unwrap()
}

fn runs(case: &mut Value) -> &mut Vec<Value> {
    case["runs"].as_array_mut().unwrap()
}

/// Lets the runs of a case take less time for what they moved.
pub(crate) fn speed_up(case: &mut Value, factor: f64) {
    for flow in runs(case).iter_mut().map(|run| &mut run["flows"][0]) {
        for (pointer, change) in [
            ("/window/seconds", 1.0 / factor),
            ("/totals/gbit_per_s", factor),
            ("/totals/mmsg_per_s", factor),
        ] {
            let figure = flow.pointer_mut(pointer).unwrap();
            *figure = (figure.as_f64().unwrap() * change).into();
        }
        for qp in flow["qps"].as_array_mut().unwrap() {
            qp["gbit_per_s"] = Value::Null;
        }
    }
}

/// A folder with launches of a test file, in turns with those of another; `change` makes each a little different.
pub(crate) fn launches(
    folder: &Path,
    name: &str,
    count: u32,
    change: impl Fn(&mut Value, u32),
) -> String {
    fs::create_dir_all(folder).unwrap();
    let whole: Value = serde_json::from_str(&fs::read_to_string(data(name)).unwrap()).unwrap();
    for launch in 0..count {
        let mut result = whole.clone();
        result["started_at"] = format!("2026-11-20T12:{launch:02}:00Z").into();
        for case in cases(&mut result) {
            speed_up(case, 1.0 + 0.001 * f64::from(launch * 7 % 10));
        }
        change(&mut result, launch);
        let path = folder.join(format!("{launch:02}.json"));
        fs::write(path, result.to_string()).unwrap();
    }
    folder.display().to_string()
}

/// Five launches of 18 cases alike, each with a luck of its own, and so many times as fast.
fn sweeps(folder: &Path, speed: f64) -> String {
    let seed = (speed * 1e3) as u32;
    launches(folder, "base.json", 5, |result, launch| {
        let whole = result["cases"][0].clone();
        result["cases"] = (0..18)
            .map(|number| {
                let mut case = whole.clone();
                case["id"] = format!("{}-{number}", whole["id"].as_str().unwrap()).into();
                let luck = (launch * 31 + number * 17 + seed * 7) % 20;
                speed_up(&mut case, speed * (0.99 + 0.001 * f64::from(luck)));
                case
            })
            .collect();
    })
}

#[test]
fn all_cases_together_are_told_first_in_every_document() {
    let folder = tempdir().unwrap();
    let base = sweeps(&folder.path().join("base"), 1.0);
    let new = sweeps(&folder.path().join("new"), 0.98);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (markdown, junit) = (path("c.md"), path("c.xml"));
    // 2 % are within a case's margin, and beyond that of all together.
    let ran = compare(&[&base, &new, "--markdown", &markdown, "--junit", &junit]).exits(1);
    has(ran.stderr(), ["over all cases bandwidth slower; 0 of 18"]);
    let order = [
        "5 launches a side find a loss of twice the margin in 7 of 7",
        "over all 18 cases",
        "\nsend-shared-q4-64KiB-0: ",
        "over all cases bandwidth slower; 18 cases: ",
    ];
    has(&ran.stdout, order);
    let places = order.map(|words| ran.stdout.find(words));
    assert!(places.is_sorted(), "{}", ran.stdout);
    let [comment, cases] = [markdown, junit].map(|file| fs::read_to_string(file).unwrap());
    let headline = "❌ rocebench: over all cases bandwidth slower;";
    has(&comment, [headline, "| **slower** |"]);
    has(&cases, ["classname=\"over all cases\"", "failures=\"1\""]);
}

/// Changes a run.
type Damage = fn(&mut Value);

/// Ten launches a side in turns, of which `damage` changes the first run of the new side's fourth launch.
fn damaged(damage: Damage) -> (TempDir, [String; 2]) {
    let folder = tempdir().unwrap();
    let side = |name: &str| folder.path().join(name);
    let base = launches(&side("base"), "base.json", 10, |_, _| {});
    let new = launches(&side("new"), "same.json", 10, |result, launch| {
        if launch == 3 {
            damage(&mut result["cases"][0]["runs"][0]);
        }
    });
    (folder, [base, new])
}

#[test]
fn a_run_that_is_wrong_makes_its_case_not_comparable() {
    let (_folder, [base, new]) = damaged(|run| run["complete"] = false.into());
    for strict in [&[][..], &["--strict"]] {
        let comparison = compared(3, &[&[&*base, &*new], strict].concat());
        let reasons = comparison.cases[0].not_comparable.join("\n");
        has(&reasons, ["is not complete", "run 1 in ", "new/03.json"]);
        assert_eq!(comparison.cases[1].verdict(), Verdict::Equal);
    }
}

#[test]
fn a_metric_that_some_runs_lack_is_not_equal() {
    let damages: [(&str, Damage); 2] = [
        ("p99", |run| run["flows"][0]["latency_ns"] = Value::Null),
        ("cpu", |run| {
            run["nodes"][0]["workers"] = Value::Array(Vec::new());
        }),
    ];
    for (name, damage) in damages {
        let (_folder, [base, new]) = damaged(damage);
        for strict in [&[][..], &["--strict"]] {
            let comparison = compared(3, &[&[&*base, &*new], strict].concat());
            let case = &comparison.cases[0];
            assert_eq!(case.verdict(), Verdict::NotComparable);
            let mut missing = case.missing.iter();
            let missing = missing.find(|it| it.metric.short_name() == name).unwrap();
            let reason = "0 of 50 base runs and 1 of 50 new runs lack it";
            assert_eq!(missing.reason, reason);
            // The other metrics are compared.
            assert_eq!(case.metrics[0].verdict, Verdict::Equal);
        }
        let ran = compare(&[&base, &new]);
        let not_comparable = format!("{name}: not comparable: 0 of 50 base runs");
        has(&ran.stdout, [&not_comparable]);
        has(ran.stderr(), ["1 of 2 cases are not comparable", "--metrics"]);
        // What all runs have can be asked for alone, and what no run has is not asked for.
        compare(&[&base, &new, "--metrics", "bandwidth,connections"]).exits(0);
    }
}

#[test]
fn one_run_each_shows_the_differences_and_is_unclear() {
    let folder = tempdir().unwrap();
    let one = |name: &str, file: &str| {
        launches(&folder.path().join(name), file, 1, |result, _| {
            cases(result).iter_mut().for_each(|case| runs(case).truncate(1));
        }) + "/00.json"
    };
    let (base, new) = (one("base", "base.json"), one("new", "slower.json"));
    let ran = compare(&[&base, &new]).exits(3);
    let reason = "1 and 1 launches count, and a verdict needs 4 of each";
    has(&ran.stdout, [&*format!("\n{reason}: unclear\n")]);
    let mut lines = ran.stdout.lines();
    let bandwidth = lines.find(|line| line.contains("bandwidth")).unwrap();
    has(bandwidth, ["-10.2 %"]);
    assert!(bandwidth.ends_with("unclear"), "{bandwidth}");
    has(ran.stderr(), ["2 of 2 cases are unclear", "rocebench gate", "4 nights of each side"]);
    for (format, words) in [
        ("--markdown", format!("**{reason}: unclear**")),
        ("--junit", format!("<error message=\"{reason}: unclear\">")),
        ("--json", format!("\"no_verdict\": \"{reason}\"")),
        ("--bmf", "\"gbit_per_s\"".to_owned()),
    ] {
        let document = compare(&[&base, &new, format, "-"]).exits(3).stdout;
        has(&document, [&*words]);
    }
    let comparison = compared(3, &[&base, &new, "--across", "time"]);
    let metric = &comparison.cases[0].metrics[0];
    assert_eq!(metric.verdict, Verdict::NoVerdict);
    assert!(metric.ratio.is_some());
}

#[test]
fn every_document_is_written_where_it_is_wanted() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let side = |name: &str, file: &str| launches(&path(name), file, 5, |_, _| {});
    let (base, new) = (side("base", "base.json"), side("new", "slower.json"));
    let rows = [
        ("--json", "c.json", "\"comparison_version\": 2"),
        ("--markdown", "c.md", "**slower**"),
        ("--junit", "c.xml", "<failure message=\"slower:"),
        ("--bmf", "bmf.json", "\"lower_value\""),
        ("--otava", "otava.csv", "time,commit,side,send-shared-q4-64KiB.gbit_per_s"),
    ];
    let files = rows.map(|(option, name, _)| [option.to_owned(), path(name).display().to_string()]);
    let options: Vec<&str> = files.iter().flatten().map(String::as_str).collect();
    let action = path("action").display().to_string();
    let of_action = ["--github-action-benchmark", &action];
    compare(&[&[&*base, &new], &options[..], &of_action].concat()).exits(1);
    for (_, name, words) in rows.into_iter().chain([
        ("", "action/bigger-is-better.json", "gbit_per_s"),
        ("", "action/smaller-is-better.json", "latency_p99_ns"),
    ]) {
        has(fs::read_to_string(path(name)).unwrap(), [words]);
    }
}

/// With `--strict` too, what fails the command is in the document for CI servers.
#[test]
fn a_missing_case_and_none_in_common_are_errors() {
    let folder = tempdir().unwrap();
    let of = |name: &str, cases_left: usize| {
        launches(&folder.path().join(name), "base.json", 5, |result, _| {
            cases(result).truncate(cases_left);
        })
    };
    let (base, new, none) = (of("base", 2), of("new", 1), of("none", 0));
    for (side, code) in [(&new, 3), (&none, 2)] {
        let ran = compare(&[&base, side, "--strict", "--junit", "-"]).exits(code);
        has(&ran.stdout, ["classname=\"cases\"><error message=\"missing in the new results\""]);
    }
}

#[test]
fn what_may_not_be_unclear_is_any_figure_or_a_case_as_a_whole() {
    let folder = tempdir().unwrap();
    // Throughput scatters by 30 %, and nothing else does.
    let of = |side: &str| {
        launches(&folder.path().join(side), "base.json", 5, |result: &mut Value, launch: u32| {
            for case in cases(result) {
                speed_up(case, [1.0, 1.3, 1.1, 0.8, 1.2][launch as usize % 5]);
            }
        })
    };
    let sides = [of("base"), of("new")];
    let ends = |strict: &[&str], code: i32| {
        let args = [&sides.each_ref().map(String::as_str)[..], strict].concat();
        let across = ["--across", "time", "--quiet"];
        compare(&[&args[..], &across].concat()).exits(code)
    };
    ends(&[], 0);
    has(ends(&["--strict"], 3).stderr(), ["2 of 2 cases are unclear"]);
    ends(&["--strict=cases"], 0);
    let only = ["--metrics", "bandwidth", "--strict=cases"];
    has(ends(&only, 3).stderr(), ["2 of 2 cases are unclear"]);
}

#[test]
fn no_document_replaces_what_is_compared() {
    let home = tempdir().unwrap();
    let copy = home.path().join("base.json").display().to_string();
    fs::copy(data("base.json"), &copy).unwrap();
    for side in [&*copy, home.path().to_str().unwrap()] {
        let ran = compare(&[side, &data("same.json"), "--json", &copy]).exits(2);
        has(ran.stderr(), ["--json would replace", "which this command reads"]);
    }
    assert_eq!(fs::read(&copy).unwrap(), fs::read(data("base.json")).unwrap());
}

#[test]
fn the_same_files_give_the_same_words_every_time() {
    let sides = [data("base.json"), data("slower.json")];
    let [once, again] = [(); 2].map(|()| compare(&[&sides[0], &sides[1], "--json", "-"]).stdout);
    assert_eq!(once, again);
}

/// The command of docs/operators.md, word for word.
#[test]
fn the_nightly_recipe_names_the_slow_node_and_passes_a_good_night() {
    let page = include_str!("../../docs/operators.md");
    let command = page.lines().find(|line| line.starts_with("rocebench compare ")).unwrap();
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let folder = tempdir().unwrap();
    let write = |path: &str, seed: u64, slow: &[Slow]| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mesh = Mesh { runs: 1, noise: 0.05, seed, slow: slow.to_vec(), ..Mesh::new(12) };
        let started_at = format!("2026-11-{:02}T02:00:00Z", 10 + seed);
        json::write(&ResultFile { started_at, ..mesh.pairs() }, &file).unwrap();
    };
    (0..7).for_each(|night| write(&format!("results/good/{night}.json"), night, &[]));
    let night = format!("{}/night.json", words[2]);
    write(&night, 7, &[Slow::Sends(3, 0.85)]);
    let ran = run_in(&folder, &words).exits(1);
    has(ran.stderr(), ["slower: node4\n"]);
    has(&ran.stdout, ["node4 sends ", "! node4 sends", "\nwrite-pairs, 22 rounds: 1 slower, "]);
    let comment = fs::read_to_string(folder.path().join("night.md")).unwrap();
    has(comment, ["❌ rocebench: write-pairs, 22 rounds: 1 slower", "- node4 sends "]);
    let junit = run_in(&folder, &["compare", words[1], words[2], "--junit", "-"]).exits(1).stdout;
    has(junit, ["<testcase name=\"node4 sends\"", "<failure message=\"slower: "]);
    let plot = run_in(&folder, &["plot", words[2], "--base", words[1], "-o", "plots"]).exits(0);
    has(plot.stdout, ["plots/index.html"]);
    let html = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    has(html, ["All nodes", "flows of each node beside those of all others", ">node4 sends</th>"]);
    write(&night, 8, &[]);
    run_in(&folder, &words).exits(0);
}
