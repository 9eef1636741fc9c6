//! Files sent over the embedded device: what arrives, what is refused, and that nothing half-made is left.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rocebench::control::file_message::{FileFin, FileHello, TcpHello};
use rocebench::control::handshake::connect;
use rocebench::control::link::Link;
use rocebench::control::message::Message;
use serde_json::Value;

use crate::program::{Ended, Program, Server, alone};

/// Slow enough to be in the midst of it for a long time.
const SLOW: &str = "--faults drop=5%,seed=1";

/// A source folder, a folder to receive into, and a server for it.
struct Stage {
    source: tempfile::TempDir,
    target: tempfile::TempDir,
    server: Server,
}

impl Stage {
    fn new(words: &str) -> Stage {
        let target = tempfile::tempdir().unwrap();
        let folder = target.path().display();
        Stage {
            source: tempfile::tempdir().unwrap(),
            server: Server::start(&format!("-d soft0 --receive {folder} {words}")),
            target,
        }
    }

    /// A file of reproducible bytes.
    fn file(&self, name: &str, size: usize) -> PathBuf {
        let path = self.source.path().join(name);
        let mut random = fastrand::Rng::with_seed(size as u64);
        fs::write(&path, (0..size).map(|_| random.u8(..)).collect::<Vec<_>>()).unwrap();
        path
    }

    /// A file that takes no room here.
    fn hollow(&self, name: &str, size: u64) -> PathBuf {
        let path = self.source.path().join(name);
        fs::File::create(&path).unwrap().set_len(size).unwrap();
        path
    }

    fn program(&self, files: &[&PathBuf], words: &str) -> Program {
        let mut program = Program::new("send");
        program.command.args(files);
        program
            .command
            .arg(format!("127.0.0.1:{}", self.server.port));
        program.command.args(["-d", "soft0"]);
        if !words.contains("--timeout") {
            program.command.args(["--timeout", "18"]);
        }
        program.command.args(words.split_whitespace());
        program
    }

    fn send(&self, files: &[&PathBuf], words: &str) -> Ended {
        self.program(files, words).run()
    }

    /// A transfer that is well under way.
    fn slow(&self) -> (Child, Program) {
        let file = self.hollow("slow", 256 << 20);
        let mut program = self.program(&[&file], SLOW);
        let child = program
            .command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.server.has_said("session begins");
        std::thread::sleep(Duration::from_millis(700));
        (child, program)
    }

