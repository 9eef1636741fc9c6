//! The link over real loopback sockets: every way in which a peer can die, stall or misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use protocol::error::{FrameError, LinkError};
use protocol::frame::{self, FRAME_LIMIT, MAX_FRAME_BYTES};
use protocol::link::{HEARTBEAT_EVERY, Link, SILENCE_LIMIT};
use protocol::message::{
    HandshakeMessage, Message, NodeFailure, Progress, RunMessage, SessionMessage,
};
use serde_json::json;
use testing::wait::{wait_for, wait_until};

use super::{GO_ON, SECOND, WATCHDOG, recv};

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// A message with so much text.
fn large(bytes: usize) -> Message {
    Message::Handshake(HandshakeMessage::Introduce {
        host: json!({ "histogram": "x".repeat(bytes) }),
    })
}

fn link(stream: TcpStream) -> Link {
    let peer = stream.peer_addr().unwrap();
    Link::new(stream, peer).unwrap()
}

fn links() -> (Link, Link) {
    let (near, far) = sockets();
    (link(near), link(far))
}

/// A link and the bare socket of its peer.
fn link_to_raw() -> (Link, TcpStream) {
    let (near, far) = sockets();
    (link(near), far)
}

fn send_raw(mut stream: &TcpStream, body: &str) {
    let len = u32::try_from(body.len()).unwrap();
    stream.write_all(&len.to_le_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

/// How the link ends.
fn end_of(link: &Link) -> LinkError {
    loop {
        if let Err(error) = link.recv(WATCHDOG, &GO_ON) {
            return error;
        }
    }
}

/// How it ends, though nobody reads from it.
fn end_unread(link: &Link) -> LinkError {
    wait_for("the end of the link", SECOND, || link.check().err())
}

/// Waits until `near` has so many heart-beats of `far`.
fn hear_beats(near: &Link, far: &Link, beats: u32) {
    for _ in 0..beats {
        let before = near.peer_progress();
        far.progressed();
        wait_until("a heart-beat", SECOND, || near.peer_progress() > before);
    }
}

/// The peer's end is seen as such, not taken for silence.
fn assert_closed(link: &Link) {
    let error = end_of(link);
    assert!(matches!(error, LinkError::PeerClosed { .. }), "{error}");
    assert!(matches!(link.check(), Err(LinkError::PeerClosed { .. })));
}

#[test]
fn messages_pass_both_ways_and_heartbeats_are_swallowed() {
    let (near, far) = links();
    let large = large(1 << 20);
    near.send(large.clone()).unwrap();
    far.send(RunMessage::Ready).unwrap();
    assert_eq!(far.recv(WATCHDOG, &GO_ON).unwrap(), large);
    assert_eq!(near.recv(WATCHDOG, &GO_ON).unwrap(), Message::Run(RunMessage::Ready));
    hear_beats(&near, &far, 2);
    assert_eq!(near.try_recv().unwrap(), None);
}

#[test]
fn idle_links_live_on_by_their_heartbeats() {
    let (near, far) = links();
    let beats = SILENCE_LIMIT.div_duration_f64(HEARTBEAT_EVERY) as u32 + 1;
    thread::scope(|scope| {
        scope.spawn(|| hear_beats(&far, &near, beats));
        hear_beats(&near, &far, beats);
    });
    near.check().unwrap();
    far.check().unwrap();
    let error = near.recv(Duration::from_millis(10), &GO_ON).unwrap_err();
    let is_overdue = matches!(error, LinkError::Overdue { .. });
    assert!(is_overdue && !error.is_final(), "{error}");
}

#[test]
fn a_closed_peer_is_noticed_and_its_last_message_kept() {
    let (near, far) = links();
    far.send(RunMessage::RunDone).unwrap();
    drop(far);
    assert_eq!(near.recv(WATCHDOG, &GO_ON).unwrap(), Message::Run(RunMessage::RunDone));
    assert_closed(&near);
    let sent = near.send(RunMessage::Ready);
    assert!(matches!(sent, Err(LinkError::PeerClosed { .. })));
}

#[test]
fn a_reset_is_noticed() {
    let (near, far) = link_to_raw();
    rustix::net::sockopt::set_socket_linger(&far, Some(Duration::ZERO)).unwrap();
    drop(far);
    assert_closed(&near);
}

#[test]
fn a_silent_peer_is_noticed() {
    let (near, far) = link_to_raw();
    let error = end_of(&near);
    let LinkError::PeerSilent { seconds, .. } = error else {
        panic!("{error}");
    };
    assert!(seconds >= SILENCE_LIMIT.as_secs_f64() && error.hint().is_some());
    // It is told why, in case that only its own packets are lost.
    near.send(RunMessage::RunDone).unwrap();
    let run_done = frame::encode(&Message::Run(RunMessage::RunDone)).unwrap();
    wait_for("the last message", 2 * SECOND, || {
        let mut read = vec![0; 4096];
        let length = far.peek(&mut read).unwrap();
        read[..length].ends_with(&run_done).then_some(())
    });
}

/// Does this while the peer by hand sends heart-beats, between which it does what `each` says.
fn beside_beats<T>(
    far: &TcpStream,
    each: impl Fn(&TcpStream) + Send,
    body: impl FnOnce() -> T,
) -> T {
    let (done, is_done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let beat = frame::encode(&Message::Session(SessionMessage::Heartbeat { progress: 0 }))
                .unwrap();
            let mut stream = far;
            while is_done.recv_timeout(HEARTBEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                // Fails once the link has ended.
                let _ = stream.write_all(&beat);
                each(far);
            }
        });
        let done_with = body();
        drop(done);
        done_with
    })
}

