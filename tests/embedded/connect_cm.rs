//! What `--connect cm` does not go with is refused before anything runs, with what to do instead.

use serde_json::{Value, json};

use rocebench::plan::Case;
use settings::Settings;

use crate::against_refused::Session;
use crate::program::{Program, Server, with_others};

#[test]
fn the_embedded_device_has_no_connection_manager() {
    let _machine = with_others();
    for ways in [
        "cm",
        "tcp,cm",
        "cm --op connect",
        "tcp,cm --op write,connect",
    ] {
        let ended = Program::new(&format!("-d soft0 -n 10 --connect {ways}"))
            .run()
            .exits(2)
            .says(&["soft0", "no connection manager", "--connect tcp"]);
        assert_eq!(ended.json, Value::Null, "nothing was run");
    }
}

#[test]
fn nor_has_a_servers() {
    let _machine = with_others();
    for op in ["write", "connect"] {
        let server = Server::start("-d soft0");
        let mut session = Session::with(server.port);
        let settings = Settings::from([("connect", "cm"), ("op", op), ("traffic-qps", "0")]);
        let case = Case::new("by cm".to_owned(), settings);
        let flows: Vec<usize> = (0..case.flows.len()).collect();
        session.send(
            &json!({"type": "prepare", "body": {"case": case, "flows": flows, "run": 1, "node": 1}}),
        );
        let reason = session.abort();
        assert!(reason.contains("no connection manager"), "{reason}");
    }
}

#[test]
fn what_it_does_not_go_with_is_bad_input() {
    for (words, says) in [
        ("--connect udp", "`udp` is not one of tcp, cm"),
        (
            "--connect cm --faults drop=1%",
            "--faults is for the embedded",
        ),
        (
            "--connect cm --against perftest",
            "compare with --connect tcp",
        ),
    ] {
        Program::new(words).run().exits(2).says(&[says]);
    }
}

#[test]
fn a_dry_run_shows_it_where_there_is_something_to_show() {
    let shown = |words: &str| Program::new(words).run().exits(0).stdout;
    assert!(!shown("--dry-run").contains("connect "), "the usual way");
    let both = shown("--dry-run --connect tcp,cm");
    assert!(
        both.contains("connect\n") && both.contains("tcp\n") && both.contains("cm\n"),
        "{both}"
    );
    assert!(both.contains("send-shared-q1-64KiB-cm"), "{both}");
}
