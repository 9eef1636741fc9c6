//! Rates that the device keeps (`--pace device`): a flow moves what was asked, and what no device can keep is refused.

use serde_json::Value;

use crate::program::{Program, alone, with_others};

const BASE: &str = "-d soft0 --warmup 0 --quiet --pace device";

fn gbit_per_s(flow: &Value) -> f64 {
    flow["totals"]["gbit_per_s"].as_f64().unwrap()
}

/// A closed loop moves some hundred times as much.
#[test]
fn a_flow_moves_as_much_as_the_device_was_told() {
    let _machine = alone();
    let run = |words: &str| {
        let words = format!("{BASE} -s 4000 -t 16 -r 64 -b -D 1s {words}");
        Program::new(&words).run().exits(0)
    };
    let by_bits = run("--op send --service rc,uc --rate 40Mb -q 4");
    let by_messages = run("--op write --rate 2500");
    let cases = by_bits.cases().iter().chain(by_messages.cases());
    assert_eq!(cases.clone().count(), 3);
    for case in cases {
        assert_eq!(case["config"]["pace"], "device");
        let asked = match case["config"]["rate"].as_str().unwrap() {
            "40Mb" => 0.040,
            _ => 2500.0 * 4000.0 * 8.0 / 1e9,
        };
        let flows = case["runs"][0]["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 2, "{}", case["id"]);
        for flow in flows {
            // Headers, which the device counts too, are 60 of 4060 bytes or twice that.
            let share = gbit_per_s(flow) / asked;
            assert!((0.92..1.02).contains(&share), "{}: {share}", case["id"]);
            assert_eq!(flow["load"], Value::Null, "no times were planned");
        }
    }
}

#[test]
fn what_no_device_can_keep_is_refused_before_the_run() {
    let _machine = with_others();
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
        Program::new(&format!("{BASE} -D 1s {words}"))
            .run()
            .exits(2)
            .says(says);
    }
}
