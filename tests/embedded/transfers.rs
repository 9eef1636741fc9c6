//! Messages whose figures agree with each other: what `tables` cannot say in one value.

use std::collections::BTreeSet;
use std::fs;

use results::model::{CaseResult, NodeResult, PathEventKind, ReceiveQueues};
use settings::{RecvQueue, Timestamps};
use testing::check;
use testing::embedded_device::packets;
use testing::process::Ended;
use testing::program::{Server, call};

/// All runs of so many cases are whole, and every byte is right.
#[track_caller]
fn whole(words: &str, cases: usize) -> Ended {
    call(&format!("-d soft0 --timeout 18 --warmup 0 --verify --quiet {words}")).is_whole(cases)
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

/// What the receives of the only flow of a case took.
fn queues(case: &CaseResult) -> Option<&ReceiveQueues> {
    case.runs[0].flows[0].receive_queues.as_ref()
}

/// As many receives as all senders can have in flight by default; queues of many QPs share 65,536.
#[test]
fn receives_that_are_shared_take_less_memory_and_the_result_tells() {
    let words =
        "--op send,write --recv-queue per-qp,shared --cq shared,per-worker -q 256 --workers 2";
    let ended = whole(&format!("{words} -s 64 -n 8 -t 4"), 6);
    let cases = ended.result().cases;
    let of = |kind: RecvQueue| {
        let mut cases = cases.iter();
        queues(cases.find(|case| case.config.recv_queue == kind).unwrap()).unwrap()
    };
    let (own, shared) = (of(RecvQueue::PerQp), of(RecvQueue::Shared));
    assert_eq!([own.queues, shared.queues], [256, 1]);
    assert_eq!([own.receives, shared.receives], [65_536, 256 * 4]);
    assert_eq!(own.buffer_bytes, 64 * shared.buffer_bytes);
    for (per_qp, of_srq) in
        [(own.allocated_bytes, shared.allocated_bytes), (own.queue_bytes, shared.queue_bytes)]
    {
        assert!(per_qp > 50 * of_srq && of_srq > 0, "{per_qp}, {of_srq}");
    }
    assert_eq!(own.limit_events, None);
    let mut writes = cases.iter().filter(|case| case.config.op.name() == "write");
    assert!(writes.all(|case| queues(case).is_none()));
}

/// Each message is signalled, so that each completion has a stamp, a latency and a time until it was noticed.
#[test]
fn stamps_of_the_device_part_latency_from_notice() {
    let how = "-q 2 -s 64 -Q 1 -n 100 -t 8 --workers 2 --cq per-worker -b";
    let words =
        format!("--post extended --poll-api extended --timestamps cpu,device --op send,read {how}");
    let ended = whole(&words, 4);
    for case in ended.result().cases {
        let is_stamped = case.config.timestamps == Timestamps::Device;
        for flow in &case.runs[0].flows {
            let latency = flow.latency_ns.as_ref().unwrap();
            let stamps = flow.notice_ns.as_ref();
            let counts = (latency.count, stamps.map(|it| it.count));
            assert_eq!(counts, (200, is_stamped.then_some(200)), "{}", case.id);
            // Both are parts of the run, and neither is negative or of another clock.
            let window = flow.window.seconds * 1e9;
            let longest = latency.max.max(stamps.map_or(0, |it| it.max)) as f64;
            assert!(longest < window, "{longest} of {window}");
        }
    }
}

#[test]
fn an_open_loop_is_stamped() {
    let ended = call(
        "-d soft0 --timeout 18 --warmup 0 --quiet --post extended --poll-api extended --timestamps device --op write \
         --rate 2000 -q 2 -s 64 -D 300ms",
    )
    .passes();
    let flow = ended.runs().remove(0).flows.remove(0);
    let load = flow.load.unwrap();
    let sent = load.offered - load.never_sent;
    let counts = [flow.notice_ns, flow.service_ns].map(|it| it.unwrap().count);
    assert_eq!(counts, [sent; 2]);
}

#[test]
fn every_cell_of_services_operations_cq_modes_and_poll_modes_is_verified() {
    for (words, cases) in check::cells_of_services() {
        let size = if words.contains("--service ud") { 3000 } else { 9000 };
        let how = "-q 3 --workers 2 -n 40 -t 16 --warmup 0 --verify --quiet";
        call(&format!("-d soft0 {words} -s {size} {how}")).is_whole(cases);
    }
}

/// What a node's device has counted.
fn counted(node: &NodeResult, name: &str) -> u64 {
    node.counters.as_ref().unwrap()[name].unwrap()
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
    assert!(count("client", PathEventKind::SequenceNak) > 0);
    ended.shows(&["sequence gap", "sequence NAK"]);
}

/// Length of the IPv4 header, and the opcode of an RDMA WRITE in one packet (RC and UC).
const IPV4_BYTES: usize = 20;
const WRITE_ONLY: [u8; 2] = [0x0a, 0x2a];

#[test]
fn the_ports_that_a_result_tells_are_those_on_the_wire() {
    for service in ["rc --timeout 18", "uc"] {
        let ended = call(&format!(
            "-d soft0 --op write --service {service} -s 64 -n 20 -q 8 --flow-label 1,2,0x30000 --warmup 0 \
             --pcap wire.pcap"
        ))
        .is_whole(1);
        let result = ended.result();
        let qps = &result.cases[0].runs[0].flows[0].qps;
        let reported: BTreeSet<u16> = qps.iter().map(|qp| qp.udp_source_port.unwrap()).collect();
        let entries = fs::read_dir(ended.folder()).unwrap();
        let captures = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "pcap"));
        let mut seen = BTreeSet::new();
        for packet in captures.flat_map(|path| packets(&path)) {
            let udp = &packet[IPV4_BYTES..];
            if WRITE_ONLY.contains(&udp[8]) {
                seen.insert(u16::from_be_bytes([udp[0], udp[1]]));
            }
        }
        assert_eq!(reported, seen, "{service}");
        let first: Vec<_> = qps.iter().map(|qp| qp.udp_source_port).collect();
        assert_eq!(first[..3], first[3..6], "QPs take the labels in turn");
        let header = ended.file("-qps.csv");
        assert!(header.starts_with("id,") && header.contains("udp_source_port"));
    }
}
