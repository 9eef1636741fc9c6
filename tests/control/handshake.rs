//! The handshake over real loopback sockets: who is let in, who is not, and what both are told.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use protocol::PROTOCOL_VERSION;
use protocol::error::{AcceptError, ConnectError, ExchangeError, FrameError};
use protocol::frame;
use protocol::handshake::{Accepted, PeerInfo, ServerTerms, SlotError, accept, connect};
use protocol::link::Link;
use protocol::message::{BusyInfo, HandshakeMessage, Message, RunMessage};
use protocol::token::{Token, to_hex};
use serde_json::json;

use super::{GO_ON, SECOND, WATCHDOG, recv};

const HOST: &str = "127.0.0.1";

type Outcome = Result<Accepted<Arc<()>>, AcceptError>;
type Connected = Result<(Link, PeerInfo), ConnectError>;

fn token(text: &str) -> Option<Token> {
    Some(Token::new(text).unwrap())
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn terms(token: Option<Token>) -> ServerTerms {
    ServerTerms { limit: WATCHDOG, ..ServerTerms::new(token, json!({"cpu": "server's"})) }
}

/// One `accept` against what `client` does with the port; also how often the slot was asked for.
fn serve_one<T>(
    terms: &ServerTerms,
    slot: &Arc<()>,
    client: impl FnOnce(u16) -> T,
) -> (Outcome, T, usize) {
    let (listener, port) = listen();
    let slot_requests = AtomicUsize::new(0);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            accept(stream, terms, &GO_ON, |_| {
                slot_requests.fetch_add(1, Ordering::Relaxed);
                Ok(Arc::clone(slot))
            })
        });
        let seen = client(port);
        (server.join().unwrap(), seen, slot_requests.load(Ordering::Relaxed))
    })
}

fn client(token: Option<&Token>) -> impl FnOnce(u16) -> Connected {
    move |port| connect(HOST, port, None, token, &json!({"cpu": "client's"}), &GO_ON)
}

fn raw(port: u16) -> TcpStream {
    TcpStream::connect((HOST, port)).unwrap()
}

fn send(mut stream: &TcpStream, message: impl Into<Message>) {
    stream.write_all(&frame::encode(&message.into()).unwrap()).unwrap();
}

fn hello(protocol: u32) -> HandshakeMessage {
    HandshakeMessage::Hello { protocol, version: "0.3.0".into(), nonce: to_hex(&[7; 32]) }
}

fn challenge(protocol: u32, nonce: String, token_required: bool) -> HandshakeMessage {
    HandshakeMessage::Challenge { protocol, version: "0.3.0".into(), nonce, token_required }
}

/// How an `accept` ended because the handshake failed.
#[track_caller]
fn handshake(accepted: Outcome) -> ExchangeError {
    match accepted.unwrap_err() {
        AcceptError::Handshake { source, .. } => source,
        error => panic!("{error}"),
    }
}

/// A client against a server made by hand.
fn against(token: Option<&Token>, server: impl FnOnce(TcpStream) + Send) -> ConnectError {
    let (listener, port) = listen();
    thread::scope(|scope| {
        scope.spawn(|| server(listener.accept().unwrap().0));
        client(token)(port).unwrap_err()
    })
}