#[test]
fn a_peer_that_lives_and_takes_nothing_ends_a_send() {
    let (near, far) = link_to_raw();
    let large = large(1 << 20);
    let error = beside_beats(
        &far,
        |_| (),
        || wait_for("the end of sending", 2 * SECOND, || near.send(large.clone()).err()),
    );
    assert!(matches!(error, LinkError::PeerSilent { .. }), "{error}");
    assert!(matches!(near.check(), Err(LinkError::PeerSilent { .. })));
}

#[test]
fn a_peer_that_lives_and_takes_a_message_too_slowly_ends_a_send() {
    let (near, far) = link_to_raw();
    // With more the whole message might fit.
    rustix::net::sockopt::set_socket_recv_buffer_size(&far, 256 << 10).unwrap();
    let slow = |mut stream: &TcpStream| {
        let _ = stream.read(&mut vec![0; 128 << 10]);
    };
    let error = beside_beats(&far, slow, || near.send(large(MAX_FRAME_BYTES - 100)).unwrap_err());
    assert!(matches!(error, LinkError::Unfinished { operation: "sending to", .. }), "{error}");
}

#[test]
fn a_peer_that_lives_inside_a_message_without_end_is_dead_in_the_end() {
    let (near, far) = link_to_raw();
    (&far).write_all(&u32::to_le_bytes(1 << 20)).unwrap();
    let error = beside_beats(
        &far,
        |_| (),
        || wait_for("the end of the link", FRAME_LIMIT, || near.check().err()),
    );
    assert!(error.to_string().contains("unfinished message") && error.hint().is_some(), "{error}");
    // It hears why.
    near.send(RunMessage::RunDone).unwrap();
    assert_eq!(recv(&far).unwrap(), Message::Run(RunMessage::RunDone));
}

#[test]
fn frames_that_break_the_protocol_end_the_link_with_their_error_and_the_peer_is_told() {
    use FrameError::{Empty, NotJson, NotMessage, Oversized};
    type Wanted = fn(&FrameError) -> bool;
    let too_long: Wanted = |it| matches!(it, Oversized { .. });
    let no_json: Wanted = |it| matches!(it, NotJson { .. });
    let no_message: Wanted = |it| matches!(it, NotMessage { .. });
    let bad: [(&[u8], Wanted); 5] = [
        (b"\0\0\0\0", |it| matches!(it, Empty)),
        (b"GET / HTTP/1.1\r\n\r\n", too_long),
        (b"\x04\0\0\0nope and more", no_json),
        (b"\x0f\0\0\0{\"type\":\"what\"}", no_message),
        (b"\x27\0\0\0{\"type\":\"run\",\"body\":{\"type\":\"report\"}}", no_message),
    ];
    for (bytes, wanted) in bad {
        let (near, far) = link_to_raw();
        (&far).write_all(bytes).unwrap();
        let error = end_of(&near);
        let LinkError::Protocol { source, .. } = &error else { panic!("{bytes:?}: {error}") };
        assert!(wanted(source), "{bytes:?}: {error}");
        let abort = Message::Session(SessionMessage::Abort(NodeFailure::new(
            error.to_string(),
            error.hint(),
        )));
        near.send(abort.clone()).unwrap();
        let closing = thread::spawn(move || drop(near));
        assert_eq!(recv(&far).unwrap(), abort);
        drop(far);
        closing.join().unwrap();
    }
}

