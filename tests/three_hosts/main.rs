//! rocebench between three hosts, in three guests of the lab on one wire: `scripts/device-tests` runs it in the client's
//! guest, while `rocebench serve` runs in those of server and server2. Anywhere else everything here fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::Duration;

use results::model::ResultFile;
use testing::network::Loss;
use testing::process::Program;
use testing::program::{bare, sweep};
use testing::wait::wait_until;

const NODES: [&str; 3] = ["client", "server", "server2"];

/// With a server in this guest too, which is then a node like the others; it ends with the guest.
fn nodes() -> String {
    static OWN: OnceLock<Program> = OnceLock::new();
    OWN.get_or_init(|| bare("serve --quiet").start());
    for node in NODES {
        wait_until(node, Duration::from_secs(5), || TcpStream::connect((node, 18515)).is_ok());
    }
    NODES.join(",")
}

fn whole(line: &str, cases: usize) -> ResultFile {
    let line = format!("--nodes {} {line}", nodes());
    sweep(&line).is_whole(cases).result()
}

#[test]
fn an_incast_of_two_loses_nothing() {
    let how = "--pattern incast --op send,write -s 64,16K -n 20 -t 4 -r 8 --verify --warmup 0";
    for case in whole(how, 4).cases {
        let flows = &case.runs[0].flows;
        let ends: Vec<_> = flows.iter().map(|it| (&*it.from, &*it.to)).collect();
        assert_eq!(ends, [("server", "client"), ("server2", "client")]);
        assert!(flows.iter().all(|flow| flow.totals.messages == 20));
    }
}

#[test]
fn doctor_compares_three_hosts() {
    let ended = bare(&format!("doctor --json --nodes {}", nodes())).run();
    let report = ended.document();
    assert_eq!(report["common"]["driver"], "rdma_rxe", "{}", ended.stderr());
    let findings = report["findings"].as_array().unwrap().iter();
    // An emulated clock may be anywhere.
    let unlike = findings
        .filter(|it| it["check"] != "clock")
        .filter(|it| it["scope"] == "reach" || it["scope"] == "difference");
    assert_eq!(unlike.count(), 0, "{}", ended.stdout);
    for (node, name) in report["nodes"].as_array().unwrap().iter().zip(NODES) {
        assert_eq!(node["host"]["hostname"], name);
        assert_eq!(node["examination"]["device"]["active_mtu_bytes"], 4096);
    }
}

/// Of six paths one loses packets: the flow of its case alone has lost messages.
#[test]
fn a_path_that_loses_is_named() {
    nodes();
    // The address of server2.
    let loss = Loss::of_roce_to("10.77.0.3", "eth0", "50%");
    let line = "--pattern pairs --service ud --op send -s 1K -t 2 -r 64 -n 40 --warmup 0 --verify";
    let result = whole(line, 6);
    drop(loss);
    let ends: Vec<_> = result
        .cases
        .iter()
        .flat_map(|case| &case.runs[0].flows)
        .filter(|it| it.delivery.as_ref().is_some_and(|it| it.lost > 0))
        .map(|it| (&*it.from, &*it.to))
        .collect();
    assert_eq!(ends, [("client", "server2")]);
}
