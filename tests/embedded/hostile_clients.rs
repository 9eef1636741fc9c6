//! A server among clients that mean it no good, or are broken.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rocebench::plan::Sweep;
use rocebench::protocol::error::LinkError;
use rocebench::protocol::frame::{self, FrameReader, MAX_FRAME_BYTES, Step};
use rocebench::protocol::handshake::connect;
use rocebench::protocol::message::Message;
use rocebench::protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use settings::{CqMode, Given};

use crate::program::{Server, memory_bytes, with_others};

static GO_ON: AtomicBool = AtomicBool::new(false);

fn is_served(server: &Server) {
    server
        .client("-n 50 --timeout 18 --warmup 0 --quiet")
        .run()
        .exits(0)
        .all_whole(1);
}

/// A connection from an address of this machine, of which nothing comes.
fn idle(server: &Server, from: [u8; 4]) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(IpAddr::from(from), 0)).unwrap();
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.port);
    rustix::net::connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// A client that has been taken, as a bare socket.
fn client(server: &Server) -> (TcpStream, FrameReader) {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    for message in [
        Message::Hello {
            protocol: PROTOCOL_VERSION,
            version: PROGRAM_VERSION.into(),
            nonce: "17".repeat(32),
        },
        Message::Proof { mac: None },
        Message::Introduce { host: Value::Null },
    ] {
        (&stream)
            .write_all(&frame::encode(&message).unwrap())
            .unwrap();
        if !matches!(message, Message::Introduce { .. }) {
            next(&stream, &mut reader);
        }
    }
    (stream, reader)
}

fn next(mut stream: &TcpStream, reader: &mut FrameReader) -> Message {
    loop {
        match reader.step(&mut stream).unwrap() {
            Step::Frame(Message::Heartbeat { .. }) | Step::Partial | Step::Idle => {}
            Step::Frame(message) => return message,
        }
    }
}

/// The server takes the next client before this one's connection ends.
fn is_closed(mut stream: TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    // What it had not read resets the connection.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn idle_connections_keep_nobody_out() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let mut idles: Vec<TcpStream> = (0..40).map(|_| idle(&server, [127, 0, 0, 1])).collect();
    idles.extend((0..64).map(|index| idle(&server, [127, 0, 1 + index / 4, 1])));
    let started = Instant::now();
    let port = server.port;
    let (link, _) = connect("127.0.0.1", port, None, &json!({}), &GO_ON).unwrap();
    // A handshake may take 5 s, which is how long an idle one stays.
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    drop(link);
    server.has_said("the oldest of too many");
    drop(idles);
}

#[test]
fn a_server_that_got_no_threads_for_a_while_serves_on() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let pid = Some(Pid::from_raw(server.pid() as i32).unwrap());
    // Room for what a program allocates, but not for a stack.
    let now = memory_bytes(server.pid(), "VmSize").unwrap();
    let none = Rlimit {
        current: Some(now + (1 << 20)),
        maximum: None,
    };
    let before = prlimit(pid, Resource::As, none).unwrap();
    // Some find the stack of a thread that has ended.
    let idles: Vec<TcpStream> = (0..64)
        .map(|index| idle(&server, [127, 0, 1, index]))
        .collect();
    server.has_said("there is no thread for the connection of [::ffff:127.0.1.63]");
    drop(idles);
    prlimit(pid, Resource::As, before).unwrap();
    is_served(&server);
}

#[test]
fn who_breaks_the_protocol_is_told() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let (link, _) = connect("127.0.0.1", server.port, None, &json!({}), &GO_ON).unwrap();
    link.send(&Message::RunDone).unwrap();
    let told = link.recv(Duration::from_secs(10), &GO_ON).unwrap_err();
    assert!(matches!(told, LinkError::Aborted { .. }), "{told}");
    assert!(
        told.to_string()
            .ends_with("sent `run_done` where `prepare or goodbye` was due"),
        "{told}"
    );
    server.has_said("session ended early");

    let (stream, mut reader) = client(&server);
    (&stream).write_all(b"\x03\0\0\0abc").unwrap();
    match next(&stream, &mut reader) {
        Message::Abort { reason, .. } => assert!(reason.contains("is not JSON"), "{reason}"),
        other => panic!("{other:?}"),
    }
    is_closed(stream);
    server.has_said("is not JSON");
    is_served(&server);
}

#[test]
fn a_frame_of_many_small_things_takes_no_memory() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    for piece in [r#"{"":0},"#, "0,", "[],"] {
        let (stream, mut reader) = client(&server);
        let things = piece.repeat((15 << 20) / piece.len());
        let body = format!(r#"{{"type":"introduce","body":{{"host":[{things}0]}}}}"#);
        let header = (body.len() as u32).to_le_bytes();
        (&stream).write_all(&header).unwrap();
        (&stream).write_all(body.as_bytes()).unwrap();
        match next(&stream, &mut reader) {
            Message::Abort { reason, .. } => assert!(reason.contains("more than"), "{reason}"),
            other => panic!("{other:?}"),
        }
        is_closed(stream);
    }
    let peak = memory_bytes(server.pid(), "VmHWM").unwrap();
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn a_prepare_that_would_take_all_memory_is_refused_before_anything_is_made() {
    let _machine = with_others();
    let server = Server::start("-d soft0 --memory 1G");
    let before = memory_bytes(server.pid(), "VmHWM").unwrap();
    let mut case = Sweep::new(&Given::default()).unwrap().cases.remove(0);
    let flow = &mut case.flows[0];
    (flow.qps, flow.cq, flow.size_bytes) = (16_384, CqMode::PerQp, 64);
    (flow.tx_depth, flow.rx_depth) = (16_384, 16_384);
    let (link, _) = connect("127.0.0.1", server.port, None, &json!({}), &GO_ON).unwrap();
    link.send(&Message::Prepare {
        case: Box::new(case),
        flows: vec![0],
        run: 1,
        node: 1,
    })
    .unwrap();
    let told = link.recv(Duration::from_secs(20), &GO_ON).unwrap_err();
    assert!(told.bad_input(), "{told}");
    assert!(told.to_string().contains("--memory leaves 1 GiB"), "{told}");
    let grown = memory_bytes(server.pid(), "VmHWM").unwrap() - before;
    assert!(grown < 64 << 20, "{grown} bytes");
}
