//! Where results go: what is left of a sweep that is killed, what is written in all, and what cannot be written; and which
//! device they are of.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use results::load::load;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use testing::process::{Ended, STEP, Signal};
use testing::program::{Server, call};
use testing::wait::{wait_for, wait_until};

const QUICK: &str = "-d soft0 --timeout 18 -n 10 --warmup 0 -s 64";

/// Files of a folder whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(end))
        .collect()
}

#[test]
fn of_a_sweep_that_is_killed_all_finished_runs_are_left() {
    let program = call(&format!("{QUICK} -q 1 --runs 1000 --quiet")).start();
    let results = program.folder().join("results");
    let journal = wait_for("a journal", STEP, || files(&results, ".jsonl").pop());
    // A kill may leave the beginning of a line, which is of a run that has not finished.
    let lines = || fs::read_to_string(&journal).unwrap().matches('\n').count();
    wait_until("four lines", STEP, || lines() >= 4);
    program.signal(Signal::Kill);
    let ended = program.wait();
    let runs = lines();
    assert_eq!(ended.results().len(), 1, "nothing unfinished is left");
    // It is read as a result is, by itself and in its folder.
    for path in [journal, results] {
        let found = load(&[path]);
        assert_eq!(found.results[0].result.cases[0].runs.len(), runs);
        assert!(found.refused.is_empty(), "{:?}", found.refused);
    }
}

#[test]
fn a_run_costs_the_same_however_many_came_before() {
    let program = call(&format!("{QUICK} -q 1 --runs 40 --quiet")).start();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let pid = Pid::from_raw(program.pid().cast_signed()).unwrap();
    waitid(WaitId::Pid(pid), options).unwrap();
    // Of the process that has ended and is not reaped.
    let io = fs::read_to_string(format!("/proc/{}/io", program.pid())).unwrap();
    let ended = program.wait().exits(0);
    let written: u64 =
        io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap();
    let results = ended.folder().join("results");
    let size: u64 =
        files(&results, "").into_iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    // The files, and a line for each run. Written whole after every run they would take 20 times their size.
    assert!(written < 4 * size, "{written} bytes for {size}");
    assert!(files(&results, ".jsonl").is_empty());
}

#[test]
fn what_a_killed_program_left_unfinished_is_removed() {
    let program = call(&format!("{QUICK} --json other/x.json"));
    let places = ["results", "other"].map(|name| program.folder().join(name));
    for place in &places {
        fs::create_dir(place).unwrap();
        fs::write(place.join(".rocebench-unfinished-1"), "half").unwrap();
    }
    let _ended = program.passes();
    for place in &places {
        assert!(files(place, "-1").is_empty());
    }
    assert!(places[1].join("x.json").exists());
}

#[test]
fn a_pipe_is_waited_for_until_one_interrupt() {
    for reader_comes in [true, false] {
        let call = call(&format!("{QUICK} --json pipe"));
        let pipe = call.folder().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let program = call.start();
        program.has_said("pipe waits for a reader");
        // All else is written.
        let results = program.folder().join("results");
        assert_eq!(files(&results, ".csv").len(), 3);
        if reader_comes {
            let document: Value = serde_json::from_reader(File::open(&pipe).unwrap()).unwrap();
            assert_eq!(document["cases"].as_array().unwrap().len(), 1);
        } else {
            program.signal(Signal::Interrupt);
        }
        let ended = program.wait().exits(i32::from(!reader_comes));
        let says = "cannot write pipe: open: no program reads it";
        assert_eq!(ended.stderr().contains(says), !reader_comes);
    }
}

#[test]
fn a_full_stdout_is_told_by_all_that_print_there() {
    let plots = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample} -o {}", plots.path().display());
    for words in [QUICK, "--dry-run", "devices", &plot, "explain -d soft0", "--help", "--version"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = call(words).start_to(full).wait();
        ended.exits(1).says(&["No space left on device"]);
    }
}

#[test]
fn sweeps_at_once_have_a_name_each() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("results");
    let words = format!("{QUICK} --out {}", out.display());
    let started: Vec<_> = (0..3).map(|_| call(&words).start()).collect();
    for program in started {
        let _ended = program.wait().exits(0);
    }
    assert_eq!(files(&out, ".json").len(), 3);
    assert!(files(&out, ".jsonl").is_empty());
    assert_eq!(load(&[&out]).results.len(), 3);
}

