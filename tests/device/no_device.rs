//! A machine without a usable device: one line, and what to do.

use std::process::Command;

use crate::lab::program::{Program, sweep};

fn rdma(arguments: &[&str]) {
    assert!(
        Command::new("rdma")
            .args(arguments)
            .status()
            .unwrap()
            .success(),
        "rdma {arguments:?}"
    );
}

struct WithoutDevices;

impl WithoutDevices {
    fn new() -> WithoutDevices {
        rdma(&["link", "delete", "rxe0"]);
        rdma(&["link", "delete", "rxe1"]);
        WithoutDevices
    }
}

impl Drop for WithoutDevices {
    fn drop(&mut self) {
        rdma(&["link", "add", "rxe0", "type", "rxe", "netdev", "v0"]);
        rdma(&["link", "add", "rxe1", "type", "rxe", "netdev", "v1"]);
    }
}

#[test]
fn it_says_so_in_one_line() {
    let without = WithoutDevices::new();
    let alone = sweep(&["-n", "1"]);
    let server = Program::bare(&["serve"]).wait();
    drop(without);
    for ended in [alone, server] {
        let ended = ended.exits(2).says(&["no RDMA device", "hint:"]);
        assert_eq!(ended.lines.len(), 2, "{}", ended.stderr());
    }
    sweep(&["-n", "5", "--warmup", "0"]).exits(0);
}

#[test]
fn a_port_that_is_down() {
    let ip = |arguments: &[&str]| {
        assert!(
            Command::new("ip")
                .args(arguments)
                .status()
                .unwrap()
                .success(),
            "ip {arguments:?}"
        );
    };
    ip(&[
        "link", "add", "idle0", "type", "veth", "peer", "name", "idle1",
    ]);
    rdma(&["link", "add", "rxe2", "type", "rxe", "netdev", "idle0"]);
    let ended = sweep(&["-n", "1", "-d", "rxe2"]);
    rdma(&["link", "delete", "rxe2"]);
    ip(&["link", "delete", "idle0"]);
    ended.exits(2).says(&["rxe2", "hint:"]);
}
