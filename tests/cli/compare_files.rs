//! The files and folders that `rocebench compare` is given: which it takes, and what it says of the others.

use std::fs;

use crate::compare::{compare, data, launches, verdicts};
use crate::input::text;

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
    let new = folder.path().display().to_string();
    let (code, comparison) = verdicts(&[&data("base.json"), &new, "--across", "time"]);
    assert_eq!(code, Some(1));
    assert_eq!(comparison.new.files.len(), 1);
    assert_eq!(comparison.refused.len(), 2);
    assert!(
        comparison.refused[1].contains("truncated.json:"),
        "{:?}",
        comparison.refused
    );
    assert!(
        comparison.notes[0].contains("z.json has the same content"),
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
