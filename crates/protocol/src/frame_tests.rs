//! Any message round-trips however it is split; no bytes panic or cost more than they are.

use std::io::{Cursor, ErrorKind};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::endpoints::Posts;
use crate::endpoints::{Endpoints, LinkLayer, QpEndpoint};
use crate::message::{
    BusyInfo, CmListening, Drained, HandshakeMessage, LessonMessage, NodeFailure, PerftestEnd,
    PerftestMessage, RunMessage, SessionMessage, SetUpMessage, SetupArray,
};
use crate::node_report::NodeReport;
use results::model::WorkerResult;
use results::text::{MAX_CHARS, printable};

/// A stream that gives at most `piece` bytes a read, and has nothing to read before each of them.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    piece: usize,
    idle: bool,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.idle = !self.idle;
        if self.idle {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = into.len().min(self.piece);
        self.bytes.read(&mut into[..len])
    }
}

fn pieces(bytes: Vec<u8>, piece: usize) -> Pieces {
    Pieces { bytes: Cursor::new(bytes), piece, idle: false }
}

fn next(reader: &mut FrameReader, stream: &mut impl Read) -> Result<Message, FrameError> {
    loop {
        if let Step::Frame(message) = reader.step(stream)? {
            return Ok(message);
        }
    }
}

/// The first message of these bytes.
pub(in super::super) fn first(bytes: &[u8]) -> Result<Message, FrameError> {
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    next(&mut reader, &mut Cursor::new(bytes))
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

/// Text as it arrives: printable.
fn text() -> impl Strategy<Value = String> {
    ".*".prop_map(|text| printable(&text, MAX_CHARS))
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![Just("type".to_owned()), text()], inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_qp() -> impl Strategy<Value = QpEndpoint> {
    any::<(u32, u32, u64, u32, u64)>().prop_map(|(qpn, psn, address, rkey, length)| QpEndpoint {
        qpn,
        psn,
        address,
        rkey,
        length,
    })
}

fn any_endpoints() -> impl Strategy<Value = Endpoints> {
    let numbers = any::<(u32, u8, u16, u32, bool)>();
    let parts = (numbers, text(), prop::collection::vec(any_qp(), 0..5));
    parts.prop_map(|((mtu_bytes, max_rd_atomic, lid, qkey, ethernet), gid, qps)| Endpoints {
        mtu_bytes,
        max_rd_atomic,
        lid,
        gid,
        qkey,
        link_layer: [LinkLayer::Infiniband, LinkLayer::RoceV2][usize::from(ethernet)],
        qps,
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let texts = || (text(), text());
    let maybe = || prop::option::of(text());
    prop_oneof![
        (any::<u32>(), texts()).prop_map(|(protocol, (version, nonce))| Message::Handshake(
            HandshakeMessage::Hello { protocol, version, nonce }
        )),
        (any::<(u32, bool)>(), texts()).prop_map(
            |((protocol, token_required), (version, nonce))| Message::Handshake(
                HandshakeMessage::Challenge { protocol, version, nonce, token_required }
            )
        ),
        maybe().prop_map(|mac| Message::Handshake(HandshakeMessage::Proof { mac })),
        (maybe(), any_value(), any::<(bool, Option<u64>)>()).prop_map(
            |(mac, host, (receives_files, clock_ns))| Message::Handshake(
                HandshakeMessage::Welcome { mac, host, receives_files, clock_ns }
            )
        ),
        maybe().prop_map(|version| Message::Perftest(PerftestMessage::Checked { version })),
        any::<u16>().prop_map(|port| Message::Perftest(PerftestMessage::Started { port })),
        (any::<bool>(), texts()).prop_map(|(success, (status, output))| {
            Message::Perftest(PerftestMessage::Ended(Box::new(PerftestEnd {
                success,
                status,
                output,
            })))
        }),
        any_value().prop_map(|host| Message::Handshake(HandshakeMessage::Introduce { host })),
        Just(Message::Handshake(HandshakeMessage::Wait)),
        (text(), any::<u64>()).prop_map(|(client, since_seconds)| Message::Handshake(
            HandshakeMessage::Busy(BusyInfo { client, since_seconds })
        )),
        any::<(u32, u32)>().prop_map(|(run, node)| Message::Run(RunMessage::Prepare {
            case: Box::new(plan::Case::sample()),
            flows: vec![run],
            run,
            node,
        })),
        any_endpoints()
            .prop_map(|endpoints| Message::Lesson(LessonMessage::Endpoints(Box::new(endpoints)))),
        (any_endpoints(), any::<u64>()).prop_map(|(endpoints, held_ns)| {
            Message::SetUp(SetUpMessage::Array(Box::new(SetupArray { endpoints, held_ns })))
        }),
        (any::<u16>(), text()).prop_map(|(port, nonce)| Message::SetUp(SetUpMessage::CmListening(
            CmListening { port, nonce }
        ))),
        any::<(u64, Option<(u32, Vec<u32>)>)>().prop_map(|(sent_messages, posts)| {
            let posts = posts.map(|(positions, packed)| Posts { positions, packed });
            Message::Run(RunMessage::Drained(vec![Drained { sent_messages, posts }]))
        }),
        any::<Vec<u64>>().prop_map(|polls| {
            let worker = |count| WorkerResult { polls: count, ..WorkerResult::default() };
            Message::Run(RunMessage::Report(Box::new(NodeReport {
                workers: polls.into_iter().map(worker).collect(),
                ..NodeReport::default()
            })))
        }),
        (text(), maybe(), any::<bool>()).prop_map(|(reason, hint, bad_input)| {
            Message::Session(SessionMessage::Abort(NodeFailure { reason, hint, bad_input }))
        }),
        prop::sample::select(vec![
            Message::Run(RunMessage::Ready),
            Message::Run(RunMessage::Start),
            Message::Run(RunMessage::Measure),
            Message::Run(RunMessage::Stop),
            Message::Run(RunMessage::RunDone),
            Message::Perftest(PerftestMessage::Stop { now: true }),
            Message::Session(SessionMessage::Heartbeat { progress: 7 }),
            Message::Session(SessionMessage::Goodbye),
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn messages_round_trip_in_pieces(
        messages in prop::collection::vec(any_message(), 1..4),
        piece in 1usize..40,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
        let mut stream = pieces(bytes, piece);
        let mut reader = FrameReader::new(MAX_FRAME_BYTES);
        for message in messages {
            prop_assert_eq!(next(&mut reader, &mut stream).unwrap(), message);
        }
        prop_assert!(matches!(next(&mut reader, &mut stream), Err(FrameError::Closed)));
    }

    #[test]
    fn every_text_arrives_printable(text in any::<String>()) {
        let shown = printable(&text, MAX_CHARS);
        let host = |name: &str| json!({"device": {"name": name}, name: [name]});
        for message in [
            json!({"type": "session", "body":
                {"type": "abort", "body": {"reason": text, "hint": text, "bad_input": true}}}),
            json!({"type": "handshake", "body": {"type": "introduce", "body": {"host": host(&text)}}}),
            // A body before its tag is kept aside while it is parsed.
            json!({"body": {"body": {"host": host(&text)}, "type": "introduce"}, "type": "handshake"}),
        ] {
            match first(&framed(message.to_string().as_bytes())).unwrap() {
                Message::Session(SessionMessage::Abort(why)) => {
                    prop_assert_eq!((&why.reason, why.hint.as_ref()), (&shown, Some(&shown)));
                }
                Message::Handshake(HandshakeMessage::Introduce { host: arrived }) => prop_assert_eq!(arrived, host(&shown)),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn any_bytes_end_in_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..9) {
        let mut stream = pieces(bytes, piece);
        let mut reader = FrameReader::new(MAX_FRAME_BYTES);
        let error = std::iter::repeat_with(|| next(&mut reader, &mut stream)).find_map(Result::err);
        prop_assert!(!error.unwrap().to_string().is_empty());
    }

    #[test]
    fn any_body_is_a_message_or_a_short_reason(body in prop::collection::vec(any::<u8>(), 1..200)) {
        if let Err(error) = first(&framed(&body)) {
            prop_assert!(error.to_string().chars().count() < 250);
        }
    }

    #[test]
    fn a_frame_cut_anywhere_is_truncated(message in any_message(), at in any::<prop::sample::Index>()) {
        let bytes = encode(&message).unwrap();
        let cut = 1 + at.index(bytes.len() - 1);
        prop_assert!(
            matches!(first(&bytes[..cut]), Err(FrameError::Truncated { .. })),
            "cut at {cut} of {}", bytes.len()
        );
    }
}

#[test]
fn an_oversized_length_is_refused_before_its_bytes() {
    let len = u32::try_from(MAX_FRAME_BYTES).unwrap() + 1;
    let FrameError::Oversized { len_bytes, .. } = first(&len.to_le_bytes()).unwrap_err() else {
        panic!("not oversized");
    };
    assert_eq!(len_bytes, u64::from(len));
}

#[test]
fn a_claimed_length_costs_only_the_bytes_that_come() {
    let mut bytes = u32::try_from(MAX_FRAME_BYTES).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(b"[1,2");
    let mut stream = pieces(bytes, 100);
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    for _ in 0..4 {
        reader.step(&mut stream).unwrap();
    }
    assert_eq!(reader.body, b"[1,2");
    let capacity = reader.body.capacity();
    assert!(capacity <= READ_BYTES, "{capacity} bytes");
}

#[test]
fn each_kind_of_garbage_has_its_error() {
    assert!(matches!(first(b""), Err(FrameError::Closed)));
    assert!(matches!(first(&[0, 0, 0, 0]), Err(FrameError::Empty)));
    let refused = |body: &str| first(&framed(body.as_bytes())).unwrap_err();
    for body in ["{", "nonsense", "\u{0}", "{\"type\":\"run\",\"body\":{\"type\":\"ready\"}} x"] {
        let is_no_json = matches!(refused(body), FrameError::NotJson { .. });
        assert!(is_no_json, "{body:?}");
    }
    let unknown = r#"{"type":"no_such"}"#;
    let unknown_word = r#"{"type":"run","body":{"type":"no_such"}}"#;
    let wrong = r#"{"type":"handshake","body":{"type":"hello","body":{"protocol":"x"}}}"#;
    for body in ["{}", "[]", "3", unknown, unknown_word, wrong] {
        let is_no_message = matches!(refused(body), FrameError::NotMessage { .. });
        assert!(is_no_message, "{body:?}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_stack_overflow() {
    let mut body = br#"{"type":"run","body":{"type":"report","body":"#.to_vec();
    body.resize(body.len() + 200_000, b'[');
    let read = first(&framed(&body));
    assert!(matches!(read, Err(FrameError::Excessive { .. })));
}

#[test]
fn a_message_too_large_is_not_encoded() {
    let message = Message::Handshake(HandshakeMessage::Introduce {
        host: json!("x".repeat(MAX_FRAME_BYTES)),
    });
    let encoded = encode(&message);
    assert!(matches!(encoded, Err(FrameError::Oversized { .. })));
}

const LEN: usize = 1 << 20;

fn excess(piece: &str) -> Option<&'static str> {
    let text = format!("[{}0]", piece.repeat(LEN / piece.len()));
    check_bounds(text.as_bytes()).err().map(|excess| excess.what)
}

#[test]
fn what_takes_far_more_than_its_bytes_is_refused() {
    assert_eq!(excess("0,"), Some("elements"));
    assert_eq!(excess(r#"{"":0},"#), Some("objects and arrays"));
    assert_eq!(excess("[],"), Some("objects and arrays"));
    assert_eq!(excess("["), Some("levels of nesting"));
    assert_eq!(excess(r#"{"a":"#), Some("levels of nesting"));
}

#[test]
fn what_the_protocol_sends_is_not() {
    let qp = r#"{"qpn":17,"psn":1,"address":0,"rkey":0,"length":0},"#;
    assert_eq!(excess(qp), None);
    assert_eq!(excess("1234567,"), None);
}

#[test]
fn text_in_strings_does_not_count() {
    assert_eq!(excess(r#""{[,\"{[,{[,{[,{[,{[,{[,{[,{[,{[,","#), None);
    assert_eq!(check_bounds(br#"{"a":"\\","b":[]}"#), Ok(()));
}
