//! What cannot be measured is said: before the first case where that is known then.

use crate::program::{Program, Server, alone};

#[test]
fn a_case_that_a_device_cannot_do_is_refused_before_the_first() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let remote = format!("127.0.0.1:{}", server.port);
    for host in ["", &remote] {
        let ended = Program::new(&format!(
            "{host} -d soft0 -n 10 --warmup 0 -s 64 -q 1,16384"
        ))
        .run()
        .exits(2)
        .says(&[
            "send-shared-q16384-64B: at the server: soft0 can do at most 4194303 entries in one CQ",
            "hint: lower --qps",
        ]);
        assert!(ended.json.is_null(), "{}", ended.json);
    }
    Program::new("-d soft0 -n 10 --warmup 0 -q 1 -t 65536 --op read")
        .run()
        .exits(2)
        .says(&["read-shared-q1-64KiB-t65536: soft0 can do at most 16384 send WRs"]);
}