#[test]
fn a_folder_that_is_removed_meanwhile_is_made_again() {
    let program = call(&format!("{QUICK} -q 1 --runs 50 --quiet")).start();
    let results = program.folder().join("results");
    wait_until("a line", STEP, || {
        let journal = files(&results, ".jsonl").pop();
        journal.is_some_and(|path| fs::metadata(path).is_ok_and(|it| it.len() > 0))
    });
    fs::remove_dir_all(&results).unwrap();
    let ended = program.wait().exits(0);
    assert_eq!(ended.runs().len(), 50);
}

#[test]
fn two_documents_do_not_go_to_one_file_however_it_is_spelled() {
    let refused = call(&format!("{QUICK} --json linked/same --csv ./same"));
    std::os::unix::fs::symlink(".", refused.folder().join("linked")).unwrap();
    refused.is_refused(&["--json and --csv both go to ./same"]);
    let linked = call(&format!("{QUICK} --json one --csv other"));
    let path = |name| linked.folder().join(name);
    fs::write(path("one"), "").unwrap();
    fs::hard_link(path("one"), path("other")).unwrap();
    linked.is_refused(&["--json and --csv both go to other"]);
}

/// Nothing is printed and the exit status is 0 where nothing is wrong, else each problem is a line.
#[test]
fn only_problems_are_lines_of_their_own_and_a_failure() {
    for (words, is_surely_wrong) in [("-n 40", false), ("-n 400 --faults drop=10%,seed=7", true)] {
        let ended =
            call(&format!("-d soft0 --only-problems --op write -s 64K --warmup 0 {words}")).run();
        let problems: Vec<&str> = ended.json()["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["severity"] == "problem")
            .map(|it| it["text"].as_str().unwrap())
            .collect();
        assert!(!problems.is_empty() || !is_surely_wrong);
        assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), problems);
        let (code, says) = match problems.len() {
            0 => (0, String::new()),
            count => (1, format!("problems: {count}")),
        };
        assert_eq!(ended.stderr().is_empty(), code == 0);
        ended.exits(code).says(&[&says]);
    }
}

#[test]
fn one_document_on_stdout_and_others_in_files() {
    let table = "1 case, 1 run";
    for (on_stdout, in_file) in [("json", "csv"), ("csv", "json")] {
        let words = format!(
            "-d soft0 --timeout 18 -s 64 --warmup 0 -n 40 --{on_stdout} - --{in_file} other"
        );
        let ended = call(&words).passes().says(&[table]);
        let [stdout, file] = [on_stdout, in_file].map(|kind| ended.file(&format!(".{kind}")));
        assert_eq!(ended.stdout.trim_end(), stdout.trim_end());
        let other = fs::read_to_string(ended.folder().join("other"));
        assert_eq!(other.unwrap(), file);
    }
    call("-d soft0 --timeout 18 -s 64 --warmup 0 -n 40").passes().shows(&[table]);
}

/// What each file has of them, its own tests state.
#[test]
fn both_distributions_are_in_every_file() {
    let ended = call(
        "-d soft0 --op write -b -q 3 -s 4K -D 300ms --warmup 20ms --timeout 18 --quiet --csv-histograms -",
    ).is_whole(1);
    for flow in &ended.runs()[0].flows {
        let bandwidth = flow.bandwidth_gbit_per_s.as_ref().unwrap();
        let timeline = flow.timeline.as_ref().unwrap();
        assert_eq!(bandwidth.count, timeline.messages.len() as u64);
        assert_eq!(bandwidth.interval_seconds, timeline.interval_seconds);
        let (min, max) = (bandwidth.min, bandwidth.max);
        assert!(bandwidth.p50.is_none_or(|p50| min <= p50 && p50 <= max));
        let mean = flow.totals.gbit_per_s.unwrap();
        assert!(min < mean * 1.02 && mean * 0.98 < max, "{bandwidth:?}, {mean}");
    }
    let rows = ended.file("-histograms.csv");
    assert_eq!(ended.stdout.trim_end(), rows.trim_end());
    for kind in ["latency_ns", "bandwidth_kbit_per_s"] {
        for flow in ["forward", "reverse"] {
            assert!(rows.lines().any(|row| row.contains(kind) && row.contains(flow)));
        }
    }
    let names = ended.results();
    let endings = names.iter().map(|name| name.split_once('Z').unwrap().1);
    assert_eq!(
        endings.collect::<BTreeSet<_>>(),
        BTreeSet::from([".json", ".csv", "-qps.csv", "-histograms.csv"])
    );
    assert_eq!(names.len(), 4, "{names:?}");
}

