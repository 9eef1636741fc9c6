//! `rocebench compare`: verdicts, exit codes and documents.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::input::text;
use report::compare::{Comparison, Observation, Verdict};
use serde_json::Value;

pub(crate) fn data(name: &str) -> String {
    format!("tests/data/compare/{name}")
}

pub(crate) fn compare(args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("rocebench"))
        .arg("compare")
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

/// Exit code and the comparison.
pub(crate) fn verdicts(args: &[&str]) -> (Option<i32>, Comparison) {
    let output = compare(&[args, &["--json", "-"]].concat());
    let comparison = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code(), comparison)
}

/// The same of two files, of one launch each, as if they had been measured in turns.
fn verdicts_of_files(base: &str, new: &str, args: &[&str]) -> (Option<i32>, Comparison) {
    let across = if args.contains(&"--across") {
        &[][..]
    } else {
        &["--across", "time"]
    };
    verdicts(&[&[&*data(base), &*data(new)], args, across].concat())
}

/// Lets a run take less time for what it moved.
fn speed_up(run: &mut Value, factor: f64) {
    let flow = &mut run["flows"][0];
    for (pointer, factor) in [
        ("/window/seconds", 1.0 / factor),
        ("/totals/gbit_per_s", factor),
        ("/totals/mmsg_per_s", factor),
    ] {
        let figure = flow.pointer_mut(pointer).unwrap();
        *figure = (figure.as_f64().unwrap() * factor).into();
    }
    for qp in flow["qps"].as_array_mut().unwrap() {
        qp["gbit_per_s"] = Value::Null;
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
        for case in result["cases"].as_array_mut().unwrap() {
            for run in case["runs"].as_array_mut().unwrap() {
                speed_up(run, 1.0 + 0.001 * f64::from(launch * 7 % 10));
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
    let (code, comparison) = verdicts_of_files("base.json", "slower.json", &[]);
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
    let (code, comparison) = verdicts_of_files("base.json", "same.json", &[]);
    assert_eq!(code, Some(0));
    assert_eq!(comparison.cases_with(Verdict::Equal), 2);
    let strict = compare(&[
        &data("base.json"),
        &data("same.json"),
        "--across",
        "time",
        "--strict",
        "--quiet",
    ]);
    assert_eq!(strict.status.code(), Some(0));
    assert!(strict.stdout.is_empty());
}

#[test]
fn margins_and_metrics_are_the_users() {
    let margins = [
        "--metrics",
        "bandwidth,p99",
        "--margin",
        "bandwidth=15%,p99=15%",
    ];
    let (code, comparison) = verdicts_of_files("base.json", "slower.json", &margins);
    assert_eq!(code, Some(0));
    assert!(comparison.cases.iter().all(|case| case.metrics.len() == 2));
    let sides = [data("base.json"), data("slower.json")];
    let output = compare(&[&sides[0], &sides[1], "--margin", "p98=3%"]);
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
    let (code, comparison) =
        verdicts_of_files("base.json", "faults.json", &["--across", "faults,time"]);
    assert_eq!(code, Some(1));
    let across = &comparison.cases[0].across;
    assert_eq!((across.len(), across[1].as_str()), (2, "one launch each"));
}

/// Launches of so many cases alike, each with a luck of its own, and so many times as fast.
fn sweeps(folder: &Path, cases: usize, count: u32, speed: f64) -> String {
    let seed = (speed * 1e3) as u32;
    launches(folder, "base.json", count, |result, launch| {
        let mut one = result["cases"][0].clone();
        let id = one["id"].as_str().unwrap().to_owned();
        let whole = one.clone();
        let case = |case: usize| {
            one.clone_from(&whole);
            one["id"] = format!("{id}-{case}").into();
            let luck = (launch * 31 + case as u32 * 17 + seed * 7) % 20;
            let factor = speed * (0.99 + 0.001 * f64::from(luck));
            for run in one["runs"].as_array_mut().unwrap() {
                speed_up(run, factor);
            }
            one.clone()
        };
        result["cases"] = (0..cases).map(case).collect();
    })
}

#[test]
fn all_cases_together_are_told_first_in_every_document() {
    let folder = tempfile::tempdir().unwrap();
    let base = sweeps(&folder.path().join("base"), 18, 5, 1.0);
    let new = sweeps(&folder.path().join("new"), 18, 5, 0.98);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (markdown, junit) = (path("c.md"), path("c.xml"));
    let output = compare(&[&base, &new, "--markdown", &markdown, "--junit", &junit]);
    // 2 % are within a case's margin, and beyond that of all together.
    assert_eq!(output.status.code(), Some(1));
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(
        said.contains("over all cases bandwidth regressed; 0 of 18"),
        "{said}"
    );
    let place = |words: &str| {
        table
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {table}"))
    };
    let order = [
        "5 launches a side settle 7 of 7 questions over all cases",
        "over all 18 cases",
        "\nsend-shared-q4-64KiB-0: ",
        "over all cases bandwidth regressed; 18 cases: ",
    ];
    assert!(order.map(place).is_sorted(), "{table}");
    let markdown = fs::read_to_string(markdown).unwrap();
    assert!(markdown.contains("❌ rocebench: over all cases bandwidth regressed;"));
    assert!(markdown.contains("| **regressed** |"), "{markdown}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("classname=\"over all cases\"") && junit.contains("failures=\"1\""));
}

#[test]
fn what_the_launches_cannot_settle_is_said_with_how_many_could() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = |side: &str, speed: f64| {
        launches(
            &folder.path().join(side),
            "base.json",
            5,
            |result, launch| {
                let factor = speed * [1.0, 1.3, 0.8, 1.15, 0.9][(launch as usize + side.len()) % 5];
                for case in result["cases"].as_array_mut().unwrap() {
                    for run in case["runs"].as_array_mut().unwrap() {
                        speed_up(run, factor);
                    }
                }
            },
        )
    };
    let (base, new) = (noisy("base", 1.0), noisy("new", 0.97));
    let (_, comparison) = verdicts(&[&base, &new]);
    let by_case = comparison.reach.unwrap().by_case;
    assert!(by_case.settled < by_case.questions, "{by_case:?}");
    let table = text(&compare(&[&base, &new]).stdout);
    assert!(
        table.contains("measure about ") || table.contains("No practical number"),
        "{table}"
    );
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

/// Ten launches a side in turns, of which `damage` changes the first run of the new side's fourth launch.
fn damaged(damage: impl Fn(&mut Value)) -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let base = launches(&folder.path().join("base"), "base.json", 10, |_, _| {});
    let new = launches(
        &folder.path().join("new"),
        "same.json",
        10,
        |result, launch| {
            if launch == 3 {
                damage(&mut result["cases"][0]["runs"][0]);
            }
        },
    );
    (folder, [base, new])
}

#[test]
fn a_run_that_is_wrong_makes_its_case_not_comparable() {
    type Damage = fn(&mut Value);
    let damages: [(&str, Damage); 2] = [
        ("is not complete", |run| run["complete"] = false.into()),
        ("CPU time", |run| {
            run["nodes"][0]["workers"][0]["cpu_seconds"] = (-0.1).into();
        }),
    ];
    for (reason, damage) in damages {
        let (_folder, [base, new]) = damaged(damage);
        for strict in [&[][..], &["--strict"]] {
            let (code, comparison) = verdicts(&[&[&*base, &*new], strict].concat());
            assert_eq!(code, Some(2), "{reason}");
            let reasons = comparison.cases[0].not_comparable.join("\n");
            for part in [reason, "run 1 in ", "new/03.json"] {
                assert!(reasons.contains(part), "{part}: {reasons}");
            }
            assert_eq!(comparison.cases[1].verdict(), Verdict::Equal);
        }
    }
}

#[test]
fn a_metric_that_some_runs_lack_is_not_equal() {
    type Damage = fn(&mut Value);
    let damages: [(&str, Damage); 2] = [
        ("p99", |run| run["flows"][0]["latency_ns"] = Value::Null),
        ("cpu", |run| {
            run["nodes"][0]["workers"] = Value::Array(Vec::new());
        }),
    ];
    for (name, damage) in damages {
        let (_folder, [base, new]) = damaged(damage);
        for strict in [&[][..], &["--strict"]] {
            let (code, comparison) = verdicts(&[&[&*base, &*new], strict].concat());
            assert_eq!(code, Some(2), "{name}");
            let case = &comparison.cases[0];
            assert_eq!(case.verdict(), Verdict::NotComparable);
            let missing = case
                .missing
                .iter()
                .find(|it| it.metric.short_name() == name);
            assert_eq!(
                missing.unwrap().reason,
                "0 of 50 base runs and 1 of 50 new runs lack it"
            );
            // The other metrics are compared.
            assert_eq!(case.metrics[0].verdict, Verdict::Equal);
        }
        let output = compare(&[&base, &new]);
        let table = text(&output.stdout);
        assert!(
            table.contains(&format!("{name}: not comparable: 0 of 50 base runs")),
            "{table}"
        );
        let said = text(&output.stderr);
        assert!(
            said.contains("1 of 2 cases are not comparable") && said.contains("--metrics"),
            "{said}"
        );
        // What all runs have can be asked for alone, and what no run has is not asked for.
        let output = compare(&[&base, &new, "--metrics", "bandwidth,connections"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

#[test]
fn one_run_each_shows_the_differences_and_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str, file: &str| {
        launches(&folder.path().join(name), file, 1, |result, _| {
            for case in result["cases"].as_array_mut().unwrap() {
                case["runs"].as_array_mut().unwrap().truncate(1);
            }
        }) + "/00.json"
    };
    let (base, new) = (one("base", "base.json"), one("new", "slower.json"));
    let output = compare(&[&base, &new]);
    assert_eq!(output.status.code(), Some(2));
    let table = text(&output.stdout);
    assert!(table.contains("\none run each: no verdict\n"), "{table}");
    let bandwidth = table
        .lines()
        .find(|line| line.contains("bandwidth"))
        .unwrap();
    assert!(
        bandwidth.contains("-10.2 %") && bandwidth.ends_with("no verdict"),
        "{table}"
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("2 of 2 cases have no verdict") && said.contains("--across time"),
        "{said}"
    );
    for (format, words) in [
        ("--markdown", "**one run each: no verdict**"),
        ("--junit", "<error message=\"one run each: no verdict\"/>"),
        ("--json", "\"no_verdict\": \"one run each\""),
        ("--bmf", "\"gbit_per_s\""),
    ] {
        let output = compare(&[&base, &new, format, "-"]);
        assert_eq!(output.status.code(), Some(2));
        let document = text(&output.stdout);
        assert!(document.contains(words), "{format}: {document}");
    }
    let (code, comparison) = verdicts(&[&base, &new, "--across", "time"]);
    assert_eq!(code, Some(0));
    let bandwidth = &comparison.cases[0].metrics[0];
    assert!(
        bandwidth.verdict == Verdict::Unclear && bandwidth.ratio.is_some(),
        "{bandwidth:?}"
    );
}

/// Eight launches a side.
#[test]
fn what_differs_besides_is_not_comparable_unless_asked_for() {
    type Change = fn(&mut Value, u32);
    let cases: [(&str, &str, Change, i32, &str); 2] = [
        (
            "time",
            "slower.json",
            |result, launch| {
                result["started_at"] = format!("2026-11-20T13:{launch:02}:00Z").into();
            },
            1,
            "not launched in turns",
        ),
        (
            "host",
            "same.json",
            |result, _| {
                for node in [0, 1] {
                    result["nodes"][node]["hostname"] = "right".into();
                }
            },
            0,
            "host name: left in the base, right in the new results [host]",
        ),
    ];
    for (aspect, file, change, across, told) in cases {
        let folder = tempfile::tempdir().unwrap();
        let base = launches(&folder.path().join("base"), "base.json", 8, |_, _| {});
        let new = launches(&folder.path().join("new"), file, 8, change);
        let output = compare(&[&base, &new]);
        assert_eq!(output.status.code(), Some(2));
        let table = text(&output.stdout);
        assert!(table.contains(told), "{table}");
        let (code, comparison) = verdicts(&[&base, &new, "--across", aspect]);
        assert_eq!(code, Some(across), "{aspect}");
        assert_eq!(comparison.cases[0].across.len(), 1, "{aspect}");
    }
}

#[test]
fn every_document_is_written_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let output = compare(&[
        &data("base.json"),
        &data("slower.json"),
        "--across",
        "time",
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
    let sides = [data("base.json"), data("slower.json")];
    let [once, again] = [(); 2].map(|()| compare(&[&sides[0], &sides[1], "--json", "-"]));
    assert_eq!(text(&once.stdout), text(&again.stdout));
}
