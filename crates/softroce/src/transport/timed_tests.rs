//! The protocol's times, at made-up instants: a test holds the lock of arriving packets, so that the device does nothing
//! by itself, and hands packets and times to its QPs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::transport::device::arrivals::Arrived;
use crate::transport::device::core::Inbound;
use crate::transport::device::outbox::Outbox;
use crate::transport::device::work::QpWork;
use crate::transport::state::requester::Requester;
use testing::verbs_user::is_readable;
use testing::wait::{wait_for, wait_until};

use crate::net::tests::send_packet;
use crate::wire::{Aeth, Extended, Opcode, Packet, Psn, Reth, Service, Syndrome, time_of_code_ns};

/// Far from the clock's time, so that nothing is due by that.
const START_NS: u64 = 1 << 60;
const MS: u64 = 1_000_000;
const MTU: u32 = 1024;
const TIMEOUT: u8 = 14;
/// Nobody receives there.
const PEER: Ipv4Addr = Ipv4Addr::new(127, 89, 0, 1);
const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(PEER), 50_000);

struct Still {
    qps: Vec<Qp>,
    cq: Cq,
    nic: Arc<Nic>,
    memory: Vec<u8>,
    key: u32,
}

/// Runs a test on so many QPs, which repeat what is lost so often.
fn still(qps: usize, retry_count: u8, test: impl FnOnce(&Still, &mut Inbound)) {
    let nic = Nic::open(&NicOptions::default()).unwrap();
    let cq = Cq::new(&nic, 64, Box::new(|| {}), Box::new(|| {}));
    let new_qp = |_| {
        let options = QpOptions {
            kind: Kind::Rc,
            pd: PdId(1),
            send_cq: cq.clone(),
            recv_cq: cq.clone(),
            receives: ReceiveSource::Own,
            capacities: Capacities {
                send_wrs: 16,
                recv_wrs: 16,
                send_sges: 1,
                recv_sges: 1,
                inline_bytes: 0,
            },
            signal_all: true,
            on_event: Box::new(|_| {}),
        };
        let qp = Qp::new(&nic, options).unwrap();
        let connection = Connection {
            address: PEER.into(),
            qpn: 5,
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
            mtu_bytes: MTU,
        };
        qp.initialize(Access(15), 0);
        qp.ready_to_receive(Some(connection), 0, 16, 1);
        let deliveries = Deliveries {
            timeout: TIMEOUT,
            retry_count,
            rnr_retry: retry_count,
            max_rd_atomic: 16,
        };
        qp.ready_to_send(0, Some(deliveries));
        qp
    };
    let memory = vec![0; 1 << 16];
    let address = memory.as_ptr() as u64;
    let region = Region {
        pd: PdId(1),
        address,
        length_bytes: memory.len() as u64,
        iova: address,
        access: Access(15),
    };
    // SAFETY: the memory lives as long as the device.
    let key = unsafe { nic.register(region) }.unwrap();
    let still = Still {
        qps: (0..qps).map(new_qp).collect(),
        cq,
        nic,
        memory,
        key,
    };
    // The engine has it for a moment.
    let inbound = || still.nic.core().try_inbound();
    let mut inbound = wait_for("the engine to sleep", Duration::from_secs(1), inbound);
    test(&still, &mut inbound);
    drop(inbound);
    still.qps.iter().for_each(Qp::destroy);
    still.nic.deregister(key);
}

impl Still {
    /// Does something to a QP at this time.
    fn work(&self, qp: usize, now_ns: u64, step: impl FnOnce(QpWork<'_>, &mut Outbox<'_>)) {
        let core = self.nic.core();
        let tables = core.tables();
        let work = QpWork {
            core,
            tables: &tables,
            qp: tables.qp(self.qps[qp].number()).unwrap(),
            now_ns,
        };
        Outbox::with(core, &tables, |outbox| step(work, outbox));
    }

    fn request(
        &self,
        qp: usize,
        now_ns: u64,
        step: impl FnOnce(&mut Requester, QpWork<'_>, &mut Outbox<'_>),
    ) {
        self.work(qp, now_ns, |work, outbox| {
            work.with_requester(|requester, work| step(requester, work, outbox));
        });
    }

