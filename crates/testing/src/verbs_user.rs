//! What a program does with a verbs library, whichever it is: makes objects of an open device, connects QPs, posts, polls
//! and takes events. Each object is destroyed when it is dropped, which must succeed.

use std::mem::zeroed;
use std::ops::Deref;
use std::os::raw::c_int;
use std::ptr::null_mut;
use std::time::Duration;
use std::{io, thread};

use rdma_sys::*;
pub use verbs::VerbsLibrary;

use crate::wait::wait_for;

/// More than anything takes on an idle machine that is waited for here.
const SOON: Duration = Duration::from_secs(10);

pub const RC: u32 = ibv_qp_type::IBV_QPT_RC;
pub const UC: u32 = ibv_qp_type::IBV_QPT_UC;
pub const UD: u32 = ibv_qp_type::IBV_QPT_UD;
pub const SUCCESS: u32 = ibv_wc_status::IBV_WC_SUCCESS;
pub const FLUSHED: u32 = ibv_wc_status::IBV_WC_WR_FLUSH_ERR;
pub const SEND: u32 = ibv_wr_opcode::IBV_WR_SEND;
pub const WRITE: u32 = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
pub const READ: u32 = ibv_wr_opcode::IBV_WR_RDMA_READ;
pub const SIGNALED: u32 = ibv_send_flags::IBV_SEND_SIGNALED.0;
pub const INLINE: u32 = ibv_send_flags::IBV_SEND_INLINE.0;
pub const BUFFER_BYTES: usize = 64 << 10;
pub const ALL_ACCESS: i32 = 0xf;
pub const PSN: u32 = 0x00ff_fff0;
/// The bit of `modify_qp` that names the state.
pub const STATE: u32 = 1;

type Destroy<T> = unsafe extern "C" fn(*mut T) -> c_int;

/// An object that is destroyed when dropped.
pub struct Owned<T> {
    pub raw: *mut T,
    destroy: Destroy<T>,
}

// SAFETY: verbs objects may be used from any thread.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    /// Of an object that was just made; it is not null.
    #[track_caller]
    pub fn new(raw: *mut T, destroy: Destroy<T>) -> Owned<T> {
        assert!(!raw.is_null(), "errno {}", errno());
        Owned { raw, destroy }
    }

    pub fn destroy(self) -> c_int {
        let (raw, destroy) = (self.raw, self.destroy);
        std::mem::forget(self);
        // SAFETY: live until here.
        code(unsafe { destroy(raw) })
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: live until it is dropped.
        unsafe { &*self.raw }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // Another test failure is to be reported, and objects made of it still exist.
        if !thread::panicking() {
            // SAFETY: live until here.
            assert_eq!(unsafe { (self.destroy)(self.raw) }, 0);
        }
    }
}

impl Owned<ibv_cq> {
    pub fn poll(&self, most: usize) -> Vec<ibv_wc> {
        poll(self.raw, most)
    }

    #[track_caller]
    pub fn completions(&self, count: usize) -> Vec<ibv_wc> {
        completions(self.raw, count)
    }
}

/// The error of a call that failed.
pub fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// What a call returned, 0 or an error number, to which `errno` is set too.
#[track_caller]
pub fn code(returned: c_int) -> c_int {
    assert!(returned == 0 || errno() == returned, "returned {returned}, errno {}", errno());
    returned
}

pub fn blank<T>() -> T {
    // SAFETY: used for structs of plain data, pointers and optional function pointers.
    unsafe { zeroed() }
}

#[track_caller]
pub fn ok(code: i32) {
    assert_eq!(code, 0, "errno {}", errno());
}

/// That a call was refused: what it returned, and why.
#[track_caller]
pub fn refused<T>(made: *mut T, error: i32) {
    assert!(made.is_null());
    assert_eq!(errno(), error);
}

