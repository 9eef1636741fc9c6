//! `rocebench devices` and `rocebench doctor`, on the embedded device.

use serde_json::Value;

use crate::program::{Ended, Program, Server, with_others};

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// Findings of a check, as `(subject, state)`.
fn findings<'a>(document: &'a Value, check: &str) -> Vec<(&'a str, &'a str)> {
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .filter(|finding| finding["check"] == check)
        .map(|finding| {
            let subject = finding["subject"].as_str().unwrap_or_default();
            (subject, finding["state"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn the_embedded_device_is_listed_with_its_gid() {
    let text = Program::new("devices -d soft0").run().exits(0);
    for words in [
        "soft0  embedded in rocebench, software, loopback",
        "port 1: ACTIVE, Ethernet, MTU 4096 of at most 4096, on lo",
        "*     0  RoCE v2  IPv4    lo      ::ffff:127.",
        "soft0 port 1: it was asked for",
    ] {
        assert!(
            text.stdout.contains(words),
            "no {words:?} in {}",
            text.stdout
        );
    }
    assert!(text.stderr.is_empty(), "{}", text.stderr);
    let all = document(&Program::new("devices --json").run().exits(0));
    assert_eq!(all["schema_version"], 1);
    let embedded = all["devices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|device| device["library"] == "embedded");
    assert!(embedded.count() >= 1);
    assert!(all["choice"]["device"].is_string(), "{}", all["choice"]);
}

#[test]
fn a_device_that_is_not_there_is_bad_input() {
    for command in ["devices", "doctor"] {
        let ended = Program::new(&format!("{command} -d nope")).run();
        let ended = ended.exits(2).says(&["no RDMA device \"nope\"", "soft0"]);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }
}

#[test]
fn a_machine_that_works_is_well() {
    let _machine = with_others();
    let ended = Program::new("doctor -d soft0 --json").run().exits(0);
    let report = document(&ended);
    assert_eq!(report["choice"]["device"], "soft0");
    assert_eq!(report["target"], Value::Null);
    assert_eq!(
        findings(&report, "transfer"),
        [("send", "ok"), ("write", "ok"), ("read", "ok")]
    );
    for finding in report["findings"].as_array().unwrap() {
        assert!(!finding["why"].as_str().unwrap().is_empty(), "{finding}");
        let mends = finding["remedy"].is_string();
        let is_ill = ["warning", "broken"].contains(&finding["state"].as_str().unwrap());
        assert!(mends || !is_ill, "{finding}");
    }
}

#[test]
fn packets_that_do_not_arrive_are_found() {
    let _machine = with_others();
    let ended = Program::new("doctor -d soft0 --faults drop=100% --quiet").run();
    let ended = ended.exits(1).says(&["3 checks found something broken"]);
    for words in ["broken   transfer send", "why: ", "try: "] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100));
    assert!(!ended.stdout.contains("\nok "), "{}", ended.stdout);
}

#[test]
fn another_end_is_examined() {
    let _machine = with_others();
    let server = Server::start("");
    let ended = Program::new(&format!("doctor 127.0.0.1:{} --json", server.port))
        .run()
        .exits(0);
    let report = document(&ended);
    let said = server.end();
    for check in [
        "reach",
        "peer version",
        "peer clock",
        "device used",
        "path MTU",
    ] {
        assert_eq!(
            findings(&report, check),
            [("", "ok")],
            "{check}; server: {said}"
        );
    }
    assert_eq!(findings(&report, "transfer").len(), 3);
    let served = said.matches("session ends, 3 runs served").count();
    assert_eq!(served, 2, "{said}");
}

#[test]
fn an_end_that_is_not_there_is_broken() {
    let ended = Program::new("doctor 127.0.0.1:1").run().exits(1);
    assert!(ended.stdout.contains("broken   reach"), "{}", ended.stdout);
    assert!(ended.stdout.contains("rocebench serve"), "{}", ended.stdout);
    let document = document(&Program::new("doctor 127.0.0.1:1 --json").run().exits(1));
    assert_eq!(document["target"], "127.0.0.1:1");
}
