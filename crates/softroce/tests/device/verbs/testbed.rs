//! An open device with a PD, a CQ and a buffer, and QPs between two of them.

use std::fs;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rdma_sys::*;
use softroce::verbs;

use crate::support::look::SOON;
pub use crate::support::raw::*;
use testing::wait::wait_until;

pub const RC: u32 = ibv_qp_type::IBV_QPT_RC;
pub const UC: u32 = ibv_qp_type::IBV_QPT_UC;
pub const UD: u32 = ibv_qp_type::IBV_QPT_UD;
pub const SUCCESS: u32 = ibv_wc_status::IBV_WC_SUCCESS;
pub const SEND: u32 = ibv_wr_opcode::IBV_WR_SEND;
pub const BUFFER_BYTES: usize = 64 << 10;
pub const ALL_ACCESS: i32 = 0xf;
pub const PSN: u32 = 0x00ff_fff0;

/// One end.
pub struct End {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub cq: *mut ibv_cq,
    pub mr: *mut ibv_mr,
    pub buffer: Box<[u8]>,
}

impl End {
    pub fn new() -> End {
        // SAFETY: the list is freed after the opening; every object is live until the drop.
        unsafe {
            let list = verbs::get_device_list(null_mut());
            let context = verbs::open_device(*list);
            assert!(!context.is_null(), "errno {}", errno());
            verbs::free_device_list(list);
            let pd = verbs::alloc_pd(context);
            let cq = verbs::create_cq(context, 256, null_mut(), null_mut(), 0);
            let mut buffer = vec![0_u8; BUFFER_BYTES].into_boxed_slice();
            let start = buffer.as_mut_ptr().cast();
            let mr = verbs::reg_mr(pd, start, BUFFER_BYTES, ALL_ACCESS);
            assert!(!pd.is_null() && !cq.is_null() && !mr.is_null());
            End {
                context,
                pd,
                cq,
                mr,
                buffer,
            }
        }
    }

    pub fn gid(&self) -> ibv_gid {
        gid(self.context).0
    }

    pub fn init_attr(&self, qp_type: u32) -> ibv_qp_init_attr {
        let mut init: ibv_qp_init_attr = blank();
        init.send_cq = self.cq;
        init.recv_cq = self.cq;
        init.qp_type = qp_type;
        init.cap = ibv_qp_cap {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 64,
        };
        init
    }

    pub fn qp(&self, qp_type: u32) -> *mut ibv_qp {
        let mut init = self.init_attr(qp_type);
        // SAFETY: live objects.
        let qp = unsafe { verbs::create_qp(self.pd, &raw mut init) };
        assert!(!qp.is_null(), "errno {}", errno());
        qp
    }

    /// An element of the buffer.
    pub fn sge(&self, offset: usize, length: u32) -> ibv_sge {
        ibv_sge {
            addr: self.address() + offset as u64,
            length,
            // SAFETY: a live region.
            lkey: unsafe { (*self.mr).lkey },
        }
    }

    pub fn address(&self) -> u64 {
        self.buffer.as_ptr() as u64
    }

    pub fn rkey(&self) -> u32 {
        // SAFETY: a live region.
        unsafe { (*self.mr).rkey }
    }

    /// Waits for one completion.
    #[track_caller]
    pub fn completion(&self) -> ibv_wc {
        completion(self.cq)
    }

    /// Waits for one completion, which is a success.
    #[track_caller]
    pub fn succeeds(&self) -> ibv_wc {
        let wc = self.completion();
        assert_eq!(wc.status, SUCCESS);
        wc
    }

    /// Waits for an asynchronous event of this kind, and takes those before it. It is not acknowledged.
    #[track_caller]
    pub fn event(&self, kind: ibv_event_type) -> ibv_async_event {
        loop {
            let mut event = next_event(self.context);
            if event.event_type == kind {
                return event;
            }
            // SAFETY: an event that was just got.
            unsafe { verbs::ack_async_event(&raw mut event) };
        }
    }

    /// Posts a signalled SEND of the start of the buffer.
    #[track_caller]
    pub fn send(&self, qp: *mut ibv_qp, bytes: u32) {
        let mut sge = self.sge(0, bytes);
        assert_eq!(send(qp, &mut send_wr(SEND, &mut sge)), 0);
    }

    /// Where a peer reads and writes this place of the buffer.
    pub fn remote(&self, offset: usize) -> rdma_t {
        rdma_t {
            remote_addr: self.address() + offset as u64,
            rkey: self.rkey(),
        }
    }
}

/// Waits for the next asynchronous event. It is not acknowledged.
#[track_caller]
pub fn next_event(context: *mut ibv_context) -> ibv_async_event {
    let mut event: ibv_async_event = blank();
    // SAFETY: an open context and room for an event.
    unsafe {
        readable((*context).async_fd, "an asynchronous event");
        ok(verbs::get_async_event(context, &raw mut event));
    }
    event
}

/// Posts a receive.
pub fn receive(qp: *mut ibv_qp, wr_id: u64, mut sge: ibv_sge) -> i32 {
    let mut wr = ibv_recv_wr {
        wr_id,
        next: null_mut(),
        sg_list: &raw mut sge,
        num_sge: 1,
    };
    let mut bad = null_mut();
    // SAFETY: a live QP and a list of one.
    unsafe { ibv_post_recv(qp, &raw mut wr, &raw mut bad) }
}

