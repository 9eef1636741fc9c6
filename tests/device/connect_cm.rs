//! `--connect cm`: who has no business there is rejected; an end that dies while connections are made is noticed like any
//! other.

use std::time::Duration;

use protocol::token::from_hex;
use verbs::cm::{CmAddress, CmChannel, CmEvent, CmEventKind, CmId, CmParameters, RejectReason};
use verbs::{Gid, GidEntry, GidType, VerbsLibrary};

use testing::process::Signal;
use testing::program::{SERVER_ADDRESS, Server, sweep};
use testing::sessions::{Sender, Step, Wire, case};

use crate::session::{await_more, held, way, whole};

/// Others need two hosts: a kernel that owns both addresses finds no way back from one to the other.
#[test]
fn ipv6_addresses_of_one_link() {
    let server = Server::with("-x 0");
    let short = "--connect cm -x 0 -q 3 -n 20 --verify --warmup 0";
    let result = whole(&server, short, 1);
    let gid = result.nodes[0].devices[0].gid.clone().unwrap();
    assert!(gid.starts_with("fe80:"), "{gid}");
    server.end();
}

/// The kernel's half as it is with the module unloaded: no device node.
#[test]
fn without_the_device_node_it_says_which_module() {
    let (node, away) = ("/dev/infiniband/rdma_cm", "/dev/infiniband/rdma_cm.away");
    std::fs::rename(node, away).unwrap();
    let ended = sweep("--connect cm -n 1").run();
    std::fs::rename(away, node).unwrap();
    ended.exits(2).says(&["/dev/infiniband/rdma_cm", "modprobe rdma_ucm"]);
}

/// Asks rdma_cm for a connection of QP number 0x11 to a port of the server's, and returns the answer.
fn ask(port: u16, private_data: &[u8]) -> CmEvent {
    let entry = GidEntry {
        index: 1,
        gid: Gid::from_address("192.0.2.1".parse().unwrap()),
        gid_type: GidType::RoceV2,
        interface: None,
    };
    let local = CmAddress::local("/".as_ref(), "rxe0", 1, &entry);
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
    let nonce: [u8; 16] = from_hex(listening["nonce"].as_str().unwrap()).unwrap();
    let request = |index: u32, qpn: u32, secret: &[u8]| {
        [b"rocb\x01\x01\0\0", &index.to_le_bytes()[..], &qpn.to_le_bytes(), secret].concat()
    };
    for (private_data, why) in [
        (b"let me in".to_vec(), "it is not from rocebench"),
        (request(0, 0x11, &[0; 16]), "it is of another run"),
        (request(2, 0x11, &nonce), "the run has no such QP"),
        (request(1, 0x11, &nonce), "the run has no such QP"),
    ] {
        wire.heartbeat();
        let event = ask(port, &private_data);
        assert_eq!(event.kind, CmEventKind::Rejected, "{why}");
        assert_eq!(RejectReason(event.status), RejectReason::BY_THE_LISTENER);
        let reason = String::from_utf8_lossy(&event.private_data).into_owned();
        assert!(reason.starts_with(why), "{reason}");
    }
    // The QP that the run has is taken.
    wire.heartbeat();
    assert_eq!(ask(port, &request(0, 0x11, &nonce)).kind, CmEventKind::ConnectResponse);
    wire.close();
    server.serves_the_next();
    server.end();
}

/// So many connections take the kernel long enough for an end to die while they are made.
const MANY: &str = "--connect cm -q 300 -t 2 --op write -s 64 -D 10m --warmup 0";

/// While the kernel connects, or when it has.
#[test]
fn an_end_that_dies_while_connections_are_made() {
    for (server_dies, signal, says) in [
        (true, Signal::Kill, "closed the connection"),
        (true, Signal::Stop, "silent"),
        (false, Signal::Kill, "closed the connection"),
        (false, Signal::Interrupt, "interrupted"),
    ] {
        let server = Server::start();
        let (lines, before) = (server.program.lines().len(), held("rxe0"));
        let client = way(&server).client_at(Step::first(Sender::Client, "connect"), MANY);
        await_more(&before, "rxe0", "cm_id", 20);
        if server_dies {
            server.program.signal(signal);
            let ended = client.wait().exits(1).says(&[says]);
            assert!(!ended.runs()[0].complete, "{signal:?}");
            drop(server);
        } else {
            client.signal(signal);
            server.says(lines, says);
            drop(client.wait());
            server.serves_the_next();
            server.end();
        }
    }
}

/// A server that is told to stop does not wait for connections.
#[test]
fn a_server_is_stopped_while_it_listens() {
    let server = Server::start();
    let mut wire = Wire::session(&server.name);
    let by_cm = case([("qps", "1"), ("connect", "cm")]);
    let created = wire.create(&by_cm);
    let port = &created["arrays"][0]["listening"]["port"];
    assert!(port.is_u64(), "{created}");
    wire.connect_to(&[0x11]);
    server.end();
    assert_eq!(wire.recv().unwrap()["type"], "abort");
}
