//! What options do whatever the device is: windows, runs, files and documents.

use report::results::model::{ResultFile, Run};
use testing::check;
use testing::server::Server;

/// What a sweep has unless other values are added.
const BASE: [&str; 6] = ["-n", "40", "--warmup", "0", "-s", "64"];

/// A sweep of all runs complete, with more options, or with others in place of those of [`BASE`].
fn result(server: &Server, more: &[&str]) -> ResultFile {
    let usual = BASE.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let all: Vec<&str> = usual.flatten().chain(more).copied().collect();
    let ended = server.sweep(&all).exits(0);
    check::complete(&ended)
}

/// Its first run.
fn run(server: &Server, more: &[&str]) -> Run {
    result(server, more).cases.remove(0).runs.remove(0)
}

#[test]
fn latencies_left_out() {
    let server = Server::embedded("-d soft0");
    let run = run(&server, &["--no-latency", "-b"]);
    assert_eq!(run.flows[0].latency_ns, None);
    assert_eq!(run.flows[1].latency_ns, None);
}

#[test]
fn warm_ups() {
    let server = Server::embedded("-d soft0");
    let window = |warmup: &str| {
        let words = ["-n", "200", "-s", "64", "-t", "16", "--warmup", warmup];
        let result = check::complete(&server.sweep(&words).exits(0));
        result.cases[0].runs[0].flows[0].window.clone()
    };
    let none = window("0");
    assert_eq!((none.warmup_seconds, none.warmup_steady), (0.0, None));
    let fixed = window("20ms");
    assert!(fixed.warmup_seconds > 0.0 && fixed.warmup_steady.is_none());
    let auto = window("auto:100ms");
    assert!(auto.warmup_seconds > 0.0 && auto.warmup_steady.is_some());
    let counted = run(&server, &["--warmup", "20ms", "--op", "send", "--verify"]);
    assert_eq!(
        counted.flows[0].totals.messages, 40,
        "a warm-up's messages do not count"
    );
}

#[test]
fn runs_with_fresh_qps() {
    let server = Server::embedded("-d soft0");
    let result = result(&server, &["--runs", "3", "-q", "2"]);
    assert_eq!(result.cases.len(), 1);
    let numbers: Vec<_> = result.cases[0].runs.iter().map(|run| run.run).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let first = |run: usize| result.cases[0].runs[run].flows[0].qps[0].qpn;
    assert!(first(0) != first(1) && first(1) != first(2));
}

#[test]
fn a_file_and_flags_over_it() {
    let server = Server::embedded("-d soft0");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/bench-configs/quick.toml");
    let over = [
        "-n", "20", "--warmup", "0", "-s", "64", "-t", "16", "--verify",
    ];
    let ended = server
        .sweep(&[&["--config", config], &over[..]].concat())
        .exits(0);
    let result = check::complete(&ended);
    assert_eq!(
        result.cases.len(),
        6,
        "three operations, 1 and 4 QPs, and one size for the file's two"
    );
    assert!(
        result
            .cases
            .iter()
            .all(|case| case.config.size_bytes == 64 && case.config.verify)
    );
}

#[test]
fn one_document_on_stdout_and_others_in_files() {
    let server = Server::embedded("-d soft0");
    let folder = tempfile::tempdir().unwrap();
    let (json, csv) = (folder.path().join("a.json"), folder.path().join("a.csv"));
    let (json, csv) = (json.to_str().unwrap(), csv.to_str().unwrap());
    let table = "1 case, 1 run";
    for (on_stdout, in_file) in [
        (["--json", "-"], ["--csv", csv]),
        (["--csv", "-"], ["--json", json]),
    ] {
        let ended = server.sweep(&[&BASE[..], &on_stdout, &in_file].concat());
        let ended = ended.exits(0).says(&[table]);
        let [stdout, file] = match on_stdout[0] {
            "--json" => [".json", ".csv"],
            _ => [".csv", ".json"],
        };
        let whole = |text: &str| text.trim_end().to_owned();
        assert_eq!(whole(&ended.stdout), whole(&ended.file(stdout)));
        assert_eq!(
            std::fs::read_to_string(in_file[1]).unwrap(),
            ended.file(file)
        );
    }
    let shown = server.sweep(&BASE).exits(0).stdout;
    assert!(shown.contains(table), "{shown}");
}
