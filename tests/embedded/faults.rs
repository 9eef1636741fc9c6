//! Slow networks, and those that lose all: what is waited for, what is given up, and what is said of it.

use std::time::{Duration, Instant};

use crate::program::{Program, with_others};

#[test]
fn faults_that_are_none_are_bad_input() {
    for (words, says) in [
        ("--faults drop=5", "from 0% to 100%"),
        (
            "--faults dorp=5%",
            "`dorp=5%` is not a fault: faults are seed, peer, down, drop",
        ),
        ("serve --faults delay=5", "`delay=5` is not a time"),
    ] {
        Program::new(words).run().exits(2).says(&["--faults", says]);
    }
    Program::new("-n 1")
        .env("SOFTROCE_FAULTS", "drop=x")
        .run()
        .exits(2)
        .says(&["SOFTROCE_FAULTS", "`drop=x` is not a probability"]);
}

#[test]
fn a_network_that_swallows_all_ends_the_run() {
    let _machine = with_others();
    let started = Instant::now();
    Program::new(
        "-d soft0 --faults tx.drop=100% --op write -n 10 --timeout 12 --retry-cnt 3 --warmup 0",
    )
    .run()
    .exits(1)
    .says(&["RETRY_EXC_ERR (12)", "hint: check the link"]);
    // 4 x 17 ms, and what connecting takes: sooner than nothing moving for 10 s.
    assert!(
        started.elapsed() < Duration::from_secs(9),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_window_without_a_message_is_told_without_a_long_drain() {
    let _machine = with_others();
    let started = Instant::now();
    // 1.3 s a message, and three minutes for all that are posted.
    Program::new("-d soft0 -s 16M -D 1s --warmup 0 --faults rate=100M")
        .run()
        .exits(1)
        .says(&["no message completed in the window of"]);
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// Both at once, for they only wait.
#[test]
fn a_message_longer_than_the_stall_limit_arrives_and_a_long_drain_is_remarked_on() {
    let _machine = with_others();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // 13.1 s on the wire, where nothing may move for 12.5 s.
            Program::new(
                "-d soft0 -s 3M --mtu 1024 -t 1 -n 1 --poll event --warmup 0 --timeout 16 --retry-cnt 1 \
                 --faults rate=2M",
            )
            .run()
            .exits(0)
            .all_whole(1);
        });
        // 10.8 s for all that are posted; the remark comes after 10 s.
        Program::new(
            "-d soft0 -s 1M -t 64 -D 400ms --poll event --warmup 0 --timeout 18 --faults rate=50M",
        )
        .run()
        .exits(0)
        .says(&["the window is over", "are still in the send queues, about"]);
    });
}

#[test]
fn a_cq_that_overflows_is_told_as_such() {
    let _machine = with_others();
    Program::new(
        "-d soft0 --op write,send --cq shared,per-qp --cq-depth 2 -q 4 -Q 1 -n 1000 --warmup 0",
    )
    .run()
    .exits(1)
    .says(&[
        "a CQ of soft0 with 2 entries overflowed: completions are lost",
        "hint: leave --cq-depth out",
    ]);
}
