//! Memory is counted before it is taken: the sums are right, and what is too much is refused.

use std::time::Duration;

use testing::process::memory_bytes;
use testing::program::{Server, call};
use testing::wait::wait_until;

/// One case, with no more around it than must be.
const PLAIN: &str = "-d soft0 --timeout 18 --warmup 0 --quiet -Q 1";

/// What a sweep of thousands of QPs takes on two cores that are not idle.
const SWEEP: Duration = Duration::from_secs(12);

/// The most that a sweep had in RAM, in bytes.
fn peak_bytes(words: &str) -> f64 {
    let program = call(&format!("{PLAIN} {words}")).start();
    let mut peak = 0;
    // What has ended has none.
    wait_until("the end of the sweep", SWEEP, || {
        let now = memory_bytes(program.pid(), "VmHWM:");
        peak = now.map_or(peak, |now| peak.max(now));
        now.is_none()
    });
    program.wait().exits(0);
    peak as f64
}

/// What `--dry-run` says that it takes, in bytes.
fn announced_bytes(words: &str) -> f64 {
    let ended = call(&format!("{PLAIN} {words} --dry-run")).passes();
    let line = ended.stdout.lines().last().unwrap().to_owned();
    let (_, amount) = line.split_once(" takes ").unwrap();
    let mut parts = amount.split(' ');
    let number: f64 = parts.next().unwrap().parse().unwrap();
    let unit = match parts.next().unwrap() {
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        other => panic!("{other} in {line}"),
    };
    number * unit
}

#[test]
fn what_is_told_is_what_is_taken() {
    let program = peak_bytes("-q 1 -t 16 -s 64 -n 64");
    for words in [
        // Prebuilt work requests and the device's send queues.
        "--op write -q 1024 -t 1024 -s 64 -n 64 --no-latency",
        // The same with inline data.
        "--op write -q 1024 -t 512 -s 64 -n 64 --no-latency --inline 64",
        // Receives.
        "--op send -q 1024 -t 16 -s 64 -n 64 --rx-depth 2048 --no-latency",
        // Receives of an SRQ, and of several elements.
        "--op send -q 2048 -t 64 -s 64 -n 64 --recv-queue shared --sges 4 --no-latency",
        "--op send -q 1024 -t 16 -s 64 -n 64 --rx-depth 2048 --sges 4 --no-latency",
        // An MR for each QP.
        "--op read --mr per-qp -q 32 -t 8 -s 4M -n 8",
        // Both ends send.
        "--op send -b -q 1024 -t 128 -s 64 -n 64",
        // Recorders of all workers for all QPs.
        "--op write -q 4096 --workers 4 -t 16 -s 64 -n 64",
        // Receives that follow the send depth, and most of it recorders and objects.
        "--op send -q 8192 -t 1 -s 64 -n 64",
        // Payloads.
        "--op read -q 32 -t 8 -s 4M -n 8",
        "--op send --verify -q 16 -t 8 --rx-depth 8 -s 1M -n 16",
        // CQs, and many QPs.
        "--op write -q 4096 -t 16 -s 64 -n 16 --cq per-qp --no-latency",
    ] {
        let taken = peak_bytes(words) - program;
        let announced = announced_bytes(words);
        let ratio = announced / taken;
        assert!(
            (0.85..1.2).contains(&ratio),
            "{words}: {announced:.3e} bytes told, {taken:.3e} taken: {ratio:.2}"
        );
    }
}

#[test]
fn a_server_takes_no_more_than_it_is_allowed() {
    let server = Server::embedded("-d soft0 --memory 24M");
    let client =
        |words: &str| server.call(&format!("--timeout 18 --warmup 0 --quiet {words}")).run();
    let before = memory_bytes(server.program.pid(), "VmHWM:").unwrap();
    client("--op send -q 1024 --cq per-qp --rx-depth 4096 -t 16 -s 64 -n 100").exits(2).says(&[
        "at the server the case",
        "QPs and CQs",
        "--memory leaves 24 MiB",
        "hint: lower --qps, --tx-depth or --rx-depth",
    ]);
    // Larger than any of its parts.
    client("--op connect -q 16384 -n 1").exits(2).says(&["--memory leaves 24 MiB"]);
    client("-n 100").exits(0).all_whole(1);
    let grown = memory_bytes(server.program.pid(), "VmHWM:").unwrap() - before;
    assert!(grown < 64 << 20, "{grown} bytes");
}