#[test]
fn both_ends_learn_of_each_other_with_and_without_a_token() {
    for token in [None, token("secret")] {
        let (slot, terms) = (Arc::new(()), terms(token.clone()));
        let (accepted, connected, _) = serve_one(&terms, &slot, client(token.as_ref()));
        let (accepted, (link, server)) = (accepted.unwrap(), connected.unwrap());
        assert_eq!(server.host, json!({"cpu": "server's"}));
        assert_eq!(accepted.peer.host, json!({"cpu": "client's"}));
        assert_eq!(server.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(accepted.peer.version, server.version);
        assert_eq!(accepted.peer.address, link.local().unwrap());
        link.send(RunMessage::Ready).unwrap();
        let heard = accepted.link.recv(WATCHDOG, &GO_ON).unwrap();
        assert_eq!(heard, Message::Run(RunMessage::Ready));
        assert_eq!(Arc::strong_count(&slot), 2);
        drop(accepted);
        assert_eq!(Arc::strong_count(&slot), 1);
    }
}

#[test]
fn a_wrong_and_a_missing_token_are_refused_without_taking_the_slot() {
    for wrong in [token("Secret"), None] {
        let terms = terms(token("secret"));
        let (accepted, connected, slot_requests) =
            serve_one(&terms, &Arc::default(), client(wrong.as_ref()));
        let accepted = accepted.unwrap_err();
        assert!(matches!(accepted, AcceptError::Unproven { .. }));
        let error = connected.unwrap_err();
        let is_missing = matches!(error, ConnectError::TokenRequired { .. });
        assert_eq!(is_missing, wrong.is_none(), "{error}");
        assert!(error.bad_input() && error.hint().unwrap().contains("--token"));
        assert_eq!(slot_requests, 0);
    }
}

#[test]
fn a_wrong_and_a_missing_proof_are_answered_alike() {
    let zeros = "00".repeat(32);
    let answers = [None, Some(""), Some("zz"), Some(&zeros)].map(|mac| {
        let mac = mac.map(str::to_owned);
        serve_one(&terms(token("secret")), &Arc::default(), |port| {
            let stream = raw(port);
            send(&stream, hello(PROTOCOL_VERSION));
            recv(&stream).unwrap();
            send(&stream, HandshakeMessage::Proof { mac });
            recv(&stream).unwrap()
        })
        .1
    });
    assert_eq!(answers[0].kind(), "abort");
    assert_eq!(answers[1..], vec![answers[0].clone(); 3]);
}

#[test]
fn a_server_without_the_token_is_not_trusted_by_a_client_with_one() {
    let ours = token("secret");
    let (accepted, connected, _) = serve_one(&terms(None), &Arc::default(), client(ours.as_ref()));
    let error = connected.unwrap_err();
    assert!(matches!(error, ConnectError::ServerUnproven { .. }));
    handshake(accepted);
}

#[test]
fn a_server_that_reflects_the_clients_proof_is_not_trusted() {
    for reflect in [true, false] {
        let error = against(token("secret").as_ref(), |stream| {
            recv(&stream).unwrap();
            send(&stream, challenge(PROTOCOL_VERSION, to_hex(&[9; 32]), true));
            let Message::Handshake(HandshakeMessage::Proof { mac }) = recv(&stream).unwrap() else {
                panic!("no proof")
            };
            assert!(mac.is_some());
            let welcome = HandshakeMessage::Welcome {
                mac: mac.filter(|_| reflect),
                host: json!(null),
                receives_files: false,
                clock_ns: None,
            };
            send(&stream, welcome);
        });
        let is_unproven = matches!(error, ConnectError::ServerUnproven { .. });
        assert!(is_unproven, "{error}");
    }
}

#[test]
fn a_server_that_sends_the_clients_nonce_back_is_refused() {
    let error = against(None, |stream| {
        let Message::Handshake(HandshakeMessage::Hello { nonce, .. }) = recv(&stream).unwrap()
        else {
            panic!("no hello")
        };
        send(&stream, challenge(PROTOCOL_VERSION, nonce, false));
    });
    let ConnectError::Handshake { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(source, ExchangeError::BadNonce), "{error}");
}

#[test]
fn another_version_is_told_to_both_ends() {
    let own = env!("CARGO_PKG_VERSION");
    let sentence = format!(
        "this end speaks protocol {PROTOCOL_VERSION} (rocebench {own}), the peer 9 (0.3.0)"
    );
    let (accepted, answer, slot_requests) = serve_one(&terms(None), &Arc::default(), |port| {
        let stream = raw(port);
        send(&stream, hello(9));
        recv(&stream).unwrap()
    });
    let error = accepted.unwrap_err();
    assert!(error.to_string().ends_with(&sentence), "{error}");
    assert!(error.hint().unwrap().contains("same version"));
    let is_challenge = matches!(
        answer,
        Message::Handshake(HandshakeMessage::Challenge { protocol: PROTOCOL_VERSION, .. })
    );
    assert!(is_challenge, "{answer:?}");
    assert_eq!(slot_requests, 0);

    let newer = against(None, |stream| {
        recv(&stream).unwrap();
        send(&stream, challenge(9, to_hex(&[9; 32]), false));
    });
    assert!(newer.to_string().ends_with(&sentence), "{newer}");
    assert!(newer.hint().unwrap().contains("same version"));
}

#[test]
fn a_busy_server_says_with_whom() {
    let (listener, port) = listen();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let busy = BusyInfo { client: "192.0.2.7:4000".into(), since_seconds: 12 };
            let stream = listener.accept().unwrap().0;
            accept(stream, &terms(None), &GO_ON, |_| Err::<(), _>(SlotError::Busy(busy.clone())))
        });
        let error = client(None)(port).unwrap_err();
        let says = "is busy: it has served 192.0.2.7:4000 for 12 s";
        assert!(error.to_string().ends_with(says), "{error}");
        assert!(!error.bad_input() && error.hint().is_some());
        let refused = server.join().unwrap();
        assert!(matches!(refused, Err(AcceptError::Busy { .. })));
    });
}

