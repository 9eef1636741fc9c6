//! Broken control frames end their own session, and nothing else.

use plan::Case;
use protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use serde_json::{Value, json};

use testing::program::Server;
use testing::sessions::{Wire, case};

/// The server ends the session with a line that has these words.
#[track_caller]
fn breaks(server: &Server, words: &str, broken: impl FnOnce(&mut Wire)) {
    let lines = server.program.lines().len();
    let mut wire = Wire::session(&server.name);
    broken(&mut wire);
    server.says(lines, "session ended early");
    server.says(lines, words);
    // It may say why, but then it hangs up.
    wire.is_closed();
}

/// Has the server connect its end of the case's flow to itself.
fn connected(wire: &mut Wire, case: &Case) {
    let mut array = wire.create(case)["arrays"][0].take();
    array["side"] = json!("initiator");
    wire.say("run", "connect", &json!([array]));
    assert_eq!(wire.recv().unwrap()["type"], "ready");
}

/// It serves the next client, and ends when it is told to.
fn ends_well(server: Server) {
    server.serves_the_next();
    server.end();
}

#[test]
fn messages_out_of_turn() {
    let server = Server::embedded("-d soft0");
    type Break = fn(&mut Wire, &Case);
    let rows: [(&str, &str, Break); 7] = [
        ("1", "`measure` instead of", |wire, _| {
            wire.say("run", "measure", &Value::Null);
        }),
        ("1", "`hello` instead of", |wire, _| wire.hello()),
        ("2", "`ready` instead of", |wire, case| {
            wire.prepare(case);
            wire.say("run", "ready", &Value::Null);
        }),
        ("2", "1 QPs instead of 2", |wire, case| {
            wire.create(case);
            wire.connect_to(&[17]);
        }),
        ("1", "0 arrays came for 1 ends of flows", |wire, case| {
            wire.create(case);
            wire.say("run", "connect", &json!([]));
        }),
        ("1", "`start` instead of `connect`", |wire, case| {
            wire.create(case);
            wire.say("run", "start", &Value::Null);
        }),
        ("1", "`set_up_begin` instead of `start or measure`", |wire, case| {
            connected(wire, case);
            wire.say("set_up", "begin", &Value::Null);
        }),
    ];
    for (qps, words, broken) in rows {
        breaks(&server, words, |wire| broken(wire, &case([("qps", qps)])));
    }
    for (steps, words) in [
        ("stop", "`stop` instead of `start or measure`"),
        ("start start", "`start` instead of `measure or stop`"),
        ("start measure stop", "`stop` instead of `ask_clock`"),
        ("measure ask_clock ask_clock stop", "`stop` instead of `ask_clock or open`"),
        ("finish finish", "`finish` instead of `ask_qps or run_done`"),
    ] {
        breaks(&server, words, |wire| {
            connected(wire, &case([]));
            for step in steps.split(' ') {
                let body = if step == "finish" { json!({"flush": true}) } else { Value::Null };
                wire.say("run", step, &body);
                wire.recv();
            }
        });
    }
    for (frame, says) in [
        (
            &b"\x29\0\0\0{\"type\":\"run\",\"body\":{\"type\":\"run_done\"}}"[..],
            "sent `run_done` instead of `prepare or goodbye`",
        ),
        (b"\x03\0\0\0abc", "is not JSON"),
    ] {
        breaks(&server, says, |wire| {
            wire.raw(frame);
            let reason = wire.abort();
            assert!(reason.contains(says), "{reason}");
        });
    }
    ends_well(server);
}

/// What a client may ask for is checked again by the server.
#[test]
fn cases_that_no_command_line_makes() {
    let server = Server::embedded("-d soft0");
    type Damage = fn(&mut Case);
    let rows: [(&str, Damage); 5] = [
        ("refuses the case", |it| it.flows[0].qps = 0),
        ("session ended early", |it| it.flows[0].tx_depth = u32::MAX),
        ("refuses the case", |it| {
            it.flows[0].signal_every = it.tx_depth + 1;
        }),
        ("refuses the case", |it| it.flows[0].to = 0),
        ("refuses the case", |it| it.flows[0].to = u32::MAX),
    ];
    for (words, damage) in rows {
        let mut broken = case([]);
        damage(&mut broken);
        breaks(&server, words, |wire| wire.prepare(&broken));
    }
    ends_well(server);
}

#[test]
fn strangers_before_the_handshake() {
    let server = Server::embedded("-d soft0");
    let lines = server.program.lines().len();
    let mut http = Wire::connect(&server.name);
    http.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    server.says(lines, "does not speak rocebench's protocol");
    assert!(http.recv().is_none());

    let before_newer = server.program.lines().len();
    let mut newer = Wire::connect(&server.name);
    let version = PROTOCOL_VERSION + 1;
    let hello = json!({"protocol": version, "version": PROGRAM_VERSION, "nonce": "00".repeat(32)});
    newer.say("handshake", "hello", &hello);
    server.says(before_newer, "speaks protocol");
    assert_eq!(newer.recv().unwrap()["protocol"], Value::Null);

    // One that says nothing holds nobody up, and is sent away in the end.
    let before_silent = server.program.lines().len();
    let silent: Vec<Wire> = (0..8).map(|_| Wire::connect(&server.name)).collect();
    server.serves_the_next();
    server.says(before_silent, "not complete after");
    drop(silent);
    server.end();
}

/// A session whose client sends heart-beats and nothing else is not in the way of Ctrl-C.
#[test]
fn a_session_that_idles_does_not_keep_the_server() {
    let server = Server::embedded("-d soft0");
    let mut wire = Wire::session(&server.name);
    wire.say("examination", "ask_limits", &json!({"devices": []}));
    assert_eq!(wire.recv().unwrap()["type"], "limits");
    wire.heartbeat();
    server.end();
    let last = wire.recv().unwrap();
    assert_eq!(last["type"], "abort");
    wire.close();
}
