//! What is sent arrives whole: operations, CQ modes, directions, one process and two.

use crate::whole;
use testing::program::Server;

#[test]
fn every_operation_and_cq_mode_arrives_whole() {
    let ops = "--op send,write,read,send-imm,write-imm --cq shared,per-worker,per-qp";
    whole(&format!("{ops} -q 1,5 --workers 2 -s 1,10000 -n 60 -t 16"), 60);
}

#[test]
fn both_directions_lists_and_inline() {
    let ops = "-b --op send,write,read,send-imm,write-imm --cq shared,per-qp -q 3 -s 64,9000";
    let ended = whole(&format!("{ops} -l 4 -Q 2 -I 64 -t 32 -n 200 --mtu 1024"), 20);
    for case in ended.cases() {
        assert_eq!(case["config"]["flows"][1]["path_mtu"], 1024);
    }
}

/// The sums at the target are checked; a lock that all QPs want is not always free.
#[test]
fn atomic_operations_on_every_target() {
    let targets = "--atomic-target shared,per-qp,spread --cq shared,per-worker,per-qp -q 1,5";
    let words = format!("--op fetch-add,compare-swap {targets} --workers 2 -n 60 -t 1,16");
    let ended = whole(&words, 72);
    for case in ended.cases() {
        let (config, flow) = (&case["config"], &case["runs"][0]["flows"][0]);
        let [messages, bytes] =
            ["messages", "bytes"].map(|it| flow["totals"][it].as_u64().unwrap());
        assert_eq!(bytes, 8 * messages, "{}", case["id"]);
        // Workers that share a CQ post on the same QP: an exchange may be posted before the one whose value it expects.
        let may_change_places = config["cq"] == "shared"
            && config["tx_depth"] != 1
            && config["atomic_target"] != "spread";
        let is_contended =
            may_change_places || config["atomic_target"] == "shared" && config["qps"] != 1;
        match (flow["swaps_made"].as_u64(), is_contended) {
            (None, _) => assert_eq!(config["op"], "fetch-add"),
            (Some(made), true) => assert!((1..=messages).contains(&made), "{}", case["id"]),
            (Some(made), false) => assert_eq!(made, messages, "{}", case["id"]),
        }
    }
}

#[test]
fn two_processes_take_an_address_each() {
    let server = Server::embedded("-d soft0");
    // Over an address of the network both ends are still on this machine.
    let devices = softroce::verbs::devices().unwrap();
    let addresses = devices.iter().filter_map(|device| device.address);
    let hosts = addresses.filter(std::net::IpAddr::is_ipv4).map(|address| address.to_string());
    for host in ["127.0.0.1".to_owned()].into_iter().chain(hosts) {
        let port = server.port;
        let ended = whole(&format!("{host}:{port} --op send,write,read -q 2 -n 50"), 3);
        let nodes = ended.result().nodes;
        let [own, other] = [0, 1].map(|node| &nodes[node].devices[0]);
        assert_eq!(other.library, "embedded");
        assert!(own.gid.is_some() && own.gid != other.gid);
        // Both are soft0 on this machine, which is said once.
        let marks = ended.stdout.matches("soft0 is the embedded software device");
        assert_eq!(marks.count(), 1, "{}", ended.stdout);
    }
    server.is_idle();
    assert!(!server.end().contains("ended early"));
}