    fn received(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[track_caller]
    fn has(&self, path: &PathBuf) {
        let received = self.target.path().join(path.file_name().unwrap());
        assert!(
            fs::read(received).unwrap() == fs::read(path).unwrap(),
            "{path:?} differs"
        );
    }
}

fn said(mut child: Child) -> (Option<i32>, String) {
    let code = child.wait().unwrap().code();
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (code, text)
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn files_of_all_sizes_arrive() {
    let _alone = alone();
    let stage = Stage::new("");
    // Sizes around those of a chunk and of all memory together, which is 2 x 2 x 4 KiB here.
    let sizes = [0, 1, 4095, 4096, 4097, 16_384, 3_000_001];
    let files: Vec<_> = sizes
        .iter()
        .map(|&size| stage.file(&format!("file {size}"), size))
        .collect();
    let all: Vec<_> = files.iter().collect();
    let ended = stage
        .send(&all, "-q 2 --window 2 --chunk 4K --json")
        .exits(0);
    for file in &files {
        stage.has(file);
    }
    assert_eq!(stage.received().len(), sizes.len());
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = document["files"].as_array().unwrap();
    assert_eq!(told.len(), sizes.len());
    assert_eq!(told[6]["bytes"], 3_000_001);
    assert_eq!(told[6]["qps"], 2);
    assert!(told[6]["rdma"]["gbit_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(document["failure"], Value::Null);
    let said = stage.server.end();
    assert!(
        said.contains("\"file 3000001\" received: 3000001 bytes"),
        "{said}"
    );
}

#[test]
fn losses_spoil_nothing() {
    let _alone = alone();
    let faults = "drop=1%,reorder=0.5%,duplicate=0.5%,corrupt=0.1%";
    let stage = Stage::new(&format!("--faults {faults},seed=2"));
    let file = stage.file("large", 12 << 20);
    stage
        .send(
            &[&file],
            &format!("-q 16 --faults {faults},seed=3 --timeout 16"),
        )
        .exits(0);
    stage.has(&file);
}

#[test]
fn nothing_is_overwritten_without_force() {
    let _alone = alone();
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
    let _alone = alone();
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
    let _alone = alone();
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
    let _alone = alone();
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
    let _alone = alone();
    let stage = Stage::new("--token right");
    let file = stage.file("a", 10);
    for words in ["", "--token wrong"] {
        assert!(!stage.send(&[&file], words).status.success());
    }
    assert!(stage.received().is_empty());
    stage.send(&[&file], "--token right").exits(0);
    stage.has(&file);
}

#[test]
fn sweeps_are_served_beside_files() {
    let _alone = alone();
    let stage = Stage::new("");
    let file = stage.file("a", 100_000);
    stage.send(&[&file], "").exits(0);
    Program::new(&format!(
        "127.0.0.1:{} -d soft0 --timeout 18 -n 50 --warmup 0 --verify --quiet",
        stage.server.port
    ))
    .run()
    .exits(0)
    .all_whole(1);
}

#[test]
fn tcp_is_compared_with_and_leaves_nothing() {
    let _alone = alone();
    let stage = Stage::new("");
    let files = [stage.file("a", 5_000_000), stage.file("b", 0)];
    let ended = stage
        .send(&[&files[0], &files[1]], "--against tcp")
        .exits(0);
    assert_eq!(
        ended.stdout.matches("plain TCP: ").count(),
        2,
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("times as fast"), "{}", ended.stdout);
    stage.has(&files[0]);
    assert_eq!(stage.received(), ["a", "b"]);
    assert!(stage.server.end().contains("again over TCP"));
}

#[test]
fn a_killed_or_stopped_sender_leaves_nothing() {
    let _alone = alone();
    let mut stage = Stage::new("");
    for how in ["-KILL", "-INT"] {
        let (child, _program) = stage.slow();
        signal(&child, how);
        let (code, text) = said(child);
        match how {
            "-INT" => {
                assert_eq!(code, Some(1), "{text}");
                assert!(text.contains("interrupted"), "{text}");
                stage.server.has_said("the sender was stopped");
            }
            _ => stage.server.has_said("its process ended or died"),
        }
        assert!(stage.received().is_empty(), "{how}: {:?}", stage.received());
    }
    // It serves on, and with the server gone too nothing is left.
    let file = stage.file("next", 10_000);
    stage.send(&[&file], "").exits(0);
    stage.server.kill();
    assert_eq!(stage.received(), ["next"]);
}

#[test]
fn a_killed_receiver_leaves_nothing() {
    let _alone = alone();
    let mut stage = Stage::new("");
    let (child, _program) = stage.slow();
    stage.server.kill();
    let killed = Instant::now();
    let (code, text) = said(child);
    assert!(
        killed.elapsed() < Duration::from_secs(3),
        "{:?}",
        killed.elapsed()
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("its process ended or died"), "{text}");
    assert!(stage.received().is_empty(), "{:?}", stage.received());
}

#[test]
fn a_full_disk_is_told_at_both_ends() {
    let _alone = alone();
    let stage = Stage::new("");
    // More than any disk of a test machine has; it takes no room at the sender.
    let file = stage.hollow("huge", 8 << 40);
    let says = "no room for \"huge\" at the receiver: it takes 8796093022208 bytes";
    stage.send(&[&file], "").exits(1).says(&[says, "make room"]);
    let said = stage.server.end();
    assert!(said.contains(says), "{said}");
    assert_eq!(fs::read_dir(&stage.target).unwrap().count(), 0);
}

/// A client that keeps to no rules.
fn liar(stage: &Stage) -> Link {
    let never = AtomicBool::new(false);
    let (link, _) = connect("127.0.0.1", stage.server.port, None, &Value::Null, &never).unwrap();
    link
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
    let _alone = alone();
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
    let _alone = alone();
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
    assert!(said.contains("it was thrown away"), "{said}");
    assert!(stage.received().is_empty());
}
