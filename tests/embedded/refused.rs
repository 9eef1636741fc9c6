//! What cannot be is one sentence with what can, before anything runs.

use testing::server::call;

#[test]
fn what_makes_no_sense_is_bad_input() {
    for (words, says) in [
        ("--against iperf", &["iperf"][..]),
        ("--pairs 8", &["--against"]),
        ("--against perftest --pairs 5", &["give --pairs 6"]),
        ("--against perftest --verify", &["leave --verify out"]),
        ("--against perftest -l 4 -Q 8", &["give -Q a divisor of -l"]),
        ("--against perftest -n 3", &["5 to 100000000 messages"]),
        (
            "--against perftest --connect cm",
            &["compare with --connect tcp"],
        ),
        (
            "--against perftest --pairs 6 --max-pairs 4",
            &["--max-pairs 4"],
        ),
        ("serve --memory 0", &["not an amount of memory"]),
        ("serve --memory 8GB", &["ambiguous"]),
        ("serve --memory x", &["not a size"]),
        (
            "--nodes local:3",
            &["nodes need a --pattern or [[flow]] tables"],
        ),
        (
            "--pattern pairs --slo p99<20us",
            &["--pattern cannot be used with --slo"],
        ),
        (
            "--pattern pairs --op connect",
            &["--pattern has no effect on --op connect"],
        ),
        (
            "--nodes 127.0.0.1:1,127.0.0.1:2 -d soft0",
            &["which is not in --nodes", "rocebench serve"],
        ),
        (
            "--nodes 127.0.0.1:1,127.0.0.1:2 --faults drop=1%",
            &["which is not in --nodes", "rocebench serve"],
        ),
        (
            "--nodes 127.0.0.1:1,127.0.0.1:2 --cores 0",
            &["which is not in --nodes", "rocebench serve"],
        ),
        (
            "doctor --nodes local:4",
            &["without --nodes examines this machine"],
        ),
        ("doctor --nodes a", &["2 to 4096 nodes, not 1"]),
        ("doctor --nodes a,b[1", &["b[1"]),
        (
            "doctor --nodes a,b -d soft0",
            &["give --device to `rocebench serve`"],
        ),
        (
            "doctor --nodes a,a:18515",
            &["start a server for each node"],
        ),
        ("doctor --nodes a,b HOST", &["cannot be used with"]),
        ("--faults drop=5", &["--faults", "from 0% to 100%"]),
        (
            "--faults dorp=5%",
            &[
                "--faults",
                "`dorp=5%` is not a fault: faults are seed, peer, down, drop",
            ],
        ),
        (
            "serve --faults delay=5",
            &["--faults", "`delay=5` is not a time"],
        ),
        (
            "-n 5 --timestamps device --poll-api extended --no-latency",
            &[
                "--timestamps has no effect with --no-latency: only latencies use time stamps",
                "leave --timestamps out",
            ],
        ),
        ("--size-mix 64:9", &["2 to 16 entries"]),
        (
            "--op write --recv-queue shared",
            &["--recv-queue has no effect", "send, send-imm or write-imm"],
        ),
        (
            "--op fetch-add --sges 2",
            &["--sges has no effect", "one piece"],
        ),
        (
            "--op fetch-add --offset 4",
            &[
                "--offset",
                "cannot be used on atomic operations",
                "multiples of 8",
            ],
        ),
    ] {
        call(words).is_refused(says);
    }
    call("-n 1")
        .env("SOFTROCE_FAULTS", "drop=x")
        .is_refused(&["SOFTROCE_FAULTS", "`drop=x` is not a probability"]);
}

#[test]
fn what_the_device_or_the_machine_cannot_do_is_refused_before_the_run() {
    for (words, says) in [
        (
            "--op send --sges 17",
            &["soft0 can do at most 16 SGEs in one WR", "lower --sges"][..],
        ),
        (
            "--op send --recv-queue shared -r 20000",
            &["at most 16384 receives on one SRQ", "lower --rx-depth"],
        ),
        (
            "--op write --memory 1024G",
            &["of memory", "leaves", "lower --memory"],
        ),
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
            &[
                "--pace device cannot be used",
                "a share of the closed loop's rate",
                "--pace worker",
            ],
        ),
        (
            "--op read --rate 1Gb",
            &["the other end sends their data", "--op send or write"],
        ),
        (
            "--op write --rate 1Gb --arrivals fixed",
            &["--arrivals has no effect with --pace device"],
        ),
        (
            "--op write --rate 100b",
            &["each of 1 would have 0", "change --rate"],
        ),
        (
            "--op send -s 1000 --service ud --rate 1Gb",
            &[
                "soft0 has no rate limit for QPs with this --service",
                "take --pace worker",
            ],
        ),
        (
            "--op write -q 64 --rate 1Mb",
            &[
                "soft0 has no rate limit as low as",
                "raise --rate, lower --qps",
            ],
        ),
        (
            "--op write --rate 200Gb",
            &[
                "soft0 can do at most 100000000 kbit/s of one QP",
                "lower --rate",
            ],
        ),
    ] {
        call(&format!("-d soft0 --warmup 0 --pace device -D 1s {words}")).is_refused(says);
    }
}
