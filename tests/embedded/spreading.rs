//! One source of messages for several QPs, and messages of several sizes, end to end with every byte checked.

use serde_json::Value;

use testing::server::call;

/// What the client sends in the first run of a case.
fn forward(case: &Value) -> &Value {
    &case["runs"][0]["flows"][0]
}

/// A figure of each QP of a case's first run.
fn of_qps(case: &Value, figure: &str) -> Vec<u64> {
    let qps = forward(case)["qps"].as_array().unwrap();
    qps.iter().map(|qp| qp[figure].as_u64().unwrap()).collect()
}

fn blocked(case: &Value) -> u64 {
    let workers = case["runs"][0]["nodes"][0]["workers"].as_array().unwrap();
    workers
        .iter()
        .map(|worker| worker["blocked"].as_u64().unwrap())
        .sum()
}

#[test]
fn sizes_by_weight_arrive_whole() {
    let ended = call(
        "-d soft0 --op send,write,read --cq shared,per-qp --size-mix 64:9,64K:1 -q 5 -t 8 -n 80 -I 0,64 --timeout 18 \
         --warmup 0 --verify",
    )
    // A READ carries nothing inline.
    .is_whole(10);
    ended.shows(&["64B:9,64KiB:1"]);
    for case in ended.cases() {
        // Five rings of 8 WRs are dealt four rounds of ten, and each WR is posted ten times.
        let bytes: u64 = of_qps(case, "bytes").iter().sum();
        assert_eq!(bytes, 40 * (9 * 64 + 65_536), "{}", case["id"]);
        assert_eq!(forward(case)["totals"]["bytes"], bytes);
        assert_eq!(case["config"]["size_mix"], "64B:9,64KiB:1");
        assert_eq!(case["config"]["size_bytes"], 65_536);
    }
}

#[test]
fn a_source_spreads_messages_as_asked() {
    let ended = call(
        "-d soft0 --op send,write,read --spread round-robin,least-loaded,hash --cq per-worker,per-qp --workers 2 -q 6 -t 4 -Q 1 \
         -s 300 -n 50 --outstanding 5 --timeout 18 --warmup 0 --verify --quiet",
    ).is_whole(18);
    for case in ended.cases() {
        let messages = of_qps(case, "messages");
        match case["config"]["spread"].as_str().unwrap() {
            "round-robin" => assert_eq!(messages, [50; 6], "{case}"),
            "least-loaded" => assert_eq!(blocked(case), 0, "{case}"),
            _ => assert_ne!(messages, [50; 6], "{case}"),
        }
        assert!(messages.iter().all(|messages| *messages > 0), "{case}");
    }
}
