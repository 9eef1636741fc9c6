//! An open device with a PD, a CQ and a buffer, and QPs between two of them.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdma_sys::*;
use softroce::verbs;

pub const BUFFER_BYTES: usize = 64 << 10;
pub const ALL_ACCESS: i32 = 0xf;
pub const PSN: u32 = 0x00ff_fff0;

/// The error of a call that returned null or -1.
pub fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// A verbs struct of zeros.
pub fn blank<T>() -> T {
    // SAFETY: used for structs of plain data, pointers and optional function pointers.
    unsafe { zeroed() }
}

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
        let mut gid: ibv_gid = blank();
        // SAFETY: an open context.
        let outcome = unsafe { verbs::query_gid(self.context, 1, 0, &raw mut gid) };
        assert_eq!(outcome, 0);
        gid
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
    pub fn completion(&self) -> ibv_wc {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(wc) = self.poll() {
                return wc;
            }
            assert!(Instant::now() < deadline, "no completion");
        }
    }

    pub fn poll(&self) -> Option<ibv_wc> {
        let mut wc: ibv_wc = blank();
        // SAFETY: a live CQ and room for one.
        match unsafe { ibv_poll_cq(self.cq, 1, &raw mut wc) } {
            0 => None,
            1 => Some(wc),
            other => panic!("poll_cq returned {other}"),
        }
    }

    pub fn receive(&self, qp: *mut ibv_qp, wr_id: u64, sge: ibv_sge) -> i32 {
        receive(qp, wr_id, sge)
    }
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
    let deadline = Instant::now() + Duration::from_secs(20);
    // The state stands after the name, which is in brackets.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") S ")) {
        assert!(Instant::now() < deadline, "it does not wait");
        thread::yield_now();
    }
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

/// Two QPs of two ends, connected to each other.
pub fn pair(one: &End, other: &End, qp_type: u32) -> (*mut ibv_qp, *mut ibv_qp) {
    let (a, b) = (one.qp(qp_type), other.qp(qp_type));
    // SAFETY: live QPs.
    let (a_number, b_number) = unsafe { ((*a).qp_num, (*b).qp_num) };
    connect(a, qp_type, other.gid(), b_number);
    connect(b, qp_type, one.gid(), a_number);
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
