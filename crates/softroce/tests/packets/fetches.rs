//! READs that are more than agreed on, and READs that are repeated without end.

use std::time::Instant;

use softroce::transport::{QpEvent, State};

use crate::device::{Device, MTU, PSN, Plan};
use crate::peer::{PATIENCE, Peer};

const MEBIBYTE: usize = 1 << 20;

#[test]
fn more_reads_at_once_than_agreed_are_an_invalid_request() {
    let peer = Peer::new();
    let plan = Plan {
        memory_bytes: 16 * MEBIBYTE,
        max_dest_rd_atomic: 2,
        ..Plan::default()
    };
    let bytes = plan.memory_bytes as u32;
    let device = Device::new(&peer, plan);
    for number in 0..64 {
        let psn = PSN.wrapping_add(number * (bytes / MTU));
        peer.send(device.nic.address(), &device.read(psn, bytes));
    }
    let deadline = Instant::now() + PATIENCE;
    while device.qp.state() != State::Err {
        assert!(Instant::now() < deadline, "{:?}", device.nic.counters());
        peer.answer();
    }
    let events = device.events.lock().unwrap().clone();
    assert_eq!(events, [QpEvent::RequestError]);
}

#[test]
fn a_read_that_is_repeated_again_and_again_is_answered_within_a_budget() {
    const READ_BYTES: u32 = 60 << 10;
    const TIMES: u64 = 2000;
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let read = device.read(PSN, READ_BYTES);
    peer.send(device.nic.address(), &read);
    let first = peer.answers(60, PATIENCE);
    assert_eq!(first.len(), 60);
    let began = Instant::now();
    for times in 1..=TIMES {
        peer.send(device.nic.address(), &read);
        device.counts("duplicate_requests", times);
        while peer.answer().is_some() {}
    }
    // The bytes that time and the READ have earned, and headers.
    let earned = (4 << 20) + 16 * u64::from(READ_BYTES) + began.elapsed().as_nanos() as u64 / 16;
    let sent = device.counter("bytes_sent");
    assert!(
        sent < earned / 10 * 11 + 2 * u64::from(READ_BYTES),
        "{sent} {earned}"
    );
    assert!(sent > u64::from(READ_BYTES) * 17, "some are answered");
    assert!(device.counter("unanswered_duplicates") > 0);
}
