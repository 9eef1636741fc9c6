//! `rocebench explain` on the embedded device: each operation, each mistake, both languages, a server of its own.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::mask::masked;
use testing::program::{Server, Signal, call};
use testing::sessions::Wire;

#[test]
fn a_whole_lesson() {
    let ended = call("explain -d soft0 --op write --text Hello").run().exits(0);
    assert!(ended.stderr().is_empty(), "{}", ended.stderr());
    assert!(!ended.stdout.contains('\x1b'), "colours in a pipe");
    insta::assert_snapshot!("a_whole_lesson", masked(&ended.stdout));
}

#[test]
fn every_operation_shows_its_packets_and_where_the_bytes_went() {
    for (op, packets, words) in [
        (
            "send",
            ["SEND Only", "Acknowledge"],
            &["ibv_post_recv", "IBV_WC_RECV", "byte_len  12"][..],
        ),
        (
            "write",
            ["RDMA WRITE Only", "Acknowledge"],
            &["IBV_ACCESS_REMOTE_WRITE", "RETH    va 0x"],
        ),
        (
            "read",
            ["RDMA READ Request", "RDMA READ Response Only"],
            &["IBV_ACCESS_REMOTE_READ", "Memory of this end, after:"],
        ),
    ] {
        let mut program = call(&format!("explain -d soft0 --op {op} --text"));
        program.command.arg("twelve bytes");
        let ended = program.passes();
        ended.shows(&packets);
        ended.shows(words);
        ended.shows(&[
            "ibv_query_qp: RESET",
            "ibv_query_qp: INIT",
            "ibv_query_qp: RTR",
            "(other end) ibv_query_qp: RESET → INIT → RTR → RTS",
            "as text: twelve bytes",
            "AETH    syndrome 0x1f (ACK, credits not counted)  MSN 1",
            "ibv_close_device(context) → 0",
            "The message has arrived",
        ]);
        assert_eq!(ended.stdout.matches("ICRC    0x").count(), 2, "{}", ended.stdout);
        assert!(!ended.stdout.contains("EBUSY)"), "{}", ended.stdout);
    }
}

#[test]
fn a_message_of_many_packets() {
    let text = "0123456789".repeat(60);
    let ended = call(&format!("explain -d soft0 -m 256 --text {text}")).passes();
    ended.shows(&["IBV_MTU_256", "SEND First", "SEND Middle", "SEND Last", "88 bytes"]);
}

#[test]
fn every_mistake_brings_the_error_it_promises() {
    for (mistake, error, on_the_wire, not) in [
        (
            "gid",
            "RETRY_EXC_ERR (12)",
            &["not the other end's: no host has it", "the same packet again", "ibv_query_qp: ERR"]
                [..],
            "",
        ),
        (
            "rkey",
            "REM_ACCESS_ERR (10)",
            &[
                "(NAK, RemoteAccessError)",
                "not the key from the other end",
                "\n 1–7  as without the mistake; --all shows it\n",
                "\n16  as without the mistake; --all shows it\n",
            ],
            "Open the device",
        ),
        ("rkey --op read", "REM_ACCESS_ERR (10)", &[], ""),
        ("no-recv", "RNR_RETRY_EXC_ERR (13)", &["(RNR NAK, timer 20)"], ""),
        (
            "qp-count",
            "the peer sent 1 QPs instead of 2",
            &["The other end says: the peer sent 2 QPs instead of 1", "QP 1: QPN"],
            "INIT → RTR, ready",
        ),
        ("mtu", "REM_INV_REQ_ERR (9)", &[], ""),
    ] {
        let ended = call(&format!("explain -d soft0 --break {mistake}")).passes();
        let name = mistake.split(' ').next().unwrap();
        let expected = format!("The expected error of --break {name} has occurred.");
        ended.shows(&[&format!("Error: {error}"), &expected]);
        ended.shows(on_the_wire);
        for words in ["On purpose:", "Cause\n", "What you see\n", "How to check\n", "Remedy\n"] {
            assert_eq!(ended.stdout.matches(words).count(), 1, "{mistake}: {words}");
        }
        let arrived = "as text: Hello, remote memory!\n\n      (other";
        assert!(!ended.stdout.contains(arrived), "{mistake}");
        assert!(not.is_empty() || !ended.stdout.contains(not), "{mistake}");
    }
}

#[test]
fn all_of_a_lesson_is_shown_on_demand() {
    let [some, all] =
        ["", "--all"].map(|all| call(&format!("explain -d soft0 --break rkey {all}")).passes());
    all.shows(&["\n 1  Open the device", "\n16  Destroy the objects"]);
    let [some, all] = [some, all].map(|it| it.stdout.lines().count());
    assert!(some * 2 < all, "{some} of {all} lines");
}

