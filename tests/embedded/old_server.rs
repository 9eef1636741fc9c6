//! A server that lacks what later ones can do: the client says so before anything is measured.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use rocebench::protocol::frame::{self, FrameReader, MAX_FRAME_BYTES, Step};
use rocebench::protocol::message::Message;
use rocebench::protocol::token::to_hex;
use rocebench::protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};

use crate::program::{Program, alone};

fn next(reader: &mut FrameReader, mut stream: &TcpStream) -> Option<Message> {
    loop {
        if let Step::Frame(message) = reader.step(&mut stream).ok()? {
            return Some(message);
        }
    }
}

/// The server's half of one handshake, without a token and without features; then what the client sends first
/// besides its introduction and signs of life.
fn serve_one(listener: &TcpListener) -> Option<Message> {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    let answers = [
        Message::Challenge {
            protocol: PROTOCOL_VERSION,
            version: PROGRAM_VERSION.into(),
            nonce: to_hex(&[9; 32]),
            token_required: false,
        },
        Message::Welcome {
            mac: None,
            host: serde_json::Value::Null,
            features: Vec::new(),
            clock_ns: None,
        },
    ];
    for answer in answers {
        next(&mut reader, &stream).unwrap();
        (&stream)
            .write_all(&frame::encode(&answer).unwrap())
            .unwrap();
    }
    assert!(matches!(
        next(&mut reader, &stream),
        Some(Message::Introduce { .. })
    ));
    loop {
        match next(&mut reader, &stream) {
            Some(Message::Heartbeat { .. }) => {}
            other => return other,
        }
    }
}

#[test]
fn a_server_that_lacks_what_is_asked_of_it_is_refused() {
    let _alone = alone();
    for (words, refusal) in [
        (
            "HOST -d soft0 -n 10 --poll event",
            "too old for --poll event and adaptive",
        ),
        (
            "HOST -d soft0 -n 10 --poll busy,adaptive",
            "too old for --poll event and adaptive",
        ),
        ("explain HOST -d soft0", "too old to take part in a lesson"),
        (
            "HOST -d soft0 --op write,connect",
            "too old for --op connect",
        ),
        ("send /etc/hostname HOST -d soft0", "receives no files"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || serve_one(&listener));
        Program::new(&words.replace("HOST", &format!("127.0.0.1:{port}")))
            .run()
            .exits(2)
            .says(&[refusal, "hint: "]);
        let first = server.join().unwrap();
        assert!(
            matches!(first, None | Some(Message::Goodbye)),
            "{words}: {first:?}"
        );
    }
}
