//! Cases of several flows from a configuration file: different operations, sizes and directions side by side, each
//! checked byte by byte and told for itself.

use serde_json::Value;

use testing::program::Ended;
use testing::server::call;

/// Runs a file.
fn run(text: &str, words: &str) -> Ended {
    let words = format!("-d soft0 --timeout 18 --config flows.toml --verify --warmup 0 {words}");
    let call = call(&words).with_file("flows.toml", text);
    call.passes()
}

fn messages(flow: &Value) -> u64 {
    flow["totals"]["messages"].as_u64().unwrap()
}

/// The flows of the only run, which is complete.
fn flows(ended: &Ended) -> &[Value] {
    let run = &ended.first_run();
    assert_eq!(run["complete"], true, "{}", ended.stderr());
    run["flows"].as_array().unwrap()
}

#[test]
fn small_writes_go_beside_large_reads() {
    let ended = run(
        r#"
        [[flow]]
        name = "small"
        op = "write"
        qps = 12
        size = 64

        [[flow]]
        name = "bulk"
        op = "read"
        qps = 4
        size = "1M"
        tx-depth = 4
        "#,
        "-n 40",
    );
    let [small, bulk] = flows(&ended) else {
        panic!("{}", ended.json())
    };
    assert_eq!((messages(small), messages(bulk)), (12 * 40, 4 * 40));
    assert_eq!(bulk["totals"]["bytes"], (4 * 40) << 20);
    assert_eq!(small["qps"].as_array().unwrap().len(), 12);
    let config = &ended.cases()[0]["config"]["flows"];
    assert_eq!(config[1]["settings"]["size_bytes"], 1 << 20);
    assert_eq!(
        (&config[0]["from"], &config[0]["to"]),
        (&"client".into(), &"server".into())
    );
    ended.shows(&["small", "bulk", "1 MiB", "verify ok"]);
}

#[test]
fn both_directions_have_settings_of_their_own() {
    let ended = run(
        r#"
        workers = 2
        [[flow]]
        name = "there"
        op = "send"
        qps = 3
        size = 4096

        [[flow]]
        name = "back"
        op = "write"
        from = "server"
        to = "client"
        cq = "per-qp"
        qps = 2
        size = 100
        "#,
        "-n 100",
    );
    let [there, back] = flows(&ended) else {
        panic!("{}", ended.json())
    };
    assert_eq!((messages(there), messages(back)), (300, 200));
    assert_eq!(there["received"]["messages"], 300);
    assert_eq!(
        (&back["from"], &back["to"]),
        (&"server".into(), &"client".into())
    );
}

/// `soft1` is this machine's first address besides those of loopback.
#[test]
fn a_node_has_two_devices() {
    let ended = run(
        r#"
        qps = 2
        op = "send"
        [[flow]]
        name = "own"

        [[flow]]
        name = "other"
        from-device = "soft1"
        to-device = "soft1"
        "#,
        "-n 50 -s 4096",
    );
    assert_eq!(flows(&ended).len(), 2);
    let config = &ended.cases()[0]["config"]["flows"];
    assert_eq!(config[0]["from_device"], "soft0");
    assert_eq!(config[1]["from_device"], "soft1");
    let devices = ended.json()["nodes"][0]["devices"].as_array().unwrap();
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    assert_eq!(names, ["soft0", "soft1"]);
    let counters = &ended.first_run()["nodes"][0]["counters"];
    let of_other = |name: &String| name.starts_with("soft1:");
    assert!(
        counters.as_object().unwrap().keys().any(of_other),
        "{counters}"
    );
}

/// It does not survive the loss of its twentieth message, a second after the start: the device asks after such packets 8 ms
/// later, and its time-out is 4 ms.
#[test]
fn one_flow_fails_and_the_others_figures_are_kept() {
    let text = r#"
        size = 512
        [[flow]]
        name = "patient"
        op = "send"

        [[flow]]
        name = "impatient"
        op = "write"
        rate = "20"
        arrivals = "fixed"
        timeout = 10
        retry-cnt = 0
        "#;
    let words = "-d soft0 --config flows.toml -D 60s --warmup 0 --faults tx.lose=write#20";
    let ended = call(words).with_file("flows.toml", text).run().exits(1);
    let run = ended.first_run();
    assert_eq!(run["complete"], false);
    let failure = run["failure"]["message"].as_str().unwrap();
    assert!(failure.contains("RETRY_EXC_ERR"), "{failure}");
    assert!(messages(&run["flows"][0]) > 0, "{run}");
}
