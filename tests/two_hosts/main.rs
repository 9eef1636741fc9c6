//! rocebench between two hosts, in two guests of the lab: `scripts/device-tests` runs it in the client's guest,
//! while `rocebench serve` runs in the server's. Anywhere else everything here fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use report::results::model::Run;
use testing::check;
use testing::netem::Loss;
use testing::program::words;
use testing::program::{Ended, Program, STEP, Signal, sweep};
use testing::traffic::Traffic;
use testing::wait::wait_for;

/// The other guest's name.
const SERVER: &str = "server";

/// More than are sent before the window is open.
const PACKETS: u64 = 1_000;

const LONG: &str = "-D 60s -s 4K -t 8 -q 2 --warmup 0";
const SHORT: [&str; 6] = ["-n", "20", "--warmup", "0", "-s", "64"];

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// A server needs a moment after its start.
fn await_listener(port: &str) {
    let started = Instant::now();
    while std::net::TcpStream::connect((SERVER, port.parse().unwrap())).is_err() {
        assert!(started.elapsed() < Duration::from_secs(20), "no server");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn try_sweep(more: &[&str]) -> Ended {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| await_listener("18515"));
    sweep(&[&[SERVER], more].concat())
}

/// A client that went away is noticed; until then the server says that it is busy.
fn served_after_a_death() {
    let ended = wait_for("a server that is not busy", STEP, || {
        let ended = try_sweep(&SHORT);
        (ended.code == Some(0)).then_some(ended)
    });
    check::complete(&ended);
}

/// Starts another server in the other guest, on a port of its own; it ends with the guest.
fn another_server(port: &'static str) {
    std::thread::spawn(move || {
        let _ = Command::new("lab-peer")
            .args([
                testing::program::rocebench().to_str().unwrap(),
                "serve",
                "-p",
                port,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    });
    await_listener(port);
}

#[test]
fn all_operations() {
    let ended = try_sweep(&words(
        "--op send,write,read --cq shared,per-qp -q 4 -s 64,64K -n 15 -t 4 -r 8 --workers 2 --verify --warmup 0",
    ));
    let result = check::complete(&ended.exits(0));
    assert_eq!(result.cases.len(), 12);
    assert_eq!(result.nodes[1].host.hostname, SERVER);
    assert_ne!(result.nodes[0].host.hostname, SERVER);
}

#[test]
fn both_directions_over_ipv6() {
    let ended = sweep(&words(
        "server6 --op send,write,read -b -q 3 -s 4K -D 300ms --warmup 100ms -t 8 --verify",
    ));
    let result = check::complete(&ended.exits(0));
    assert!(
        result.nodes[0].devices[0]
            .gid
            .as_ref()
            .unwrap()
            .starts_with("fd77:")
    );
}

#[test]
fn connected_by_rdma_cm() {
    let short = "--connect cm -n 15 -t 4 -r 8 -s 4K --verify --warmup 0";
    let matrix = format!("{short} --op send,write,read -q 1,16");
    let over_ipv4 = check::complete(&try_sweep(&words(&matrix)).exits(0));
    assert_eq!(over_ipv4.cases.len(), 6);
    let both_ways = format!("server6 -b -q 3 {short}");
    let over_ipv6 = check::complete(&sweep(&words(&both_ways)).exits(0));
    for case in over_ipv4.cases.iter().chain(&over_ipv6.cases) {
        assert_eq!(case.config.connect, settings::ConnectMode::Cm);
    }
    let gid = over_ipv6.nodes[0].devices[0].gid.clone().unwrap();
    assert!(gid.starts_with("fd77:"), "{gid}");
}

#[test]
fn open_loops() {
    let ended = try_sweep(&words(
        "--op send,write,read --rate 20%,60% -q 4 --workers 2 -s 1K -t 16 -D 500ms --warmup 100ms",
    ));
    let result = check::complete(&ended.exits(0));
    // And the closed loops of which those are shares.
    assert_eq!(result.cases.len(), 9);
    let with_load = |run: &Run| run.flows.iter().all(|flow| flow.load.is_some());
    let of_loads = (result.cases.iter()).filter(|case| case.runs.iter().all(with_load));
    assert_eq!(of_loads.count(), 6);
}

#[test]
fn one_percent_of_loss() {
    let here = Loss::of_all("eth0", "1%");
    let there = "tc qdisc replace dev eth0 root netem limit 100000 loss 1%";
    run("lab-peer", &words(there));
    let ended = try_sweep(&words(
        "--op send,write,read -q 2 -s 64,16K -t 8 -r 16 -n 100 --verify --warmup 0 --timeout 12",
    ));
    drop(here);
    run("lab-peer", &["tc", "qdisc", "del", "dev", "eth0", "root"]);
    assert_eq!(check::complete(&ended.exits(0)).cases.len(), 6);
}

#[test]
fn a_host_that_vanishes() {
    let how = "-q 1,2 -D 8s -s 4K -t 8 --warmup 0 --timeout 20";
    let client = Program::sweep(&words(&format!("{SERVER} {how}")));
    client.await_line(0, "[2/2]", Duration::from_secs(60));
    Traffic::of("rxe0").await_packets(PACKETS);
    let loss = Loss::of_all("eth0", "100%");
    // The client's next dial finds the wire mended.
    client.has_said("(run 1): ");
    drop(loss);
    let ended = client.wait().exits(1);
    let runs = ended.runs();
    assert!(runs[0].complete && !runs[1].complete);
    assert!(runs[1].flows[0].totals.messages > 0);
    served_after_a_death();
}

#[test]
fn a_server_killed_over_there() {
    const PORT: &str = "19000";
    another_server(PORT);
    let name = format!("{SERVER}:{PORT}");
    let traffic = Traffic::of("rxe0");
    let client = Program::sweep(&words(&format!("{name} {LONG}")));
    traffic.await_packets(PACKETS);
    run("lab-peer", &["pkill", "-KILL", "-f", "serve -p 19000"]);
    let ended = client.wait().exits(1).says(&["closed the connection"]);
    assert!(ended.runs()[0].flows[0].totals.messages > 0);
    check::complete(&try_sweep(&SHORT).exits(0));
}

#[test]
fn a_client_killed_over_here() {
    let traffic = Traffic::of("rxe0");
    let client = Program::sweep(&words(&format!("{SERVER} {LONG}")));
    traffic.await_packets(PACKETS);
    client.signal(Signal::Kill);
    client.wait();
    served_after_a_death();
}

/// The other host's server is the one that the lab started: it has outlived all of it.
#[test]
fn the_server_serves_on() {
    check::complete(&try_sweep(&SHORT).exits(0));
}
