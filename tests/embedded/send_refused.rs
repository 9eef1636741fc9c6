//! What a sender, a receiver's folder and its server do not take, told before anything is overwritten.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rocebench::protocol::error::ConnectError;
use rocebench::protocol::file_message::{FileFin, FileHello, TcpHello};
use rocebench::protocol::handshake::connect;
use rocebench::protocol::link::Link;
use rocebench::protocol::message::Message;
use serde_json::Value;

use crate::program::{Program, Server, with_others};
use crate::stage::Stage;
use testing::program::NOTICED;

#[test]
fn nothing_is_overwritten_without_force() {
    let _machine = with_others();
    let stage = Stage::new("");
    let file = stage.file("a", 1000);
    let place = stage.target.path().join("a");
    fs::write(&place, "mine").unwrap();
    stage
        .send(&[&file], "")
        .exits(2)
        .says(&["\"a\" exists at the receiver", "--force"]);
    assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
    stage.send(&[&file], "--force").exits(0);
    stage.has(&file);
    assert_eq!(stage.received(), ["a"]);
    // A link is not followed, whatever is asked for.
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(&place).unwrap();
    symlink(outside.path(), &place).unwrap();
    for words in ["", "--force"] {
        stage
            .send(&[&file], words)
            .exits(2)
            .says(&["a symbolic link"]);
    }
    assert_eq!(fs::read(outside.path()).unwrap(), b"");
}

#[test]
fn a_receiver_may_keep_what_it_has() {
    let _machine = with_others();
    let stage = Stage::new("--keep-existing");
    let file = stage.file("a", 1000);
    stage.send(&[&file], "--force").exits(0);
    fs::write(&file, "other").unwrap();
    stage
        .send(&[&file], "--force")
        .exits(2)
        .says(&["\"a\" exists", "--keep-existing"]);
    assert_eq!(
        fs::metadata(stage.target.path().join("a")).unwrap().len(),
        1000
    );
}

#[test]
fn the_second_file_may_fail_and_the_first_stays() {
    let _machine = with_others();
    let stage = Stage::new("");
    let files = [
        stage.file("a", 5000),
        stage.file("b", 5000),
        stage.file("c", 5000),
    ];
    fs::create_dir(stage.target.path().join("b")).unwrap();
    stage
        .send(&[&files[0], &files[1], &files[2]], "-q 1")
        .exits(2)
        .says(&["2 of 3 files were not sent", "\"b\" is a folder"]);
    stage.has(&files[0]);
    assert_eq!(stage.received(), ["a", "b"]);
}

#[test]
fn what_cannot_be_sent_is_told_before_anything_is() {
    let stage = tempfile::tempdir().unwrap();
    let path = |name: &str| stage.path().join(name).display().to_string();
    fs::create_dir(stage.path().join("d")).unwrap();
    for name in ["a", "d/a"] {
        fs::write(stage.path().join(name), "").unwrap();
    }
    // Nobody listens there: what is refused is refused without asking.
    let host = "127.0.0.1:1";
    for (words, says) in [
        (
            format!("{} {} {host}", path("a"), path("d/a")),
            "would both be received as \"a\"",
        ),
        (
            format!("{} {host}", path("d")),
            "is a folder, and only files are sent",
        ),
        (format!("{} {host}", path("absent")), "No such file"),
        (format!("{} {}", path("a"), path("d/a")), "HOST is missing"),
        ("node1".to_owned(), "there is no file node1"),
        (
            format!("{} {host} --chunk 5000", path("a")),
            "--chunk is a multiple of 4K",
        ),
    ] {
        Program::new(&format!("send -d soft0 {words}"))
            .run()
            .exits(2)
            .says(&[says]);
    }
}

#[test]
fn a_server_must_be_started_for_it() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    Program::new(&format!("send {path} 127.0.0.1:{} -d soft0", server.port))
        .run()
        .exits(2)
        .says(&["receives no files", "rocebench serve --receive DIR"]);
    Program::new("serve -d soft0 --receive /nonexistent")
        .run()
        .exits(2)
        .says(&["cannot open the folder /nonexistent", "--receive"]);
}

#[test]
fn a_token_guards_the_folder() {
    let _machine = with_others();
    let stage = Stage::new("--token right");
    let file = stage.file("a", 10);
    for words in ["", "--token wrong"] {
        assert!(!stage.send(&[&file], words).status.success());
    }
    assert!(stage.received().is_empty());
    stage.send(&[&file], "--token right").exits(0);
    stage.has(&file);
}

/// A client that keeps to no rules. The server is busy until it has noticed that the one before is gone.
fn liar(stage: &Stage) -> Link {
    let never = AtomicBool::new(false);
    let began = Instant::now();
    loop {
        match connect("127.0.0.1", stage.server.port, None, &Value::Null, &never) {
            Ok((link, _)) => return link,
            Err(ConnectError::Busy { .. }) if began.elapsed() < NOTICED => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn refusal(link: &Link) -> String {
    let never = AtomicBool::new(false);
    match link.recv(Duration::from_secs(10), &never) {
        Err(error) => error.to_string(),
        Ok(message) => panic!("it was not refused: {message:?}"),
    }
}

#[test]
fn names_that_lead_out_are_refused_by_the_receiver() {
    let _machine = with_others();
    let stage = Stage::new("");
    let long = "x".repeat(256);
    for name in [
        "../a", "/tmp/a", "a/b", "..", ".", "", "a\0b", "a\nb", &long,
    ] {
        let link = liar(&stage);
        let hello = FileHello {
            name: name.to_owned(),
            size_bytes: 1,
            force: true,
            channel: None,
        };
        link.send(&Message::FileHello(Box::new(hello))).unwrap();
        let said = refusal(&link);
        assert!(said.contains("does not take"), "{name:?}: {said}");
    }
    assert!(stage.received().is_empty());
}

#[test]
fn a_wrong_checksum_is_refused() {
    let _machine = with_others();
    let stage = Stage::new("");
    let link = liar(&stage);
    let never = AtomicBool::new(false);
    let hello = TcpHello {
        name: "a".into(),
        size_bytes: 5,
        chunk_bytes: 4096,
    };
    link.send(&Message::TcpHello(hello)).unwrap();
    let Message::TcpAccept(accept) = link.recv(Duration::from_secs(10), &never).unwrap() else {
        panic!("no tcp_accept");
    };
    let mut stream = TcpStream::connect(("127.0.0.1", accept.port)).unwrap();
    let key = (0..accept.key.len()).step_by(2);
    let key: Vec<u8> = key
        .map(|at| u8::from_str_radix(&accept.key[at..at + 2], 16).unwrap())
        .collect();
    stream.write_all(&key).unwrap();
    stream.write_all(b"hello").unwrap();
    let digest = "0".repeat(32);
    link.send(&Message::FileFin(FileFin { digest })).unwrap();
    let said = refusal(&link);
    assert!(said.contains("it was discarded"), "{said}");
    assert!(stage.received().is_empty());
}
