//! rocebench between three hosts, in three guests of the lab on one wire: `scripts/device-tests` runs it in the client's
//! guest, while `rocebench serve` runs in those of server and server2. Anywhere else everything here fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use report::mesh::{Matrix, Outlier, Place};
use testing::check;
use testing::netem::Rate;
use testing::program::words;
use testing::program::{Ended, Program, sweep};

const NODES: [&str; 3] = ["client", "server", "server2"];
/// Where `server2` is.
const SERVER2: &str = "10.77.0.3";
/// What all paths carry. It is less than emulated CPUs can, so that figures scatter little: of only six pairs, one must
/// stand out far.
const USUAL: &str = "1mbit";
/// What one of them carries.
const SLOW: &str = "200kbit";

/// With a server in this guest too, which is then a node like the others; it ends with the guest.
fn nodes() -> String {
    static OWN: OnceLock<Program> = OnceLock::new();
    OWN.get_or_init(|| Program::bare(&["serve", "--quiet"]));
    for node in NODES {
        let started = Instant::now();
        while TcpStream::connect((node, 18515)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "no {node}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    NODES.join(",")
}

fn pattern(nodes: &str, more: &[&str]) -> Ended {
    sweep(&[&["--nodes", nodes], more].concat()).exits(0)
}

/// What is told of a sweep with one matrix, and that matrix.
fn told(ended: &Ended) -> (Matrix, Vec<Outlier>) {
    let result = check::complete(ended);
    let mut all = Matrix::all(&result);
    assert_eq!(all.len(), 1);
    let matrix = all.remove(0);
    let outliers = matrix.outliers();
    (matrix, outliers)
}

#[test]
fn an_incast_of_two_loses_nothing() {
    let how = "--pattern incast --op send,write -s 64,16K -n 20 -t 4 -r 8 --verify --warmup 0";
    let result = check::complete(&pattern(&nodes(), &words(how)));
    assert_eq!(result.cases.len(), 4);
    for case in &result.cases {
        let flows: Vec<_> = case.runs[0].flows.iter().collect();
        let ends: Vec<_> = flows.iter().map(|it| (&*it.from, &*it.to)).collect();
        assert_eq!(ends, [("server", "client"), ("server2", "client")]);
        assert!(flows.iter().all(|flow| flow.totals.messages == 20));
    }
}

#[test]
fn doctor_compares_three_hosts() {
    let ended = Program::bare(&["doctor", "--json", "--nodes", &nodes()]).wait();
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["common"]["driver"], "rdma_rxe", "{}", ended.stderr());
    let of_scope = |scope: &str| {
        let findings = report["findings"].as_array().unwrap();
        let wanted = findings.iter().filter(|it| it["scope"] == scope);
        // An emulated clock may be anywhere.
        let wanted = wanted.filter(|it| it["check"] != "clock");
        wanted.count()
    };
    assert_eq!(
        (of_scope("reach"), of_scope("difference")),
        (0, 0),
        "{}",
        ended.stdout
    );
    for (node, name) in report["nodes"].as_array().unwrap().iter().zip(NODES) {
        assert_eq!(node["host"]["hostname"], name);
        assert_eq!(node["examination"]["device"]["active_mtu_bytes"], 4096);
    }
}

#[test]
fn a_path_that_is_slowed_is_named() {
    let nodes = nodes();
    // Counted messages: where CPUs are emulated, a window of so long is often another one.
    let how = words("--pattern pairs --op write -s 4K -t 2 -n 10 --warmup 0 --runs 3");
    let rates = [
        Rate::of("client", USUAL, Some((SERVER2, SLOW))),
        Rate::of("server", USUAL, None),
        Rate::of("server2", USUAL, None),
    ];
    let (matrix, outliers) = told(&pattern(&nodes, &how));
    drop(rates);
    let place = |name: &str| matrix.nodes.iter().position(|it| it == name).unwrap();
    let slowed = Place::Path(place("client"), place("server2"));
    let places: Vec<_> = outliers.iter().map(|it| it.place).collect();
    let sentences = matrix.sentences().join("\n");
    assert_eq!(places, [slowed], "{sentences}\n{:#?}", matrix.cells);
    let words = ["client", "server2"];
    assert!(words.iter().all(|it| sentences.contains(it)), "{sentences}");
}
