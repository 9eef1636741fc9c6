//! Devices, channels and ids, and waiting for their events.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::ptr::{self, NonNull, null_mut};

use libc::sockaddr_in;
use rdma_sys::*;
use softroce::{rdmacm, verbs};

use crate::support::look::SOON;
use crate::support::raw::*;
use testing::wait::wait_for;

pub fn raw_address(address: SocketAddr) -> sockaddr_in {
    let SocketAddr::V4(v4) = address else {
        panic!("IPv4 only");
    };
    let mut raw: sockaddr_in = blank();
    raw.sin_family = libc::AF_INET as u16;
    raw.sin_port = v4.port().to_be();
    raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
    raw
}

/// An open device on loopback, which ids at its address share.
pub struct Device {
    _context: Owned<ibv_context>,
    pub address: IpAddr,
}

impl Device {
    pub fn open(faults: &str) -> Device {
        let context = open(faults);
        // SAFETY: an open context.
        let address = unsafe { verbs::nic(NonNull::new(context.raw).unwrap()) }.address();
        Device { _context: context, address }
    }

    pub fn two() -> [Device; 2] {
        [Device::open(""), Device::open("")]
    }
}

pub struct Channel(pub *mut rdma_event_channel);

pub struct Event {
    pub kind: u32,
    pub status: i32,
    pub id: *mut rdma_cm_id,
    pub listener: *mut rdma_cm_id,
    pub parameters: rdma_conn_param,
    /// The same of datagrams.
    pub datagrams: rdma_ud_param,
    pub private_data: Vec<u8>,
}

impl Channel {
    pub fn new() -> Channel {
        // SAFETY: it takes nothing.
        let channel = unsafe { rdmacm::create_event_channel() };
        assert!(!channel.is_null(), "errno {}", errno());
        // SAFETY: an open descriptor.
        never_block(unsafe { (*channel).fd });
        Channel(channel)
    }

    #[track_caller]
    pub fn next(&self) -> Event {
        wait_for("an event", SOON, || self.waiting())
    }

    pub fn waiting(&self) -> Option<Event> {
        let mut raw = null_mut();
        // SAFETY: a live channel; the event is acknowledged after it was read.
        unsafe {
            if rdmacm::get_cm_event(self.0, &raw mut raw) != 0 {
                assert_eq!(errno(), libc::EAGAIN);
                return None;
            }
            // Both begin with the private data.
            let (parameters, datagrams) = ((*raw).param.conn, (*raw).param.ud);
            let length = usize::from(parameters.private_data_len);
            let data = parameters.private_data.cast::<u8>();
            let event = Event {
                kind: (*raw).event,
                status: (*raw).status,
                id: (*raw).id,
                listener: (*raw).listen_id,
                parameters,
                datagrams,
                private_data: if data.is_null() {
                    Vec::new()
                } else {
                    std::slice::from_raw_parts(data, length).to_vec()
                },
            };
            ok(rdmacm::ack_cm_event(raw));
            Some(event)
        }
    }

    /// The next event, which has to be of this kind.
    #[track_caller]
    pub fn expect(&self, kind: u32) -> Event {
        let event = self.next();
        assert_eq!(event.kind, kind, "status {}", event.status);
        event
    }

    /// The next two events, one of each end, have to be of this kind; who they are for.
    #[track_caller]
    pub fn expect_of_both(&self, kind: u32) -> [*mut rdma_cm_id; 2] {
        [(); 2].map(|()| self.expect(kind).id)
    }

    pub fn id(&self) -> Id {
        self.id_of(rdma_port_space::RDMA_PS_TCP)
    }

    pub fn id_of(&self, space: rdma_port_space::Type) -> Id {
        let mut id = null_mut();
        // SAFETY: a live channel and a place for the pointer.
        ok(unsafe { rdmacm::create_id(self.0, &raw mut id, null_mut(), space) });
        Id(id)
    }

    pub fn listener(&self, at: &Device) -> (Id, SocketAddr) {
        let id = self.id();
        let port = id.listen(at.address);
        (id, SocketAddr::new(at.address, port))
    }

    /// An id at a device that knows the way to an address.
    pub fn resolved(&self, from: &Device, to: SocketAddr) -> Id {
        self.resolved_of(rdma_port_space::RDMA_PS_TCP, from, to)
    }

    pub fn resolved_of(&self, space: rdma_port_space::Type, from: &Device, to: SocketAddr) -> Id {
        let id = self.id_of(space);
        id.resolve_addr(Some(from.address), to);
        self.expect(rdma_cm_event_type::RDMA_CM_EVENT_ADDR_RESOLVED);
        // SAFETY: a live id.
        ok(unsafe { rdmacm::resolve_route(id.0, 1000) });
        self.expect(rdma_cm_event_type::RDMA_CM_EVENT_ROUTE_RESOLVED);
        id
    }

    pub fn asking(&self, from: &Device, to: SocketAddr, private_data: &[u8]) -> Id {
        let id = self.resolved(from, to);
        id.make_qp();
        id.connect(private_data);
        id
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: tests declare channels before ids, so that those are gone.
        unsafe { rdmacm::destroy_event_channel(self.0) };
    }
}

/// An id, destroyed when dropped, with its QP if it has one.
pub struct Id(pub *mut rdma_cm_id);

pub fn parameters(private_data: &[u8]) -> rdma_conn_param {
    let mut parameters: rdma_conn_param = blank();
    parameters.private_data = private_data.as_ptr().cast();
    parameters.private_data_len = private_data.len() as u8;
    parameters.responder_resources = 2;
    parameters.initiator_depth = 3;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = 7;
    parameters
}

