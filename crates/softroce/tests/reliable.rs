//! Two devices in one process, connected QPs between them: what every operation does.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use softroce::net::Faults;
use softroce::transport::{
    Access, Capacities, Completion, CompletionKind, Connection, Cq, Deliveries, Kind, Nic,
    NicOptions, Operation, Payload, PdId, Qp, QpOptions, ReceiveSource, Region, SendRequest, Sge,
    State, Status,
};

struct End {
    nic: Arc<Nic>,
    cq: Arc<Cq>,
    qp: Arc<Qp>,
    memory: Vec<u8>,
    key: u32,
}

impl End {
    fn new() -> End {
        let options = NicOptions {
            address: None,
            faults: Faults::default(),
        };
        let nic = Nic::open(&options).unwrap();
        let cq = Cq::new(&nic, 256, Box::new(|| {}), Box::new(|| {}));
        let options = QpOptions {
            kind: Kind::Rc,
            pd: PdId(1),
            send_cq: Arc::clone(&cq),
            recv_cq: Arc::clone(&cq),
            receives: ReceiveSource::Own,
            capacities: Capacities {
                send_wrs: 128,
                recv_wrs: 128,
                send_sges: 2,
                recv_sges: 2,
                inline_bytes: 64,
            },
            signal_all: false,
            on_event: Box::new(|_| {}),
        };
        let qp = Qp::new(&nic, options).unwrap();
        let memory = vec![0; 4 << 20];
        let region = Region {
            pd: PdId(1),
            address: memory.as_ptr() as u64,
            length_bytes: memory.len() as u64,
            iova: memory.as_ptr() as u64,
            access: Access(15),
        };
        // SAFETY: the memory lives as long as the device.
        let key = unsafe { nic.register(region) }.unwrap();
        End {
            nic,
            cq,
            qp,
            memory,
            key,
        }
    }

    fn connect(&self, to: &End) {
        self.qp.initialize(Access(15), 0);
        let connection = Connection {
            address: to.nic.address(),
            qpn: to.qp.number(),
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
            mtu_bytes: 4096,
        };
        self.qp
            .ready_to_receive(Some(connection), 0xff_fff0, 16, 12);
        let deliveries = Deliveries {
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            max_rd_atomic: 16,
        };
        self.qp.ready_to_send(0xff_fff0, Some(deliveries));
    }

    fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge {
            address: self.memory.as_ptr() as u64 + offset as u64,
            length_bytes: length as u32,
            lkey: self.key,
        }
    }

    fn post(&self, operation: Operation, sges: &[Sge]) {
        let mut request = Some(SendRequest {
            wr_id: 7,
            operation,
            immediate: None,
            signaled: true,
            solicited: false,
            fence: false,
            payload: Payload::Registered(sges),
            datagram: None,
        });
        // SAFETY: nothing is inline.
        unsafe { self.qp.post_send(|| request.take()) }.unwrap();
    }
}

fn pair() -> (End, End) {
    let (a, b) = (End::new(), End::new());
    a.connect(&b);
    b.connect(&a);
    (a, b)
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
        a.post(read, &[a.sge(64, half), a.sge(64 + half, length - half)]);
        assert_eq!(wait(&a).status, Status::Success);
        assert!(a.memory[64..64 + length] == b.memory[..length], "{length}");
    }
}

#[test]
fn a_send_meets_its_receive() {
    for length in [0, 1, 64, 4096, 4097, 65536, 1 << 20] {
        let (mut a, b) = pair();
        fastrand::Rng::with_seed(3).fill(&mut a.memory[..length]);
        b.qp.post_recv(9, &[b.sge(0, 1 << 20)]).unwrap();
        a.post(Operation::Send, &[a.sge(0, length)]);
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
    a.post(Operation::Send, &[a.sge(0, 64)]);
    std::thread::sleep(Duration::from_millis(5));
    b.qp.post_recv(9, &[b.sge(0, 64)]).unwrap();
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
    a.post(add, &[a.sge(0, 8)]);
    assert_eq!(wait(&a).status, Status::Success);
    assert_eq!(a.memory[..8], 40_u64.to_ne_bytes());
    let swap = Operation::CompareSwap {
        address,
        rkey: b.key,
        compare: 42,
        swap: 7,
    };
    a.post(swap, &[a.sge(8, 8)]);
    assert_eq!(wait(&a).status, Status::Success);
    assert_eq!(a.memory[8..16], 42_u64.to_ne_bytes());
    assert_eq!(b.memory[..8], 7_u64.to_ne_bytes());
}

#[test]
fn a_wrong_key_is_refused_and_flushes() {
    let (a, b) = pair();
    let address = b.memory.as_ptr() as u64;
    b.qp.post_recv(1, &[b.sge(0, 64)]).unwrap();
    for rkey in [b.key ^ 0x55, b.key] {
        a.post(Operation::Write { address, rkey }, &[a.sge(0, 64)]);
    }
    assert_eq!(wait(&a).status, Status::RemoteAccessError);
    assert_eq!(wait(&a).status, Status::FlushError);
    assert_eq!(wait(&b).status, Status::FlushError);
    assert_eq!((a.qp.state(), b.qp.state()), (State::Err, State::Err));
}

#[test]
fn a_peer_that_is_gone_ends_in_retry_exceeded() {
    let (a, b) = pair();
    b.qp.destroy();
    let address = b.memory.as_ptr() as u64;
    let write = Operation::Write {
        address,
        rkey: b.key,
    };
    a.post(write, &[a.sge(0, 64)]);
    a.post(write, &[a.sge(0, 64)]);
    let start = Instant::now();
    assert_eq!(wait(&a).status, Status::RetryExceededError);
    // Eight waits of 67 ms.
    assert!(start.elapsed() > Duration::from_millis(500));
    assert_eq!(wait(&a).status, Status::FlushError);
}
