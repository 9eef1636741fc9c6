//! Who gets a session: one client at a time, and with a token only those that have it.

use std::net::TcpListener;
use std::sync::mpsc::channel;

use protocol::PROTOCOL_VERSION;
use protocol::endpoints::{Endpoints, LinkLayer, QpEndpoint};
use protocol::lesson::Lesson;
use protocol::message::{
    ChannelHello, ChannelSettings, ExaminationMessage, FileHello, FileMessage, LessonMessage,
    Message,
};
use serde_json::{Value, json};
use settings::Op;

use crate::stage::Stage;
use testing::process::{Program, Signal};
use testing::program::{Server, call};
use testing::sessions::{Proxy, Sender, Step, Wire, case, challenge};

const SHORT: &str = "-n 5 --warmup 0 -s 64 --timeout 18";

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    let server = Server::embedded("-d soft0");
    let first = server.call("-D 60s --warmup 0 -t 8 -s 64").start();
    server.says(0, "run 1");
    let second = server.call(SHORT);
    second.fails(&["busy", "has served 127.0.0.1:", "hint:"]);
    server.says(0, "was refused: the server is busy");
    first.signal(Signal::Interrupt);
    let first = first.wait().exits(1);
    assert!(first.runs()[0].interrupted, "the first one was not disturbed");
    server.serves_the_next();
}

#[test]
fn one_server_under_two_names_is_told_so() {
    let server = Server::embedded("-d soft0");
    let port = server.name.rsplit_once(':').unwrap().1;
    let nodes = format!("--nodes 127.0.0.1:{port},localhost:{port} -n 1");
    call(&nodes).is_refused(&["are the same server", "hint: name it once"]);
    server.serves_the_next();
}

const LONG: &str = "-D 60s --warmup 0 -t 8 -s 64";

#[test]
fn who_comes_when_a_client_has_just_closed_is_served() {
    let server = Server::embedded("-d soft0");
    for _ in 0..50 {
        let mut wire = Wire::session(&server.name);
        wire.create(&case([("qps", "16"), ("cq", "per-qp")]));
        wire.close();
    }
    for _ in 0..50 {
        Wire::session(&server.name).say("session", "goodbye", &Value::Null);
    }
    server.serves_the_next();
    server.end();
}

#[test]
fn who_comes_when_a_lesson_a_file_or_an_examination_was_cut_off_is_served() {
    let stage = Stage::new("");
    let lesson = Lesson::new(Op::Send, None, None, "hello");
    let channel = ChannelHello {
        settings: ChannelSettings {
            qps: 1,
            chunk_bytes: 4096,
            window: 1,
            mtu_bytes: None,
            timeout: 14,
            retry_cnt: 7,
        },
        endpoints: Endpoints {
            mtu_bytes: 4096,
            max_rd_atomic: 1,
            lid: 0,
            gid: "::ffff:127.0.0.1".to_owned(),
            qkey: 0,
            link_layer: LinkLayer::RoceV2,
            qps: vec![QpEndpoint { qpn: 17, psn: 1, address: 0, rkey: 0, length: 0 }],
        },
    };
    let file =
        FileHello { name: "a".to_owned(), size_bytes: 5, force: false, channel: Some(channel) };
    for message in [
        Message::from(LessonMessage::Prepare(Box::new(lesson))),
        FileMessage::Hello(Box::new(file)).into(),
        ExaminationMessage::Examine { device: None }.into(),
    ] {
        let message = serde_json::to_value(message).unwrap();
        for _ in 0..50 {
            let mut session = Wire::session(&stage.server.name);
            session.send(&message);
            session.close();
        }
    }
    stage.server.serves_the_next();
}

/// The next client is started as soon as `end` has ended one that measures: `SESSIONS` times, 3 by default.
fn next_of_one_that(end: impl Fn(&Program)) {
    let server = Server::embedded("-d soft0");
    let sessions = std::env::var("SESSIONS").map_or(3, |text| text.parse().unwrap());
    for _ in 0..sessions {
        let client = server.call(LONG).start();
        client.has_moved(0, "measure", 0);
        end(&client);
        server.serves_the_next();
        client.wait();
    }
    server.end();
}

