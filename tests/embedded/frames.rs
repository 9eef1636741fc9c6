//! Broken control frames end their own session, and nothing else.

use rocebench::protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use serde_json::json;

use testing::server::Server;
use testing::wire::{Wire, case};

/// The server ends the session with a line that has these words.
#[track_caller]
fn breaks(server: &Server, words: &str, broken: impl FnOnce(&mut Wire)) {
    let lines = server.program.lines().len();
    let mut wire = Wire::session(&server.name);
    broken(&mut wire);
    server.says(lines, words);
    // It may say why, but then it hangs up.
    wire.is_closed();
}

/// It serves the next client, and ends when it is told to.
fn ends_well(server: Server) {
    server.serves_the_next();
    server.end();
}

#[test]
fn messages_out_of_turn() {
    let server = Server::embedded("-d soft0");
    breaks(&server, "`measure` where", |wire| {
        wire.send(&json!({"type": "measure"}));
    });
    breaks(&server, "`hello` where", Wire::hello);
    breaks(&server, "`ready` where", |wire| {
        wire.prepare(&case([("qps", "2")]));
        wire.send(&json!({"type": "ready"}));
    });
    breaks(&server, "1 QPs where the case has 2", |wire| {
        wire.create(&case([("qps", "2")]));
        wire.connect_to(&[17]);
    });
    breaks(&server, "0 arrays came for 1 ends of flows", |wire| {
        wire.create(&case([]));
        wire.send(&json!({"type": "connect", "body": []}));
    });
    breaks(&server, "`settle` where", |wire| {
        wire.create(&case([]));
        wire.send(&json!({"type": "settle", "body": []}));
    });
    ends_well(server);
}

/// What a client may ask for is checked again by the server.
#[test]
fn cases_that_no_command_line_makes() {
    let server = Server::embedded("-d soft0");
    let mut no_qps = case([]);
    no_qps.flows[0].qps = 0;
    breaks(&server, "refuses the case", |wire| wire.prepare(&no_qps));
    let mut endless = case([]);
    endless.flows[0].tx_depth = u32::MAX;
    breaks(&server, "session ended early", |wire| {
        wire.prepare(&endless);
    });
    let mut batch = case([]);
    batch.flows[0].signal_every = batch.tx_depth + 1;
    breaks(&server, "refuses the case", |wire| wire.prepare(&batch));
    let mut elsewhere = case([]);
    elsewhere.flows[0].to = 0;
    breaks(&server, "refuses the case", |wire| wire.prepare(&elsewhere));
    let mut nowhere = case([]);
    nowhere.flows[0].to = u32::MAX;
    breaks(&server, "refuses the case", |wire| wire.prepare(&nowhere));
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

    let lines = server.program.lines().len();
    let mut newer = Wire::connect(&server.name);
    newer.send(&json!({"type": "hello", "body": {
        "protocol": PROTOCOL_VERSION + 1, "version": PROGRAM_VERSION, "nonce": "00".repeat(32)
    }}));
    server.says(lines, "speaks protocol");
    assert_eq!(newer.recv().unwrap()["protocol"], serde_json::Value::Null);

    // One that says nothing holds nobody up, and is sent away in the end.
    let lines = server.program.lines().len();
    let silent: Vec<Wire> = (0..8).map(|_| Wire::connect(&server.name)).collect();
    server.serves_the_next();
    server.says(lines, "not complete after");
    drop(silent);
    server.end();
}

/// A session whose client sends heart-beats and nothing else is not in the way of Ctrl-C.
#[test]
fn a_session_that_idles_does_not_keep_the_server() {
    let server = Server::embedded("-d soft0");
    let mut wire = Wire::session(&server.name);
    wire.send(&json!({"type": "ask_limits", "body": {"devices": []}}));
    assert_eq!(wire.recv().unwrap()["type"], "limits");
    wire.send(&json!({"type": "heartbeat", "body": {"progress": 0}}));
    server.end();
    let last = wire.recv().unwrap();
    assert_eq!(last["type"], "abort");
    wire.close();
}
