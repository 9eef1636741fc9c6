//! `rocebench history`: what is added, and what is said of nights. No device.

use std::fs;
use std::path::Path;

use results::json;
use results::sample::{
    has,
    mesh::{Mesh, Slow},
};
use tempfile::{TempDir, tempdir};
use testing::process::Ended;

use crate::{compare::data, run, run_in};

fn history(folder: &TempDir, words: &[&str]) -> Ended {
    run_in(folder, &[&["history"], words].concat())
}

/// A result of six nodes, of which one sends less from the twenty-first night on.
fn write_night(path: &Path, night: u64) {
    let mesh = Mesh { seed: night, ..Mesh::new(6).runs(1).noise(0.02) };
    let made = if night < 21 { mesh } else { mesh.with(Slow::Sends(1, 0.7)) };
    let mut result = made.pairs();
    result.started_at = format!("2026-11-{night:02}T02:00:00Z");
    json::write(&result, path).unwrap();
}

#[test]
fn nights_are_added_once_listed_and_a_step_in_them_is_said() {
    let folder = tempdir().unwrap();
    let nights = folder.path().join("nights");
    fs::create_dir(&nights).unwrap();
    for night in 1..=28 {
        write_night(&nights.join(format!("{night}.json")), night);
    }
    let added = history(&folder, &["add", "nights"]).exits(0).stdout;
    assert_eq!(added.lines().count(), 28);
    has(&added, ["history/20261101T020000Z-", "nights/1.json, 6 nodes, 10 cases"]);
    fs::copy(nights.join("7.json"), folder.path().join("copy.json")).unwrap();
    fs::write(folder.path().join("notes.json"), "{}").unwrap();
    let again = history(&folder, &["add", "copy.json", "notes.json"]).exits(2);
    let reasons = ["copy.json is there already, as 20261107T020000Z-", "notes.json:", "2 of 2"];
    has(again.stderr(), reasons);
    let listed = history(&folder, &["list"]).exits(0).stdout;
    assert_eq!(listed.lines().count(), 29);
    assert!(listed.lines().nth(1).unwrap().starts_with("2026-11-01T02:00:00"), "{listed}");
    let step = ["Since 2026-11-21 02:00 UTC node2 sends ", "less, beside the other nodes"];
    has(history(&folder, &["trend"]).exits(0).stdout, step);
    has(history(&folder, &["trend", "--page", "plots"]).exits(0).stdout, step);
    let page = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    let (first, _) = page.split_once("<figure").unwrap();
    has(first, step);
    has(page, ["data-about", "id=\"trend-of-nodes\""]);
    let compared = history(&folder, &["compare", "last", "--metrics", "bandwidth"]);
    has(compared.output(), ["base history (27 files", "new  history/20261128T020000Z-"]);
}

#[test]
fn a_history_without_enough_says_so() {
    let folder = tempdir().unwrap();
    has(history(&folder, &["list"]).exits(2).stderr(), ["cannot read history"]);
    has(history(&folder, &["add", "nothing"]).exits(2).stderr(), ["1 of 1 results were not added"]);
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join(data("base.json"));
    history(&folder, &["add", base.to_str().unwrap()]).exits(0);
    has(history(&folder, &["trend"]).exits(0).stdout, ["1 result: too few for a trend"]);
    let alone = history(&folder, &["compare", "last"]).exits(2);
    has(alone.stderr(), ["one result, and none before it"]);
    // A file in the way of the folder.
    let blocked = ["history", "add", &data("base.json"), "--folder", "Cargo.toml"];
    has(run(&blocked).exits(2).stderr(), ["Cargo.toml"]);
}
