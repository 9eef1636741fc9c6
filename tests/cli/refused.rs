//! What cannot be is one sentence with what can, before anything runs: what options say together, and what a command takes.

use crate::input::refusals;
use crate::{Ran, has, program};

#[test]
fn what_does_not_go_together() {
    insta::assert_snapshot!(refusals(&[
        "--against iperf",
        "--pairs 8",
        "--against perftest --pairs 5",
        "--against perftest --verify",
        "--against perftest -l 4 -Q 8",
        "--against perftest -n 3",
        "--against perftest --connect cm",
        "--against perftest --pairs 6 --max-pairs 4",
        "--beside reads --against perftest",
        "--beside reads --slo p99<1ms",
        "--beside raeds",
        "--beside reads --fail-victim 1.5",
        "--fail-victim 1.5x",
        "serve --memory 0",
        "serve --memory 8GB",
        "serve --memory x",
        "--pattern pairs --slo p99<20us",
        "--pattern pairs --op connect",
        "--nodes 127.0.0.1:1,127.0.0.1:2 -d soft0",
        "--nodes 127.0.0.1:1,127.0.0.1:2 --faults drop=1%",
        "--nodes 127.0.0.1:1,127.0.0.1:2 --cores 0",
        "doctor --nodes local:4",
        "doctor --nodes a",
        "doctor --nodes a,b[1",
        "doctor --nodes a,b -d soft0",
        "doctor --nodes a,a:18515",
        "doctor --nodes a,b HOST",
        "--faults drop=5",
        "--faults dorp=5%",
        "serve --faults delay=5",
        "-n 5 --timestamps device --poll-api extended --no-latency",
        "--size-mix 64:9",
        "--op write --recv-queue shared",
        "--op fetch-add --sges 2",
        "--op fetch-add --offset 4",
    ]));
}

#[test]
fn faults_of_the_environment_are_read_as_those_of_the_flag() {
    let ran = Ran::new(program(&["-n", "1"]).env("SOFTROCE_FAULTS", "drop=x")).ends(2);
    has(&ran.err, ["SOFTROCE_FAULTS", "`drop=x` is not a probability"]);
}
