//! `rocebench devices` and `rocebench doctor`, on the embedded device.

use serde_json::{Value, json};

use testing::program::{Server, call};

/// Whichever findings have this value of this field.
fn findings_with<'a>(
    report: &'a Value,
    field: &str,
    value: &str,
) -> impl Iterator<Item = &'a Value> {
    report["findings"].as_array().unwrap().iter().filter(move |finding| finding[field] == value)
}

/// Subject and state of each finding of a check.
fn findings<'a>(report: &'a Value, check: &str) -> Vec<(&'a str, &'a str)> {
    findings_with(report, "check", check)
        .map(|finding| {
            let subject = finding["subject"].as_str().unwrap_or_default();
            (subject, finding["state"].as_str().unwrap())
        })
        .collect()
}

/// Names of the nodes and check of each finding of this scope.
fn found<'a>(report: &'a Value, scope: &str) -> Vec<(&'a Value, &'a str)> {
    let of_scope = findings_with(report, "scope", scope);
    of_scope.map(|it| (&it["nodes"], it["check"].as_str().unwrap())).collect()
}

#[test]
fn the_embedded_device_is_listed_with_its_gid() {
    let text = call("devices -d soft0").passes();
    text.shows(&[
        "soft0  embedded in rocebench, software, loopback",
        "port 1: ACTIVE, Ethernet, MTU 4096 of at most 4096, on lo",
        "*     0  RoCE v2  IPv4    lo      ::ffff:127.",
        "soft0 port 1: it was requested",
    ]);
    assert!(text.stderr().is_empty(), "{}", text.stderr());
    let inventory = call("devices --json").passes().document();
    assert_eq!(inventory["schema_version"], 1);
    let mut devices = inventory["devices"].as_array().unwrap().iter();
    assert!(devices.any(|device| device["library"] == "embedded"));
    assert!(inventory["choice"]["device"].is_string(), "{}", inventory["choice"]);
}

#[test]
fn a_device_that_is_not_there_is_bad_input() {
    for command in ["devices", "doctor"] {
        let ended = call(&format!("{command} -d nope"))
            .run()
            .exits(2)
            .says(&["no RDMA device \"nope\"", "soft0"]);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }
}

#[test]
fn a_machine_that_works_is_well() {
    let report = call("doctor -d soft0 --json").passes().document();
    assert_eq!(report["choice"]["device"], "soft0");
    assert_eq!(report["target"], Value::Null);
    assert_eq!(findings(&report, "transfer"), [("send", "ok"), ("write", "ok"), ("read", "ok")]);
    for finding in report["findings"].as_array().unwrap() {
        assert!(!finding["why"].as_str().unwrap().is_empty(), "{finding}");
        let mends = finding["remedy"].is_string();
        let is_ill = ["warning", "broken"].contains(&finding["state"].as_str().unwrap());
        assert!(mends || !is_ill, "{finding}");
    }
}

#[test]
fn packets_that_do_not_arrive_are_found() {
    let ended = call("doctor -d soft0 --faults drop=100% --quiet")
        .run()
        .exits(1)
        .says(&["3 checks found something broken"]);
    ended.shows(&["broken   transfer send", "why: ", "try: "]);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100));
    assert!(!ended.stdout.contains("\nok "), "{}", ended.stdout);
}

#[test]
fn another_end_is_examined() {
    let server = Server::embedded("");
    let ended = call(&format!("doctor {} --json", server.name)).passes();
    let report = ended.document();
    server.is_idle();
    let log = server.end();
    for check in
        ["reach", "peer version", "peer clock", "device used", "extended verbs", "path MTU"]
    {
        assert_eq!(findings(&report, check), [("", "ok")], "{check}; server: {log}");
    }
    assert_eq!(findings(&report, "transfer").len(), 3);
    let served = log.matches("session ends, 3 runs served").count();
    assert_eq!(served, 2, "{log}");
}

#[test]
fn an_end_that_is_not_there_is_broken() {
    let ended = call("doctor 127.0.0.1:1").run().exits(1);
    ended.shows(&["broken   reach", "rocebench serve"]);
    let document = call("doctor 127.0.0.1:1 --json").run().exits(1).document();
    assert_eq!(document["target"], "127.0.0.1:1");
}

fn list(servers: &[Server]) -> String {
    servers.iter().map(|server| &*server.name).collect::<Vec<_>>().join(",")
}

#[test]
fn nodes_that_are_alike_differ_in_nothing() {
    let servers = [(); 3].map(|()| Server::embedded("-d soft0"));
    let words = format!("doctor --nodes {}", list(&servers));
    let report = call(&format!("{words} --json")).passes().document();
    assert_eq!(found(&report, "difference"), []);
    assert_eq!(report["common"]["GID"], "RoCE v2 IPv4");
    for node in report["nodes"].as_array().unwrap() {
        assert_eq!(node["examination"]["device"]["name"], "soft0", "{node}");
        assert!(node["clock"]["offset_ns"].is_i64(), "{node}");
    }
    let ended = call(&words).passes();
    ended.shows(&["all 3 nodes: rocebench ", "3 nodes, 3 examined"]);
}

#[test]
fn of_four_nodes_the_one_that_differs_and_the_one_that_is_gone_are_named() {
    let mut servers: Vec<Server> = (0..3).map(|_| Server::embedded("-d soft0")).collect();
    let other = call("serve -p 0 --faults drop=1%").env("SOFTROCE_ADDRESS", "::1");
    servers.push(Server::embedded_by(other));
    let nodes = format!("{},127.0.0.1:1", list(&servers));
    let odd = json!([servers[3].name]);
    let ended = call(&format!("doctor --json --nodes {nodes}")).run();
    let report = ended.exits(1).document();
    assert_eq!(found(&report, "difference"), [(&odd, "--faults"), (&odd, "GID")]);
    let gone = json!(["127.0.0.1:1"]);
    assert_eq!(found(&report, "reach"), [(&gone, "reach")]);
    let table =
        call(&format!("doctor --nodes {nodes}")).run().exits(1).says(&["break or slow runs"]);
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80));
    table.shows(&[
        "RoCE v2 IPv6 *",
        "127.0.0.1:1      connecting to",
        "* differs from most",
        "5 nodes, 4 examined",
    ]);
}

#[test]
fn a_node_without_its_device_is_broken() {
    let servers = [(); 2].map(|()| Server::embedded("-d soft0"));
    let words = format!("doctor --quiet --nodes {}/soft99", list(&servers));
    let ended = call(&words).run().exits(1);
    let at = format!("broken   device used          {}: there", servers[1].name);
    ended.shows(&[&at, "soft99"]);
}
