//! Files sent over the embedded device: what arrives, that nothing half-made is left, and what a receiver does not take.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Stage, names};
use testing::process::Signal;
use testing::sessions::{Deed, Proxy, Sender, Step, Wire};

#[test]
fn files_of_all_sizes_arrive() {
    let stage = Stage::new("");
    // Sizes around those of a chunk and of all memory together, which is 2 x 2 x 4 KiB here.
    let sizes = [0, 1, 4095, 4096, 4097, 16_384, 3_000_001];
    let files: Vec<_> =
        sizes.iter().map(|&size| stage.file(&format!("file {size}"), size)).collect();
    let paths: Vec<_> = files.iter().collect();
    let ended = stage.send(&paths, "-q 2 --window 2 --chunk 4K --json").exits(0);
    for file in &files {
        stage.has(file);
    }
    assert_eq!(stage.received().len(), sizes.len());
    let document = ended.document();
    let reported = document["files"].as_array().unwrap();
    assert_eq!(reported.len(), sizes.len());
    assert_eq!(reported[6]["bytes"], 3_000_001);
    assert_eq!(reported[6]["qps"], 2);
    assert!(reported[6]["rdma"]["gbit_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(document["failure"], Value::Null);
    let log = stage.server.end();
    assert!(log.contains("\"file 3000001\" received: 3000001 bytes"), "{log}");
}

#[test]
fn sweeps_are_served_beside_files() {
    let stage = Stage::new("");
    let file = stage.file("a", 100_000);
    stage.send(&[&file], "").exits(0);
    let client = stage.server.call("--timeout 18 -n 50 --warmup 0 --verify --quiet");
    client.is_whole(1);
}

#[test]
fn tcp_is_compared_with_and_leaves_nothing() {
    let stage = Stage::new("");
    let files = [stage.file("a", 5_000_000), stage.file("b", 0)];
    let ended = stage.send(&[&files[0], &files[1]], "--against tcp").exits(0);
    assert_eq!(ended.stdout.matches("plain TCP: ").count(), 2, "{}", ended.stdout);
    assert!(ended.stdout.contains(" than TCP"), "{}", ended.stdout);
    stage.has(&files[0]);
    assert_eq!(stage.received(), ["a", "b"]);
    assert!(stage.server.end().contains("again over TCP"));
}

#[test]
fn files_arrive_although_packets_are_lost() {
    let faults = "drop=1%,reorder=0.5%,duplicate=0.5%,corrupt=0.1%";
    let stage = Stage::new(&format!("--faults {faults},seed=2"));
    let file = stage.file("large", 3 << 20);
    let words = format!("-q 16 --faults {faults},seed=3 --timeout 16");
    stage.send(&[&file], &words).exits(0);
    stage.has(&file);
}

#[test]
fn a_killed_or_stopped_sender_leaves_nothing() {
    let stage = Stage::new("");
    for (how, says) in
        [(Signal::Kill, "closed the connection"), (Signal::Interrupt, "the sender was stopped")]
    {
        let lines = stage.server.program.lines().len();
        let sender = stage.slow();
        sender.signal(how);
        let ended = sender.wait();
        if how == Signal::Interrupt {
            ended.exits(1).says(&["interrupted"]);
        }
        stage.server.says(lines, says);
        assert!(stage.received().is_empty(), "{how:?}");
    }
    // It serves on, and with the server gone too nothing is left.
    let file = stage.file("next", 10_000);
    stage.send(&[&file], "").exits(0);
    let Stage { server, target, .. } = stage;
    server.kill();
    assert_eq!(names(&target), ["next"]);
}

#[test]
fn a_killed_receiver_leaves_nothing() {
    let stage = Stage::new("");
    let sender = stage.slow();
    let Stage { server, target, .. } = stage;
    server.kill();
    sender.wait().exits(1).says(&["closed the connection"]);
    assert!(names(&target).is_empty(), "{:?}", names(&target));
}

#[test]
fn a_source_that_shrinks_ends_it() {
    let stage = Stage::new("");
    let sender = stage.slow();
    stage.hollow("slow", 1000);
    sender.wait().exits(1).says(&["\"slow\" became shorter"]);
    stage.server.says(0, "became shorter");
    assert!(stage.received().is_empty(), "{:?}", stage.received());
}

#[test]
fn a_full_disk_is_told_at_both_ends() {
    let stage = Stage::new("");
    // More than any disk of a test machine has; it takes no room at the sender.
    let file = stage.hollow("huge", 8 << 40);
    let says = "no room for \"huge\" at the receiver: it takes 8796093022208 bytes";
    stage.send(&[&file], "").exits(1).says(&[says, "make room"]);
    let log = stage.server.end();
    assert!(log.contains(says), "{log}");
    assert_eq!(fs::read_dir(&stage.target).unwrap().count(), 0);
}

#[test]
fn nothing_is_overwritten_without_force() {
    let stage = Stage::new("");
    let file = stage.file("a", 1000);
    let place = stage.target.path().join("a");
    fs::write(&place, "mine").unwrap();
    stage.send(&[&file], "").exits(2).says(&["\"a\" exists at the receiver", "--force"]);
    assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
    stage.send(&[&file], "--force").exits(0);
    stage.has(&file);
    assert_eq!(stage.received(), ["a"]);
}

#[test]
fn a_receiver_may_keep_what_it_has() {
    let stage = Stage::new("--keep-existing");
    let file = stage.file("a", 1000);
    stage.send(&[&file], "--force").exits(0);
    fs::write(&file, "other").unwrap();
    stage.send(&[&file], "--force").exits(2).says(&["\"a\" exists", "--keep-existing"]);
    assert_eq!(fs::metadata(stage.target.path().join("a")).unwrap().len(), 1000);
}

#[test]
fn the_second_file_may_fail_and_the_first_stays() {
    let stage = Stage::new("");
    let files = [stage.file("a", 5000), stage.file("b", 5000), stage.file("c", 5000)];
    fs::create_dir(stage.target.path().join("b")).unwrap();
    stage
        .send(&[&files[0], &files[1], &files[2]], "-q 1")
        .exits(2)
        .says(&["2 of 3 files were not sent", "\"b\" is a folder"]);
    stage.has(&files[0]);
    assert_eq!(stage.received(), ["a", "b"]);
}

#[test]
fn a_token_guards_the_folder() {
    let stage = Stage::new("--token right");
    let file = stage.file("a", 10);
    for words in ["", "--token wrong"] {
        assert_ne!(stage.send(&[&file], words).code, Some(0), "{words}");
    }
    assert!(stage.received().is_empty());
    stage.send(&[&file], "--token right").exits(0);
    stage.has(&file);
}

/// What the server says to a client that keeps to no rules.
fn refusal(client: &mut Wire) -> String {
    let reason = client.abort();
    client.is_closed();
    reason
}

#[test]
fn names_that_lead_out_are_refused_by_the_receiver() {
    let stage = Stage::new("");
    let long = "x".repeat(256);
    for name in ["../a", "/tmp/a", "a/b", "..", ".", "", "a\0b", "a\nb", &long] {
        let mut liar = Wire::session(&stage.server.name);
        let hello = json!({"file_name": name, "size_bytes": 1, "force": true, "channel": null});
        liar.say("file", "hello", &hello);
        let reason = refusal(&mut liar);
        assert!(reason.contains("does not take"), "{name:?}: {reason}");
    }
    assert!(stage.received().is_empty());
}

#[test]
fn a_wrong_checksum_is_refused() {
    // Over the QPs, and over TCP to compare.
    for nth in [1, 2] {
        let mut stage = Stage::new("");
        let step = Step { from: Sender::Client, kind: "fin", nth };
        let server = stage.server.name.parse().unwrap();
        let lie: Deed = Box::new(|fin: &mut Value| fin["digest"] = json!("0".repeat(32)));
        let liar = Proxy::lying("127.0.0.1", server, step, [lie].into());
        stage.server.name = liar.address.to_string();
        let file = stage.file("a", 5000);
        stage.send(&[&file], "--against tcp").exits(1).says(&["the receiver discarded \"a\""]);
        assert_eq!(stage.received().len(), nth - 1);
    }
}

#[test]
fn a_comparison_before_any_file_is_refused() {
    let stage = Stage::new("");
    let mut liar = Wire::session(&stage.server.name);
    let hello = json!({"file_name": "a", "size_bytes": 5, "chunk_bytes": 4096});
    liar.say("file", "tcp_hello", &hello);
    let reason = refusal(&mut liar);
    assert!(reason.contains("sent `file_tcp_hello` instead of"), "{reason}");
}
