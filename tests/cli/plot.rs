//! `rocebench plot` as a person meets it: results, bad input, folders in the way. No device.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::input::text;
use report::results::json;
use report::results::sample_mesh::{Mesh, Slow};
use testing::synthetic_results::Synthetic;

fn plot(dir: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("rocebench"))
        .current_dir(dir)
        .arg("plot")
        .args(args)
        .output()
        .unwrap()
}

/// The results of few cases.
pub(crate) fn small() -> Synthetic {
    Synthetic {
        ops: vec!["send"],
        qps: vec![1, 4],
        sizes: vec![64, 4096],
        workers: vec![1],
        ..Synthetic::default()
    }
}

/// A folder with a good result, `r.json`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    json::write(&small().result(), &folder.path().join("r.json")).unwrap();
    folder
}

#[test]
fn every_case_is_on_the_page_and_software_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let software = Synthetic {
        set_up: vec![1, 16],
        link_gbit_per_s: None,
        ..small()
    };
    let result = software.result();
    json::write(&result, &folder.path().join("r.json")).unwrap();
    let output = plot(folder.path(), &["r.json", "-o", "plots"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    for case in result.cases {
        assert!(page.contains(&case.id), "{}", case.id);
    }
    assert!(page.contains("not a network adapter"));
}

#[test]
fn nodes_are_ordered_by_the_racks_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let result = Mesh::of(12).with(Slow::Sends(3, 0.5)).pairs();
    json::write(&result, &folder.path().join("r.json")).unwrap();
    let racks = |text: &str| fs::write(folder.path().join("racks"), text).unwrap();
    let plotted = || {
        plot(
            folder.path(),
            &["r.json", "-o", "plots", "--racks", "racks"],
        )
    };
    racks("# ours\nnode[1-6] west\nnode[7-12] east\n");
    let output = plotted();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join("plots").join(name)).unwrap();
    let map = read("nodes-map-1.svg");
    assert!(map.find(">east<").unwrap() < map.find(">west<").unwrap());
    assert!(read("index.html").contains("node4 sends"));
    for (lines, told) in [
        ("node1", "racks, line 1: `node1` is not a node and its rack"),
        (
            "left r1",
            "racks names none of the results' nodes, such as node1",
        ),
        (
            "node[1-2] r1\nnode2 r2",
            "racks, line 2: node2 is in r2, and in r1",
        ),
    ] {
        racks(lines);
        let output = plotted();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(told),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn the_page_and_its_pictures_are_told_and_written() {
    let folder = folder();
    let output = plot(folder.path(), &["r.json", ".", "-o", "plots"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    // The file is named twice and read once.
    assert!(
        said.starts_with("plots/index.html: ") && said.ends_with(" figures of 8 cases\n"),
        "{said}"
    );
    let page = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    for fetching in ["src=", "url(", "@import", "<link", "http://", "https://"] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(fetching), "the page has {fetching}");
    }
    let pictures = fs::read_dir(folder.path().join("plots")).unwrap().count() - 1;
    assert_eq!(page.matches("<figure ").count(), pictures);
    let again = plot(folder.path(), &["r.json", "-o", "plots"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(
        fs::read_to_string(folder.path().join("plots/index.html")).unwrap(),
        page,
        "drawn twice, two pages"
    );
}

#[test]
fn open_loops_alone_make_a_page_whose_first_picture_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let loads = Synthetic {
        rates: vec!["200k", "1M", "1800k"],
        ..small()
    };
    let mut result = loads.result();
    result.cases.retain(|case| !case.config.rate.is_closed());
    json::write(&result, &folder.path().join("r.json")).unwrap();
    let output = plot(folder.path(), &["r.json", "-o", "plots"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let picture = fs::read_to_string(folder.path().join("plots/latency-by-load.svg")).unwrap();
    assert!(picture.contains("achieved load, Mmsg/s"), "{picture}");
    let page = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    for (part, there) in [
        ("highest load kept (Mmsg/s)", true),
        ("highest Gb/s", false),
        ("heat-map.svg", false),
        ("No figure “Bandwidth and message size”", true),
    ] {
        assert_eq!(page.contains(part), there, "{part}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_and_the_rest_is_drawn() {
    let folder = folder();
    let good = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let newer = good.replacen("\"schema_version\": 1", "\"schema_version\": 99", 1);
    let less = good.replacen("\"path_events\": [],", "", 1);
    for (name, content) in [
        ("cut.json", &good[..good.len() / 2]),
        ("empty.json", ""),
        ("foreign.json", "{\n  \"name\": \"package\"\n}\n"),
        ("less.json", less.as_str()),
        ("newer.json", newer.as_str()),
        ("notes.txt", "no result"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let output = plot(folder.path(), &[".", "missing.json", "-o", "plots"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("1 file that was named refused"), "{said}");
    let page = fs::read_to_string(folder.path().join("plots/index.html")).unwrap();
    for part in [
        "cut.json:",
        "empty.json:1:",
        "foreign.json:3:",
        "less.json: cases[0].runs[0] has no field `path_events`",
        "newer.json",
        "schema_version 99",
        "missing.json",
    ] {
        assert!(said.contains(part), "{part} in {said}");
        assert!(page.contains(part), "{part} on the page");
    }
    assert!(!said.contains("notes.txt"), "{said}");
    assert!(page.contains("<figure "), "the good one is not drawn");
    // What lay in a folder is a warning.
    let output = plot(folder.path(), &[".", "-o", "plots"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("warning: ./cut.json:"));
}

#[test]
fn nothing_to_draw_is_told_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut failed = small().result();
    for run in failed.cases.iter_mut().flat_map(|case| &mut case.runs) {
        run.complete = false;
    }
    for case in &mut failed.cases {
        case.perftest = None;
    }
    json::write(&failed, &folder.path().join("failed.json")).unwrap();
    fs::write(folder.path().join("empty.json"), "").unwrap();
    fs::create_dir(folder.path().join("none")).unwrap();
    for (args, reason) in [
        (
            vec!["failed.json"],
            "nothing to draw: none of the 8 cases has a complete run",
        ),
        (vec!["empty.json"], "no result could be read"),
        (vec!["none"], "none holds no result files"),
        (vec!["failed.json", "--across", "mtu"], "there is no base"),
        (
            vec!["failed.json", "--base", "empty.json"],
            "no base could be read",
        ),
    ] {
        let output = plot(folder.path(), &[&args[..], &["-o", "plots"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains(reason) && said.contains("hint: "),
            "{args:?}: {said}"
        );
        assert!(!folder.path().join("plots").exists(), "{args:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_one_clear_error() {
    let folder = folder();
    fs::create_dir(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join("mine/index.html"), "mine").unwrap();
    for (out, reason) in [
        (
            "r.json/plots",
            "cannot write r.json/plots: create the directory: ",
        ),
        ("mine", "mine/index.html was not made by rocebench"),
        (
            "/proc/plots",
            "cannot write /proc/plots: create the directory: ",
        ),
        ("/sys", "cannot write /sys: create a file there: "),
    ] {
        let output = plot(folder.path(), &["r.json", "-o", out]);
        assert_eq!(output.status.code(), Some(2), "{out}");
        let said = text(&output.stderr);
        assert!(said.contains(reason), "{out}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("mine/index.html")).unwrap(),
        "mine"
    );
}
