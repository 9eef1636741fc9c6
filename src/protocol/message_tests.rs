//! The wire form of messages and the checks on a peer's connection array.

use serde_json::json;

use super::*;
use crate::protocol::device_limits::{DeviceLimits, PacedRates};
use crate::protocol::endpoints::{LinkLayer, QpEndpoint, gid_text};
use crate::protocol::memory_offer::{DeviceKind, MemoryOffer};
use crate::protocol::mistake::Mistake;
use report::results::model::Device;
use settings::{Op, Service, Settings};
use verbs::QpState;

pub(crate) fn case() -> Case {
    Case::new(
        "send-shared-q2-64".into(),
        Settings::from([
            ("qps", "2"),
            ("size", "64"),
            ("signal-every", "1"),
            ("mtu", "1024"),
            ("duration", "1us"),
            ("warmup", "0"),
        ]),
    )
}

fn end_array() -> EndArray {
    EndArray {
        flow: 0,
        side: Side::Target,
        endpoints: endpoints(),
        listening: None,
    }
}

fn endpoints() -> Endpoints {
    let qp = QpEndpoint {
        qpn: 17,
        psn: 0xff_ffff,
        address: 0x1000,
        rkey: 9,
        length: 4096,
    };
    Endpoints {
        mtu_bytes: 1024,
        max_rd_atomic: 16,
        lid: 0,
        gid: "0000:0000:0000:0000:0000:ffff:0a00:0001".into(),
        qkey: 0x11,
        link_layer: LinkLayer::Ethernet,
        qps: vec![qp, QpEndpoint { qpn: 18, ..qp }],
    }
}

#[test]
fn the_tag_is_the_kind() {
    let messages = [
        Message::Hello {
            protocol: 1,
            version: "1".into(),
            nonce: String::new(),
        },
        Message::Challenge {
            protocol: 1,
            version: "1".into(),
            nonce: String::new(),
            token_required: true,
        },
        Message::Proof { mac: None },
        Message::Welcome {
            mac: None,
            host: Value::Null,
            receives_files: false,
            clock_ns: Some(1),
        },
        Message::Introduce { host: Value::Null },
        Message::Busy(BusyInfo {
            client: String::new(),
            since_seconds: 0,
        }),
        Message::AskLimits {
            devices: vec![FlowDevice {
                name: "mlx5_1".into(),
                ib_port: Some(1),
            }],
        },
        Message::Limits(Box::new(NodeFacts {
            device: Device::default(),
            limits: DeviceLimits {
                has_srqs: true,
                receives_of_an_srq: 32_767,
                sges: 30,
                sges_of_a_read: 30,
                sges_of_an_srq: 31,
                paces: Some(PacedRates {
                    least_kbit_per_s: 1,
                    most_kbit_per_s: 2,
                    services: vec![Service::Rc],
                }),
                device: "soft0".into(),
                qps: 1,
                cqs: 2,
                wrs_of_a_queue: 3,
                entries_of_a_cq: 4,
                message_bytes: 5,
                packet_bytes: 6,
                has_atomics: true,
                has_extended_post: true,
                has_extended_lists: true,
                has_extended_poll: true,
                has_thread_domains: false,
                has_stamps: true,
            },
            memory: MemoryOffer {
                device: DeviceKind::Embedded,
                bytes: Some(1 << 30),
                by: "this machine".into(),
            },
            remark: None,
        })),
        Message::Prepare {
            case: Box::new(case()),
            flows: vec![7],
            run: 0,
            node: 1,
        },
        Message::Prepared,
        Message::Create,
        Message::Created {
            arrays: vec![end_array()],
            note: Some("cores".into()),
        },
        Message::Connect(vec![end_array()]),
        Message::Endpoints(Box::new(endpoints())),
        Message::CmListening(CmListening {
            port: 40_000,
            nonce: "5a".repeat(16),
        }),
        Message::Ready,
        Message::Start,
        Message::Warm(WarmUp::default()),
        Message::Measure,
        Message::AskClock,
        Message::Clock { ns: 5 },
        Message::Open {
            at_ns: 7,
            live_latency: true,
        },
        Message::Progress(Progress::default()),
        Message::Measured {
            messages: 1,
            seconds: 0.5,
        },
        Message::Stop,
        Message::Drained(vec![Drained::default()]),
        Message::Settle(vec![Drained::default()]),
        Message::Settled,
        Message::Finish { flush: true },
        Message::Failed(Box::default()),
        Message::Report(Box::default()),
        Message::AskQps { end: 0, from: 7 },
        Message::Qps(Vec::new()),
        Message::RunDone,
        Message::SetUp,
        Message::Phase {
            name: "set up".into(),
            expected_ms: Some(7),
        },
        Message::Explain(Box::new(Lesson::new(
            Op::Read,
            Some(Mistake::Gid),
            None,
            "x",
        ))),
        Message::ExplainReady(Box::new(OtherEnd {
            states: vec![QpState::Rts],
            path_mtu_bytes: 1024,
            receive: None,
            access: "0".into(),
            address: 1,
            memory: vec![1],
        })),
        Message::ExplainLook,
        Message::ExplainSeen(Box::new(ObservedEnd {
            state: QpState::Err,
            memory: Vec::new(),
            completion: None,
        })),
        Message::Heartbeat { progress: 7 },
        Message::Abort {
            reason: String::new(),
            hint: None,
            bad_input: false,
        },
        Message::Goodbye,
    ];
    for message in messages {
        assert_eq!(
            serde_json::to_value(&message).unwrap()["type"],
            message.kind()
        );
    }
}

