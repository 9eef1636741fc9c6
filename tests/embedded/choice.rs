//! Which device is taken, and that everybody is told.

use std::collections::HashMap;
use std::net::UdpSocket;

use serde_json::Value;

use testing::server::call;

fn kernel_has_a_device() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

#[test]
fn without_a_device_the_embedded_one_is_taken_and_says_so() {
    let ended = call("-n 20 --timeout 18 --warmup 0").passes();
    if kernel_has_a_device() {
        assert_eq!(
            ended.json()["nodes"][0]["devices"][0]["library"],
            "libibverbs"
        );
        return;
    }
    let ended = ended.says(&[
        "no RDMA device on this machine: taking soft0, the embedded software device",
        "not of a network adapter",
    ]);
    let notes = ended.stderr().lines();
    let notes = notes.filter(|line| line.contains("embedded"));
    assert_eq!(notes.count(), 1, "{}", ended.stderr());
}

#[test]
fn results_are_marked() {
    let ended = call("--device soft0 -n 20 --timeout 18 --warmup 0 --csv -")
        .passes()
        .says(&[
            "soft0 is the embedded software device: figures are those",
            "no figure here is a network adapter's",
        ])
        .all_whole(1);
    let device = &ended.json()["nodes"][0]["devices"][0];
    assert_eq!(device["name"], "soft0");
    assert_eq!(device["library"], "embedded");
    assert_eq!(device["software"], true);
    assert_eq!(device["link_gbit_per_s"], Value::Null);
    assert_eq!(device["faults"], Value::Null);
    assert!(
        device["gid"].as_str().unwrap().starts_with("::ffff:127."),
        "{device}"
    );
    let counters = &ended.json()["cases"][0]["runs"][0]["nodes"][0]["counters"];
    assert!(counters["packets_sent"].as_u64().unwrap() > 0, "{counters}");
    let mut csv = csv::Reader::from_reader(ended.stdout.as_bytes());
    let row: HashMap<String, String> = csv.deserialize().next().unwrap().unwrap();
    assert_eq!(row["from_device_library"], "embedded");
    assert_eq!(row["from_device_software"], "true");
    assert!(!row.contains_key("from_device_faults"));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let _taken = UdpSocket::bind("127.77.2.1:4791").unwrap();
    call("-d soft0 -n 1 --quiet")
        .env("SOFTROCE_ADDRESS", "127.77.2.1")
        .fails(&[
            "soft0 (UDP port 4791 of 127.77.2.1)",
            "in use",
            "hint: another program has that port",
        ]);
}

#[test]
fn a_device_that_is_not_there_is_answered_with_the_embedded_ones() {
    call("-d soft999 -n 1").is_refused(&[
        "no RDMA device \"soft999\"",
        "soft0 (embedded, loopback)",
        "hint: name one of them",
    ]);
}
