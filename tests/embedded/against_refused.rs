//! What is refused before anything runs: on the command line, at this end and at the server's.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rocebench::plan::Case;
use serde_json::{Value, json};
use settings::Settings;

use crate::library::build_library;
use crate::program::{Program, Server, with_others};

const ASKS: &str = "-d soft0 -n 10 --warmup 0 --against perftest";

#[test]
fn what_perftest_cannot_do_is_bad_input() {
    for (words, says) in [
        ("--against iperf", "iperf"),
        ("--pairs 8", "--against"),
        ("--against perftest --pairs 5", "give --pairs 6"),
        ("--against perftest --verify", "leave --verify out"),
        ("--against perftest -l 4 -Q 8", "give -Q a divisor of -l"),
        ("--against perftest -n 3", "5 to 100000000 messages"),
        (
            "--against perftest --pairs 6 --max-pairs 4",
            "--max-pairs 4",
        ),
    ] {
        Program::new(words).run().exits(2).says(&[says]);
    }
}

#[test]
fn a_dry_run_tells_the_programs_and_the_time() {
    let ended =
        Program::new("--dry-run --against perftest --op write,read -D 2s --warmup 1s").run();
    let ended = ended.exits(0);
    // 2 cases, 24 pairs, 3 s of ours and 4 of theirs.
    for word in [
        "8 to 24 pairs with perftest (ib_write_bw, ib_read_bw)",
        "at most 5 min 36 s",
    ] {
        assert!(ended.stdout.contains(word), "{}", ended.stdout);
    }
}

#[test]
fn a_missing_program_names_its_package_at_either_end() {
    let _machine = with_others();
    build_library();
    let nothing = tempfile::tempdir().unwrap();
    let empty = nothing.path().to_str().unwrap();
    let says = ["there is no ib_send_bw in PATH", "package perftest"];
    let ended = Program::new(ASKS)
        .env("PATH", empty)
        .run()
        .exits(2)
        .says(&says);
    assert_eq!(ended.json, Value::Null, "nothing was run");
    let server = Server::with("-d soft0 --allow-perftest", &[("PATH", empty)]);
    let host = format!("127.0.0.1:{}", server.port);
    let ended = Program::new(&format!("{host} {ASKS}"))
        .run()
        .exits(2)
        .says(&says);
    assert!(ended.stderr.contains("at the server"), "{}", ended.stderr);
    assert_eq!(ended.json, Value::Null, "nothing was run");
}

#[test]
fn a_library_that_is_not_there_says_how_to_build_it() {
    Program::new(ASKS)
        .env("SOFTROCE_LIBRARY", "/nowhere/lib.so")
        .run()
        .exits(2)
        .says(&["SOFTROCE_LIBRARY=/nowhere/lib.so: no such file"]);
}

#[test]
fn a_server_must_allow_it() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let host = format!("127.0.0.1:{}", server.port);
    Program::new(&format!("{host} {ASKS}"))
        .run()
        .exits(2)
        .says(&[
            "was not started to run perftest",
            "rocebench serve --allow-perftest",
        ]);
    let mut session = Session::with(server.port);
    session.send(&json!({"type": "perftest_start", "body": job()}));
    let reason = session.abort();
    assert!(
        reason.contains("was not started to run perftest"),
        "{reason}"
    );
}

#[test]
fn a_server_starts_nothing_but_perftest_with_numbers() {
    let _machine = with_others();
    build_library();
    let server = Server::start("-d soft0 --allow-perftest");
    let start = |damage: Damage| {
        let mut job = job();
        damage(&mut job);
        let mut session = Session::with(server.port);
        session.send(&json!({"type": "perftest_start", "body": job}));
        session
    };
    let texts: [Damage; 3] = [
        |job| job["program"] = json!("/bin/sh"),
        |job| job["program"] = json!("ib_write_bw;reboot"),
        |job| job["case"]["size_bytes"] = json!("64 -R"),
    ];
    for damage in texts {
        start(damage).is_closed();
    }
    let numbers: [(Damage, &str); 2] = [
        (
            |job| job["case"]["qps"] = json!(0),
            "--qps 0 is out of range",
        ),
        (
            |job| job["program"] = json!("ib_read_bw"),
            "ib_read_bw does not run this case",
        ),
    ];
    for (damage, says) in numbers {
        let reason = start(damage).abort();
        assert!(reason.contains(says), "{reason}");
    }
    let started = start(|_| ()).next();
    assert_eq!(started["type"], "perftest_started", "undamaged");
    let said = server.end();
    assert_eq!(
        said.matches("a frame is not a message").count(),
        3,
        "{said}"
    );
}

