//! What is refused before anything runs: on the command line, at this end and at the server's.

use std::sync::mpsc::{RecvTimeoutError, channel};

use plan::Case;
use protocol::link::HEARTBEAT_EVERY;
use serde_json::{Value, json};
use settings::Settings;

use testing::embedded_device::place_beside_the_program;
use testing::program::{Server, call};
use testing::sessions::Wire;

const ASKS: &str = "-d soft0 -n 10 --warmup 0 --against perftest";

#[test]
fn a_dry_run_tells_the_programs_and_the_time() {
    let ended = call("--dry-run --against perftest --op write,read -D 2s --warmup 1s").passes();
    ended.shows(&["8 to 24 pairs with perftest (ib_write_bw, ib_read_bw)"]);
    // 2 cases, 24 pairs, 3 s of ours and 4 of theirs.
    ended.shows(&["at most 5 min 36 s"]);
}

#[test]
fn a_missing_program_names_its_package_at_either_end() {
    place_beside_the_program();
    let nothing = tempfile::tempdir().unwrap();
    let empty = nothing.path().to_str().unwrap();
    let says = ["there is no ib_send_bw in PATH", "package perftest"];
    let ended = call(ASKS).env("PATH", empty).is_refused(&says);
    assert_eq!(ended.json(), &Value::Null, "nothing was run");
    let serve = call("serve -p 0 -d soft0 --allow-perftest").env("PATH", empty);
    let server = Server::embedded_by(serve);
    let refused =
        call(&format!("{} {ASKS}", server.name)).is_refused(&says).says(&["at the server"]);
    assert_eq!(refused.json(), &Value::Null, "nothing was run");
}

#[test]
fn a_library_that_is_not_there_says_how_to_build_it() {
    let call = call(ASKS).env("SOFTROCE_LIBRARY", "/nowhere/lib.so");
    call.is_refused(&["SOFTROCE_LIBRARY=/nowhere/lib.so: no such file"]);
}

#[test]
fn a_server_must_allow_it() {
    let server = Server::embedded("-d soft0");
    let says = "was not started to run perftest";
    let sweep = call(&format!("{} {ASKS}", server.name));
    sweep.is_refused(&[says, "rocebench serve --allow-perftest"]);
    let mut session = Wire::session(&server.name);
    session.send(&json!({"type": "perftest", "body": {"type": "start", "body": job()}}));
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
        session.send(&json!({"type": "perftest", "body": {"type": "start", "body": job}}));
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
    session.send(&json!({"type": "perftest", "body": {"type": "start", "body": job}}));
    assert_eq!(session.recv().unwrap()["type"], "started");
    // The coordinator lives and says nothing.
    let (over, is_over) = channel::<()>();
    let beats = std::thread::spawn(move || {
        while is_over.recv_timeout(HEARTBEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
            heart.send(
                &json!({"type": "session", "body": {"type": "heartbeat", "body": {"progress": 0}}}),
            );
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
