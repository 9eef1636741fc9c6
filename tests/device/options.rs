//! Each option does what it says, alone and with others.

use report::results::model::{ResultFile, Run};

use settings::Spread;

use crate::lab::check;
use crate::lab::program::sweep;
use crate::lab::server::Server;

/// Short, so that what is added shows its own effect.
const BASE: [&str; 6] = ["-n", "40", "--warmup", "0", "-s", "64"];

fn result(server: &Server, more: &[&str]) -> ResultFile {
    let usual = BASE.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let all: Vec<&str> = usual.flatten().chain(more).copied().collect();
    let ended = server.sweep(&all).exits(0);
    check::complete(&ended)
}

fn run(server: &Server, more: &[&str]) -> Run {
    result(server, more).cases.remove(0).runs.remove(0)
}

#[test]
fn path_mtus() {
    let server = Server::start();
    let result = result(
        &server,
        &["-m", "256,512,1024,2048,4096", "-s", "8K", "--verify"],
    );
    let mtus: Vec<_> = result
        .cases
        .iter()
        .map(|case| case.config.flows[0].path_mtu)
        .collect();
    assert_eq!(
        mtus,
        [Some(256), Some(512), Some(1024), Some(2048), Some(4096)]
    );
    let efficiency = |case: usize| {
        let limits = &result.cases[case].runs[0].flows[0].limits;
        limits.as_ref().unwrap().protocol_efficiency
    };
    assert!(
        efficiency(0) < efficiency(4),
        "headers weigh more in small packets"
    );
}

#[test]
fn batches_and_moderation() {
    let server = Server::start();
    let lists = [
        "-t",
        "32",
        "-r",
        "64",
        "--op",
        "send,write,read",
        "--verify",
    ];
    for (signal_every, post_list) in [
        ("1", "1"),
        ("1", "8"),
        ("8", "1"),
        ("8", "32"),
        ("32", "4"),
        ("7", "3"),
    ] {
        let more = [&lists[..], &["-Q", signal_every, "-l", post_list]].concat();
        let result = result(&server, &more);
        for case in &result.cases {
            assert_eq!(case.config.signal_every.to_string(), signal_every);
            assert_eq!(case.config.post_list.to_string(), post_list);
        }
    }
}

#[test]
fn inline_messages() {
    let server = Server::start();
    let more = [
        "-I",
        "64",
        "--op",
        "send,write",
        "-s",
        "1,64",
        "--verify",
        "-t",
        "16",
    ];
    for case in result(&server, &more).cases {
        assert_eq!(case.config.inline_bytes, 64);
    }
}

#[test]
fn depths_of_one() {
    let server = Server::start();
    let more = [
        "-t",
        "1",
        "-r",
        "1",
        "-q",
        "1,3",
        "--op",
        "send,write,read",
        "--verify",
    ];
    assert_eq!(result(&server, &more).cases.len(), 6);
}

#[test]
fn workers_and_cores() {
    let server = Server::start();
    let run = run(&server, &["-q", "4", "--workers", "2", "--cores", "1,0"]);
    let cores: Vec<_> = run.nodes[0]
        .workers
        .iter()
        .map(|worker| worker.core)
        .collect();
    assert_eq!(cores, [Some(1), Some(0)]);
    server
        .sweep(&["--cores", "77", "-n", "1"])
        .exits(2)
        .says(&["77", "--cores"]);
}

#[test]
fn a_cq_just_deep_enough() {
    let server = Server::start();
    // 8 completions of sends can be outstanding, and 8 receives at the other end.
    let more = [
        "--cq-depth",
        "8",
        "-t",
        "8",
        "-Q",
        "1",
        "-r",
        "8",
        "--op",
        "send,write,read",
        "--verify",
    ];
    assert_eq!(result(&server, &more).cases[0].config.cq_depth, Some(8));
}

#[test]
fn latencies_left_out() {
    let server = Server::start();
    let run = run(&server, &["--no-latency", "-b"]);
    assert_eq!(run.flows[0].latency_ns, None);
    assert_eq!(run.flows[1].latency_ns, None);
}

#[test]
fn warm_ups() {
    let server = Server::start();
    let base = ["-D", "100ms", "-s", "64", "-t", "16"];
    let window = |warmup: &str| {
        let ended = server
            .sweep(&[&base[..], &["--warmup", warmup]].concat())
            .exits(0);
        check::complete(&ended)
            .cases
            .remove(0)
            .runs
            .remove(0)
            .flows
            .remove(0)
            .window
    };
    let none = window("0");
    assert_eq!((none.warmup_seconds, none.warmup_steady), (0.0, None));
    let fixed = window("300ms");
    assert!(
        fixed.warmup_seconds >= 0.3 && fixed.warmup_steady.is_none(),
        "{fixed:?}"
    );
    let auto = window("auto:2s");
    assert!(
        auto.warmup_seconds < 3.0 && auto.warmup_steady.is_some(),
        "{auto:?}"
    );
    let counted = run(&server, &["--warmup", "200ms", "--op", "send", "--verify"]);
    assert_eq!(
        counted.flows[0].totals.messages, 40,
        "a warm-up's messages do not count"
    );
}

#[test]
fn runs_with_fresh_qps() {
    let server = Server::start();
    let result = result(&server, &["--runs", "3", "-q", "2"]);
    assert_eq!(result.cases.len(), 1);
    let numbers: Vec<_> = result.cases[0].runs.iter().map(|run| run.run).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let first = |run: usize| result.cases[0].runs[run].flows[0].qps[0].qpn;
    assert!(first(0) != first(1) && first(1) != first(2));
}

