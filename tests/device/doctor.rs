//! `rocebench devices`, `rocebench doctor` and `scripts/setup-rxe` on the kernel's Soft-RoCE.

use testing::process::run;
use testing::program::{Server, bare};

/// A wire of its own with Soft-RoCE on it, which the script makes and removes.
struct Wire;

impl Wire {
    const SCRIPT: &'static str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/setup-rxe");

    fn new() -> Wire {
        run("ip link add dx0 type veth peer name dx1");
        let wire = Wire;
        run("ip link set dx0 up");
        run("ip link set dx1 up");
        run("ip address add 198.51.100.9/24 dev dx0");
        let made = run(&format!("{} dx0 rxe9", Wire::SCRIPT));
        assert!(made.starts_with("rxe9 is on dx0\n"), "{made}");
        let again = run(&format!("{} dx0", Wire::SCRIPT));
        assert!(again.starts_with("rxe9 is on dx0 already"), "{again}");
        wire
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        run(&format!("{} --remove rxe9", Wire::SCRIPT));
        run("ip link delete dx0");
    }
}

#[test]
fn soft_roce_is_listed_and_examined() {
    let wire = Wire::new();
    let listed = bare("devices --json").passes().document();
    let device = |name: &str| {
        let devices = listed["devices"].as_array().unwrap();
        devices.iter().find(|it| it["name"] == name).unwrap()
    };
    let made = &device("rxe9")["ports"][0];
    assert_eq!(made["netdev"], "dx0");
    // An Ethernet MTU of 1500 leaves room for 1024.
    assert_eq!(made["active_mtu_bytes"], 1024, "{made}");
    let first = &device("rxe0")["ports"][0];
    let port = [&first["state"], &first["netdev"]];
    assert_eq!(port, ["ACTIVE", "v0"]);
    assert_eq!(first["active_mtu_bytes"], 4096);
    let gid = &first["gids"][1];
    assert_eq!([&gid["gid"], &gid["gid_type"]], ["::ffff:192.0.2.1", "RoCE v2"]);
    let choice = &listed["choice"];
    assert_eq!(choice["device"], "rxe0");
    assert_eq!(choice["gid_index"], 1);
    let examined = bare("doctor -d rxe9").passes();
    examined.shows(&[
        "ok       port rxe9:1",
        "warning  MTU rxe9:1           RDMA 1024 of at most 4096; dx0 1500",
        "sudo ip link set dx0 mtu 4200",
        "ok       transfer read",
    ]);
    drop(wire);
}

#[test]
fn the_way_to_another_end_is_examined() {
    let server = Server::start();
    let examine = format!("doctor {} -d rxe0", server.name);
    let report = bare(&format!("{examine} --json")).passes().document();
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
        "services",
        "extended verbs",
        "transfer",
        "transfer",
        "transfer",
        "path MTU",
    ];
    assert_eq!(states, expected.map(|check| (check, "ok")));
    server.serves_the_next();
    server.end();
    bare(&examine).fails(&[]).shows(&["broken   reach"]);
}
