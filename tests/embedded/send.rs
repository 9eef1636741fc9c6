//! Files sent over the embedded device: what arrives, and that nothing half-made is left.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::program::{said, signal, with_others};
use crate::stage::Stage;

#[test]
fn files_of_all_sizes_arrive() {
    let _machine = with_others();
    let stage = Stage::new("");
    // Sizes around those of a chunk and of all memory together, which is 2 x 2 x 4 KiB here.
    let sizes = [0, 1, 4095, 4096, 4097, 16_384, 3_000_001];
    let files: Vec<_> = sizes
        .iter()
        .map(|&size| stage.file(&format!("file {size}"), size))
        .collect();
    let all: Vec<_> = files.iter().collect();
    let ended = stage
        .send(&all, "-q 2 --window 2 --chunk 4K --json")
        .exits(0);
    for file in &files {
        stage.has(file);
    }
    assert_eq!(stage.received().len(), sizes.len());
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = document["files"].as_array().unwrap();
    assert_eq!(told.len(), sizes.len());
    assert_eq!(told[6]["bytes"], 3_000_001);
    assert_eq!(told[6]["qps"], 2);
    assert!(told[6]["rdma"]["gbit_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(document["failure"], Value::Null);
    let said = stage.server.end();
    assert!(
        said.contains("\"file 3000001\" received: 3000001 bytes"),
        "{said}"
    );
}

#[test]
fn sweeps_are_served_beside_files() {
    let _machine = with_others();
    let stage = Stage::new("");
    let file = stage.file("a", 100_000);
    stage.send(&[&file], "").exits(0);
    let client = stage
        .server
        .client("--timeout 18 -n 50 --warmup 0 --verify --quiet");
    client.run().exits(0).all_whole(1);
}

#[test]
fn tcp_is_compared_with_and_leaves_nothing() {
    let _machine = with_others();
    let stage = Stage::new("");
    let files = [stage.file("a", 5_000_000), stage.file("b", 0)];
    let ended = stage
        .send(&[&files[0], &files[1]], "--against tcp")
        .exits(0);
    assert_eq!(
        ended.stdout.matches("plain TCP: ").count(),
        2,
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains(" than TCP"), "{}", ended.stdout);
    stage.has(&files[0]);
    assert_eq!(stage.received(), ["a", "b"]);
    assert!(stage.server.end().contains("again over TCP"));
}

#[test]
fn a_killed_or_stopped_sender_leaves_nothing() {
    let _machine = with_others();
    let mut stage = Stage::new("");
    for how in [Signal::SIGKILL, Signal::SIGINT] {
        let (child, _program) = stage.slow();
        signal(&child, how);
        let (code, text) = said(child);
        match how {
            Signal::SIGINT => {
                assert_eq!(code, Some(1), "{text}");
                assert!(text.contains("interrupted"), "{text}");
                stage.server.has_said("the sender was stopped");
            }
            _ => stage.server.has_said("its process ended or died"),
        }
        assert!(stage.received().is_empty(), "{how}: {:?}", stage.received());
    }
    // It serves on, and with the server gone too nothing is left.
    let file = stage.file("next", 10_000);
    stage.send(&[&file], "").exits(0);
    stage.server.kill();
    assert_eq!(stage.received(), ["next"]);
}

#[test]
fn a_killed_receiver_leaves_nothing() {
    let _machine = with_others();
    let mut stage = Stage::new("");
    let (child, _program) = stage.slow();
    stage.server.kill();
    let killed = Instant::now();
    let (code, text) = said(child);
    assert!(
        killed.elapsed() < Duration::from_secs(3),
        "{:?}",
        killed.elapsed()
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("its process ended or died"), "{text}");
    assert!(stage.received().is_empty(), "{:?}", stage.received());
}

#[test]
fn a_source_that_shrinks_ends_it() {
    let _machine = with_others();
    let stage = Stage::new("");
    let (child, _program) = stage.slow();
    stage.hollow("slow", 1000);
    let (code, text) = said(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\"slow\" became shorter"), "{text}");
    stage.server.has_said("became shorter");
    assert!(stage.received().is_empty(), "{:?}", stage.received());
}

#[test]
fn a_full_disk_is_told_at_both_ends() {
    let _machine = with_others();
    let stage = Stage::new("");
    // More than any disk of a test machine has; it takes no room at the sender.
    let file = stage.hollow("huge", 8 << 40);
    let says = "no room for \"huge\" at the receiver: it takes 8796093022208 bytes";
    stage.send(&[&file], "").exits(1).says(&[says, "make room"]);
    let said = stage.server.end();
    assert!(said.contains(says), "{said}");
    assert_eq!(fs::read_dir(&stage.target).unwrap().count(), 0);
}
