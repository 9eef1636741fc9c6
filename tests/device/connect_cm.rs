//! `--connect cm`: QPs that meet through the kernel's connection manager carry everything that others do; who has no
//! business there is rejected; an end that dies while connections are made is noticed like any other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use settings::ConnectMode;
use verbs::cm::{CmAddress, CmChannel, CmEvent, CmEventKind, CmId, CmParameters, RejectReason};
use verbs::{Gid, GidEntry, GidType, VerbsLibrary};

use testing::check;
use testing::program::words;
use testing::program::{Program, Signal, send_signal, sweep};
use testing::proxy::{From, Proxy, Step};
use testing::server::{SERVER_ADDRESS, Server};
use testing::wire::{Wire, case};

/// Set-up of so many takes some tenths of a second here: time enough to die in it.
const MANY: &str = "-q 1,150 -t 2 --op write -s 64 -n 5";
const TRAFFIC: &str = "-q 1,2 -t 8 --op write -s 4K -D 4s";

#[test]
fn every_operation_on_every_kind_of_cq() {
    let server = Server::start();
    let ended = server.sweep(&words(
        "--connect cm --op send,write,read --cq shared,per-worker,per-qp -q 16 -s 16K --workers 2 \
         -n 15 -t 8 -r 16 --verify --warmup 0",
    ));
    let ended = ended.exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 9);
    for case in &result.cases {
        assert_eq!(case.config.connect, ConnectMode::Cm);
        assert!(case.id.ends_with("-cm"), "{}", case.id);
        assert_eq!(case.config.flows[0].path_mtu, Some(4096));
    }
    server.end();
}