/// A client's socket that has proved itself.
fn proven(port: u16) -> TcpStream {
    let stream = raw(port);
    send(&stream, hello(PROTOCOL_VERSION));
    recv(&stream).unwrap();
    send(&stream, HandshakeMessage::Proof { mac: None });
    stream
}

/// A server whose session ends once `is_over`, and tells at once that one waits for that.
fn serve_when(is_over: &AtomicBool, client: impl FnOnce(u16) + Send) -> Outcome {
    let (listener, port) = listen();
    let terms = ServerTerms { wait_untold: std::time::Duration::ZERO, ..terms(None) };
    thread::scope(|scope| {
        scope.spawn(|| client(port));
        accept(listener.accept().unwrap().0, &terms, &GO_ON, |_| {
            thread::yield_now();
            if is_over.load(Ordering::Relaxed) {
                Ok(Arc::default())
            } else {
                Err(SlotError::Ending)
            }
        })
    })
}

#[test]
fn a_client_that_waits_for_the_end_of_a_session_is_told_and_taken() {
    let is_over = AtomicBool::new(false);
    let accepted = serve_when(&is_over, |port| {
        let stream = proven(port);
        assert_eq!(recv(&stream).unwrap(), Message::Handshake(HandshakeMessage::Wait));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(recv(&stream).unwrap().kind(), "welcome");
        send(&stream, HandshakeMessage::Introduce { host: json!(null) });
    });
    accepted.unwrap();
}

#[test]
fn a_client_that_leaves_while_it_waits_is_not_waited_with() {
    let accepted = serve_when(&AtomicBool::new(false), |port| drop(proven(port)));
    assert!(matches!(handshake(accepted), ExchangeError::Closed));
}

#[test]
fn a_client_is_asked_to_wait_once_only() {
    let error = against(None, |stream| {
        recv(&stream).unwrap();
        send(&stream, challenge(PROTOCOL_VERSION, to_hex(&[9; 32]), false));
        recv(&stream).unwrap();
        send(&stream, HandshakeMessage::Wait);
        send(&stream, HandshakeMessage::Wait);
    });
    let ConnectError::Handshake { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(source, ExchangeError::Unexpected { got: "wait", .. }), "{error}");
}

#[test]
fn a_server_without_further_sessions_says_that_it_ends() {
    let (listener, port) = listen();
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept().unwrap().0;
            accept(stream, &terms(None), &GO_ON, |_| Err::<(), _>(SlotError::Over)).unwrap_err()
        });
        let error = client(None)(port).unwrap_err();
        assert!(error.to_string().ends_with("the server is shutting down"), "{error}");
    });
}

#[test]
fn a_client_that_dies_after_its_proof_gives_the_slot_back() {
    let slot = Arc::new(());
    let (accepted, (), slot_requests) = serve_one(&terms(None), &slot, |port| drop(proven(port)));
    handshake(accepted);
    assert_eq!((slot_requests, Arc::strong_count(&slot)), (1, 1));
}

