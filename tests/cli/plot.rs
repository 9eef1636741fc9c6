//! `rocebench plot` as a person meets it: results, bad input, folders in the way. No device.

use std::fs;

use results::json;
use results::model::ResultFile;
use results::sample::has;
use results::sample::mesh::{Mesh, Slow};
use results::sample::sweep::Synthetic;
use tempfile::{TempDir, tempdir};
use testing::process::Ended;

use crate::run_in;

/// Draws `r.json` and what else is named into `plots`.
fn plot(folder: &TempDir, args: &[&str]) -> Ended {
    run_in(folder, &[&["plot", "r.json", "-o", "plots"], args].concat())
}

/// The results of few cases.
fn small() -> Synthetic {
    Synthetic {
        ops: vec!["send"],
        qps: vec![1, 4],
        sizes: vec![64, 4096],
        workers: vec![1],
        ..Synthetic::default()
    }
}

/// A folder with a result, `r.json`.
fn folder_of(result: &ResultFile) -> TempDir {
    let folder = tempdir().unwrap();
    json::write(result, &folder.path().join("r.json")).unwrap();
    folder
}

pub(crate) fn folder() -> TempDir {
    folder_of(&small().result())
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join("plots").join(name)).unwrap()
}

#[test]
fn every_case_is_on_the_page_and_software_is_named() {
    let software = Synthetic { set_up: vec![1, 16], link_gbit_per_s: None, ..small() };
    let result = software.result();
    let folder = folder_of(&result);
    plot(&folder, &[]).exits(0);
    let page = read(&folder, "index.html");
    result.cases.iter().for_each(|case| has(&page, [&case.id]));
    has(&page, ["not a network adapter"]);
}

#[test]
fn nodes_are_ordered_by_the_racks_of_a_file() {
    let folder = folder_of(&Mesh::new(12).with(Slow::Sends(3, 0.5)).pairs());
    let plotted = |racks: &str| {
        fs::write(folder.path().join("racks"), racks).unwrap();
        plot(&folder, &["--racks", "racks"])
    };
    plotted("# ours\nnode[1-6] west\nnode[7-12] east\n").exits(0);
    let map = read(&folder, "nodes-map-1.svg");
    assert!(map.find(">east<").unwrap() < map.find(">west<").unwrap());
    has(read(&folder, "index.html"), ["node4 sends"]);
    let none = "racks names none of the results' nodes, such as node1";
    let both = "racks, line 2: node2 is in r2 here and in r1";
    for (racks, reason) in [
        ("node1", "racks, line 1: `node1` is not a node and its rack"),
        ("left r1", none),
        ("node[1-2] r1\nnode2 r2", both),
    ] {
        has(plotted(racks).exits(2).stderr(), [reason]);
    }
}

#[test]
fn the_page_and_its_pictures_are_told_and_written() {
    let folder = folder();
    // The file is named twice and read once.
    let stdout = plot(&folder, &["."]).exits(0).stdout;
    let ends = ["plots/index.html: ", " figures of 8 cases\n"];
    let is_framed = stdout.starts_with(ends[0]) && stdout.ends_with(ends[1]);
    assert!(is_framed, "{stdout}");
    let page = read(&folder, "index.html");
    // A name of XML, and a part of the picture itself.
    let fetched = page.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
    for fetching in ["src=", "url(", "@import", "<link", "http://", "https://"] {
        assert!(!fetched.contains(fetching), "the page has {fetching}");
    }
    let pictures = fs::read_dir(folder.path().join("plots")).unwrap().count() - 1;
    assert_eq!(page.matches("<figure ").count(), pictures);
    plot(&folder, &[]).exits(0);
    assert_eq!(read(&folder, "index.html"), page, "drawn twice, two pages");
}

#[test]
fn open_loops_alone_make_a_page_whose_first_picture_has_its_name() {
    let loads = Synthetic { rates: vec!["200k", "1M", "1800k"], ..small() };
    let mut result = loads.result();
    result.cases.retain(|case| !case.config.rate.is_closed());
    let folder = folder_of(&result);
    plot(&folder, &[]).exits(0);
    has(read(&folder, "latency-by-load.svg"), [">Mmsg/s<"]);
    let page = read(&folder, "index.html");
    for (part, there) in [
        ("<p class=\"answer\">p99 is at most ", true),
        ("<dt>Fastest", false),
        ("heat-map.svg", false),
        ("<dt>Bandwidth and message size</dt>", true),
    ] {
        assert_eq!(page.contains(part), there, "{part}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_and_the_rest_is_drawn() {
    let folder = folder();
    let good = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let newer = good.replacen("\"schema_version\": 2", "\"schema_version\": 99", 1);
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
    let stderr = plot(&folder, &[".", "missing.json"]).exits(2).stderr().to_owned();
    has(&stderr, ["1 file that was named refused"]);
    let page = read(&folder, "index.html");
    let parts = [
        "cut.json:",
        "empty.json:1:",
        "foreign.json:3:",
        "less.json: cases[0].runs[0].path_events: there is no such field; measure again",
        "newer.json",
        "schema_version 99",
        "missing.json",
    ];
    has(&stderr, parts);
    has(&page, parts);
    assert!(!stderr.contains("notes.txt"), "{stderr}");
    has(&page, ["<figure "]);
    // What lay in a folder is a warning.
    has(plot(&folder, &["."]).exits(0).stderr(), ["warning: ./cut.json:"]);
}

#[test]
fn a_single_set_up_counts_and_has_no_figure() {
    let one = Synthetic { ops: Vec::new(), set_up: vec![16], ..small() };
    let folder = folder_of(&one.result());
    let ran = plot(&folder, &[]).exits(2);
    has(ran.stderr(), ["shows a single case", "--qps 1,4,16"]);
}

#[test]
fn nothing_to_draw_is_told_and_nothing_is_written() {
    let mut failed = small().result();
    for case in &mut failed.cases {
        case.comparison = None;
        case.runs.iter_mut().for_each(|run| run.complete = false);
    }
    let folder = folder_of(&failed);
    fs::create_dir(folder.path().join("none")).unwrap();
    let no_run = "nothing to draw: none of the 8 cases has a valid run with figures";
    for (name, reason) in [("r.json", no_run), ("none", "none holds no result files")] {
        let ended = run_in(&folder, &["plot", "-o", "plots", name]).exits(2);
        has(ended.stderr(), [reason, "hint: "]);
        assert!(!folder.path().join("plots").exists(), "{name}");
    }
}