#[test]
fn a_lesson_that_does_not_succeed_says_so() {
    // Both at once, for they only wait.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            call("explain -d soft0 --faults drop=100%")
                .fails(&["the message did not arrive", "rocebench doctor"]);
        });
        // What is not the promised error: the packets that would bring it are lost.
        call("explain -d soft0 --break rkey --faults drop=100%")
            .fails(&["the error is not the expected one"]);
    });
}

#[test]
fn chinese_lines_up_and_is_whole() {
    for words in ["--op write", "--op read", "--break gid"] {
        let [chinese, english] = ["zh", "en"].map(|language| {
            let words = format!("explain -d soft0 --lang {language} {words}");
            call(&words).passes().stdout
        });
        let is_broken = words.contains("--break");
        for word in ["对端", "INIT → RTR", "注意："] {
            assert!(chinese.contains(word), "no {word} in {chinese}");
        }
        assert_eq!(chinese.contains("故意出错："), is_broken, "{words}");
        assert_eq!(english.contains("On purpose"), is_broken, "{words}");
        assert!(!chinese.contains("On purpose"), "{words}");
        for word in ["Careful", "other end", "Memory of", "after the post"] {
            assert!(english.contains(word), "no {word} in {english}");
            assert!(!chinese.contains(word), "{word} in {chinese}");
        }
        for stdout in [&chinese, &english] {
            let widest = stdout.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= 100, "{widest} columns: {stdout}");
        }
        // The values of both ends stand one below the other.
        let columns: Vec<usize> = chinese
            .lines()
            .skip_while(|line| !line.contains("交换连接信息"))
            .skip_while(|line| !line.trim_start().starts_with("本端"))
            .skip(1)
            .take(3)
            .map(|line| line[..line.rfind("  ").unwrap() + 2].width())
            .collect();
        assert_eq!(columns, [columns[0]; 3], "{chinese}");
    }
}

#[test]
fn the_other_end_may_be_a_server() {
    let server = Server::embedded("-d soft0");
    let lesson = |words: &str| {
        let words = format!("explain {} -d soft0 {words}", server.name);
        call(&words).passes()
    };
    for op in ["send", "write", "read"] {
        let ended = lesson(&format!("--op {op} --text sent-to-a-server"));
        ended.shows(&["the server at 127.0.0.1:", "as text: sent-to-a-server"]);
    }
    for mistake in ["gid", "rkey", "no-recv", "qp-count", "mtu"] {
        lesson(&format!("--break {mistake}")).shows(&["has occurred"]);
    }
    // Lessons and runs are served by turns.
    server.serves_the_next();
    let log = server.end();
    for words in ["  a lesson: read\n", "  a lesson: write, with the mistake rkey\n"] {
        assert!(log.contains(words), "no {words:?} in {log}");
    }
}

#[test]
fn either_ends_death_is_noticed() {
    let server = Server::embedded("-d soft0");
    // Its packets are lost, so that it waits.
    let lost = format!("explain {} -d soft0 --faults drop=100%", server.name);
    let client = call(&lost).start();
    server.says(0, "  a lesson: ");
    client.signal(Signal::Kill);
    server.says(0, "session ended early");
    let next = format!("explain {} -d soft0", server.name);
    call(&next).passes();
    let waiting = call(&lost).start();
    server.program.has_said_times("  a lesson: ", 3);
    server.kill();
    waiting.wait().exits(1).says(&["closed the connection"]);
}

#[test]
fn a_server_checks_what_it_is_asked_for() {
    let server = Server::embedded("-d soft0");
    let lesson = |change: fn(&mut serde_json::Value)| {
        let mut body = json!({
            "op": "write", "mistake": null, "length_bytes": 5, "mtu_bytes": null, "offered": null
        });
        change(&mut body);
        let mut session = Wire::session(&server.name);
        session.send(&json!({"type": "lesson", "body": {"type": "prepare", "body": body}}));
        session
    };
    type Change = fn(&mut serde_json::Value);
    let wrongs: [(Change, &str); 3] = [
        (|it| it["length_bytes"] = 4097.into(), "1 to 4096 bytes"),
        (|it| it["mistake"] = "no-recv".into(), "cannot be made with write"),
        (|it| it["mtu_bytes"] = 1500.into(), "the MTU is none of"),
    ];
    for (change, says) in wrongs {
        let reason = lesson(change).abort();
        assert!(reason.contains(says), "{reason}");
    }
    let mut session = lesson(|_| ());
    session.send(&json!({"type": "lesson", "body": {"type": "look"}}));
    session.is_closed();
    let log = server.end();
    assert!(log.contains("`lesson_look` instead of `lesson_endpoints`"), "{log}");
}