#[test]
fn strangers_get_their_error_and_cost_the_server_nothing() {
    use ExchangeError::{Closed, Frame, Unexpected};
    use FrameError::{NotJson, Oversized, Truncated};
    type Wanted = fn(&ExchangeError) -> bool;
    let too_long: Wanted = |it| matches!(it, Frame(Oversized { .. }));
    let out_of_turn: Wanted = |it| {
        let (hello, ready) = ("hello", "ready");
        matches!(it, Unexpected { expected, got } if (*expected, *got) == (hello, ready))
    };
    let strangers: [(&[u8], Wanted); 6] = [
        (b"", |it| matches!(it, Closed)),
        (b"\n", |it| matches!(it, Frame(Truncated { .. }))),
        (b"GET / HTTP/1.1\r\nHost: there\r\n\r\n", too_long),
        // A TLS client's first record.
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", too_long),
        (b"\x05\0\0\0hello", |it| matches!(it, Frame(NotJson { .. }))),
        (b"\x26\0\0\0{\"type\":\"run\",\"body\":{\"type\":\"ready\"}}", out_of_turn),
    ];
    for (bytes, wanted) in strangers {
        let (accepted, (), slot_requests) = serve_one(&terms(None), &Arc::default(), |port| {
            raw(port).write_all(bytes).unwrap();
        });
        let error = handshake(accepted);
        assert!(wanted(&error), "{bytes:?}: {error}");
        assert_eq!(slot_requests, 0);
    }
}

#[test]
fn a_slow_client_is_cut_off_in_time() {
    let terms = ServerTerms { limit: SECOND / 2, ..terms(None) };
    let (accepted, is_cut_off, _) = serve_one(&terms, &Arc::default(), |port| {
        let mut stream = raw(port);
        // It takes more than two seconds for all: between two bytes it waits for what the server says.
        stream.set_read_timeout(Some(SECOND / 50)).unwrap();
        frame::encode(&hello(PROTOCOL_VERSION).into()).unwrap().iter().any(|byte| {
            let is_closed = matches!(stream.read(&mut [0]), Ok(0));
            is_closed || stream.write_all(&[*byte]).is_err()
        })
    });
    let error = handshake(accepted);
    assert!(matches!(error, ExchangeError::TimedOut { .. }), "{error}");
    assert!(is_cut_off);
}

#[test]
fn a_missing_server_is_an_immediate_error_with_the_remedy() {
    let (listener, port) = listen();
    drop(listener);
    let error = client(None)(port).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let says = format!("connecting to 127.0.0.1:{port}: ");
    assert!(error.to_string().starts_with(&says), "{error}");
    let hint = error.hint().unwrap();
    let remedy = "start `rocebench serve` on 127.0.0.1";
    assert!(hint.contains(remedy), "{hint}");
}

#[test]
fn a_name_and_a_bracketed_address_both_connect() {
    for host in ["localhost", "[127.0.0.1]"] {
        let (accepted, connected, _) = serve_one(&terms(None), &Arc::default(), |port| {
            connect(host, port, None, None, &json!(null), &GO_ON)
        });
        let address: SocketAddr = connected.unwrap().1.address;
        assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
        accepted.unwrap();
    }
}

#[test]
fn a_client_comes_from_the_address_that_was_asked_for() {
    let own: IpAddr = "127.0.0.9".parse().unwrap();
    let from = |address: IpAddr| {
        move |port| connect(HOST, port, Some(address), None, &json!(null), &GO_ON)
    };
    let (accepted, connected, _) = serve_one(&terms(None), &Arc::default(), from(own));
    assert_eq!(accepted.unwrap().peer.address.ip(), own);
    connected.unwrap();
    let (_listener, port) = listen();
    let foreign = from("192.0.2.1".parse().unwrap())(port).unwrap_err();
    assert!(foreign.hint().unwrap().contains("an address of this machine"), "{foreign}");
    let of_other_family = from("::1".parse().unwrap())(port).unwrap_err();
    assert!(of_other_family.to_string().contains("no address of IPv6"), "{of_other_family}");
}

#[test]
fn a_server_that_says_nothing_can_be_left_by_interrupt() {
    let (listener, port) = listen();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            stop.store(true, Ordering::Relaxed);
            // Holds the connection until the client has left.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = connect(HOST, port, None, None, &json!(null), &stop).unwrap_err();
        assert!(error.is_interrupt() && error.hint().is_none(), "{error}");
    });
}