/// Of a QP that holds four requests of either kind.
pub fn qp_attributes(kind: ibv_qp_type::Type) -> ibv_qp_init_attr {
    let mut init: ibv_qp_init_attr = blank();
    init.qp_type = kind;
    init.sq_sig_all = 1;
    (init.cap.max_send_wr, init.cap.max_recv_wr) = (4, 4);
    (init.cap.max_send_sge, init.cap.max_recv_sge) = (1, 1);
    init
}

impl Id {
    pub fn bind(&self, address: IpAddr, port: u16) -> i32 {
        let mut raw = raw_address((address, port).into());
        // SAFETY: a live id and an address.
        unsafe { rdmacm::bind_addr(self.0, (&raw mut raw).cast()) }
    }

    pub fn local_port(&self) -> u16 {
        // SAFETY: a live id.
        u16::from_be(unsafe { rdmacm::get_src_port(self.0) })
    }

    pub fn listen(&self, address: IpAddr) -> u16 {
        ok(self.bind(address, 0));
        ok(self.listen_as_bound());
        self.local_port()
    }

    pub fn resolve_addr(&self, from: Option<IpAddr>, to: SocketAddr) {
        let mut from = from.map(|from| raw_address((from, 0).into()));
        let from = from.as_mut().map_or(null_mut(), ptr::from_mut);
        let mut to = raw_address(to);
        // SAFETY: a live id and addresses.
        ok(unsafe { rdmacm::resolve_addr(self.0, from.cast(), (&raw mut to).cast(), 1000) });
    }

    pub fn make_qp(&self) {
        // SAFETY: a live id with a device.
        ok(unsafe { rdmacm::create_qp(self.0, null_mut(), &mut qp_attributes(self.qp_type)) });
    }

    pub fn qp_state(&self) -> u32 {
        let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = (blank(), blank());
        // SAFETY: a live QP.
        ok(unsafe { verbs::query_qp(self.qp, &mut attr, 1, &mut init) });
        attr.qp_state
    }

    pub fn listen_as_bound(&self) -> i32 {
        // SAFETY: a live id.
        unsafe { rdmacm::listen(self.0, 8) }
    }

    pub fn connect(&self, private_data: &[u8]) {
        ok(self.connect_with(&mut parameters(private_data)));
    }

    pub fn connect_with(&self, parameters: *mut rdma_conn_param) -> i32 {
        // SAFETY: a live id; parameters whose private data live long enough, or none.
        unsafe { rdmacm::connect(self.0, parameters) }
    }

    pub fn accept(&self, private_data: &[u8]) {
        // SAFETY: as above.
        ok(unsafe { rdmacm::accept(self.0, &mut parameters(private_data)) });
    }

    pub fn reject(&self, private_data: &[u8]) {
        let (data, bytes) = (private_data.as_ptr().cast(), private_data.len() as u8);
        // SAFETY: a live id, and as many bytes.
        ok(unsafe { rdmacm::reject(self.0, data, bytes) });
    }

    /// Sends 64 bytes to another end, which arrive; as a datagram if it has such parameters.
    pub fn transfer(&self, to: &Id, datagrams: Option<&mut rdma_ud_param>) {
        const BYTES: usize = 64;
        const GRH_BYTES: usize = 40;
        let header_bytes = if datagrams.is_some() { GRH_BYTES } else { 0 };
        let (mut sent, mut received) = ([0x5a; BYTES], [0; GRH_BYTES + BYTES]);
        let received = &mut received[..header_bytes + BYTES];
        // SAFETY: ids with QPs in RTS, attributes of an address, and memory that outlives its regions.
        unsafe {
            let part = |id: &Id, bytes: &mut [u8]| {
                let mr = verbs::reg_mr(id.pd, bytes.as_mut_ptr().cast(), bytes.len(), 1);
                let mr = Owned::new(mr, verbs::dereg_mr);
                let sge = ibv_sge {
                    addr: bytes.as_ptr() as u64,
                    length: bytes.len() as u32,
                    lkey: mr.lkey,
                };
                (mr, sge)
            };
            let (_here, mut out_of) = part(self, &mut sent);
            let (_there, mut into) = part(to, received);
            let mut receive = receive_wr(1, &mut into);
            ok(ibv_post_recv(to.qp, &raw mut receive, &mut null_mut()));
            let mut wr = send_wr(SEND, &mut out_of);
            let _ah = datagrams.map(|parameters| {
                let ah = verbs::create_ah(self.pd, &mut parameters.ah_attr);
                wr.wr.ud = ud_t { ah, remote_qpn: parameters.qp_num, remote_qkey: parameters.qkey };
                Owned::new(ah, verbs::destroy_ah)
            });
            ok(ibv_post_send(self.qp, &raw mut wr, &mut null_mut()));
            for cq in [self.send_cq, to.recv_cq] {
                assert_eq!(completions(cq, 1)[0].status, SUCCESS);
            }
        }
        assert_eq!(received[header_bytes..], [0x5a; BYTES]);
    }

    pub fn disconnect(&self) {
        // SAFETY: a live id.
        ok(unsafe { rdmacm::disconnect(self.0) });
    }
}

impl Deref for Id {
    type Target = rdma_cm_id;

    fn deref(&self) -> &rdma_cm_id {
        // SAFETY: live until it is dropped.
        unsafe { &*self.0 }
    }
}

// SAFETY: ids may be used from any thread.
unsafe impl Send for Id {}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: a live id, of which every event was acknowledged.
        unsafe {
            if !self.qp.is_null() {
                rdmacm::destroy_qp(self.0);
            }
            ok(rdmacm::destroy_id(self.0));
        }
    }
}