#[test]
fn a_file_and_flags_over_it() {
    let server = Server::start();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/bench-configs/quick.toml");
    let over = [
        "-D", "100ms", "--warmup", "0", "-s", "64", "-t", "16", "--verify",
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
fn device_port_and_gid() {
    let server = Server::start();
    let result = result(&server, &["-i", "1", "-x", "1"]);
    let gid = result.nodes[0].devices[0].gid.clone().unwrap();
    assert!(
        gid.ends_with("192.0.2.1") || gid.ends_with("c000:0201"),
        "{gid}"
    );
    let peer = &result.nodes[1].devices[0];
    assert_eq!(peer.name, "rxe1");
}

#[test]
fn ipv6_end_to_end() {
    let server = Server::on("2001:db8::2", "rxe1", &[]);
    let result = result(&server, &["--verify", "--op", "send,write,read"]);
    let gid = result.nodes[0].devices[0].gid.clone().unwrap();
    assert!(
        gid.starts_with("2001:"),
        "the GID has the family of the control connection: {gid}"
    );
}

#[test]
fn transport_settings() {
    let server = Server::start();
    let settings = [
        "--timeout",
        "16",
        "--retry-cnt",
        "3",
        "--rnr-retry",
        "6",
        "--min-rnr-timer",
        "1",
        "--service-level",
        "3",
        "--traffic-class",
        "106",
        "--max-rd-atomic",
        "1",
        "--op",
        "read,send",
    ];
    let config = result(&server, &settings).cases.remove(0).config;
    assert_eq!(
        (
            config.timeout,
            config.retry_cnt,
            config.rnr_retry,
            config.min_rnr_timer
        ),
        (16, 3, 6, 1)
    );
    assert_eq!(
        (
            config.service_level,
            config.traffic_class,
            config.max_rd_atomic
        ),
        (3, 106, Some(1))
    );
}

#[test]
fn one_document_on_stdout() {
    let server = Server::start();
    let json = server
        .sweep(&[&BASE[..], &["--json", "-"]].concat())
        .exits(0)
        .says(&["Gb/s"]);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    check::schema(&document);
    let csv = server
        .sweep(&[&BASE[..], &["--csv", "-"]].concat())
        .exits(0)
        .says(&["Gb/s"]);
    assert_eq!(csv.stdout, csv.file(".csv"));
    let table = server.sweep(&BASE).exits(0);
    assert!(table.stdout.contains("Gb/s"), "{}", table.stdout);
}

#[test]
fn documents_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let (json, csv) = (folder.path().join("a.json"), folder.path().join("a.csv"));
    let files = [
        "--json",
        json.to_str().unwrap(),
        "--csv",
        csv.to_str().unwrap(),
    ];
    let ended = sweep(&[&BASE[..], &files].concat()).exits(0);
    assert_eq!(std::fs::read_to_string(json).unwrap(), ended.file(".json"));
    assert_eq!(std::fs::read_to_string(csv).unwrap(), ended.file(".csv"));
}

#[test]
fn a_server_for_one_sweep() {
    let server = Server::with(&["--once"]);
    server.sweep(&BASE).exits(0);
    server.program.wait().exits(0);
}

#[test]
fn sizes_by_weight() {
    let server = Server::start();
    let all = [
        "--op",
        "send,write,read",
        "--size-mix",
        "64:9,64K:1",
        "-q",
        "5",
        "-t",
        "8",
        "-n",
        "80",
        "--warmup",
        "0",
        "--verify",
    ];
    let result = check::complete(&server.sweep(&all).exits(0));
    assert_eq!(result.cases.len(), 3);
    for case in &result.cases {
        // Five rings of 8 WRs are dealt four rounds of ten, and each WR is posted ten times.
        let bytes = case.runs[0].flows[0].totals.bytes;
        assert_eq!(bytes, 40 * (9 * 64 + 65_536), "{}", case.id);
    }
}

#[test]
fn spreading_over_qps() {
    let server = Server::start();
    let result = result(
        &server,
        &[
            "--op",
            "send,write",
            "--spread",
            "round-robin,least-loaded,hash",
            "-q",
            "6",
            "-t",
            "4",
            "-Q",
            "1",
            "--outstanding",
            "5",
            "--verify",
        ],
    );
    assert_eq!(result.cases.len(), 6);
    for case in &result.cases {
        let run = &case.runs[0];
        let (forward, workers) = (&run.flows[0], &run.nodes[0].workers);
        match case.config.spread {
            Spread::RoundRobin => assert!(forward.qps.iter().all(|qp| qp.messages == 40)),
            Spread::LeastLoaded => {
                assert!(workers.iter().all(|worker| worker.blocked == 0));
            }
            _ => assert!(forward.qps.iter().any(|qp| qp.messages != 40)),
        }
    }
    let weighted = run(
        &server,
        &[
            "--spread",
            "round-robin",
            "--qp-weights",
            "1:80,4:20",
            "-q",
            "5",
            "-Q",
            "1",
        ],
    );
    let messages: Vec<u64> = weighted.flows[0].qps.iter().map(|qp| qp.messages).collect();
    assert_eq!(messages, [160, 10, 10, 10, 10]);
}
