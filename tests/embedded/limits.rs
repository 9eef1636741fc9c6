//! What cannot be measured is said: before the first case where that is known then.

use testing::program::{Server, call};

#[test]
fn a_case_that_a_device_cannot_do_is_refused_before_the_first() {
    let server = Server::embedded("-d soft0");
    for host in ["", &server.name] {
        let ended = call(&format!(
            "{host} -d soft0 -n 10 --warmup 0 -s 64 -q 1,16384"
        ))
        .is_refused(&[
            "send-shared-q16384-64B: at the server: soft0 can do at most 4194303 entries in one CQ",
            "hint: lower --qps",
        ]);
        assert!(ended.json().is_null(), "{}", ended.json());
    }
}

#[test]
fn a_window_in_which_nothing_completes_is_no_measurement() {
    // A message takes 268 ms.
    let server = Server::embedded("-d soft0");
    let ended = server
        .call("--op write -t 1 -s 64M,4K -D 100ms --warmup 0 --timeout 18 --faults rate=2G")
        .fails(&[
            "write-shared-q1-64MiB-t1 (run 1): no message completed in the window of 0.",
            "hint: measure longer with -D",
            "1 of 2 runs failed",
        ]);
    let runs: Vec<_> = ended.cases().iter().map(|case| &case["runs"][0]).collect();
    assert_eq!(runs[0]["complete"], false);
    assert_eq!(runs[0]["flows"][0]["totals"]["messages"], 0);
    assert_eq!(runs[1]["complete"], true, "{}", runs[1]["failure"]);
}
