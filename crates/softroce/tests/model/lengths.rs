//! Messages of no byte, of a byte, of whole packets and one more, up to a megabyte, with PSNs that wrap on the way.

use softroce::transport::{CompletionKind, Operation, Status};

use crate::completion::completion;
use crate::end::{self, End, Plan};

fn pair() -> (End, End) {
    end::pair(&Plan::default())
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
        let done = completion(&a);
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
        assert_eq!(completion(&a).status, Status::Success);
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
        let received = completion(&b);
        assert_eq!((received.wr_id, received.status), (9, Status::Success));
        assert_eq!(received.length_bytes as usize, length);
        assert!(b.memory[..length] == a.memory[..length], "{length}");
        assert_eq!(completion(&a).status, Status::Success);
    }
}
