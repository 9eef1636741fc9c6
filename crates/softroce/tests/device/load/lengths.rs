//! Messages of no byte, of a byte, of whole packets and one more, up to a megabyte, with PSNs that wrap on the way.

use softroce::transport::{CompletionKind, Operation, Status};

use crate::support::end::{Plan, pair};

const LENGTHS: [usize; 7] = [0, 1, 64, 4096, 4097, 65536, 1 << 20];

#[test]
fn a_write_arrives() {
    for length in LENGTHS {
        let (mut a, b) = pair(&Plan::default());
        a.fill();
        a.post(0, b.write_to(100), &[a.sge(0, length)]);
        let done = a.completion();
        let expected = (Status::Success, CompletionKind::RdmaWrite);
        assert_eq!((done.status, done.kind), expected);
        let (written, rest) = b.memory[100..].split_at(length);
        assert!(written == &a.memory[..length], "{length}");
        assert!(rest.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_read_fetches() {
    for length in LENGTHS {
        let (a, mut b) = pair(&Plan::default());
        b.fill();
        let half = length / 2;
        let sges = [a.sge(64, half), a.sge(64 + half, length - half)];
        a.post(0, b.read_from(0), &sges);
        a.succeeds(1);
        assert!(a.memory[64..64 + length] == b.memory[..length], "{length}");
    }
}

#[test]
fn a_send_meets_its_receive() {
    for length in LENGTHS {
        let (mut a, b) = pair(&Plan::default());
        a.fill();
        b.qps[0].post_recv(9, &[b.sge(0, 1 << 20)]).unwrap();
        a.post(0, Operation::Send, &[a.sge(0, length)]);
        let received = b.completion();
        assert_eq!((received.wr_id, received.status), (9, Status::Success));
        assert_eq!(received.length_bytes as usize, length);
        assert!(b.memory[..length] == a.memory[..length], "{length}");
        a.succeeds(1);
    }
}