#[test]
fn sixty_four_qps_with_all_that_a_case_asks_for() {
    let server = Server::start();
    let ended = server.sweep(&words(
        "--connect tcp,cm -q 64 --op send,write -b -m 1024 --max-rd-atomic 4 --retry-cnt 3 --rnr-retry 6 \
         --timeout 19 -n 20 -s 4K -t 4 -r 8 --poll event --verify --warmup 0",
    ));
    let ended = ended.exits(0);
    let result = check::complete(&ended);
    let ways: Vec<&str> = result
        .cases
        .iter()
        .map(|case| case.config.connect.name())
        .collect();
    assert_eq!(ways, ["tcp", "cm", "tcp", "cm"]);
    for case in &result.cases {
        assert_eq!(case.config.flows[0].path_mtu, Some(1024), "{}", case.id);
    }
    for words in ["connect", "event", "verify ok"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    server.end();
}

#[test]
fn both_ends_in_one_process() {
    let ended = sweep(&words(
        "--connect cm --op send,write,read -q 5 -n 20 --verify --warmup 0",
    ));
    assert_eq!(check::complete(&ended.exits(0)).cases.len(), 3);
}

/// Others need two hosts: a kernel that owns both addresses finds no way back from one to the other.
#[test]
fn ipv6_addresses_of_one_link() {
    let server = Server::with(&["-x", "0"]);
    let short = words("--connect cm -x 0 -q 3 -n 20 --verify --warmup 0");
    let ended = server.sweep(&short).exits(0);
    let gid = check::complete(&ended).nodes[0].devices[0]
        .gid
        .clone()
        .unwrap();
    assert!(gid.starts_with("fe80:"), "{gid}");
    server.end();
}

#[test]
fn addresses_of_two_families_do_not_meet() {
    let server = Server::start();
    server
        .sweep(&words("--connect cm -x 2 -n 1"))
        .exits(2)
        .says(&["2001:db8::1", SERVER_ADDRESS, "--gid-index"]);
    server.serves_the_next();
    server.end();
}

/// The kernel's half as it is with the module unloaded: no device node.
#[test]
fn without_the_device_node_it_says_which_module() {
    let (node, away) = ("/dev/infiniband/rdma_cm", "/dev/infiniband/rdma_cm.away");
    std::fs::rename(node, away).unwrap();
    let ended = sweep(&words("--connect cm -n 1"));
    std::fs::rename(away, node).unwrap();
    ended
        .exits(2)
        .says(&["/dev/infiniband/rdma_cm", "modprobe rdma_ucm"]);
}

/// Asks rdma_cm for a connection of QP number 0x11 to a port of the server's, and returns the answer.
fn ask(port: u16, private_data: &[u8]) -> CmEvent {
    let entry = GidEntry {
        index: 1,
        gid: Gid::from_address("192.0.2.1".parse().unwrap()),
        gid_type: GidType::RoceV2,
    };
    let local = CmAddress::local("rxe0", 1, &entry);
    let peer = local.peer(Gid::from_address(SERVER_ADDRESS.parse().unwrap()), port);
    let channel = CmChannel::open(VerbsLibrary::system()).unwrap();
    let id = CmId::new(&channel, 7).unwrap();
    let next = || {
        let event = channel.next(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(event.token, 7);
        event
    };
    let limit = Duration::from_secs(4);
    id.resolve_address(local, peer, limit).unwrap();
    assert_eq!(next().kind, CmEventKind::AddrResolved);
    assert_eq!(id.port().unwrap(), ("rxe0".to_owned(), 1));
    id.resolve_route(limit).unwrap();
    assert_eq!(next().kind, CmEventKind::RouteResolved);
    let parameters = CmParameters {
        qpn: 0x11,
        responder_resources: 1,
        initiator_depth: 1,
        retry_count: 7,
        rnr_retry_count: 7,
        private_data,
    };
    id.connect(&parameters).unwrap();
    next()
}

#[test]
fn where_nobody_listens_the_reason_says_so() {
    let event = ask(9, b"anyone?");
    assert_eq!(event.kind, CmEventKind::Rejected);
    assert_eq!(RejectReason(event.status), RejectReason::NO_LISTENER);
}

#[test]
fn strangers_are_rejected_and_told_why() {
    let server = Server::start();
    let mut wire = Wire::session(&server.name);
    let by_cm = case([("qps", "2"), ("connect", "cm")]);
    let created = wire.create(&by_cm);
    wire.connect_to(&[0x11, 0x12]);
    let listening = &created["arrays"][0]["listening"];
    let port = listening["port"].as_u64().unwrap() as u16;
    let nonce = listening["nonce"].as_str().unwrap();
    let nonce: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&nonce[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let request = |index: u32, qpn: u32, nonce: &[u8]| {
        [
            b"rocb\x01\x01\0\0",
            &index.to_le_bytes()[..],
            &qpn.to_le_bytes(),
            nonce,
        ]
        .concat()
    };
    for (private_data, why) in [
        (b"let me in".to_vec(), "it is not from rocebench"),
        (request(0, 0x11, &[0; 16]), "it is of another run"),
        (request(2, 0x11, &nonce), "the run has no such QP"),
        (request(1, 0x11, &nonce), "the run has no such QP"),
    ] {
        wire.send(&json!({"type": "heartbeat", "body": {"progress": 0}}));
        let event = ask(port, &private_data);
        assert_eq!(event.kind, CmEventKind::Rejected, "{why}");
        assert_eq!(RejectReason(event.status), RejectReason::BY_THE_LISTENER);
        let told = String::from_utf8_lossy(&event.private_data).into_owned();
        assert!(told.starts_with(why), "{told}");
    }
    // The QP that the run has is taken.
    wire.send(&json!({"type": "heartbeat", "body": {"progress": 0}}));
    assert_eq!(
        ask(port, &request(0, 0x11, &nonce)).kind,
        CmEventKind::ConnectResponse
    );
    wire.close();
    server.serves_the_next();
    server.end();
}

/// In the midst of the second case's set-up.
const WHILE_CONNECTING: Step = Step {
    from: From::Client,
    kind: "connect",
    nth: 2,
};

/// In the midst of its traffic.
const WHILE_RUNNING: Step = Step {
    kind: "open",
    ..WHILE_CONNECTING
};

fn client_of(proxy: &Proxy, step: Step) -> Program {
    let what = match step.kind == WHILE_RUNNING.kind {
        true => TRAFFIC,
        false => MANY,
    };
    let all = format!("{} -d rxe0 --connect cm {what} --warmup 0", proxy.address);
    Program::sweep(&words(&all))
}

fn address(server: &Server) -> SocketAddr {
    server.name.parse().unwrap()
}

#[test]
fn a_server_that_dies_or_falls_silent() {
    for (step, signal, words) in [
        (WHILE_CONNECTING, Signal::Kill, "closed the connection"),
        (WHILE_CONNECTING, Signal::Stop, "silent"),
        (WHILE_RUNNING, Signal::Kill, "closed the connection"),
    ] {
        let server = Server::start();
        let pid = server.program.pid();
        let proxy = Proxy::start("192.0.2.1", address(&server), step, move || {
            send_signal(pid, signal);
        });
        let client = client_of(&proxy, step);
        proxy.await_deed();
        let ended = client.wait().exits(1).says(&[words]);
        let runs = ended.runs();
        assert!(runs[0].complete && !runs[1].complete, "{step:?}");
    }
}

#[test]
fn a_client_that_dies_or_is_interrupted() {
    let server = Server::start();
    for (step, signal, words) in [
        (WHILE_CONNECTING, Signal::Kill, "closed the connection"),
        (WHILE_CONNECTING, Signal::Interrupt, "interrupted"),
        (WHILE_RUNNING, Signal::Kill, "closed the connection"),
    ] {
        let lines = server.program.lines().len();
        let victim = Arc::new(AtomicU32::new(0));
        let pid = Arc::clone(&victim);
        let proxy = Proxy::start("192.0.2.1", address(&server), step, move || {
            send_signal(pid.load(Ordering::SeqCst), signal);
        });
        let client = client_of(&proxy, step);
        victim.store(client.pid(), Ordering::SeqCst);
        proxy.await_deed();
        server.says(lines, words);
        drop(client.wait());
        server.serves_the_next();
    }
    server.end();
}

/// A server that is told to stop does not wait for connections.
#[test]
fn a_server_is_stopped_while_it_listens() {
    let server = Server::start();
    let mut wire = Wire::session(&server.name);
    let by_cm = case([("qps", "1"), ("connect", "cm")]);
    let created = wire.create(&by_cm);
    assert!(
        created["arrays"][0]["listening"]["port"].is_u64(),
        "{created}"
    );
    wire.connect_to(&[0x11]);
    server.end();
    assert_eq!(wire.recv().unwrap()["type"], "abort");
}
