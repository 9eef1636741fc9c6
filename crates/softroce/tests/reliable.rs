//! Two devices in one process, connected QPs between them: what every operation does.

// Helpers of tests fail as tests do.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/end.rs"]
mod end;

use std::time::{Duration, Instant};

use end::{End, Plan};
use softroce::transport::{Completion, CompletionKind, Operation, State, Status};

fn pair() -> (End, End) {
    end::pair(&Plan::default())
}

fn wait(end: &End) -> Completion {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut found = None;
    while found.is_none() {
        end.cq
            .poll(1, |completion| found = Some(*completion))
            .unwrap();
        assert!(Instant::now() < deadline, "{:?}", end.nic.counters());
    }
    found.unwrap()
}

#[test]
fn a_write_arrives() {
    for length in [0, 1, 64, 4096, 4097, 65536, 1 << 20] {
        let (mut a, b) = pair();
        fastrand::Rng::with_seed(3).fill(&mut a.memory[..length]);
        let remote = b.memory.as_ptr() as u64 + 100;
        a.post(
            0,
            Operation::Write {
                address: remote,
                rkey: b.key,
            },
            &[a.sge(0, length)],
        );
        let done = wait(&a);
        assert_eq!(done.status, Status::Success);
        assert_eq!(done.kind, CompletionKind::RdmaWrite);
        assert!(
            b.memory[100..100 + length] == a.memory[..length],
            "{length}"
        );
        assert!(b.memory[100 + length..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_read_fetches() {
    for length in [0, 1, 64, 4096, 4097, 65536, 1 << 20] {
        let (a, mut b) = pair();
        fastrand::Rng::with_seed(3).fill(&mut b.memory[..length]);
        let remote = b.memory.as_ptr() as u64;
        let read = Operation::Read {
            address: remote,
            rkey: b.key,
        };
        let half = length / 2;
        a.post(0, read, &[a.sge(64, half), a.sge(64 + half, length - half)]);
        assert_eq!(wait(&a).status, Status::Success);
        assert!(a.memory[64..64 + length] == b.memory[..length], "{length}");
    }
}

#[test]
fn a_send_meets_its_receive() {
    for length in [0, 1, 64, 4096, 4097, 65536, 1 << 20] {
        let (mut a, b) = pair();
        fastrand::Rng::with_seed(3).fill(&mut a.memory[..length]);
        b.qps[0].post_recv(9, &[b.sge(0, 1 << 20)]).unwrap();
        a.post(0, Operation::Send, &[a.sge(0, length)]);
        let received = wait(&b);
        assert_eq!((received.wr_id, received.status), (9, Status::Success));
        assert_eq!(received.length_bytes as usize, length);
        assert!(b.memory[..length] == a.memory[..length], "{length}");
        assert_eq!(wait(&a).status, Status::Success);
    }
}

#[test]
fn a_send_waits_for_a_late_receive() {
    let (a, b) = pair();
    a.post(0, Operation::Send, &[a.sge(0, 64)]);
    std::thread::sleep(Duration::from_millis(5));
    b.qps[0].post_recv(9, &[b.sge(0, 64)]).unwrap();
    assert_eq!(wait(&a).status, Status::Success);
    assert_eq!(wait(&b).status, Status::Success);
}

#[test]
fn atomics_return_what_was_there() {
    let (a, mut b) = pair();
    b.memory[..8].copy_from_slice(&40_u64.to_ne_bytes());
    let address = b.memory.as_ptr() as u64;
    let add = Operation::FetchAdd {
        address,
        rkey: b.key,
        add: 2,
    };
    a.post(0, add, &[a.sge(0, 8)]);
    assert_eq!(wait(&a).status, Status::Success);
    assert_eq!(a.memory[..8], 40_u64.to_ne_bytes());
    let swap = Operation::CompareSwap {
        address,
        rkey: b.key,
        compare: 42,
        swap: 7,
    };
    a.post(0, swap, &[a.sge(8, 8)]);
    assert_eq!(wait(&a).status, Status::Success);
    assert_eq!(a.memory[8..16], 42_u64.to_ne_bytes());
    assert_eq!(b.memory[..8], 7_u64.to_ne_bytes());
}

#[test]
fn a_wrong_key_is_refused_and_flushes() {
    let (a, b) = pair();
    let address = b.memory.as_ptr() as u64;
    b.qps[0].post_recv(1, &[b.sge(0, 64)]).unwrap();
    for rkey in [b.key ^ 0x55, b.key] {
        a.post(0, Operation::Write { address, rkey }, &[a.sge(0, 64)]);
    }
    assert_eq!(wait(&a).status, Status::RemoteAccessError);
    assert_eq!(wait(&a).status, Status::FlushError);
    assert_eq!(wait(&b).status, Status::FlushError);
    assert_eq!(
        (a.qps[0].state(), b.qps[0].state()),
        (State::Err, State::Err)
    );
}

#[test]
fn a_peer_that_is_gone_ends_in_retry_exceeded() {
    let (a, b) = pair();
    b.qps[0].destroy();
    let address = b.memory.as_ptr() as u64;
    let write = Operation::Write {
        address,
        rkey: b.key,
    };
    a.post(0, write, &[a.sge(0, 64)]);
    a.post(0, write, &[a.sge(0, 64)]);
    let start = Instant::now();
    assert_eq!(wait(&a).status, Status::RetryExceededError);
    // Eight waits of 67 ms.
    assert!(start.elapsed() > Duration::from_millis(500));
    assert_eq!(wait(&a).status, Status::FlushError);
}