    /// Posts a WRITE and sends it as far as it may leave.
    fn post(&self, qp: usize, now_ns: u64, length_bytes: u32) {
        let sge = Sge {
            address: self.memory.as_ptr() as u64,
            length_bytes,
            lkey: self.key,
        };
        let request = SendRequest {
            wr_id: 1,
            operation: Operation::Write {
                address: 0,
                rkey: 1,
            },
            immediate: None,
            signaled: true,
            solicited: false,
            fence: false,
            payload: Payload::Registered(&[sge]),
            datagram: None,
        };
        self.request(qp, now_ns, |requester, work, outbox| {
            requester.post(&request, true).unwrap();
            requester.transmit(work, outbox, usize::MAX);
        });
    }

    fn packet(&self, qp: usize, opcode: Opcode, psn: u32, extended: Extended) -> Packet<'static> {
        Packet {
            service: Service::Rc,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: self.qps[qp].number(),
            ack_request: false,
            psn: Psn::new(psn),
            extended,
            payload: &[],
        }
    }

    fn acknowledgement(&self, qp: usize, psn: u32, syndrome: Syndrome) -> Packet<'static> {
        let extended = Extended {
            aeth: Some(Aeth { syndrome, msn: 1 }),
            ..Extended::default()
        };
        self.packet(qp, Opcode::Acknowledge, psn, extended)
    }

    fn answer(&self, qp: usize, now_ns: u64, psn: u32, syndrome: Syndrome) {
        let packet = self.acknowledgement(qp, psn, syndrome);
        self.request(qp, now_ns, |requester, work, outbox| {
            requester.take(work, outbox, &packet, SOURCE);
            requester.watch_if_answered(work);
        });
    }

    fn due_ns(&self, qp: usize) -> u64 {
        let mut due_ns = 0;
        self.work(qp, START_NS, |work, _| {
            due_ns = work.qp.timer_ns.load(Ordering::Relaxed);
        });
        due_ns
    }

    /// Lets the time come when a QP's timer is due; returns that time.
    fn wake(&self, qp: usize) -> u64 {
        let due_ns = self.due_ns(qp);
        self.request(qp, due_ns, |requester, work, outbox| {
            requester.wake(work, outbox, due_ns);
        });
        due_ns
    }

    fn statuses(&self) -> Vec<Status> {
        let mut all = Vec::new();
        let taken = self.cq.take_stamped(64, |it, _| all.push(it.status));
        assert_eq!(taken, Ok(all.len()));
        all
    }

    fn counter(&self, name: &str) -> u64 {
        let all = self.nic.counters();
        all.iter().find(|(known, _)| *known == name).unwrap().1
    }
}

const ACK: Syndrome = Syndrome::Ack { credits: 31 };

