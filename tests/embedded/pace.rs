//! Rates that the device keeps (`--pace device`): a flow moves what was asked, and what no device can keep is refused.

use serde_json::Value;

use testing::program::call;

const BASE: &str = "-d soft0 --warmup 0 --quiet --pace device";

/// How exactly the device keeps a rate, its own tests state in made-up time.
#[test]
fn a_rate_that_the_device_keeps_is_no_open_loop() {
    for (words, cases) in
        [("--op send --service rc,uc --rate 40Mb -q 4", 2), ("--op write --rate 2500", 1)]
    {
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
