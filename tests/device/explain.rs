//! `rocebench explain` on the kernel's Soft-RoCE: calls, states and errors are real there too, and its packets are
//! not this program's to see.

use testing::program::{Ended, Server, bare};

fn lesson(server: &Server, words: &str) -> Ended {
    bare(&format!("explain {} -d rxe0 {words}", server.name)).passes()
}

#[test]
fn every_operation_arrives_and_says_how_to_see_packets() {
    let server = Server::start();
    for (op, words) in [
        ("send", "IBV_WC_RECV"),
        ("write", "IBV_ACCESS_REMOTE_WRITE"),
        ("read", "IBV_ACCESS_REMOTE_READ"),
    ] {
        let ended = lesson(&server, &format!("--op {op} --text real"));
        ended.shows(&[words, "as text: real", "The message has arrived"]);
        ended.shows(&[
            "(other end) ibv_query_qp: RESET → INIT → RTR → RTS",
            "sudo tcpdump -i v0 -nn -X udp port 4791",
            "ibv_close_device(context) → 0",
        ]);
    }
    server.end();
}

#[test]
fn every_mistake_brings_the_error_it_promises() {
    let server = Server::start();
    for (mistake, error) in [
        // The kernel looks for a neighbour that is not there.
        ("gid", "Error: ibv_modify_qp INIT→RTR with GID index 1 failed"),
        ("rkey", "Error: REM_ACCESS_ERR (10)"),
        ("no-recv", "Error: RNR_RETRY_EXC_ERR (13)"),
        ("mtu", "Error: REM_INV_REQ_ERR (9)"),
    ] {
        let ended = lesson(&server, &format!("--break {mistake}"));
        ended.shows(&[error, "has occurred"]);
    }
    server.serves_the_next();
    server.end();
}