#[test]
fn time_outs_double_up_to_four_times_and_then_the_peer_is_given_up() {
    still(1, 7, |still, _| {
        still.post(0, START_NS, 64);
        let mut now_ns = START_NS;
        let mut waited = Vec::new();
        let mut statuses = Vec::new();
        while statuses.is_empty() {
            let due_ns = still.wake(0);
            waited.push((due_ns - now_ns) as f64 / time_of_code_ns(TIMEOUT) as f64);
            now_ns = due_ns;
            statuses = still.statuses();
        }
        assert_eq!(waited, [1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
        assert_eq!(statuses, [Status::RetryExceededError]);
        assert_eq!(still.counter("timeouts"), 8);
    });
}

#[test]
fn a_pause_is_as_long_as_a_receiver_that_is_not_ready_asks_for() {
    for (timer, pause_ns) in [(1, 10_000), (14, 1_280_000), (0, 655_360_000)] {
        still(1, 2, |still, _| {
            still.post(0, START_NS, 64);
            let mut now_ns = START_NS;
            for _ in 0..2 {
                still.answer(0, now_ns, 0, Syndrome::RnrNak { timer });
                assert_eq!(still.due_ns(0), now_ns + pause_ns);
                now_ns = still.wake(0);
            }
            assert_eq!(still.statuses(), []);
            still.answer(0, now_ns, 0, Syndrome::RnrNak { timer });
            assert_eq!(still.statuses(), [Status::RnrRetryExceededError]);
        });
    }
}

#[test]
fn what_may_wait_in_the_queue_of_a_link_is_not_asked_after() {
    still(2, 7, |still, _| {
        still.post(0, START_NS, 64);
        still.answer(0, START_NS + 10_000, 0, ACK);
        // Both at once, on a link that takes long for the first.
        let posted_ns = START_NS + 100 * MS;
        still.post(0, posted_ns, 60 * MTU);
        still.post(1, posted_ns, 64);
        still.answer(0, posted_ns + 7 * MS, 16, ACK);
        assert_eq!(still.wake(1), posted_ns + 8 * MS);
        assert_eq!(still.counter("probes"), 0);
        // Twice the time before a probe, since the others' packets are before its own.
        assert_eq!(still.wake(1), posted_ns + 7 * MS + 16 * MS);
        assert_eq!(still.counter("probes"), 1);
        assert_eq!(still.counter("timeouts"), 0);
    });
}

#[test]
fn an_answer_that_waits_in_the_socket_is_in_time() {
    for comes in [true, false] {
        still(1, 7, |still, inbound| {
            still.post(0, START_NS, 64);
            if comes {
                send(still, &still.acknowledgement(0, 0, ACK));
                let arrived = || is_readable(inbound.receiver.fd());
                wait_until("the answer", Duration::from_secs(1), arrived);
            }
            let core = still.nic.core();
            let late_ns = START_NS + 3 * time_of_code_ns(TIMEOUT) / 2;
            core.work(inbound, &core.tables(), late_ns);
            let statuses = if comes { &[Status::Success][..] } else { &[] };
            assert_eq!(still.statuses(), statuses);
            assert_eq!(still.counter("timeouts"), u64::from(!comes));
        });
    }
}

fn send(still: &Still, packet: &Packet<'_>) {
    let socket = UdpSocket::bind((PEER, 0)).unwrap();
    let mut headers = [0; Packet::HEADER_ROOM];
    let length = packet.headers(&mut headers);
    send_packet(&socket, still.nic.address(), 0, &headers[..length], 0);
}

#[test]
fn a_qp_that_is_told_of_congestion_sends_in_turns() {
    still(1, 7, |still, _| {
        for _ in 0..30 {
            still.request(0, START_NS, |requester, work, _| {
                requester.take_notification(work, SOURCE);
            });
        }
        assert_eq!(still.counter("rp_cnp_handled"), 30);
        still.post(0, START_NS, 60 * MTU);
        // 60 KiB at 10 Mb/s, and growing.
        let mut now_ns = START_NS;
        let mut waits = true;
        while waits {
            let (due_ns, _) = still.nic.core().turns_at_rate.take_due(u64::MAX).unwrap();
            assert!(due_ns > now_ns && due_ns <= now_ns + MS);
            now_ns = due_ns;
            still.request(0, now_ns, |requester, work, outbox| {
                requester.turn_came(work, outbox, due_ns, 1 << 20);
                waits = requester.wants_to_send();
            });
        }
        assert!(still.counter("rate_waits") > 3);
        assert!((10 * MS..50 * MS).contains(&(now_ns - START_NS)));
    });
}

#[test]
fn cnps_are_50_us_apart() {
    still(1, 7, |still, _| {
        let packet = still.packet(0, Opcode::WriteOnly, 0, Extended::default());
        let sent = [0, 1, 49_999, 50_000, 99_999, 200_000, 249_999].map(|after_ns| {
            still.work(0, START_NS + after_ns, |work, outbox| {
                work.notify_sender(outbox, &Arrived::Packet(packet), SOURCE);
            });
            still.counter("np_cnp_sent")
        });
        assert_eq!(sent, [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(still.counter("np_ecn_marked_roce_packets"), 7);
    });
}

#[test]
fn a_read_that_is_repeated_again_and_again_is_answered_within_a_budget() {
    const TIMES: u64 = 2000;
    still(1, 7, |still, _| {
        let length_bytes = still.memory.len() as u32;
        let reth = Reth {
            address: still.memory.as_ptr() as u64,
            rkey: still.key,
            length_bytes,
        };
        let extended = Extended {
            reth: Some(reth),
            ..Extended::default()
        };
        let read = still.packet(0, Opcode::ReadRequest, 0, extended);
        let take = |now_ns| {
            still.work(0, now_ns, |work, outbox| {
                let failed = work.qp.responder().take(work, outbox, &read, SOURCE);
                assert!(!failed);
            });
        };
        (0..=TIMES).for_each(|_| take(START_NS));
        assert_eq!(still.counter("duplicate_requests"), TIMES);
        // The burst of 4 MiB.
        let answered = (4 << 20) / u64::from(length_bytes);
        assert_eq!(still.counter("unanswered_duplicates"), TIMES - answered);
        // Time earns a byte in 16 ns.
        take(START_NS + 16 * u64::from(length_bytes));
        take(START_NS + 16 * u64::from(length_bytes));
        let unanswered = TIMES - answered + 1;
        assert_eq!(still.counter("unanswered_duplicates"), unanswered);
    });
}
