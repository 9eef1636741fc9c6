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
    .run()
    .exits(0)
    // A READ carries nothing inline.
    .all_whole(10);
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
    )
    .run()
    .exits(0)
    .all_whole(18);
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

#[test]
fn weights_of_qps_are_their_shares() {
    let ended = call(
        "-d soft0 --op write --spread round-robin --qp-weights 2:90,6:10 --size-mix 64:3,4K:1 -q 8 -t 16 -Q 1 -n 75 \
         --poll busy,event -b --timeout 18 --warmup 20ms --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(2);
    for case in ended.cases() {
        // 600 messages, of which 540 are for two QPs and 60 for six; turns go on where the warm-up left them.
        let messages = of_qps(case, "messages");
        for (qp, messages) in messages.iter().enumerate() {
            let share = if qp < 2 { 270 } else { 10 };
            assert!(messages.abs_diff(share) <= 1, "{case}");
        }
        // Of counts, not of times.
        let jain = forward(case)["fairness"]["jain"].as_f64().unwrap();
        assert!((0.28..0.32).contains(&jain), "{jain}");
    }
}

#[test]
fn what_cannot_be_spread_is_bad_input() {
    for (words, why) in [
        ("--spread hash --workers 2", "all workers share one CQ"),
        ("--outstanding 8", "--spread own"),
        (
            "--spread round-robin -q 4 --qp-weights 1:1,2:1",
            "groups have 3 QPs, and there are 4",
        ),
        ("--size-mix 64:9", "2 to 16 entries"),
        ("--size-mix 64:1,4K:1 -s 64", "--size has no effect"),
        ("--size-mix 64:1,4K:1 --against perftest", "one size"),
    ] {
        call(&format!("-d soft0 {words} -D 1s"))
            .run()
            .exits(2)
            .says(&[why]);
    }
}
