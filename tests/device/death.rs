//! An end dies or falls silent in each phase of a run on the kernel's device. Which frame it is at does not concern the device:
//! tests/embedded has an end die at each.

use testing::deaths::{CONNECT, DRAIN, Death, IN_THE_WINDOW, clients_get, first, servers_get};
use testing::program::Signal;
use testing::proxy::From;
use testing::server::RXE;

/// While QPs are connected, in the window, and while the last completions are awaited.
fn phases() -> [Death; 3] {
    [CONNECT[3], IN_THE_WINDOW, DRAIN[0]]
}

#[test]
fn server_killed_in_each_phase() {
    servers_get(RXE, Signal::Kill, &phases(), &[]);
}

#[test]
fn client_killed_in_each_phase() {
    clients_get(RXE, Signal::Kill, &phases(), &[]);
}

#[test]
fn server_killed_under_reads_both_ways() {
    servers_get(RXE, Signal::Kill, &[IN_THE_WINDOW], &["--op", "read", "-b"]);
}

#[test]
fn client_killed_under_writes_both_ways() {
    clients_get(
        RXE,
        Signal::Kill,
        &[IN_THE_WINDOW],
        &["--op", "write", "-b"],
    );
}

#[test]
fn client_killed_among_many_qps() {
    let steps = [
        first(From::Client, "create"),
        first(From::Client, "connect"),
    ];
    let many = ["-q", "500", "-t", "4", "-r", "8", "-Q", "1"];
    clients_get(RXE, Signal::Kill, &steps, &many);
}

#[test]
fn either_end_falls_silent() {
    servers_get(RXE, Signal::Stop, &[IN_THE_WINDOW], &[]);
    clients_get(RXE, Signal::Stop, &[DRAIN[1]], &[]);
}
