//! `rocebench compare` as a person or a CI job meets it: verdicts, exit codes, documents, and files that are wrong.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rocebench::compare::{Comparison, Observation, Verdict};
use serde_json::Value;

fn data(name: &str) -> String {
    format!("tests/data/compare/{name}")
}

fn compare(args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("rocebench"))
        .arg("compare")
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Exit code and the comparison.
fn verdicts(args: &[&str]) -> (Option<i32>, Comparison) {
    let output = compare(&[args, &["--json", "-"]].concat());
    let comparison = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code(), comparison)
}

/// A folder with launches of a test file; `change` makes each a little different.
fn launches(folder: &Path, name: &str, count: u32, change: impl Fn(&mut Value, u32)) -> String {
    fs::create_dir_all(folder).unwrap();
    let whole: Value = serde_json::from_str(&fs::read_to_string(data(name)).unwrap()).unwrap();
    for launch in 0..count {
        let mut result = whole.clone();
        result["started_at"] = format!("2026-11-20T12:{launch:02}:00Z").into();
        for case in result["cases"].as_array_mut().unwrap() {
            for run in case["runs"].as_array_mut().unwrap() {
                let gbit_per_s = run["totals"]["gbit_per_s"].as_f64().unwrap();
                let luck = 1.0 + 0.001 * f64::from(launch * 7 % 10);
                run["totals"]["gbit_per_s"] = (gbit_per_s * luck).into();
            }
        }
        change(&mut result, launch);
        let path = folder.join(format!("{launch:02}.json"));
        fs::write(path, result.to_string()).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn help() {
    let output = compare(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!("compare_help", text(&output.stdout));
}

#[test]
fn a_slower_case_regresses_and_the_other_does_not() {
    let (code, comparison) = verdicts(&[&data("base.json"), &data("slower.json")]);
    assert_eq!(code, Some(1));
    let words: Vec<_> = comparison
        .cases
        .iter()
        .map(|case| (case.id.as_str(), case.verdict()))
        .collect();
    assert_eq!(
        words,
        [
            ("send-shared-q4-64KiB", Verdict::Regressed),
            ("write-shared-q1-64B", Verdict::Equal)
        ]
    );
    let bandwidth = &comparison.cases[0].metrics[0];
    assert!(
        (bandwidth.ratio.unwrap() - 0.9).abs() < 0.005,
        "{bandwidth:?}"
    );
    assert_eq!(comparison.cases[0].observation, Observation::Run);
}

#[test]
fn no_change_is_equal_and_exits_with_0() {
    let (code, comparison) = verdicts(&[&data("base.json"), &data("same.json")]);
    assert_eq!(code, Some(0));
    assert_eq!(comparison.cases_with(Verdict::Equal), 2);
    let strict = compare(&[
        &data("base.json"),
        &data("same.json"),
        "--strict",
        "--quiet",
    ]);
    assert_eq!(strict.status.code(), Some(0));
    assert!(strict.stdout.is_empty());
}

#[test]
fn the_other_way_round_it_improved() {
    let (code, comparison) = verdicts(&[&data("slower.json"), &data("base.json")]);
    assert_eq!(code, Some(0));
    assert_eq!(comparison.cases[0].metrics[0].verdict, Verdict::Improved);
}

#[test]
fn margins_and_metrics_are_the_users() {
    let sides = [data("base.json"), data("slower.json")];
    let sides = [sides[0].as_str(), sides[1].as_str()];
    let (code, comparison) = verdicts(
        &[
            &sides[..],
            &[
                "--metrics",
                "bandwidth,p99",
                "--margin",
                "bandwidth=15%,p99=15%",
            ],
        ]
        .concat(),
    );
    assert_eq!(code, Some(0));
    assert!(comparison.cases.iter().all(|case| case.metrics.len() == 2));
    let output = compare(&[&sides[..], &["--margin", "p98=3%"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("p99.9"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn faults_on_one_side_are_not_comparable_unless_asked_for() {
    let output = compare(&[&data("base.json"), &data("faults.json")]);
    assert_eq!(output.status.code(), Some(2));
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(
        table.contains("faults on purpose: none in the base, seed=7,delay=1ms"),
        "{table}"
    );
    assert!(said.contains("--across faults"), "{said}");
    let (code, comparison) = verdicts(&[
        &data("base.json"),
        &data("faults.json"),
        "--across",
        "faults",
    ]);
    assert_eq!(code, Some(1));
    assert_eq!(comparison.cases[0].across.len(), 1);
}

#[test]
fn three_launches_a_side_make_launches_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let base = launches(&folder.path().join("base"), "base.json", 8, |_, _| {});
    let new = launches(&folder.path().join("new"), "slower.json", 8, |_, _| {});
    let (code, comparison) = verdicts(&[&base, &new]);
    assert_eq!(code, Some(1));
    let case = &comparison.cases[0];
    assert_eq!(
        (case.observation, case.base_count, case.new_count),
        (Observation::Launch, 8, 8)
    );
    assert_eq!(case.verdict(), Verdict::Regressed);
}

#[test]
fn runs_that_went_wrong_make_a_case_not_comparable() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("is not complete", |run| {
            run["complete"] = false.into();
        }),
        ("1 completions with an error", |run| {
            run["totals"]["errors"] = 1.into();
        }),
        ("and its QPs", |run| {
            run["totals"]["messages"] = 1.into();
        }),
        ("failed: the peer died", |run| {
            run["failure"] = serde_json::json!({ "message": "the peer died", "hint": null });
        }),
    ];
    for (reason, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let new = launches(folder.path(), "same.json", 1, |result, _| {
            change(&mut result["cases"][0]["runs"][2]);
        });
        let (code, comparison) = verdicts(&[&data("base.json"), &new]);
        assert_eq!(code, Some(2), "{reason}");
        let reasons = comparison.cases[0].not_comparable.join("\n");
        assert!(
            reasons.contains(reason) && reasons.contains("run 3 in "),
            "{reasons}"
        );
        assert_eq!(comparison.cases[1].verdict(), Verdict::Equal);
    }
}

#[test]
fn files_that_are_wrong_are_told_with_line_and_reason() {
    let mut all = String::new();
    for name in [
        "truncated.json",
        "empty.json",
        "foreign.json",
        "newer.json",
        "none.json",
    ] {
        for args in [
            [data("base.json"), data(name)],
            [data(name), data("base.json")],
        ] {
            let output = compare(&[&args[0], &args[1]]);
            assert_eq!(output.status.code(), Some(2), "{name}");
            assert!(output.stdout.is_empty(), "{name}");
            all = all
                + "$ rocebench compare "
                + &args.join(" ")
                + "\n"
                + &text(&output.stderr)
                + "\n";
        }
    }
    insta::assert_snapshot!("compare_refusals", all);
}

#[test]
fn a_folders_good_files_are_used_beside_its_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["slower.json", "truncated.json", "newer.json"] {
        fs::copy(data(name), folder.path().join(name)).unwrap();
    }
    // The same result again is no second launch.
    fs::copy(data("slower.json"), folder.path().join("z.json")).unwrap();
    let (code, comparison) = verdicts(&[&data("base.json"), &folder.path().display().to_string()]);
    assert_eq!(code, Some(1));
    assert_eq!(comparison.new.files.len(), 1);
    assert_eq!(comparison.refused.len(), 2);
    assert!(
        comparison.refused[1].contains("truncated.json:"),
        "{:?}",
        comparison.refused
    );
    assert!(
        comparison.notes[0].contains("z.json says the same"),
        "{:?}",
        comparison.notes
    );
    let quiet = compare(&[
        &data("base.json"),
        &folder.path().display().to_string(),
        "--quiet",
    ]);
    assert!(text(&quiet.stderr).contains("warning: ") && quiet.stdout.is_empty());
}

#[test]
fn folders_without_results_and_cases_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    let output = compare(&[&data("base.json"), &empty]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("holds no result files"));
    let other = folder.path().join("other");
    let other = launches(&other, "base.json", 1, |result, _| {
        for case in result["cases"].as_array_mut().unwrap() {
            case["id"] = format!("other-{}", case["id"].as_str().unwrap()).into();
        }
    });
    let output = compare(&[&data("base.json"), &other]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no case is on both sides"));
}

#[test]
fn every_document_is_written_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let output = compare(&[
        &data("base.json"),
        &data("slower.json"),
        "--json",
        &path("c.json"),
        "--markdown",
        &path("c.md"),
        "--junit",
        &path("c.xml"),
        "--bmf",
        &path("bmf.json"),
        "--otava",
        &path("otava.csv"),
        "--github-action-benchmark",
        &path("action"),
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for (name, part) in [
        ("c.json", "\"comparison_version\": 1"),
        ("c.md", "**regressed**"),
        ("c.xml", "<failure message=\"regressed: "),
        ("bmf.json", "\"lower_value\""),
        (
            "otava.csv",
            "time,commit,side,send-shared-q4-64KiB.gbit_per_s",
        ),
        ("action/bigger-is-better.json", "gbit_per_s"),
        ("action/smaller-is-better.json", "latency_p99_ns"),
    ] {
        let written = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(written.contains(part), "{name}: {written}");
    }
    for args in [
        ["--json", "-", "--bmf", "-"],
        ["--json", "same", "--bmf", "same"],
    ] {
        let output = compare(&[&[&*data("base.json"), &*data("same.json")], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("--json and --bmf both go to"));
    }
    let nowhere = compare(&[
        &data("base.json"),
        &data("same.json"),
        "--junit",
        "/nonexistent/c.xml",
    ]);
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn the_same_files_give_the_same_words_every_time() {
    let once = compare(&[&data("base.json"), &data("slower.json"), "--json", "-"]);
    let again = compare(&[&data("base.json"), &data("slower.json"), "--json", "-"]);
    assert_eq!(text(&once.stdout), text(&again.stdout));
}