pub fn never_block(fd: i32) {
    // SAFETY: an open descriptor.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

pub fn is_readable(fd: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

fn poll(cq: *mut ibv_cq, most: usize) -> Vec<ibv_wc> {
    let mut completions: Vec<ibv_wc> = (0..most).map(|_| blank()).collect();
    // SAFETY: a live CQ and room for so many.
    let count = unsafe { ibv_poll_cq(cq, most as c_int, completions.as_mut_ptr()) };
    completions.truncate(usize::try_from(count).unwrap());
    completions
}

#[track_caller]
pub fn completions(cq: *mut ibv_cq, count: usize) -> Vec<ibv_wc> {
    (1..=count)
        .map(|number| {
            let what = format!("completion {number} of {count}");
            wait_for(&what, SOON, || poll(cq, 1).pop())
        })
        .collect()
}

/// One end: an open device with a PD, a CQ and a buffer.
pub struct End {
    pub cq: Owned<ibv_cq>,
    pub mr: Owned<ibv_mr>,
    pub buffer: Box<[u8]>,
    pub pd: Owned<ibv_pd>,
    pub context: Owned<ibv_context>,
    pub gid_index: u8,
    library: &'static VerbsLibrary,
}

impl End {
    pub fn new(library: &'static VerbsLibrary, context: *mut ibv_context, gid_index: u8) -> End {
        let context = Owned::new(context, library.close_device);
        // SAFETY: live objects, and memory that outlives its region.
        unsafe {
            let pd = Owned::new((library.alloc_pd)(context.raw), library.dealloc_pd);
            let mut buffer = vec![0_u8; BUFFER_BYTES].into_boxed_slice();
            let start = buffer.as_mut_ptr().cast();
            let mr = (library.reg_mr)(pd.raw, start, BUFFER_BYTES, ALL_ACCESS);
            let cq = (library.create_cq)(context.raw, 256, null_mut(), null_mut(), 0);
            End {
                cq: Owned::new(cq, library.destroy_cq),
                mr: Owned::new(mr, library.dereg_mr),
                buffer,
                pd,
                context,
                gid_index,
                library,
            }
        }
    }

    /// The GID at an index, or why there is none.
    pub fn gid_entry(&self, port: u32, index: u32) -> Result<ibv_gid_entry, c_int> {
        let mut entry = blank();
        // SAFETY: an open context and a writable entry.
        match code(unsafe {
            (self.library.query_gid_ex)(self.context.raw, port, index, &raw mut entry, 0)
        }) {
            0 => Ok(entry),
            error => Err(error),
        }
    }

    pub fn gid(&self) -> ibv_gid {
        self.gid_entry(1, self.gid_index.into()).unwrap().gid
    }

    pub fn new_cq(&self, entries: c_int) -> Owned<ibv_cq> {
        // SAFETY: an open context.
        let cq = unsafe {
            (self.library.create_cq)(self.context.raw, entries, null_mut(), null_mut(), 0)
        };
        Owned::new(cq, self.library.destroy_cq)
    }

    pub fn region(&self, offset: usize, bytes: usize, access: i32) -> Owned<ibv_mr> {
        let start = self.buffer[offset..offset + bytes].as_ptr();
        // SAFETY: a live PD, and memory that is there.
        let mr =
            unsafe { (self.library.reg_mr)(self.pd.raw, start.cast_mut().cast(), bytes, access) };
        Owned::new(mr, self.library.dereg_mr)
    }

    pub fn ah(&self, attr: &mut ibv_ah_attr) -> Result<Owned<ibv_ah>, c_int> {
        // SAFETY: a live PD.
        let ah = unsafe { (self.library.create_ah)(self.pd.raw, attr) };
        if ah.is_null() { Err(errno()) } else { Ok(Owned::new(ah, self.library.destroy_ah)) }
    }

    pub fn init_attr(&self, qp_type: u32) -> ibv_qp_init_attr {
        let mut init: ibv_qp_init_attr = blank();
        (init.send_cq, init.recv_cq) = (self.cq.raw, self.cq.raw);
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

    pub fn qp(&self, qp_type: u32) -> Qp {
        self.qp_with(&mut self.init_attr(qp_type))
    }

    #[track_caller]
    pub fn qp_with(&self, init: &mut ibv_qp_init_attr) -> Qp {
        // SAFETY: live objects.
        self.owned(unsafe { (self.library.create_qp)(self.pd.raw, init) })
    }

    #[track_caller]
    pub fn owned(&self, qp: *mut ibv_qp) -> Qp {
        Qp { object: Owned::new(qp, self.library.destroy_qp), library: self.library }
    }

    pub fn sge(&self, offset: usize, length: u32) -> ibv_sge {
        ibv_sge { addr: self.address() + offset as u64, length, lkey: self.mr.lkey }
    }

    pub fn address(&self) -> u64 {
        self.buffer.as_ptr() as u64
    }

    /// Where a peer reads and writes this place of the buffer.
    pub fn remote(&self, offset: usize) -> rdma_t {
        rdma_t { remote_addr: self.address() + offset as u64, rkey: self.mr.rkey }
    }

    #[track_caller]
    pub fn completion(&self) -> ibv_wc {
        self.cq.completions(1).remove(0)
    }

    /// Waits for one completion, which is a success.
    #[track_caller]
    pub fn succeeds(&self) -> ibv_wc {
        let wc = self.completion();
        assert_eq!(wc.status, SUCCESS);
        wc
    }

    #[track_caller]
    pub fn statuses(&self, count: usize) -> Vec<(u64, u32)> {
        statuses(&self.cq.completions(count))
    }

    /// The asynchronous event that waits, if there is one. It is not acknowledged. For contexts that never block.
    pub fn waiting_event(&self) -> Option<ibv_async_event> {
        let mut event = blank();
        // SAFETY: an open context and room for an event.
        let code = unsafe { (self.library.get_async_event)(self.context.raw, &raw mut event) };
        (code == 0).then_some(event)
    }

    /// Waits for the next asynchronous event. It is not acknowledged.
    #[track_caller]
    pub fn next_event(&self) -> ibv_async_event {
        wait_for("an asynchronous event", SOON, || {
            is_readable(self.context.async_fd).then_some(())
        });
        self.waiting_event().unwrap()
    }

    /// Waits for an asynchronous event of this kind, and takes those before it. It is not acknowledged.
    #[track_caller]
    pub fn event(&self, kind: ibv_event_type) -> ibv_async_event {
        loop {
            let event = self.next_event();
            if event.event_type == kind {
                return event;
            }
            self.acknowledge(event);
        }
    }

    pub fn acknowledge(&self, mut event: ibv_async_event) {
        // SAFETY: an event that was got and not acknowledged.
        unsafe { (self.library.ack_async_event)(&raw mut event) };
    }
}

pub fn statuses(completions: &[ibv_wc]) -> Vec<(u64, u32)> {
    completions.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}

pub struct Qp {
    object: Owned<ibv_qp>,
    library: &'static VerbsLibrary,
}

impl Deref for Qp {
    type Target = Owned<ibv_qp>;

    fn deref(&self) -> &Owned<ibv_qp> {
        &self.object
    }
}

impl Qp {
    pub fn destroy(self) -> c_int {
        self.object.destroy()
    }

    pub fn modify(&self, attr: &mut ibv_qp_attr, mask: u32) -> c_int {
        // SAFETY: a live QP.
        code(unsafe { (self.library.modify_qp)(self.raw, attr, mask.cast_signed()) })
    }

    pub fn move_to(&self, state: u32) -> c_int {
        let mut attr: ibv_qp_attr = blank();
        attr.qp_state = state;
        self.modify(&mut attr, STATE)
    }

    pub fn query(&self) -> (ibv_qp_attr, ibv_qp_init_attr) {
        let (mut attr, mut init) = (blank(), blank());
        // SAFETY: a live QP.
        ok(unsafe { (self.library.query_qp)(self.raw, &raw mut attr, !0, &raw mut init) });
        (attr, init)
    }

    pub fn state_now(&self) -> u32 {
        self.query().0.qp_state
    }

    pub fn connect(&self, mut attr: ibv_qp_attr) {
        for (state, mask) in (1..).zip(masks(self.qp_type)) {
            attr.qp_state = state;
            assert_eq!(self.modify(&mut attr, mask), 0, "to state {state}");
        }
    }

    /// Posts a list of WRs; why the one at `bad` was refused.
    ///
    /// # Safety
    /// They are live, and so is what they point to.
    pub unsafe fn post_list(&self, list: *mut ibv_send_wr) -> (c_int, *mut ibv_send_wr) {
        let mut bad = null_mut();
        // SAFETY: a live QP, and the caller's list.
        let outcome = code(unsafe { ibv_post_send(self.raw, list, &raw mut bad) });
        assert_eq!(outcome != 0, !bad.is_null());
        (outcome, bad)
    }

    pub fn post(&self, wr: &mut ibv_send_wr) -> c_int {
        // SAFETY: a list of one.
        unsafe { self.post_list(wr) }.0
    }

    pub fn send(&self, wr_id: u64, flags: u32, mut sge: ibv_sge) -> c_int {
        let mut wr = send_wr(SEND, &mut sge);
        (wr.wr_id, wr.send_flags) = (wr_id, flags);
        self.post(&mut wr)
    }

    pub fn fetch(&self, (wr_id, opcode): (u64, u32), mut sge: ibv_sge, remote: rdma_t) -> c_int {
        let mut wr = send_wr(opcode, &mut sge);
        wr.wr_id = wr_id;
        wr.wr.rdma = remote;
        self.post(&mut wr)
    }

    pub fn receive(&self, wr_id: u64, mut sge: ibv_sge) -> c_int {
        let mut bad = null_mut();
        // SAFETY: a live QP and a list of one.
        code(unsafe { ibv_post_recv(self.raw, &mut receive_wr(wr_id, &mut sge), &raw mut bad) })
    }
}

pub fn send_wr(opcode: u32, sge: &mut ibv_sge) -> ibv_send_wr {
    let mut wr: ibv_send_wr = blank();
    wr.wr_id = 77;
    wr.opcode = opcode;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.send_flags = SIGNALED;
    wr
}

pub fn receive_wr(wr_id: u64, sge: &mut ibv_sge) -> ibv_recv_wr {
    ibv_recv_wr { wr_id, next: null_mut(), sg_list: sge, num_sge: 1 }
}

/// Attributes for every transition of a QP at an end whose peer is this one.
pub fn attributes(own: &End, gid: ibv_gid, qpn: u32) -> ibv_qp_attr {
    let mut attr: ibv_qp_attr = blank();
    attr.port_num = 1;
    attr.qkey = 0x1234;
    attr.qp_access_flags = ALL_ACCESS.cast_unsigned();
    attr.path_mtu = ibv_mtu::IBV_MTU_1024;
    attr.dest_qp_num = qpn;
    (attr.rq_psn, attr.sq_psn) = (PSN, PSN);
    (attr.max_rd_atomic, attr.max_dest_rd_atomic) = (4, 4);
    attr.min_rnr_timer = 1;
    attr.timeout = 17;
    (attr.retry_cnt, attr.rnr_retry) = (7, 7);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = own.gid_index;
    attr.ah_attr.grh.dgid = gid;
    attr
}

/// Masks of RESET to INIT, INIT to RTR and RTR to RTS.
pub fn masks(qp_type: u32) -> [u32; 3] {
    match qp_type {
        RC => [0x39, 0x12_9181, 0x1_2e01],
        UC => [0x39, 0x10_1181, 0x1_0001],
        _ => [0x71, 0x1, 0x1_0001],
    }
}

pub fn join(one: &End, qp: &Qp, other: &End, peer: &Qp) {
    qp.connect(attributes(one, other.gid(), peer.qp_num));
    peer.connect(attributes(other, one.gid(), qp.qp_num));
}

pub fn pair(one: &End, other: &End, qp_type: u32) -> (Qp, Qp) {
    let (a, b) = (one.qp(qp_type), other.qp(qp_type));
    join(one, &a, other, &b);
    (a, b)
}
