//! What a sender, a receiver's folder and its server do not take, told before anything is overwritten.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use protocol::token::from_hex;
use serde_json::json;

use crate::stage::Stage;
use testing::program::{Server, call};
use testing::sessions::Wire;

#[test]
fn nothing_is_overwritten_without_force() {
    let stage = Stage::new("");
    let file = stage.file("a", 1000);
    let place = stage.target.path().join("a");
    fs::write(&place, "mine").unwrap();
    stage.send(&[&file], "").exits(2).says(&["\"a\" exists at the receiver", "--force"]);
    assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
    stage.send(&[&file], "--force").exits(0);
    stage.has(&file);
    assert_eq!(stage.received(), ["a"]);
}

#[test]
fn a_receiver_may_keep_what_it_has() {
    let stage = Stage::new("--keep-existing");
    let file = stage.file("a", 1000);
    stage.send(&[&file], "--force").exits(0);
    fs::write(&file, "other").unwrap();
    stage.send(&[&file], "--force").exits(2).says(&["\"a\" exists", "--keep-existing"]);
    assert_eq!(fs::metadata(stage.target.path().join("a")).unwrap().len(), 1000);
}

#[test]
fn the_second_file_may_fail_and_the_first_stays() {
    let stage = Stage::new("");
    let files = [stage.file("a", 5000), stage.file("b", 5000), stage.file("c", 5000)];
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
        (format!("{} {} {host}", path("a"), path("d/a")), "would both be received as \"a\""),
        (format!("{} {host}", path("d")), "is a folder, but only files are sent"),
        (format!("{} {host}", path("absent")), "No such file"),
        (format!("{} {}", path("a"), path("d/a")), "HOST is missing"),
        ("node1".to_owned(), "there is no file node1"),
        (format!("{} {host} --chunk 5000", path("a")), "give --chunk a multiple of 4K"),
    ] {
        call(&format!("send -d soft0 {words}")).is_refused(&[says]);
    }
}

#[test]
fn a_server_must_be_started_for_it() {
    let server = Server::embedded("-d soft0");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a");
    fs::write(&file, "").unwrap();
    let send = call("send").arg(&file).arg(&server.name);
    send.arg("-d").arg("soft0").is_refused(&["receives no files", "rocebench serve --receive DIR"]);
    // A folder that is surely not there: a server that finds one serves until it is told to end.
    let absent = home.path().join("absent");
    let says = format!("cannot open the folder {}", absent.display());
    call("serve -p 0 -d soft0 --receive").arg(&absent).is_refused(&[&says, "--receive"]);
}

#[test]
fn a_token_guards_the_folder() {
    let stage = Stage::new("--token right");
    let file = stage.file("a", 10);
    for words in ["", "--token wrong"] {
        assert_ne!(stage.send(&[&file], words).code, Some(0), "{words}");
    }
    assert!(stage.received().is_empty());
    stage.send(&[&file], "--token right").exits(0);
    stage.has(&file);
}

/// What the server says to a client that keeps to no rules.
fn refusal(client: &mut Wire) -> String {
    let reason = client.abort();
    client.is_closed();
    reason
}

#[test]
fn names_that_lead_out_are_refused_by_the_receiver() {
    let stage = Stage::new("");
    let long = "x".repeat(256);
    for name in ["../a", "/tmp/a", "a/b", "..", ".", "", "a\0b", "a\nb", &long] {
        let mut liar = Wire::session(&stage.server.name);
        let hello = json!({"file_name": name, "size_bytes": 1, "force": true, "channel": null});
        liar.send(&json!({"type": "file", "body": {"type": "hello", "body": hello}}));
        let reason = refusal(&mut liar);
        assert!(reason.contains("does not take"), "{name:?}: {reason}");
    }
    assert!(stage.received().is_empty());
}

#[test]
fn a_wrong_checksum_is_refused() {
    let stage = Stage::new("");
    let mut liar = Wire::session(&stage.server.name);
    let hello = json!({"file_name": "a", "size_bytes": 5, "chunk_bytes": 4096});
    liar.send(&json!({"type": "file", "body": {"type": "tcp_hello", "body": hello}}));
    let accept = liar.recv().unwrap();
    assert_eq!(accept["type"], "tcp_accept");
    let accept = &accept["body"];
    let port = accept["port"].as_u64().unwrap().try_into().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let key: [u8; 32] = from_hex(accept["key"].as_str().unwrap()).unwrap();
    stream.write_all(&key).unwrap();
    stream.write_all(b"hello").unwrap();
    let digest = "0".repeat(32);
    liar.send(&json!({"type": "file", "body": {"type": "fin", "body": {"digest": digest}}}));
    let reason = refusal(&mut liar);
    assert!(reason.contains("the receiver discarded"), "{reason}");
    assert!(stage.received().is_empty());
}
