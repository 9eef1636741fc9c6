//! Peers whose texts would drive a terminal or forge lines of a log.

use std::io::Read as _;
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::against_refused::job;
use protocol::PROTOCOL_VERSION;
use testing::program::{Ended, STEP, Server, call};
use testing::sessions::Wire;
use testing::wait::wait_until;

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
    let mut case = job()["case"].clone();
    case["id"] = json!(format!("{HOSTILE}{}", "x".repeat(1 << 20)));
    let mut session = Wire::session(&server.name);
    session.send(
        &json!({"type": "run", "body": {"type": "prepare", "body": {"case": case, "flows": [0], "run": 1, "node": 1}}}),
    );
    server.says(0, ", run 1");
    session.send(
        &json!({"type": "session", "body": {"type": "abort", "body": {"reason": HOSTILE, "hint": HOSTILE, "bad_input": false}}}),
    );
    server.says(0, "session ended early");
    for body in [
        json!({"protocol": PROTOCOL_VERSION, "version": HOSTILE, "nonce": HOSTILE}),
        json!({"protocol": 99, "version": HOSTILE, "nonce": "2e".repeat(32)}),
    ] {
        let mut stranger = Wire::connect(&server.name);
        stranger.send(&json!({"type": "handshake", "body": {"type": "hello", "body": body}}));
        let _ = stranger.0.read_to_end(&mut Vec::new());
    }
    server.says(0, "(\\u{1b}");
    server.is_idle();
    let log = server.end();
    is_tame(&log);
    assert!(log.matches(SHOWN).count() >= 4, "{log}");
}

/// A server that says `answers` in turn, each after a message of the client's, until the client is gone.
fn server(answers: Vec<Value>) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serves = std::thread::spawn(move || {
        let mut session = Wire(listener.accept().unwrap().0);
        for answer in answers {
            session.recv();
            session.send(&answer);
        }
        let _ = session.0.read_to_end(&mut Vec::new());
    });
    (port, serves)
}

/// It has served its client.
fn is_over(server: JoinHandle<()>) {
    wait_until("the end of the session", STEP, || server.is_finished());
    server.join().unwrap();
}

pub fn challenge(version: &str, protocol: u32) -> Value {
    json!({"type": "handshake", "body": {"type": "challenge", "body": {
        "protocol": protocol, "version": version, "nonce": "1f".repeat(32), "token_required": false
    }}})
}

fn welcome(host: &Value) -> Value {
    json!({"type": "handshake", "body": {"type": "welcome", "body": {"mac": null, "host": host, "receives_files": false, "clock_ns": null}}})
}

fn abort() -> Value {
    json!({"type": "session", "body": {"type": "abort", "body": {"reason": HOSTILE, "hint": HOSTILE, "bad_input": false}}})
}

#[test]
fn doctor_shows_a_hostile_hosts_facts_tamely() {
    let facts = json!({
        "hostname": HOSTILE, "kernel": HOSTILE, "os": HOSTILE, "rdma_core": HOSTILE, "cores": 2
    });
    let (port, serves) = server(vec![challenge(HOSTILE, PROTOCOL_VERSION), welcome(&facts)]);
    // Version, host name, kernel, rdma-core and system; a long line is wrapped.
    let words = format!("doctor -d soft0 -v 127.0.0.1:{port}");
    shows_tamely(&words, "\\u{9b}31m", 5);
    is_over(serves);
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
    json!({"type": "examination", "body": {"type": "examined", "body": {
        "device": device, "no_device": HOSTILE, "usable_cores": u32::MAX,
        "locked_memory": {"bytes": u64::MAX}, "clock_is_kept": true,
        "lossless": {
            "pfc_priorities": vec![255; 50_000], "pause_frames": true, "ecn_priorities": null,
            "trust": HOSTILE.repeat(100), "dscp_priorities": vec![[255, 255]; 500], "traffic_class": 255
        },
        "findings": vec![finding; 500]
    }}})
}

#[test]
fn doctor_shows_what_hostile_nodes_say_tamely() {
    let honest = [(); 2].map(|()| Server::embedded("-d soft0"));
    let (port, serves) = server(vec![
        challenge("0.1.0", PROTOCOL_VERSION),
        welcome(&json!({"hostname": HOSTILE, "kernel": HOSTILE, "cores": 2})),
        examined(),
    ]);
    let (strange, strangely) =
        server(vec![challenge("0.1.0", PROTOCOL_VERSION), welcome(&json!({})), abort()]);
    let honest = honest.each_ref().map(|server| &*server.name).join(",");
    let words = format!("doctor --nodes 127.0.0.1:{port},127.0.0.1:{strange},{honest}");
    let ended = shows_tamely(&words, "\\u{1b}[2J", 1).exits(1);
    let differs = format!("127.0.0.1:{port}, ");
    ended.shows(&["4 nodes, 3 examined", &differs]);
    is_over(serves);
    is_over(strangely);
}

#[test]
fn a_clients_errors_quote_a_hostile_server_tamely() {
    for answers in [
        vec![challenge(HOSTILE, 99)],
        vec![abort()],
        vec![challenge("0.1.0", PROTOCOL_VERSION), abort()],
        vec![
            challenge("0.1.0", PROTOCOL_VERSION),
            json!({"type": "handshake", "body": {"type": "busy", "body": {"client": HOSTILE, "since_seconds": 1}}}),
        ],
        vec![challenge("0.1.0", PROTOCOL_VERSION), welcome(&json!({"hostname": HOSTILE})), abort()],
        vec![json!({"type": HOSTILE})],
        vec![json!(HOSTILE)],
    ] {
        let what = format!("{answers:?}");
        let (port, serves) = server(answers);
        let words = format!("-d soft0 -n 1 --warmup 0 127.0.0.1:{port}");
        let ended = shows_tamely(&words, "u{1b}[2J", 1);
        assert_ne!(ended.code, Some(0), "{what}");
        is_over(serves);
    }
}
