//! A machine without a usable device: the embedded one is taken, but not for one that was named.

use std::process::Command;

use testing::program::{Program, program, sweep};

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

/// The program in a network namespace of its own: in the first one the kernel's Soft-RoCE holds the UDP port of all
/// addresses, also when it has no devices.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "sh",
        "-c",
        "ip link set lo up && exec \"$@\"",
        "sh",
    ]);
    command.arg(program());
    command
}

#[test]
fn the_embedded_one_is_taken_and_says_so() {
    let without = WithoutDevices::new();
    let alone = Program::sweep_of(apart(), &["-n", "5", "--warmup", "0"]).wait();
    drop(without);
    alone
        .exits(0)
        .says(&["no RDMA device on this machine: taking soft0"]);
    let ended = sweep(&["-n", "5", "--warmup", "0"]).exits(0);
    assert!(!ended.stderr().contains("soft0"), "{}", ended.stderr());
}

#[test]
fn faults_are_refused_for_a_device_of_the_system() {
    sweep(&["-n", "1", "--faults", "drop=1%"]).exits(2).says(&[
        "--faults is for the embedded software device, and rxe",
        "--device soft0",
    ]);
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
