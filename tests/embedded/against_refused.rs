//! What a server refuses of a client that wants perftest's programs.

use std::sync::mpsc::{RecvTimeoutError, channel};

use plan::Case;
use protocol::link::HEARTBEAT_EVERY;
use serde_json::{Value, json};
use settings::Settings;

use testing::embedded_device::place_beside_the_program;
use testing::program::Server;
use testing::sessions::Wire;

#[test]
fn a_server_must_allow_it() {
    let server = Server::embedded("-d soft0");
    let says = "was not started to run perftest";
    let mut session = Wire::session(&server.name);
    session.say("perftest", "start", &job());
    let reason = session.abort();
    assert!(reason.contains(says), "{reason}");
}

#[test]
fn a_server_starts_nothing_but_perftest_with_numbers() {
    place_beside_the_program();
    let server = Server::embedded("-d soft0 --allow-perftest");
    let start = |damage: Damage| {
        let mut job = job();
        damage(&mut job);
        let mut session = Wire::session(&server.name);
        session.say("perftest", "start", &job);
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
        (|job| job["case"]["qps"] = json!(0), "--qps 0 is out of range"),
        (|job| job["program"] = json!("ib_read_bw"), "ib_read_bw does not run this case"),
    ];
    for (damage, says) in numbers {
        let reason = start(damage).abort();
        assert!(reason.contains(says), "{reason}");
    }
    let started = start(|_| ()).recv().unwrap();
    assert_eq!(started["type"], "started", "undamaged");
    let times = server.program.times_said("a frame is not a message");
    assert_eq!(times, 3, "{:?}", server.program.lines());
}

#[test]
fn a_run_without_a_client_ends_at_its_limit() {
    place_beside_the_program();
    let server = Server::embedded("-d soft0 --allow-perftest");
    let mut job = job();
    job["limit_ms"] = json!(200);
    let mut session = Wire::session(&server.name);
    let mut heart = Wire(session.0.try_clone().unwrap());
    session.say("perftest", "start", &job);
    assert_eq!(session.recv().unwrap()["type"], "started");
    // The coordinator lives and says nothing.
    let (over, is_over) = channel::<()>();
    let beats = std::thread::spawn(move || {
        while is_over.recv_timeout(HEARTBEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
            heart.heartbeat();
        }
    });
    let ended = session.recv().unwrap();
    drop(over);
    beats.join().unwrap();
    assert_eq!(ended["type"], "ended");
    assert_eq!(ended["body"]["status"], "did not end within 1.2 s");
}

/// Makes something else of a job.
type Damage = fn(&mut Value);

/// A job as a coordinator sends it.
fn job() -> Value {
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
