//! Every operation on every kind of CQ, checked byte by byte, with every figure of the result accounted for.

use testing::check;
use testing::program::{Server, sweep};

use crate::session::whole;

/// tests/embedded walks all combinations of the four.
#[test]
fn each_two_of_operation_cq_mode_and_poll_mode_over_each_service() {
    let server = Server::start();
    for (line, cases) in check::pairs_of_cells() {
        let how = "-q 3 --workers 2 -s 3000 -n 5 --verify --warmup 0 -t 4 -r 64";
        whole(&server, &format!("{line} {how}"), cases);
    }
    server.end();
}

#[test]
fn both_ends_in_one_process() {
    let words = "--op send,write --cq per-qp -q 4 -s 64K -n 21 -t 8 -r 16 --verify --warmup 0";
    let result = sweep(words).is_whole(2).result();
    assert_eq!(result.nodes[0].host, result.nodes[1].host);
}
