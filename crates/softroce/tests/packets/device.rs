//! A device with one QP that is connected to a [`Peer`], and requests as the peer writes them.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use softroce::transport::{
    Access, Capacities, Completion, Connection, Cq, Deliveries, Kind, Nic, NicOptions, Operation,
    Payload, PdId, Qp, QpEvent, QpOptions, ReceiveSource, Region, SendRequest, Sge,
};
use softroce::wire::{Aeth, Extended, Opcode, Packet, Psn, Reth, Service, Syndrome};

use crate::counter::counter;
use crate::peer::{PATIENCE, Peer, QPN};

/// The first PSN of both directions.
pub const PSN: u32 = 0x00ff_fffe;
pub const MTU: u32 = 1024;
pub const PD: PdId = PdId(1);

/// What differs between tests.
pub struct Plan {
    pub kind: Kind,
    pub memory_bytes: usize,
    pub receive_completions: usize,
    pub receives: ReceiveSource,
    pub max_dest_rd_atomic: u8,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            kind: Kind::Rc,
            memory_bytes: 64 << 10,
            receive_completions: 64,
            receives: ReceiveSource::Own,
            max_dest_rd_atomic: 2,
        }
    }
}

pub struct Device {
    pub qp: Qp,
    pub send_cq: Cq,
    pub recv_cq: Cq,
    pub events: Arc<Mutex<Vec<QpEvent>>>,
    pub nic: Arc<Nic>,
    pub key: u32,
    pub memory: Vec<u8>,
}

impl Device {
    /// A device whose QP is connected to the peer and waits for ever for its answers.
    pub fn new(peer: &Peer, plan: Plan) -> Device {
        let options = NicOptions::default();
        let nic = Nic::open(&options).unwrap();
        let cq = |entries| Cq::new(&nic, entries, Box::new(|| {}), Box::new(|| {}));
        let (send_cq, recv_cq) = (cq(64), cq(plan.receive_completions));
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let options = QpOptions {
            kind: plan.kind,
            pd: PD,
            send_cq: send_cq.clone(),
            recv_cq: recv_cq.clone(),
            receives: plan.receives,
            capacities: Capacities {
                send_wrs: 16,
                recv_wrs: 16,
                send_sges: 1,
                recv_sges: 1,
                inline_bytes: 0,
            },
            signal_all: true,
            on_event: Box::new(move |event| heard.lock().unwrap().push(event)),
        };
        let qp = Qp::new(&nic, options).unwrap();
        let memory = vec![0; plan.memory_bytes];
        let start = memory.as_ptr() as u64;
        let region = Region {
            pd: PD,
            address: start,
            length_bytes: memory.len() as u64,
            iova: start,
            access: Access(15),
        };
        // SAFETY: the memory lives as long as the device.
        let key = unsafe { nic.register(region) }.unwrap();
        qp.initialize(Access(15), 7);
        let connection = (plan.kind != Kind::Ud).then_some(Connection {
            address: peer.address.into(),
            qpn: QPN,
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
            mtu_bytes: MTU,
        });
        qp.ready_to_receive(connection, PSN, plan.max_dest_rd_atomic, 1);
        let deliveries = (plan.kind == Kind::Rc).then_some(Deliveries {
            timeout: 0,
            retry_count: 7,
            rnr_retry: 7,
            max_rd_atomic: 1,
        });
        qp.ready_to_send(PSN, deliveries);
        Device {
            qp,
            send_cq,
            recv_cq,
            events,
            nic,
            key,
            memory,
        }
    }

    pub fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    pub fn sge(&self, length: u32) -> Sge {
        Sge {
            address: self.address(),
            length_bytes: length,
            lkey: self.key,
        }
    }

    /// Posts a SEND of the start of its memory.
    pub fn post_send(&self, wr_id: u64, length: u32) {
        let sge = self.sge(length);
        let mut request = Some(SendRequest {
            wr_id,
            operation: Operation::Send,
            immediate: None,
            signaled: true,
            solicited: false,
            fence: false,
            payload: Payload::Registered(std::slice::from_ref(&sge)),
            datagram: None,
        });
        // SAFETY: nothing is inline.
        unsafe { self.qp.post_send(|| request.take()) }.unwrap();
    }

    /// A packet to its QP.
    pub fn packet<'a>(&self, opcode: Opcode, psn: u32) -> Packet<'a> {
        Packet {
            service: Service::Rc,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: self.qp.number(),
            ack_request: true,
            psn: Psn::new(psn),
            extended: Extended::default(),
            payload: &[],
        }
    }

    /// The acknowledgement of its first message, with this PSN.
    pub fn acknowledgement(&self, psn: u32) -> Packet<'static> {
        Packet {
            ack_request: false,
            extended: Extended {
                aeth: Some(Aeth {
                    syndrome: Syndrome::Ack { credits: 31 },
                    msn: 1,
                }),
                ..Extended::default()
            },
            ..self.packet(Opcode::Acknowledge, psn)
        }
    }

    /// A WRITE of this payload to the start of its memory.
    pub fn write<'a>(&self, psn: u32, payload: &'a [u8]) -> Packet<'a> {
        Packet {
            extended: self.reth(payload.len() as u32),
            payload,
            ..self.packet(Opcode::WriteOnly, psn)
        }
    }

    /// A READ of the start of its memory.
    pub fn read(&self, psn: u32, length: u32) -> Packet<'static> {
        Packet {
            extended: self.reth(length),
            ..self.packet(Opcode::ReadRequest, psn)
        }
    }

    fn reth(&self, length_bytes: u32) -> Extended {
        Extended {
            reth: Some(Reth {
                address: self.address(),
                rkey: self.key,
                length_bytes,
            }),
            ..Extended::default()
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        counter(&self.nic, name)
    }

    /// Waits until a counter has this value.
    pub fn counts(&self, name: &str, value: u64) {
        let deadline = Instant::now() + PATIENCE;
        while self.counter(name) < value {
            assert!(
                Instant::now() < deadline,
                "{name}: {:?}",
                self.nic.counters()
            );
            std::thread::yield_now();
        }
        assert_eq!(self.counter(name), value, "{name}");
    }

    /// Takes this many completions.
    pub fn completions(cq: &Cq, count: usize) -> Vec<Completion> {
        let deadline = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        while all.len() < count {
            cq.poll(count, |completion| all.push(*completion)).unwrap();
            assert!(Instant::now() < deadline, "{all:?}");
            std::thread::yield_now();
        }
        all
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.qp.destroy();
        self.nic.deregister(self.key);
    }
}
