//! What cannot be is one sentence with what can, before anything runs.

use testing::program::call;

#[test]
fn what_the_device_or_the_machine_cannot_do_is_refused_before_the_run() {
    for (words, says) in [
        ("--op send --sges 17", &["soft0 can do at most 16 SGEs in one WR", "lower --sges"][..]),
        (
            "--op send --recv-queue shared -r 20000",
            &["at most 16384 receives on one SRQ", "lower --rx-depth"],
        ),
        ("--op write --memory 1024G", &["of memory", "leaves", "lower --memory"]),
        // More than any machine that tests run on has reserved.
        (
            "--op write -q 64 -s 1G --pages huge",
            &["huge pages of 2 MiB", "/proc/sys/vm/nr_hugepages"],
        ),
        (
            "--op write -s 64 -q 16384 --workers 1024",
            &["at both ends takes 4", "latencies 4", "GiB", "--no-latency"],
        ),
        // Its ends could not tell each other what they verify.
        (
            "--verify --cq per-qp -q 1,4096 -t 1024 -s 64",
            &["4096 QPs of 1", "lower --qps or --tx-depth"],
        ),
        (
            "--op read -q 1 -t 65536",
            &["read-shared-q1-64KiB-t65536: soft0 can do at most 16384 send WRs"],
        ),
        (
            "--op connect -q 65000 --traffic-qps 1000",
            &["can do at most", "lower --qps or --traffic-qps"],
        ),
    ] {
        call(&format!("-d soft0 -n 10 --warmup 0 --quiet {words}")).is_refused(says);
    }
    call("-d soft999 -n 1").is_refused(&[
        "no RDMA device \"soft999\"",
        "soft0 (embedded, loopback)",
        "hint: name one of them",
    ]);
}

#[test]
fn rates_that_no_device_can_keep_are_refused_before_the_run() {
    for (words, says) in [
        ("", &["--pace has no effect without --rate"][..]),
        (
            "--op write --rate 50%",
            &["--pace device cannot be used", "a share of the closed loop's rate", "--pace worker"],
        ),
        ("--op read --rate 1Gb", &["the other end sends their data", "--op send or write"]),
        (
            "--op write --rate 1Gb --arrivals fixed",
            &["--arrivals has no effect with --pace device"],
        ),
        ("--op write --rate 100b", &["each of 1 would have 0", "change --rate"]),
        (
            "--op send -s 1000 --service ud --rate 1Gb",
            &["soft0 has no rate limit for QPs with this --service", "take --pace worker"],
        ),
        (
            "--op write -q 64 --rate 1Mb",
            &["soft0 has no rate limit as low as", "raise --rate, lower --qps"],
        ),
        (
            "--op write --rate 200Gb",
            &["soft0 can do at most 100000000 kbit/s of one QP", "lower --rate"],
        ),
    ] {
        call(&format!("-d soft0 --warmup 0 --pace device -D 1s {words}")).is_refused(says);
    }
}