#[test]
fn a_run_without_a_client_ends_at_its_limit() {
    let _machine = with_others();
    build_library();
    let server = Server::start("-d soft0 --allow-perftest");
    let mut job = job();
    job["limit_ms"] = json!(2000);
    let mut session = Session::with(server.port);
    let mut heart = Session(session.0.try_clone().unwrap());
    session.send(&json!({"type": "perftest_start", "body": job}));
    assert_eq!(session.next()["type"], "perftest_started");
    // The coordinator lives and says nothing.
    let is_over = Arc::new(AtomicBool::new(false));
    let beats = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                heart.send(&json!({"type": "heartbeat", "body": {"progress": 0}}));
                std::thread::sleep(Duration::from_millis(250));
            }
        }
    });
    let ended = session.next();
    is_over.store(true, Ordering::Relaxed);
    beats.join().unwrap();
    assert_eq!(ended["type"], "perftest_ended");
    assert_eq!(ended["body"]["status"], "did not end within 3 s");
}

/// Makes something else of a job.
type Damage = fn(&mut Value);

/// A job as a coordinator sends it.
pub fn job() -> Value {
    let settings = Settings::from([
        ("op", "write"),
        ("size", "64"),
        ("tx-depth", "16"),
        ("rx-depth", "16"),
        ("signal-every", "1"),
        ("iters", "10"),
        ("warmup", "0"),
    ]);
    json!({
        "program": "ib_write_bw", "mtu_bytes": 1024, "outstanding_reads": 1, "messages": 10, "limit_ms": 5000,
        "case": Case::new("-R".to_owned(), settings)
    })
}

/// The protocol by hand.
pub struct Session(pub TcpStream);

impl Session {
    /// A client's that has said nothing yet.
    pub fn to(port: u16) -> Session {
        Session(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    /// A client's, handshake done.
    pub fn with(port: u16) -> Session {
        let started = Instant::now();
        loop {
            let mut session = Session::to(port);
            session.send(&json!({"type": "hello", "body": {
                "protocol": 1, "version": "0.1.0", "nonce": "2e".repeat(32)
            }}));
            assert_eq!(session.next()["type"], "challenge");
            session.send(&json!({"type": "proof", "body": {"mac": null}}));
            // The session before may not be over yet.
            if session.next()["type"] == "welcome" {
                session.send(&json!({"type": "introduce", "body": {"host": null}}));
                return session;
            }
            assert!(started.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        self.0
            .write_all(&[&length, text.as_bytes()].concat())
            .unwrap();
    }

    /// The next message that is no heart-beat. Heart-beats come all the while.
    pub fn next(&mut self) -> Value {
        let started = Instant::now();
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).unwrap();
            let mut text = vec![0; u32::from_le_bytes(length) as usize];
            self.0.read_exact(&mut text).unwrap();
            let message: Value = serde_json::from_slice(&text).unwrap();
            if message["type"] != "heartbeat" {
                return message;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "no message");
        }
    }

    pub fn is_closed(&mut self) {
        let mut rest = Vec::new();
        // Heart-beats may still come.
        self.0.read_to_end(&mut rest).unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("perftest"));
    }

    pub fn abort(&mut self) -> String {
        let message = self.next();
        assert_eq!(message["type"], "abort", "{message}");
        message["body"]["reason"].as_str().unwrap().to_owned()
    }
}
