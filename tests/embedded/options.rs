//! What options do whatever the device is: windows, runs, files and documents.

use results::model::ResultFile;
use testing::program::call;

const SHORT: &str = "-d soft0 --timeout 18 -s 64 --warmup 0";

/// The result of a sweep all of whose runs are complete.
fn result(words: &str, cases: usize) -> ResultFile {
    call(&format!("-d soft0 --timeout 18 -s 64 {words}")).is_whole(cases).result()
}

#[test]
fn latencies_left_out() {
    let result = result("-n 40 --warmup 0 --no-latency -b", 1);
    let flows = result.cases[0].runs[0].flows.iter();
    assert_eq!(flows.filter(|it| it.latency_ns.is_none()).count(), 2);
}

#[test]
fn warm_ups() {
    for (words, warms_up, may_be_steady) in [
        ("0", false, false),
        ("20ms", true, false),
        ("auto:100ms", true, true),
        // A warm-up's messages do not count.
        ("20ms --op send --verify", true, false),
    ] {
        let result = result(&format!("-n 200 -t 16 --warmup {words}"), 1);
        let window = &result.cases[0].runs[0].flows[0].window;
        let warmup = (window.warmup_seconds > 0.0, window.warmup_steady.is_some());
        assert_eq!(warmup, (warms_up, may_be_steady), "{words}");
    }
}

#[test]
fn runs_with_fresh_qps() {
    let result = result("-n 40 --warmup 0 --runs 3 -q 2", 1);
    let runs = result.cases[0].runs.iter();
    let numbers: Vec<_> = runs.clone().map(|run| run.run).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let first: Vec<_> = runs.map(|run| run.flows[0].qps[0].qpn).collect();
    assert!(first[0] != first[1] && first[1] != first[2]);
}

#[test]
fn a_file_and_flags_over_it() {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/bench-configs/quick.toml");
    // Three operations, 1 and 4 QPs, and one size for the file's two.
    let words = format!("--config {config} -n 20 --warmup 0 -t 16 --verify");
    for case in result(&words, 6).cases {
        assert!(case.config.size_bytes == 64 && case.config.verify);
    }
}

#[test]
fn one_document_on_stdout_and_others_in_files() {
    let table = "1 case, 1 run";
    for (on_stdout, in_file) in [("json", "csv"), ("csv", "json")] {
        let words = format!("{SHORT} -n 40 --{on_stdout} - --{in_file} other");
        let ended = call(&words).passes().says(&[table]);
        let [stdout, file] = [on_stdout, in_file].map(|kind| ended.file(&format!(".{kind}")));
        assert_eq!(ended.stdout.trim_end(), stdout.trim_end());
        let other = std::fs::read_to_string(ended.folder().join("other"));
        assert_eq!(other.unwrap(), file);
    }
    call(&format!("{SHORT} -n 40")).passes().shows(&[table]);
}
