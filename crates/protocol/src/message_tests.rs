//! The wire form of messages and the checks on a peer's connection array.

use serde_json::json;

use super::*;
use crate::endpoints::{LinkLayer, QpEndpoint, gid_text};
use results::sample::has;

fn endpoints() -> Endpoints {
    let qp = QpEndpoint { qpn: 17, psn: 0xff_ffff, address: 0x1000, rkey: 9, length: 4096 };
    Endpoints {
        mtu_bytes: 1024,
        max_rd_atomic: 16,
        lid: 0,
        gid: "0000:0000:0000:0000:0000:ffff:0a00:0001".into(),
        qkey: 0x11,
        link_layer: LinkLayer::RoceV2,
        qps: vec![qp, QpEndpoint { qpn: 18, ..qp }],
    }
}

#[test]
fn the_kind_names_the_conversation_where_its_word_alone_would_not_do() {
    let beat = SessionMessage::Heartbeat { progress: 7 };
    let cases: [(Message, _, _, _); 3] = [
        (RunMessage::AskClock.into(), "run", "ask_clock", "ask_clock"),
        (beat.into(), "session", "heartbeat", "heartbeat"),
        (PerftestMessage::Stop { now: true }.into(), "perftest", "stop", "perftest_stop"),
    ];
    for (message, conversation, word, kind) in cases {
        let sent = serde_json::to_value(&message).unwrap();
        assert_eq!(sent["type"], conversation);
        assert_eq!(sent["body"]["type"], word);
        assert_eq!(message.kind(), kind);
    }
}

#[test]
fn hello_is_read_with_fields_of_a_later_version() {
    let hello = json!({"type": "handshake", "later": 1, "body": {"type": "hello", "later": 1, "body":
        {"protocol": 7, "version": "9.0", "nonce": "00", "also_later": [2]}}});
    let message: Message = serde_json::from_value(hello).unwrap();
    assert!(matches!(message, Message::Handshake(HandshakeMessage::Hello { protocol: 7, .. })));
}

#[test]
fn good_endpoints_pass() {
    assert_eq!(endpoints().check(2, 4096), Ok(()));
    let infiniband =
        Endpoints { link_layer: LinkLayer::Infiniband, lid: 3, gid: "::".into(), ..endpoints() };
    assert_eq!(infiniband.check(2, 0), Ok(()));
}

#[test]
fn each_bad_field_has_its_error() {
    let refused = |spoil: fn(&mut Endpoints), words| {
        let mut spoilt = endpoints();
        spoil(&mut spoilt);
        has(spoilt.check(2, 4096).unwrap_err().to_string(), [words]);
    };
    refused(|all| all.qps.truncate(1), "sent 1 QPs instead of 2");
    refused(|all| all.qps[1].qpn = 1 << 24, "QP 1 has QPN 0x1000000");
    refused(|all| all.qps[0].psn = u32::MAX, "QP 0 has PSN 0xffffffff");
    let short = "QP 1 offers 4095 bytes at 0x1000, the case needs 4096";
    refused(|all| all.qps[1].length = 4095, short);
    let beyond = "QP 0 offers 4096 bytes";
    refused(|all| all.qps[0].address = u64::MAX, beyond);
    refused(|all| all.mtu_bytes = 1500, "MTU 1500");
    refused(|all| all.gid = "::".into(), "GID `::`");
    refused(|all| all.gid = "10.0.0.1".into(), "GID `10.0.0.1`");
    refused(|all| all.gid = "\u{1b}[2J".into(), "GID `\\u{1b}[2J`");
}

#[test]
fn a_gid_round_trips_as_text() {
    let gid = endpoints().gid_bytes().unwrap();
    assert_eq!(gid[10..], [0xff, 0xff, 10, 0, 0, 1]);
    assert_eq!(gid_text(gid), endpoints().gid);
}