fn kernel_has_a_device() -> bool {
    fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

#[test]
fn without_a_device_the_embedded_one_is_taken_and_says_so() {
    let ended = call("-n 20 --timeout 18 --warmup 0").passes();
    if kernel_has_a_device() {
        assert_eq!(ended.json()["nodes"][0]["devices"][0]["library"], "libibverbs");
        return;
    }
    let ended = ended.says(&[
        "no RDMA device on this machine: taking soft0, the embedded software device",
        "not of a network adapter",
    ]);
    let notes = ended.stderr().lines().filter(|line| line.contains("embedded"));
    assert_eq!(notes.count(), 1, "{}", ended.stderr());
}

#[test]
fn an_address_that_is_taken_is_named() {
    let _taken = UdpSocket::bind("127.77.2.1:4791").unwrap();
    call("-d soft0 -n 1 --quiet").env("SOFTROCE_ADDRESS", "127.77.2.1").fails(&[
        "soft0 (UDP port 4791 of 127.77.2.1)",
        "in use",
        "hint: end the program that has this port",
    ]);
}

#[test]
fn both_ends_print_perftests_table_after_its_name() {
    let server = Server::embedded_by(call("ib_send_bw -d soft0 -p 0 -b"));
    let line = "ib_send_bw -d soft0 -n 20 -b --qp-timeout=18 --warmup 0 --report_gbits --out_json 127.0.0.1";
    let client = call(&format!("{line} -p {}", server.port)).passes();
    let served = server.program.wait().exits(0);
    for (output, unit) in [(&client.stdout, "Gb/sec"), (&served.stdout, "MiB/sec")] {
        assert!(output.contains(&format!("BW average[{unit}]")), "{output}");
        let mut rows = output.lines().map(|text| text.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|fields| fields.first() == Some(&"65536")).unwrap();
        assert_eq!((row[1], row.len()), ("20", 5));
    }
    let json = fs::read_to_string(client.folder().join("perftest_out.json")).unwrap();
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["results"]["n_iterations"], 20);
    // One end's QP is the other's peer.
    for (here, there) in [(&client.stdout, &served.stdout), (&served.stdout, &client.stdout)] {
        let local = here.lines().find_map(|it| it.strip_prefix(" local address: LID 0000 QPN 0x"));
        assert!(there.contains(&format!(" remote address: LID 0000 QPN 0x{}", local.unwrap())));
    }
}

#[test]
fn a_run_without_an_end_has_rows_until_it_is_stopped() {
    let server = Server::embedded_by(call("ib_write_bw -d soft0 -p 0 --run_infinitely"));
    let line = "ib_write_bw -d soft0 -D 200ms --run_infinitely --qp-timeout=18 --warmup 0 --out_json 127.0.0.1";
    let client = call(&format!("{line} -p {}", server.port)).start();
    let json = client.folder().join("perftest_out.json");
    wait_until("a row", STEP, || json.exists());
    client.signal(Signal::Terminate);
    let ended = client.wait().exits(0);
    let rows: Vec<_> = ended.stdout.lines().filter(|it| it.starts_with(" 65536 ")).collect();
    assert!(!rows.is_empty() && ended.stdout.contains("VAddr"), "{}", ended.stdout);
}

#[test]
fn how_packets_went_is_in_the_result_and_unlike_ways_are_not_compared() {
    let wire = |ended: &Ended| ended.cases()[0]["config"]["flows"][0]["wire"].clone();
    let by_memory = call(&format!("{QUICK} -q 1 --quiet")).passes();
    assert_eq!(wire(&by_memory), "memory");
    let by_sockets = call(&format!("{QUICK} -q 1 --quiet --wire udp")).passes();
    assert_eq!(wire(&by_sockets), "udp");
    Server::embedded("").call("-n 10 --warmup 0 --wire memory").is_refused(&["--wire memory, but"]);
    let folders = [&by_memory, &by_sockets].map(|ended| ended.folder().join("results"));
    let compared = call("compare").arg(&folders[0]).arg(&folders[1]).run();
    let reason = "packets go by: memory in the base, udp in the new results";
    assert!(compared.stdout.contains(reason), "{}", compared.stdout);
}