#[test]
fn a_frame_cut_off_is_truncated() {
    let (near, far) = link_to_raw();
    (&far).write_all(b"\x20\0\0\0{\"type\":").unwrap();
    drop(far);
    let error = end_of(&near);
    let cut = FrameError::Truncated { got_bytes: 8, expected_bytes: 32 };
    assert!(error.to_string().ends_with(&cut.to_string()), "{error}");
}

#[test]
fn a_flood_is_refused() {
    let (near, far) = link_to_raw();
    for _ in 0..100 {
        send_raw(&far, r#"{"type":"run","body":{"type":"ready"}}"#);
    }
    let error = end_unread(&near);
    let LinkError::Protocol { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(source, FrameError::Flood { .. }), "{error}");
}

#[test]
fn progress_that_nobody_reads_is_no_flood_and_keeps_nothing_out() {
    let (near, far) = links();
    for _ in 0..100 {
        far.send(RunMessage::Progress(Progress::default())).unwrap();
    }
    far.send(RunMessage::Ready).unwrap();
    hear_beats(&near, &far, 1);
    let mut read = 0;
    while near.recv(WATCHDOG, &GO_ON).unwrap() != Message::Run(RunMessage::Ready) {
        read += 1;
    }
    assert!((1..100).contains(&read), "{read}");
}

#[test]
fn an_abort_reaches_a_peer_that_is_not_waiting_and_that_sends_itself() {
    let (near, far) = links();
    for _ in 0..10 {
        near.send(RunMessage::Ready).unwrap();
    }
    let hint = Some("ask for 8".to_owned());
    let abort = Message::Session(SessionMessage::Abort(NodeFailure {
        bad_input: true,
        ..NodeFailure::new("no room for 9 QPs\u{7}", hint.clone())
    }));
    far.send(abort).unwrap();
    drop(far);
    let error = end_unread(&near);
    let says = "gave up: no room for 9 QPs\\u{7}";
    assert!(error.to_string().ends_with(says), "{error}");
    assert!(error.bad_input() && error.hint() == hint && error.is_final());
    let sent = near.send(RunMessage::Ready).unwrap_err();
    let received = near.recv(WATCHDOG, &GO_ON).unwrap_err();
    for ended in [sent, received] {
        assert!(matches!(ended, LinkError::Aborted { .. }), "{ended}");
    }
}

#[test]
fn a_wait_can_be_interrupted() {
    let (near, far) = links();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // By then the other thread waits.
            hear_beats(&near, &far, 2);
            stop.store(true, Ordering::Relaxed);
        });
        let error = near.recv(2 * WATCHDOG, &stop).unwrap_err();
        assert!(matches!(error, LinkError::Interrupted { .. }), "{error}");
    });
}

#[test]
fn a_message_too_large_is_refused_and_the_link_works_on() {
    let (near, far) = links();
    let error = near.send(large(MAX_FRAME_BYTES)).unwrap_err();
    let LinkError::Unsendable { kind, .. } = &error else { panic!("{error}") };
    assert_eq!(*kind, "introduce");
    near.send(SessionMessage::Goodbye).unwrap();
    assert_eq!(far.recv(WATCHDOG, &GO_ON).unwrap(), Message::Session(SessionMessage::Goodbye));
}

#[test]
fn closing_ends_with_a_living_and_with_a_silent_peer() {
    let close = |near: Link| {
        let closing = thread::spawn(move || drop(near));
        wait_until("closing", SECOND, || closing.is_finished());
    };
    let (near, far) = links();
    close(near);
    assert_closed(&far);
    // It never closes its own end.
    let (closing, mut raw) = link_to_raw();
    close(closing);
    assert_eq!(raw.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_message_out_of_turn_names_both() {
    let (near, _far) = links();
    let error = near.unexpected("endpoints", &Message::Run(RunMessage::Ready)).to_string();
    let words = "sent `ready` instead of `endpoints`";
    assert!(error.ends_with(words), "{error}");
}

#[test]
fn a_peer_that_does_not_move_is_overdue_and_one_that_sends_is_not() {
    let (near, far) = links();
    let wait = |limit, look: &mut dyn FnMut()| {
        near.recv_while_peer_moves(limit, SECOND / 100, &GO_ON, || {
            look();
            Ok::<(), LinkError>(())
        })
    };
    let idle = wait(SECOND / 10, &mut || ()).unwrap_err();
    assert!(matches!(idle, LinkError::Overdue { .. }), "{idle}");
    let mut looks = 0;
    let send_at_last = &mut || {
        looks += 1;
        if looks == 3 {
            far.send(RunMessage::Ready).unwrap();
        }
    };
    assert_eq!(wait(WATCHDOG, send_at_last).unwrap().0, Message::Run(RunMessage::Ready));
}
