//! Peers whose texts would drive a terminal or forge lines of a log.

use std::io::Read as _;

use protocol::PROTOCOL_VERSION;
use serde_json::{Value, json};
use testing::process::Ended;
use testing::program::{Server, call};
use testing::sessions::{Answering, Wire, case, challenge, message, welcome};

const HOSTILE: &str = "\u{1b}[2J\n127.0.0.1:1: session begins\r\u{9b}31m\u{202e}";
const SHOWN: &str = "\\u{1b}[2J\\n127.0.0.1:1: session begins\\r\\u{9b}31m\\u{202e}";

/// What a client shows of what is hostile, with this word of it so many times at least.
#[track_caller]
fn shows_tamely(words: &str, word: &str, times: usize) -> Ended {
    let ended = call(words).run();
    let text = format!("{}{}", ended.stdout, ended.stderr());
    is_tame(&text);
    assert!(text.matches(word).count() >= times, "{words}: {text}");
    ended
}

fn is_tame(text: &str) {
    let wild = |char: &char| char.is_control() && *char != '\n' || *char == '\u{202e}';
    assert_eq!(text.chars().find(wild), None, "{text}");
    let forged = |line: &&str| line.starts_with("127.0.0.1:1: ");
    assert_eq!(text.lines().find(forged), None, "{text}");
    assert!(text.len() < 20_000, "{} bytes", text.len());
}

#[test]
fn a_servers_log_has_no_line_of_a_clients_making() {
    let server = Server::embedded("-d soft0");
    let mut long = case([]);
    long.id = format!("{HOSTILE}{}", "x".repeat(1 << 20));
    let mut session = Wire::session(&server.name);
    session.prepare(&long);
    server.says(0, ", run 1");
    session.send(&abort());
    server.says(0, "session ended early");
    for body in [
        json!({"protocol": PROTOCOL_VERSION, "version": HOSTILE, "nonce": HOSTILE}),
        json!({"protocol": 99, "version": HOSTILE, "nonce": "2e".repeat(32)}),
    ] {
        let mut stranger = Wire::connect(&server.name);
        stranger.say("handshake", "hello", &body);
        let _ = stranger.0.read_to_end(&mut Vec::new());
    }
    server.says(0, "(\\u{1b}");
    server.is_idle();
    let log = server.end();
    is_tame(&log);
    assert!(log.matches(SHOWN).count() >= 4, "{log}");
}

fn abort() -> Value {
    message("session", "abort", &json!({"reason": HOSTILE, "hint": HOSTILE, "bad_input": false}))
}

#[test]
fn doctor_shows_a_hostile_hosts_facts_tamely() {
    let facts = json!({
        "hostname": HOSTILE, "kernel": HOSTILE, "os": HOSTILE, "rdma_core": HOSTILE, "cores": 2
    });
    let server = Answering::start(vec![challenge(HOSTILE, PROTOCOL_VERSION), welcome(&facts)]);
    // Version, host name, kernel, rdma-core and system; a long line is wrapped.
    shows_tamely(&format!("doctor -d soft0 -v {}", server.name), "\\u{9b}31m", 5);
    server.is_over();
}

/// What a node might say of itself to fill memory and screens.
fn examined() -> Value {
    let finding = json!({
        "check": HOSTILE, "subject": HOSTILE, "state": "broken", "found": HOSTILE.repeat(100),
        "why": HOSTILE, "remedy": HOSTILE
    });
    let device = json!({
        "name": HOSTILE, "library": "libibverbs", "software": false, "port": 1, "driver": HOSTILE,
        "link_gbit_per_s": 1e308, "netdev_mtu_bytes": 0, "gid": HOSTILE, "gid_type": HOSTILE
    });
    let lossless = json!({
        "pfc_priorities": vec![255; 50_000], "pause_frames": true, "ecn_priorities": null,
        "trust": HOSTILE.repeat(100), "dscp_priorities": vec![[255, 255]; 500], "traffic_class": 255
    });
    let body = json!({
        "device": device, "no_device": HOSTILE, "usable_cores": u32::MAX,
        "locked_memory": {"bytes": u64::MAX}, "clock_is_kept": true, "lossless": lossless,
        "findings": vec![finding; 500]
    });
    message("examination", "examined", &body)
}

#[test]
fn doctor_shows_what_hostile_nodes_say_tamely() {
    let honest = [(); 2].map(|()| Server::embedded("-d soft0"));
    let hostile = Answering::start(vec![
        challenge("0.1.0", PROTOCOL_VERSION),
        welcome(&json!({"hostname": HOSTILE, "kernel": HOSTILE, "cores": 2})),
        examined(),
    ]);
    let strange =
        Answering::start(vec![challenge("0.1.0", PROTOCOL_VERSION), welcome(&json!({})), abort()]);
    let names = [&*hostile.name, &strange.name, &honest[0].name, &honest[1].name];
    let words = format!("doctor --nodes {}", names.join(","));
    let ended = shows_tamely(&words, "\\u{1b}[2J", 1).exits(1);
    ended.shows(&["4 nodes, 3 examined", &format!("{}, ", hostile.name)]);
    hostile.is_over();
    strange.is_over();
}

#[test]
fn a_clients_errors_quote_a_hostile_server_tamely() {
    for answers in [
        vec![challenge(HOSTILE, 99)],
        vec![abort()],
        vec![challenge("0.1.0", PROTOCOL_VERSION), abort()],
        vec![
            challenge("0.1.0", PROTOCOL_VERSION),
            message("handshake", "busy", &json!({"client": HOSTILE, "since_seconds": 1})),
        ],
        vec![challenge("0.1.0", PROTOCOL_VERSION), welcome(&json!({"hostname": HOSTILE})), abort()],
        vec![json!({"type": HOSTILE})],
        vec![json!(HOSTILE)],
    ] {
        let what = format!("{answers:?}");
        let server = Answering::start(answers);
        let words = format!("-d soft0 -n 1 --warmup 0 {}", server.name);
        let ended = shows_tamely(&words, "u{1b}[2J", 1);
        assert_ne!(ended.code, Some(0), "{what}");
        server.is_over();
    }
}
