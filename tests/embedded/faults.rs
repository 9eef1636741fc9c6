//! Packets that are lost, doubled, damaged or late, and networks that lose all: nothing is lost over it, or it is said.

use results::model::{NodeResult, PathEventKind};
use testing::program::{Server, call};

#[test]
fn a_network_that_swallows_all_ends_the_run() {
    call("-d soft0 --faults tx.drop=100% --op write -n 10 --timeout 12 --retry-cnt 3 --warmup 0")
        .fails(&["RETRY_EXC_ERR (12)", "check the link"]);
}

#[test]
fn a_window_without_a_message_is_told_without_a_long_drain() {
    // 1.3 s a message, and three minutes for all that are posted.
    call("-d soft0 -s 16M -D 20ms --warmup 0 --faults rate=100M")
        .fails(&["no message completed in the window of"]);
}

#[test]
fn a_cq_that_overflows_is_told_as_such() {
    call("-d soft0 --op write,send --cq shared,per-qp --cq-depth 2 -q 4 -Q 1 -n 1000 --warmup 0")
        .fails(&[
            "a CQ of soft0 with 2 entries overflowed: completions are lost",
            "hint: leave --cq-depth out",
        ]);
}

/// What a node's device has counted.
fn counted(node: &NodeResult, name: &str) -> u64 {
    node.counters.as_ref().unwrap()[name].unwrap()
}

/// What the device is to survive.
const FAULTS: &str = "drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%";

#[test]
fn faults_lose_and_spoil_nothing() {
    // Both ends may have one address.
    for (seed, variable) in ["SOFTROCE_ADDRESS", "UNUSED"].into_iter().enumerate() {
        let words = format!(
            "-d soft0 --faults {FAULTS},seed={seed} --op send,write,read -q 3 -s 100,20000 -n 40 -t 16 --timeout 14 \
             --warmup 0 --verify --quiet"
        );
        let ended = call(&words).env(variable, "127.77.1.1").is_whole(6);
        let dropped =
            ended.runs().into_iter().map(|run| counted(&run.nodes[0], "fault_tx_dropped"));
        assert!(dropped.sum::<u64>() > 10);
        let result = ended.result();
        let device = &result.nodes[0].devices[0];
        let recorded = device.faults.as_ref().unwrap();
        let start = format!("seed={seed},drop=0.05");
        assert!(recorded.starts_with(&start), "{recorded}");
        let gid = device.gid.as_deref();
        assert_eq!(gid == Some("::ffff:127.77.1.1"), seed == 0);
    }
}

#[test]
fn a_server_has_faults_of_its_own() {
    let server = Server::embedded(&format!("-d soft0 --faults {FAULTS},seed=9"));
    let words =
        "-b --op send,write,read -q 2 -n 60 -s 5000 --timeout 14 --warmup 0 --verify --quiet";
    let ended = server.call(words).is_whole(3);
    let nodes = ended.result().nodes;
    let [own, peer] = [0, 1].map(|node| nodes[node].devices[0].faults.as_deref());
    assert_eq!(own, None);
    assert!(peer.unwrap().starts_with("seed=9,"), "{peer:?}");
}

/// Packets are lost, so the device's timers must wake them.
#[test]
fn sleeping_workers_wake_for_what_was_lost() {
    let words = "-d soft0 --faults drop=3%,reorder=1%,seed=3 --op send,write,read --cq shared,per-qp --poll event,adaptive \
         -q 3 --workers 2 -t 4 -s 64 -Q 1 -n 60 --timeout 12 --warmup 0 --verify --quiet";
    call(words).is_whole(12);
}

/// What a device dropped, which only the other end's can miss.
#[test]
fn both_ends_tell_what_their_devices_counted() {
    let server = Server::embedded("-d soft0");
    let words =
        "--faults tx.drop=3%,seed=3 --op send -s 20000 -n 400 -t 32 --timeout 14 --warmup 0";
    let ended = server.call(words).is_whole(1);
    let run = ended.runs().remove(0);
    let [own, peer] = &run.nodes[..] else { panic!("{:?}", run.nodes) };
    assert!(counted(own, "fault_tx_dropped") > 10);
    assert_eq!(counted(peer, "fault_tx_dropped"), 0);
    assert!(counted(peer, "packets_received") > 0);
    let count = |node: &str, kind: PathEventKind| -> u64 {
        run.path_events
            .iter()
            .filter(|event| event.node == node && event.kind == kind)
            .map(|event| event.count)
            .sum()
    };
    let gaps = counted(peer, "out_of_sequence");
    assert!(gaps > 0);
    assert_eq!(count("server", PathEventKind::SequenceGap), gaps);
    assert!(count("client", PathEventKind::Resent) > 0);
    ended.shows(&["sequence gap", "resent"]);
}

#[test]
fn one_device_of_both_ends_is_told_once() {
    let words = "-d soft0 --op write -n 10 --warmup 0 --quiet";
    let ended = call(words).env("SOFTROCE_ADDRESS", "127.77.1.2").passes();
    let run = ended.runs().remove(0);
    let nodes = &run.nodes;
    let tell = [0, 1].map(|node| nodes[node].counters.is_some());
    assert_eq!(tell, [true, false]);
}
