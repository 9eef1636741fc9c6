//! `rocebench devices`, `rocebench doctor` and `scripts/setup-rxe` on the kernel's Soft-RoCE.

use std::process::Command;

use serde_json::Value;

use testing::program::{Ended, Program};
use testing::server::Server;

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A wire of its own with Soft-RoCE on it, which the script makes and removes.
struct Wire;

impl Wire {
    const SCRIPT: &'static str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/setup-rxe");

    fn new() -> Wire {
        let peer = ["type", "veth", "peer", "name", "dx1"];
        run("ip", &[&["link", "add", "dx0"][..], &peer].concat());
        let wire = Wire;
        run("ip", &["link", "set", "dx0", "up"]);
        run("ip", &["link", "set", "dx1", "up"]);
        run("ip", &["address", "add", "198.51.100.9/24", "dev", "dx0"]);
        let made = run(Wire::SCRIPT, &["dx0", "rxe9"]);
        assert!(made.starts_with("rxe9 is on dx0\n"), "{made}");
        let again = run(Wire::SCRIPT, &["dx0"]);
        assert!(again.starts_with("rxe9 is on dx0 already"), "{again}");
        wire
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        run(Wire::SCRIPT, &["--remove", "rxe9"]);
        run("ip", &["link", "delete", "dx0"]);
    }
}

#[test]
fn soft_roce_is_listed_and_examined() {
    let wire = Wire::new();
    let listed = document(&Program::bare(&["devices", "--json"]).wait().exits(0));
    let device = |name: &str| {
        let devices = listed["devices"].as_array().unwrap();
        devices.iter().find(|it| it["name"] == name).unwrap()
    };
    let made = &device("rxe9")["ports"][0];
    assert_eq!(made["netdev"], "dx0");
    // An Ethernet MTU of 1500 leaves room for 1024.
    assert_eq!(made["active_mtu_bytes"], 1024, "{made}");
    let first = &device("rxe0")["ports"][0];
    assert_eq!(
        (&first["state"], &first["netdev"]),
        (&"ACTIVE".into(), &"v0".into())
    );
    assert_eq!(first["active_mtu_bytes"], 4096);
    assert_eq!(first["gids"][1]["gid"], "::ffff:192.0.2.1");
    assert_eq!(first["gids"][1]["gid_type"], "RoCE v2");
    let choice = &listed["choice"];
    assert_eq!(
        (&choice["device"], &choice["gid_index"]),
        (&"rxe0".into(), &1.into())
    );
    let examined = Program::bare(&["doctor", "-d", "rxe9"]).wait().exits(0);
    for words in [
        "ok       port rxe9:1",
        "warning  MTU rxe9:1           RDMA 1024 of at most 4096; dx0 1500",
        "sudo ip link set dx0 mtu 4200",
        "ok       transfer read",
    ] {
        assert!(
            examined.stdout.contains(words),
            "no {words:?} in {}",
            examined.stdout
        );
    }
    drop(wire);
}

#[test]
fn the_way_to_another_end_is_examined() {
    let server = Server::start();
    let name = server.name.clone();
    let ended = Program::bare(&["doctor", &name, "-d", "rxe0", "--json"]).wait();
    let report = document(&ended.exits(0));
    let states: Vec<(&str, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .skip_while(|finding| finding["check"] != "reach")
        .map(|it| (it["check"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect();
    let expected = [
        "reach",
        "peer version",
        "peer clock",
        "device used",
        "extended verbs",
        "transfer",
        "transfer",
        "transfer",
        "path MTU",
    ];
    assert_eq!(states, expected.map(|check| (check, "ok")));
    server.serves_the_next();
    server.end();
    let gone = Program::bare(&["doctor", &name, "-d", "rxe0"])
        .wait()
        .exits(1);
    assert!(gone.stdout.contains("broken   reach"), "{}", gone.stdout);
}
