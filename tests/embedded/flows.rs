//! Cases of several flows from a configuration file: different operations, sizes and directions side by side, each
//! checked byte by byte and told for itself.

use testing::program::{Ended, call};

/// Runs a file.
fn run(text: &str, words: &str) -> Ended {
    let words = format!("-d soft0 --timeout 18 --config flows.toml --verify --warmup 0 {words}");
    let call = call(&words).with_file("flows.toml", text);
    call.is_whole(1)
}

/// Ends, QPs, messages and bytes of each flow of the only run.
fn moved(ended: &Ended) -> Vec<(String, usize, u64, u64)> {
    let run = ended.runs().remove(0);
    run.flows
        .iter()
        .map(|flow| {
            let way = format!("{} {}", flow.from, flow.to);
            let totals = &flow.totals;
            (way, flow.qps.len(), totals.messages, totals.bytes)
        })
        .collect()
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
    let there = || "client server".to_owned();
    let expected = [(there(), 12, 12 * 40, 12 * 40 * 64), (there(), 4, 4 * 40, (4 * 40) << 20)];
    assert_eq!(moved(&ended), expected);
    let config = &ended.cases()[0]["config"]["flows"];
    assert_eq!(config[1]["settings"]["size_bytes"], 1 << 20);
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
    let expected = [
        ("client server".to_owned(), 3, 300, 300 * 4096),
        ("server client".to_owned(), 2, 200, 200 * 100),
    ];
    assert_eq!(moved(&ended), expected);
    assert_eq!(ended.first_flow()["received"]["messages"], 300);
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
    let result = ended.result();
    let used: Vec<_> =
        result.cases[0].config.flows.iter().map(|flow| flow.from_device.as_deref()).collect();
    assert_eq!(used, [Some("soft0"), Some("soft1")]);
    let names: Vec<_> = result.nodes[0].devices.iter().map(|device| &*device.name).collect();
    assert_eq!(names, ["soft0", "soft1"]);
    let counters = ended.runs()[0].nodes[0].counters.clone().unwrap();
    assert!(counters.keys().any(|name| name.starts_with("soft1:")), "{counters:?}");
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
    let run = ended.runs().remove(0);
    let failure = run.failure.unwrap().message;
    assert!(!run.complete && failure.contains("RETRY_EXC_ERR"), "{failure}");
    assert!(run.flows[0].totals.messages > 0);
}
