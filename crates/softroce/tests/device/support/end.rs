//! One end of a test or bench: a device with memory, a CQ and QPs, on a network in memory or on sockets.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use softroce::net::Faults;
use softroce::transport::{
    Access, Capacities, Connection, Cq, Deliveries, Kind, Nic, NicOptions, Operation, Payload,
    PdId, PostError, Qp, QpEvent, QpOptions, ReceiveSource, RecvQueue, Region, SendRequest, Sge,
    Wire, World,
};

#[derive(Clone)]
pub struct Plan {
    /// Where its device is; none for this machine's sockets.
    pub world: Option<Arc<World>>,
    pub kind: Kind,
    pub pd: PdId,
    pub qps: usize,
    pub memory_bytes: usize,
    pub send_wrs: u32,
    pub recv_wrs: u32,
    pub mtu_bytes: u32,
    pub first_psn: u32,
    pub deliveries: Deliveries,
    pub faults: Faults,
    /// How they reach each other without a world.
    pub wire: Wire,
    pub receive_buffer_bytes: Option<u32>,
    /// How many completions a CQ for receives alone holds; without it one CQ is for both.
    pub receive_completions: Option<usize>,
    pub shared: Option<Arc<RecvQueue>>,
}

pub const QKEY: u32 = 7;

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            world: None,
            kind: Kind::Rc,
            pd: PdId(1),
            qps: 1,
            memory_bytes: 4 << 20,
            send_wrs: 128,
            recv_wrs: 128,
            mtu_bytes: 4096,
            // The 24 bits wrap soon.
            first_psn: 0x00ff_fff0,
            deliveries: Deliveries {
                // Half a second, doubled up to four times: an end that waits for a core is not taken for dead.
                timeout: 17,
                retry_count: 7,
                rnr_retry: 7,
                max_rd_atomic: 16,
            },
            faults: Faults::default(),
            wire: Wire::Udp,
            receive_buffer_bytes: None,
            receive_completions: None,
            shared: None,
        }
    }
}

pub struct End {
    // Declared before the device, so that the QPs are dropped first.
    pub qps: Vec<Qp>,
    pub cq: Cq,
    pub recv_cq: Cq,
    /// What the QPs have told of themselves.
    pub events: Arc<Mutex<Vec<QpEvent>>>,
    pub nic: Arc<Nic>,
    pub memory: Vec<u8>,
    pub key: u32,
    pub plan: Plan,
}

impl End {
    pub fn new(plan: &Plan) -> End {
        let options = NicOptions {
            faults: plan.faults,
            wire: plan.wire,
            receive_buffer_bytes: plan.receive_buffer_bytes,
            ..NicOptions::default()
        };
        let nic = match &plan.world {
            Some(world) => world.nic(&options.faults, options.receive_buffer_bytes),
            None => Nic::open(&options),
        };
        End::on(nic.unwrap(), plan)
    }

    /// With QPs on this device.
    pub fn on(nic: Arc<Nic>, plan: &Plan) -> End {
        let entries = plan.qps * (plan.send_wrs + plan.recv_wrs) as usize;
        let new_cq = |size| Cq::with_stamps(&nic, size, false, Box::new(|| {}), Box::new(|| {}));
        let cq = new_cq(entries);
        let recv_cq = plan.receive_completions.map_or_else(|| cq.clone(), new_cq);
        let events = Arc::default();
        let capacities = Capacities {
            send_wrs: plan.send_wrs,
            recv_wrs: plan.recv_wrs,
            send_sges: 2,
            recv_sges: 2,
            inline_bytes: 64,
        };
        let qps = (0..plan.qps)
            .map(|_| {
                let mut options = qp_options(plan.kind, [&cq, &recv_cq], capacities, &events);
                options.pd = plan.pd;
                if let Some(shared) = &plan.shared {
                    options.receives = ReceiveSource::Shared(Arc::clone(shared));
                }
                Qp::new(&nic, options).unwrap()
            })
            .collect();
        let memory = vec![0; plan.memory_bytes];
        let start = memory.as_ptr() as u64;
        // SAFETY: the memory lives as long as the device.
        let key = unsafe { register(&nic, plan.pd, start, memory.len(), Access(15)) };
        End { qps, cq, recv_cq, events, nic, memory, key, plan: plan.clone() }
    }

    pub fn connect(&self, to: &End) {
        for (qp, peer) in self.qps.iter().zip(&to.qps) {
            self.connect_qps(qp, to, peer);
        }
    }

    pub fn connect_qps(&self, qp: &Qp, to: &End, peer: &Qp) {
        self.connect_to(qp, to.nic.address(), peer.number(), 0);
    }

    /// Connects one of its QPs to the QP with this number, which may be another process'. A UD one only becomes ready.
    pub fn connect_to(&self, qp: &Qp, address: IpAddr, qpn: u32, flow_label: u32) {
        let connection = Connection { flow_label, ..connection(address, qpn, self.plan.mtu_bytes) };
        let (kind, reads) = (self.plan.kind, self.plan.deliveries.max_rd_atomic);
        let connection = (kind != Kind::Ud).then_some(connection);
        qp.initialize(Access(15), QKEY);
        qp.ready_to_receive(connection, self.plan.first_psn, reads, 12);
        let deliveries = (kind == Kind::Rc).then_some(self.plan.deliveries);
        qp.ready_to_send(self.plan.first_psn, deliveries);
    }

    pub fn address(&self, offset: usize) -> u64 {
        self.memory.as_ptr() as u64 + offset as u64
    }

    pub fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge { address: self.address(offset), length_bytes: length as u32, lkey: self.key }
    }

    pub fn post(&self, qp: usize, operation: Operation, sges: &[Sge]) {
        post(&self.qps[qp], &[request(7, operation, sges)]).unwrap();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        for qp in &self.qps {
            qp.destroy();
        }
        // Before the memory is freed.
        self.nic.deregister(self.key).unwrap();
    }
}

pub fn post(qp: &Qp, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
    let mut next = requests.iter().copied();
    // SAFETY: inline elements point to bytes of the caller, which outlive the call.
    unsafe { qp.post_send(|| next.next()) }
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

/// Registers memory; returns its key.
///
/// # Safety
/// As of [`Nic::register`].
pub unsafe fn register(nic: &Nic, pd: PdId, start: u64, bytes: usize, access: Access) -> u32 {
    let region = Region { pd, address: start, length_bytes: bytes as u64, iova: start, access };
    // SAFETY: the caller's promise.
    unsafe { nic.register(region) }.unwrap()
}

/// Of a QP with these CQs for sends and receives, whose events come there.
pub fn qp_options(
    kind: Kind,
    [send_cq, recv_cq]: [&Cq; 2],
    capacities: Capacities,
    events: &Arc<Mutex<Vec<QpEvent>>>,
) -> QpOptions {
    let heard = Arc::clone(events);
    QpOptions {
        kind,
        pd: PdId(1),
        send_cq: send_cq.clone(),
        recv_cq: recv_cq.clone(),
        receives: ReceiveSource::Own,
        capacities,
        signal_all: false,
        on_event: Box::new(move |event| heard.lock().unwrap().push(event)),
    }
}

/// To the QP with this number, of the usual class.
pub fn connection(address: IpAddr, qpn: u32, mtu_bytes: u32) -> Connection {
    Connection { address, qpn, flow_label: 0, traffic_class: 0, hop_limit: 0, mtu_bytes }
}

pub fn pair(plan: &Plan) -> (End, End) {
    let (a, b) = (End::new(plan), End::new(plan));
    a.connect(&b);
    b.connect(&a);
    (a, b)
}