#[test]
fn hello_is_read_with_fields_of_a_later_version() {
    let hello = json!({"type": "hello", "later": 1, "body":
        {"protocol": 7, "version": "9.0", "nonce": "00", "also_later": [2]}});
    let message: Message = serde_json::from_value(hello).unwrap();
    assert!(matches!(message, Message::Hello { protocol: 7, .. }));
}

#[test]
fn good_endpoints_pass() {
    assert_eq!(endpoints().check(2, 4096), Ok(()));
    let infiniband = Endpoints {
        link_layer: LinkLayer::Infiniband,
        lid: 3,
        gid: "::".into(),
        ..endpoints()
    };
    assert_eq!(infiniband.check(2, 0), Ok(()));
}

#[test]
fn each_bad_field_has_its_error() {
    type Spoil = fn(&mut Endpoints);
    let spoils: [(Spoil, &str); 9] = [
        (|all| all.qps.truncate(1), "sent 1 QPs where the case has 2"),
        (|all| all.qps[1].qpn = 1 << 24, "QP 1 has QPN 0x1000000"),
        (|all| all.qps[0].psn = u32::MAX, "QP 0 has PSN 0xffffffff"),
        (
            |all| all.qps[1].length = 4095,
            "QP 1 offers 4095 bytes at 0x1000, the case needs 4096",
        ),
        (
            |all| all.qps[0].address = u64::MAX,
            "QP 0 offers 4096 bytes",
        ),
        (|all| all.mtu_bytes = 1500, "MTU 1500"),
        (|all| all.gid = "::".into(), "GID `::`"),
        (|all| all.gid = "10.0.0.1".into(), "GID `10.0.0.1`"),
        (|all| all.gid = "\u{1b}[2J".into(), "GID `\\u{1b}[2J`"),
    ];
    for (spoil, expected) in spoils {
        let mut spoilt = endpoints();
        spoil(&mut spoilt);
        let text = spoilt.check(2, 4096).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_gid_round_trips_as_text() {
    let gid = endpoints().gid_bytes().unwrap();
    assert_eq!(gid[10..], [0xff, 0xff, 10, 0, 0, 1]);
    assert_eq!(gid_text(gid), endpoints().gid);
}
