//! Rates that the device keeps (`--pace device`): a flow moves what was asked, and what no device can keep is refused.

use serde_json::Value;

use testing::server::call;

const BASE: &str = "-d soft0 --warmup 0 --quiet --pace device";

/// How exactly the device keeps a rate, its own tests state in made-up time.
#[test]
fn a_rate_that_the_device_keeps_is_no_open_loop() {
    for (words, cases) in [
        ("--op send --service rc,uc --rate 40Mb -q 4", 2),
        ("--op write --rate 2500", 1),
    ] {
        let words = format!("{BASE} -s 4000 -t 16 -r 64 -b -n 20 {words}");
        let ended = call(&words).is_whole(cases);
        for case in ended.cases() {
            assert_eq!(case["config"]["pace"], "device");
            for flow in case["runs"][0]["flows"].as_array().unwrap() {
                assert_eq!(flow["load"], Value::Null, "no times were planned");
            }
        }
    }
}

#[test]
fn what_no_device_can_keep_is_refused_before_the_run() {
    for (words, says) in [
        ("", &["--pace has no effect without --rate"][..]),
        (
            "--op write --rate 50%",
            &[
                "--pace does not fit",
                "a share of the closed loop's rate",
                "--pace worker",
            ],
        ),
        (
            "--op read --rate 1Gb",
            &[
                "the other end sends the data of --op read",
                "--op send or write",
            ],
        ),
        (
            "--op write --rate 1Gb --arrivals fixed",
            &["--arrivals has no effect with --pace device"],
        ),
        (
            "--op write --rate 100b",
            &["--rate 100b gives each of 1 QPs 0", "change --rate"],
        ),
        (
            "--op send -s 1000 --service ud --rate 1Gb",
            &[
                "soft0 has no rate limit for QPs of the case's --service",
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
        call(&format!("{BASE} -D 1s {words}")).is_refused(says);
    }
}
