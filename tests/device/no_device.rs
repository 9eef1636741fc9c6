//! A machine without a usable device: the embedded one is taken, but not for one that was named.

use std::process::Command;

use testing::process::{Call, run};
use testing::program::{patient, program, sweep};

struct WithoutDevices;

impl WithoutDevices {
    fn new() -> WithoutDevices {
        run("rdma link delete rxe0");
        run("rdma link delete rxe1");
        WithoutDevices
    }
}

impl Drop for WithoutDevices {
    fn drop(&mut self) {
        run("rdma link add rxe0 type rxe netdev v0");
        run("rdma link add rxe1 type rxe netdev v1");
    }
}

/// The program in a network namespace of its own: in the first one the kernel's Soft-RoCE holds the UDP port of all
/// addresses, also when it has no devices.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    let script = "ip link set lo up && exec \"$@\"";
    command.args(["--net", "sh", "-c", script, "sh"]);
    command.arg(program());
    command
}

#[test]
fn the_embedded_one_is_taken_and_says_so() {
    let short = "-n 5 --warmup 0";
    let without = WithoutDevices::new();
    let alone = Call::new(apart(), &patient(short)).run();
    drop(without);
    let says = "no RDMA device on this machine: taking soft0";
    alone.exits(0).says(&[says]);
    let ended = sweep(short).passes();
    assert!(!ended.stderr().contains("soft0"), "{}", ended.stderr());
}

#[test]
fn a_port_that_is_down() {
    run("ip link add idle0 type veth peer name idle1");
    run("rdma link add rxe2 type rxe netdev idle0");
    let ended = sweep("-n 1 -d rxe2").run();
    run("rdma link delete rxe2");
    run("ip link delete idle0");
    ended.exits(2).says(&["rxe2", "hint:"]);
}
