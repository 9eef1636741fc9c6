//! One end of a test or bench: a device with memory, a CQ and QPs.

use std::net::IpAddr;
use std::sync::Arc;

use softroce::net::Faults;
use softroce::transport::{
    Access, Capacities, Connection, Cq, Deliveries, Kind, Nic, NicOptions, Operation, Payload,
    PdId, Qp, QpOptions, ReceiveSource, Region, SendRequest, Sge,
};

/// How the QPs are created and connected.
#[derive(Clone)]
pub struct Plan {
    pub kind: Kind,
    pub qps: usize,
    pub memory_bytes: usize,
    pub send_wrs: u32,
    pub recv_wrs: u32,
    pub mtu_bytes: u32,
    pub first_psn: u32,
    pub deliveries: Deliveries,
    pub faults: Faults,
    pub receive_buffer_bytes: Option<u32>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            kind: Kind::Rc,
            qps: 1,
            memory_bytes: 4 << 20,
            send_wrs: 128,
            recv_wrs: 128,
            mtu_bytes: 4096,
            // The 24 bits wrap soon.
            first_psn: 0x00ff_fff0,
            deliveries: Deliveries {
                timeout: 14,
                retry_count: 7,
                rnr_retry: 7,
                max_rd_atomic: 16,
            },
            faults: Faults::default(),
            receive_buffer_bytes: None,
        }
    }
}

pub struct End {
    // Declared before the device, so that the QPs are dropped first.
    pub qps: Vec<Qp>,
    pub cq: Cq,
    pub nic: Arc<Nic>,
    pub memory: Vec<u8>,
    pub key: u32,
    plan: Plan,
}

impl End {
    pub fn new(plan: &Plan) -> End {
        let options = NicOptions {
            faults: plan.faults,
            receive_buffer_bytes: plan.receive_buffer_bytes,
            ..NicOptions::default()
        };
        let nic = Nic::open(&options).unwrap();
        let entries = plan.qps * (plan.send_wrs + plan.recv_wrs) as usize;
        let cq = Cq::new(&nic, entries, Box::new(|| {}), Box::new(|| {}));
        let qps = (0..plan.qps)
            .map(|_| Qp::new(&nic, options_of(plan, &cq)).unwrap())
            .collect();
        let memory = vec![0; plan.memory_bytes];
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
            qps,
            cq,
            nic,
            memory,
            key,
            plan: plan.clone(),
        }
    }

    pub fn connect(&self, to: &End) {
        for (qp, peer) in self.qps.iter().zip(&to.qps) {
            self.connect_qps(qp, to, peer);
        }
    }

    /// Connects one of its QPs to one of another end; a UD one only becomes ready.
    pub fn connect_qps(&self, qp: &Qp, to: &End, peer: &Qp) {
        if self.plan.kind == Kind::Ud {
            qp.initialize(Access(15), 0);
            qp.ready_to_receive(None, 0, 0, 0);
            return qp.ready_to_send(self.plan.first_psn, None);
        }
        self.connect_to(qp, to.nic.address(), peer.number(), 0);
    }

    /// Connects one of its QPs to the QP with this number, which may be another process'.
    pub fn connect_to(&self, qp: &Qp, address: IpAddr, qpn: u32, flow_label: u32) {
        qp.initialize(Access(15), 0);
        let connection = Connection {
            address,
            qpn,
            flow_label,
            traffic_class: 0,
            hop_limit: 0,
            mtu_bytes: self.plan.mtu_bytes,
        };
        let reads = self.plan.deliveries.max_rd_atomic;
        qp.ready_to_receive(Some(connection), self.plan.first_psn, reads, 12);
        qp.ready_to_send(self.plan.first_psn, Some(self.plan.deliveries));
    }

    pub fn address(&self, offset: usize) -> u64 {
        self.memory.as_ptr() as u64 + offset as u64
    }

    pub fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge {
            address: self.address(offset),
            length_bytes: length as u32,
            lkey: self.key,
        }
    }

    /// Posts one signalled request.
    pub fn post(&self, qp: usize, operation: Operation, sges: &[Sge]) {
        let mut request = Some(request(7, operation, sges));
        // SAFETY: nothing is inline.
        unsafe { self.qps[qp].post_send(|| request.take()) }.unwrap();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        for qp in &self.qps {
            qp.destroy();
        }
        // Before the memory is freed.
        self.nic.deregister(self.key);
    }
}

pub fn request(wr_id: u64, operation: Operation, sges: &[Sge]) -> SendRequest<'_> {
    SendRequest {
        wr_id,
        operation,
        immediate: None,
        signaled: true,
        solicited: false,
        fence: false,
        payload: Payload::Registered(sges),
        datagram: None,
    }
}

fn options_of(plan: &Plan, cq: &Cq) -> QpOptions {
    QpOptions {
        kind: plan.kind,
        pd: PdId(1),
        send_cq: cq.clone(),
        recv_cq: cq.clone(),
        receives: ReceiveSource::Own,
        capacities: Capacities {
            send_wrs: plan.send_wrs,
            recv_wrs: plan.recv_wrs,
            send_sges: 2,
            recv_sges: 2,
            inline_bytes: 64,
        },
        signal_all: false,
        on_event: Box::new(|_| {}),
    }
}

/// Two ends, connected.
pub fn pair(plan: &Plan) -> (End, End) {
    let (a, b) = (End::new(plan), End::new(plan));
    a.connect(&b);
    b.connect(&a);
    (a, b)
}
