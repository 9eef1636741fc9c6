//! Packets that are lost, doubled and damaged: nothing is lost over it. They are sent again soon, which is why these
//! have the machine alone.

use serde_json::Value;

use crate::program::{Program, Server, alone};
use crate::stage::Stage;

/// What the device is to survive.
const FAULTS: &str = "drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%";

#[test]
fn faults_lose_and_spoil_nothing() {
    let _alone = alone();
    for seed in 1..=2 {
        let ended = Program::new(&format!(
            "-d soft0 --faults {FAULTS},seed={seed} --op send,write,read -q 3 -s 100,20000 -n 40 -t 16 \
             --timeout 14 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0)
        .all_whole(6);
        let runs = || {
            ended
                .cases()
                .iter()
                .map(|case| &case["runs"][0]["nodes"][0]["counters"])
        };
        let dropped: u64 = runs()
            .filter_map(|counters| counters["fault_tx_dropped"].as_u64())
            .sum();
        assert!(dropped > 10, "{dropped} dropped");
        let recorded = ended.json["nodes"][0]["devices"][0]["faults"]
            .as_str()
            .unwrap();
        assert!(
            recorded.starts_with(&format!("seed={seed},drop=0.05")),
            "{recorded}"
        );
    }
}

#[test]
fn both_ends_may_share_one_address() {
    let _alone = alone();
    let ended = Program::new(&format!("-d soft0 --faults {FAULTS},seed=5 --op send,write,read -s 20000 -n 40 --timeout 14 --warmup 0 --verify --quiet"))
        .env("SOFTROCE_ADDRESS", "127.77.1.1")
        .run()
        .exits(0)
        .all_whole(3);
    assert_eq!(
        ended.json["nodes"][0]["devices"][0]["gid"],
        "::ffff:127.77.1.1"
    );
}

#[test]
fn a_server_has_faults_of_its_own() {
    let _alone = alone();
    let server = Server::start(&format!("-d soft0 --faults {FAULTS},seed=9"));
    let ended = server
        .client(
            "-b --op send,write,read -q 2 -n 60 -s 5000 --timeout 14 --warmup 0 --verify --quiet",
        )
        .run()
        .exits(0)
        .all_whole(3);
    assert_eq!(ended.json["nodes"][0]["devices"][0]["faults"], Value::Null);
    let recorded = ended.json["nodes"][1]["devices"][0]["faults"]
        .as_str()
        .unwrap();
    assert!(recorded.starts_with("seed=9,"), "{recorded}");
}

#[test]
fn files_arrive_all_the_same() {
    let _alone = alone();
    let faults = "drop=1%,reorder=0.5%,duplicate=0.5%,corrupt=0.1%";
    let stage = Stage::new(&format!("--faults {faults},seed=2"));
    let file = stage.file("large", 12 << 20);
    stage
        .send(
            &[&file],
            &format!("-q 16 --faults {faults},seed=3 --timeout 16"),
        )
        .exits(0);
    stage.has(&file);
}

/// Packets are lost, so the device's timers must wake them.
#[test]
fn sleeping_workers_wake_for_what_was_lost() {
    let _alone = alone();
    Program::new(
        "-d soft0 --faults drop=3%,reorder=1%,seed=3 --op send,write,read --cq shared,per-qp --poll event,adaptive -q 3 \
         --workers 2 -t 4 -s 64 -Q 1 -n 60 --timeout 12 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(12);
}