/// A pointer moved to another thread.
#[derive(Clone, Copy)]
pub struct Carried<T>(pub *mut T);
// SAFETY: verbs objects may be used from any thread.
unsafe impl<T> Send for Carried<T> {}

impl<T> Carried<T> {
    pub fn get(self) -> *mut T {
        self.0
    }
}

/// A thread that does this, once it waits in it or has ended.
pub fn waiting<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        // SAFETY: it has no preconditions.
        tell.send(unsafe { libc::gettid() }).unwrap();
        body()
    });
    let stat = format!("/proc/self/task/{}/stat", told.recv().unwrap());
    // The state stands after the name, which is in brackets.
    let sleeps = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") S "));
    wait_until("the thread to wait", SOON, sleeps);
    thread
}

impl Drop for End {
    fn drop(&mut self) {
        if thread::panicking() {
            // Another test failure is to be reported, and its QPs still exist.
            return;
        }
        // SAFETY: each is live; the QPs were destroyed by the test.
        unsafe {
            assert_eq!(verbs::dereg_mr(self.mr), 0);
            assert_eq!(verbs::destroy_cq(self.cq), 0);
            assert_eq!(verbs::dealloc_pd(self.pd), 0);
            assert_eq!(verbs::close_device(self.context), 0);
        }
    }
}

/// A send WR with one element.
pub fn send_wr(opcode: u32, sge: &mut ibv_sge) -> ibv_send_wr {
    let mut wr: ibv_send_wr = blank();
    wr.wr_id = 77;
    wr.opcode = opcode;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
    wr
}

/// Posts one WR.
pub fn send(qp: *mut ibv_qp, wr: &mut ibv_send_wr) -> i32 {
    let mut bad = null_mut();
    // SAFETY: a live QP and a list.
    unsafe { ibv_post_send(qp, wr, &raw mut bad) }
}

pub fn modify(qp: *mut ibv_qp, attr: &mut ibv_qp_attr, mask: u32) -> i32 {
    // SAFETY: a live QP.
    unsafe { verbs::modify_qp(qp, attr, mask.cast_signed()) }
}

pub fn destroy(qps: &[*mut ibv_qp]) {
    for qp in qps {
        // SAFETY: live, and not used again.
        assert_eq!(unsafe { verbs::destroy_qp(*qp) }, 0);
    }
}

/// The attributes that `ibv_query_qp` returns.
pub fn query(qp: *mut ibv_qp) -> ibv_qp_attr {
    let (mut attr, mut init) = (blank(), blank());
    // SAFETY: a live QP.
    let outcome = unsafe { verbs::query_qp(qp, &raw mut attr, !0, &raw mut init) };
    assert_eq!(outcome, 0);
    attr
}

/// Attributes for every transition, with this peer.
pub fn attributes(gid: ibv_gid, qpn: u32) -> ibv_qp_attr {
    let mut attr: ibv_qp_attr = blank();
    attr.port_num = 1;
    attr.qkey = 0x1234;
    attr.qp_access_flags = ALL_ACCESS.cast_unsigned();
    attr.path_mtu = ibv_mtu::IBV_MTU_1024;
    attr.dest_qp_num = qpn;
    attr.rq_psn = PSN;
    attr.sq_psn = PSN;
    attr.max_rd_atomic = 4;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.timeout = 17;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid;
    attr
}

pub const STATE: u32 = 1;
/// Masks of RESET to INIT, INIT to RTR and RTR to RTS.
pub fn masks(qp_type: u32) -> [u32; 3] {
    match qp_type {
        ibv_qp_type::IBV_QPT_RC => [0x39, 0x12_9181, 0x1_2e01],
        ibv_qp_type::IBV_QPT_UC => [0x39, 0x10_1181, 0x1_0001],
        _ => [0x71, 0x1, 0x1_0001],
    }
}

/// Moves a QP to RTS.
pub fn connect(qp: *mut ibv_qp, qp_type: u32, gid: ibv_gid, qpn: u32) {
    let mut attr = attributes(gid, qpn);
    for (state, mask) in (1..).zip(masks(qp_type)) {
        attr.qp_state = state;
        assert_eq!(modify(qp, &mut attr, mask), 0, "to state {state}");
    }
}

/// Connects two QPs of two ends to each other.
pub fn join(one: &End, qp: *mut ibv_qp, other: &End, peer: *mut ibv_qp) {
    // SAFETY: live QPs.
    let (a, b) = unsafe { (&*qp, &*peer) };
    connect(qp, a.qp_type, other.gid(), b.qp_num);
    connect(peer, b.qp_type, one.gid(), a.qp_num);
}

/// Two QPs of two ends, connected to each other.
pub fn pair(one: &End, other: &End, qp_type: u32) -> (*mut ibv_qp, *mut ibv_qp) {
    let (a, b) = (one.qp(qp_type), other.qp(qp_type));
    join(one, a, other, b);
    (a, b)
}

/// Moves a QP to SQD, which is told once it has no sends left.
pub fn drain(qp: *mut ibv_qp) -> ibv_qp_attr {
    let mut attr: ibv_qp_attr = blank();
    attr.qp_state = ibv_qp_state::IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    assert_eq!(modify(qp, &mut attr, STATE | 4), 0);
    attr
}