#[test]
fn who_comes_when_a_client_was_killed_is_served() {
    next_of_one_that(|client| client.signal(Signal::Kill));
}

#[test]
fn who_comes_after_a_second_ctrl_c_is_served() {
    next_of_one_that(|client| {
        // Both together: the first one's drain may otherwise be over before the second comes.
        client.signal(Signal::Stop);
        client.signal(Signal::Interrupt);
        client.signal(Signal::Terminate);
        client.signal(Signal::Continue);
    });
}

#[test]
fn who_comes_when_a_cable_was_pulled_is_served() {
    let server = Server::embedded("-d soft0");
    let (pull, is_pulled) = channel();
    let (plug, is_plugged) = channel::<()>();
    let step = Step::first(Sender::Client, "open");
    let proxy = Proxy::start("127.0.0.1", server.name.parse().unwrap(), step, move || {
        pull.send(()).unwrap();
        // Until then nothing passes in either direction, and nothing ends.
        let _ = is_plugged.recv();
    });
    let client = call(&format!("{} -d soft0 --timeout 18 {LONG}", proxy.address)).start();
    is_pulled.recv().unwrap();
    server.serves_the_next();
    server.says(0, "silent");
    client.signal(Signal::Kill);
    client.wait();
    drop(plug);
    server.end();
}

#[test]
fn who_comes_while_the_only_session_ends_is_told_that_it_was_the_only_one() {
    let server = Server::embedded("-d soft0 --once");
    let client = server.call(LONG).start();
    client.has_moved(0, "measure", 0);
    client.signal(Signal::Kill);
    client.wait();
    // It comes before the port is closed, or after.
    server.call(SHORT).fails(&["rocebench: error: "]);
    server.program.wait().exits(1).says(&["the session of --once ended early"]);
}

#[test]
fn a_client_says_that_it_waits_for_the_last_sweep_to_end() {
    for command in ["-n 5 --warmup 0 -s 64", "doctor"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let client = call(&format!("{command} -d soft0 {server}")).start();
        let mut session = Wire(listener.accept().unwrap().0);
        session.recv();
        session.send(&challenge("0.1.0", PROTOCOL_VERSION));
        session.recv();
        session.say("handshake", "wait", &Value::Null);
        client.has_said("waiting for the last sweep to end");
        let last = json!({"client": "192.0.2.7:4000", "since_seconds": 9});
        session.say("handshake", "busy", &last);
        let ended = client.wait().exits(1);
        let text = format!("{}{}", ended.stdout, ended.stderr());
        assert!(text.contains("has served 192.0.2.7:4000 for 9 s"), "{text}");
    }
}

#[test]
fn tokens() {
    let server = Server::embedded("-d soft0 --token open-sesame");
    let with = |serving: &Server, token: &str| serving.call(&format!("{SHORT} {token}"));
    let lines = server.program.lines().len();
    with(&server, "--token open-barley").is_refused(&["token", "hint:"]);
    server.says(lines, "does not know the token");
    with(&server, "").is_refused(&["requires a token", "--token"]);
    let recorded = with(&server, "--token open-sesame").passes();
    let json = recorded.file(".json");
    assert!(!json.contains("sesame"), "the token is in the result");
    server.end();

    let open = Server::embedded("-d soft0");
    with(&open, "--token open-sesame").is_refused(&["hint:"]);
}

#[test]
fn nobody_listens_or_the_port_is_taken() {
    let server = Server::embedded("-d soft0");
    let taken = format!("serve --bind 127.0.0.1 -d soft0 -p {}", server.port);
    call(&taken).is_refused(&["cannot listen", "--port"]);
    let client = server.call(SHORT);
    server.end();
    client.fails(&["Connection refused", "rocebench serve"]);
}
