//! Send work requests of one QP. Those of a ring are built and linked once and never change, so any thread may post any
//! of them. Only where they walk through memory, the poster of one first changes its addresses.

use std::cell::UnsafeCell;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Arc;
use std::{io, slice};

use rdma_sys::{ibv_qp, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode, rdma_t};

use crate::qp::PostSend;
use crate::walk::{Buffer, List, Walker, add_to, elements};
use crate::{AddressHandle, MemoryRegion, Operation, QueuePair, VerbsError, Walk};

/// The operation of a send work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOpcode {
    Send,
    /// RDMA WRITE to `address`, with the peer's key.
    Write {
        /// Address in the peer's memory.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
    /// RDMA READ from `address`, with the peer's key.
    Read {
        /// Address in the peer's memory.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
    /// SEND with immediate data, which is 0 until [`SendEdit::set_immediate`].
    SendImmediate,
    /// RDMA WRITE with immediate data, as above.
    WriteImmediate {
        /// Address in the peer's memory.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
    /// Atomic addition to 8 bytes at `address`.
    FetchAdd {
        /// Address in the peer's memory, a multiple of 8.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
        add: u64,
    },
    /// Atomic exchange of 8 bytes at `address`, of 0 for 0 until [`SendEdit::set_exchange`].
    CompareSwap {
        /// Address in the peer's memory, a multiple of 8.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
}

/// One work request to prebuild.
#[derive(Clone, Copy, Debug)]
pub struct SendTemplate {
    /// A number of the caller's, returned in its completion.
    pub wr_id: u64,
    pub opcode: SendOpcode,
    /// Offset of its payload in the MR, in bytes.
    pub offset: usize,
    /// Length of its payload, in bytes.
    pub length_bytes: u32,
    /// Elements that the payload is cut into; one for each byte if those are fewer.
    pub sges: u32,
    /// Whether it raises a completion.
    pub signalled: bool,
    /// Whether its payload is copied into the work request.
    pub inline: bool,
    /// Whether a call of `ibv_post_send` ends with it.
    pub ends_chain: bool,
}

/// Prebuilt work requests, linked into chains; one call posts one chain, by what its QP was made for.
pub struct SendRing {
    _qp: Arc<QueuePair>,
    /// Keeps the payloads alive as long as the ring.
    memory: Arc<MemoryRegion>,
    /// The way of datagrams, to which the work requests point.
    _way: Option<Arc<AddressHandle>>,
    requests: Box<[Request]>,
    /// The `sg_list` pointers point here.
    _sges: Box<[ibv_sge]>,
    walker: Option<Walker>,
    /// The QP, which `qp` keeps alive.
    raw_qp: *mut ibv_qp,
    post: PostSend,
}

/// A work request on three cache lines. The number is odd, so that the first lines of successive requests, which are
/// all that is read of most of them, use every set of the caches.
#[repr(C, align(64))]
struct Request {
    wr: UnsafeCell<ibv_send_wr>,
    _apart: [u8; 64],
}

const _: () = assert!(size_of::<Request>() == 3 * 64);

// SAFETY: the work requests hold pointers only into the ring's own boxes, which do not move, and to the address handle
// that it keeps; libibverbs only reads them. After construction only addresses change, by atomic stores of the thread that is
// about to post the work request; were there two, addresses would be wrong, and the device does not go beyond the MR. The QP
// may be posted to from any thread.
unsafe impl Send for SendRing {}
// SAFETY: as above.
unsafe impl Sync for SendRing {}

impl SendRing {
    /// Memory of one prebuilt work request with so many elements, in bytes.
    pub const fn bytes_per_wr(sges: u32) -> usize {
        size_of::<Request>() + sges as usize * size_of::<ibv_sge>()
    }

    /// Prebuilds `templates` for `qp`, with payloads in `memory`.
    ///
    /// # Errors
    /// The device has no `post_send`, or a payload is outside of the memory.
    pub fn new(
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
        templates: &[SendTemplate],
    ) -> Result<Self, VerbsError> {
        let post = qp.post_send().ok_or_else(|| invalid(libc::EOPNOTSUPP))?;
        let buffers = templates.iter().map(|template| Buffer {
            offset: template.offset,
            length_bytes: template.length_bytes,
            sges: template.sges,
        });
        let (sges, lists) = elements(memory, buffers).ok_or_else(|| invalid(libc::EFAULT))?;
        let mut requests: Box<[Request]> = templates
            .iter()
            .zip(lists)
            .map(|(template, list)| Request {
                wr: work_request(template, list).into(),
                _apart: [0; 64],
            })
            .collect();
        link(&mut requests, templates);
        Ok(SendRing {
            raw_qp: qp.raw(),
            _qp: Arc::clone(qp),
            memory: Arc::clone(memory),
            _way: None,
            requests,
            _sges: sges,
            walker: None,
            post,
        })
    }

    /// Memory of a walk of one prebuilt work request, in bytes.
    pub const WALK_BYTES_PER_WR: usize = Walker::BYTES_PER_WR;

    /// Has each WR use another of `walk`'s cells each time it is posted, and of WRITEs and READs the same cell of the peer's
    /// memory. The WRs are in those of the first lap.
    ///
    /// # Errors
    /// EFAULT for WRs that are not in their cells, and for cells outside of the memory.
    pub fn walking(mut self, walk: Walk) -> Result<Self, VerbsError> {
        if walk.laps() > 1 {
            let lists = self.requests.iter_mut().map(|request| {
                let wr = request.wr.get_mut();
                // SAFETY: the elements of this work request, which the ring keeps.
                unsafe { slice::from_raw_parts(wr.sg_list, wr.num_sge.max(0) as usize) }
            });
            let walker = Walker::new(walk, &self.memory, lists);
            self.walker = Some(walker.ok_or_else(|| invalid(libc::EFAULT))?);
        }
        Ok(self)
    }

    /// Has each SEND go by `way` to the QP that `qpn_of` says for its position, with `qkey`, as those of UD QPs must.
    #[must_use]
    pub fn addressed(
        mut self,
        way: &Arc<AddressHandle>,
        qkey: u32,
        qpn_of: impl Fn(usize) -> u32,
    ) -> Self {
        for (position, request) in self.requests.iter_mut().enumerate() {
            let wr = request.wr.get_mut();
            let is_send = matches!(
                wr.opcode,
                ibv_wr_opcode::IBV_WR_SEND | ibv_wr_opcode::IBV_WR_SEND_WITH_IMM
            );
            if is_send {
                wr.wr.ud = rdma_sys::ud_t {
                    ah: way.raw(),
                    remote_qpn: qpn_of(position),
                    remote_qkey: qkey,
                };
            }
        }
        self._way = Some(Arc::clone(way));
        self
    }

    /// Posts the chain that begins at `first`, up to the WR that ends it.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EINVAL for a `first` outside of the ring.
    #[inline]
    pub fn post(&self, first: usize) -> Result<(), PostError> {
        let Some(request) = self.requests.get(first) else {
            return Err(PostError(libc::EINVAL));
        };
        if let Some(walker) = &self.walker {
            self.advance_chain(walker, first);
        }
        let mut bad = null_mut();
        // SAFETY: the WR, its chain and their elements live in this ring and their payloads in the MR it
        // keeps; `ibv_post_send` does not write to them.
        PostError::from_code(unsafe { (self.post)(self.raw_qp, request.wr.get(), &mut bad) })
    }

    /// Posts copies of the `count` WRs from `first` as one chain, each changed by `edit`, which gets its index in the
    /// chain. The copies cost time, so do not use it in the steady state.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EINVAL for WRs outside of the ring or more than the scratch holds.
    pub fn post_edited(
        &self,
        scratch: &mut SendScratch,
        first: usize,
        count: usize,
        mut edit: impl FnMut(usize, &mut SendEdit<'_>),
    ) -> Result<(), PostError> {
        let requests = self.requests.get(first..first + count);
        let (Some(requests), true) = (requests, count <= scratch.0.capacity()) else {
            return Err(PostError(libc::EINVAL));
        };
        if let Some(walker) = &self.walker {
            for (request, position) in requests.iter().zip(first..) {
                request.advance(walker, position);
            }
        }
        scratch.0.clear();
        for (place, request) in requests.iter().enumerate() {
            // SAFETY: a bitwise copy of plain data; what it points to lives in the ring.
            let mut copy = unsafe { std::ptr::read(request.wr.get()) };
            copy.next = null_mut();
            edit(place, &mut SendEdit(&mut copy));
            scratch.0.push(copy);
        }
        let start = scratch.0.as_mut_ptr();
        for (place, copy) in scratch.0.iter_mut().take(count.saturating_sub(1)).enumerate() {
            copy.next = start.wrapping_add(place + 1);
        }
        if count == 0 {
            return Ok(());
        }
        let mut bad = null_mut();
        // SAFETY: as in `post`; the copies live in the scratch, which is not touched during the call.
        PostError::from_code(unsafe { (self.post)(self.raw_qp, start, &mut bad) })
    }

    /// Moves the WRs of the chain that begins at `first` to the cells of this use. Before they are posted, they are this
    /// thread's alone: afterwards another may see them completed, and post them again.
    #[inline(never)] // so that posting stays short where nothing walks
    fn advance_chain(&self, walker: &Walker, first: usize) {
        let mut position = first;
        while let Some(request) = self.requests.get(position) {
            request.advance(walker, position);
            // SAFETY: a field that is never changed.
            if unsafe { (*request.wr.get()).next.is_null() } {
                return;
            }
            position += 1;
            if position == self.requests.len() {
                position = 0;
            }
        }
    }
}

impl Request {
    /// Moves the WR to the cell of this use.
    #[inline]
    fn advance(&self, walker: &Walker, position: usize) {
        use ibv_wr_opcode as code;
        let wr = self.wr.get();
        // SAFETY: the WR lives in its ring, with its elements; none of the fields read here changes.
        unsafe {
            let by = walker.advance(position, (*wr).sg_list, (*wr).num_sge);
            let opcode = (*wr).opcode;
            let names_target = opcode == code::IBV_WR_RDMA_WRITE
                || opcode == code::IBV_WR_RDMA_WRITE_WITH_IMM
                || opcode == code::IBV_WR_RDMA_READ;
            if names_target {
                // SAFETY: WRITEs and READs have this member, which only posting changes.
                add_to(&raw mut (*wr).wr.rdma.remote_addr, by);
            }
        }
    }
}

/// A buffer for copies of work requests.
pub struct SendScratch(Vec<ibv_send_wr>);

impl SendScratch {
    /// A buffer for chains of `length` WRs.
    pub fn new(length: usize) -> Self {
        SendScratch(Vec::with_capacity(length))
    }
}

/// A copied work request about to be posted.
pub struct SendEdit<'a>(&'a mut ibv_send_wr);

impl SendEdit<'_> {
    /// Adds immediate data to a SEND, or sets that of an RDMA WRITE with immediate data.
    pub fn set_immediate(&mut self, data: u32) {
        if self.0.opcode == ibv_wr_opcode::IBV_WR_SEND {
            self.0.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        }
        self.0.imm_data_invalidated_rkey_union.imm_data = data.to_be();
    }

    /// Sets the values of an atomic exchange: if the word is `expected`, it becomes `new`.
    pub fn set_exchange(&mut self, expected: u64, new: u64) {
        debug_assert!(self.0.opcode == ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP);
        // SAFETY: only work requests of this opcode are edited so, and theirs is the atomic member, of plain integers.
        let atomic = unsafe { &mut self.0.wr.atomic };
        (atomic.compare_add, atomic.swap) = (expected, new);
    }

    /// Makes it signalled with another `wr_id`, or not signalled.
    pub fn set_signalled(&mut self, wr_id: Option<u64>) {
        self.0.send_flags &= !ibv_send_flags::IBV_SEND_SIGNALED.0;
        if let Some(wr_id) = wr_id {
            self.0.send_flags |= ibv_send_flags::IBV_SEND_SIGNALED.0;
            self.0.wr_id = wr_id;
        }
    }
}

/// The error number with which `ibv_post_send` or `ibv_post_recv` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError(i32);

impl PostError {
    pub(super) fn new(code: i32) -> Self {
        PostError(code)
    }

    /// What a call came to that returned this.
    #[inline]
    pub(super) fn from_code(code: i32) -> Result<(), PostError> {
        match code {
            0 => Ok(()),
            code => Err(PostError(code)),
        }
    }

    /// The error of `operation` on the QP with number `qpn`.
    pub fn into_error(self, operation: Operation, qpn: u32) -> VerbsError {
        self.into_error_for(operation, format!("QP {qpn:#08x}"))
    }

    /// The error of `operation` on another object.
    pub fn into_error_for(self, operation: Operation, object: impl Into<String>) -> VerbsError {
        let code = if self.0 == -1 { 0 } else { self.0.abs() };
        VerbsError::Call {
            operation,
            object: object.into(),
            source: io::Error::from_raw_os_error(code),
        }
    }
}

fn invalid(code: i32) -> VerbsError {
    VerbsError::returned(Operation::PostSend, "prebuilding WRs", code)
}

fn work_request(template: &SendTemplate, (sg_list, num_sge): List) -> ibv_send_wr {
    // SAFETY: plain data, for which zero is valid.
    let mut wr: ibv_send_wr = unsafe { zeroed() };
    wr.wr_id = template.wr_id;
    wr.sg_list = sg_list;
    wr.num_sge = num_sge;
    if template.signalled {
        wr.send_flags |= ibv_send_flags::IBV_SEND_SIGNALED.0;
    }
    if template.inline {
        wr.send_flags |= ibv_send_flags::IBV_SEND_INLINE.0;
    }
    use ibv_wr_opcode as code;
    let rdma = |remote_addr, rkey| rdma_sys::wr_t { rdma: rdma_t { remote_addr, rkey } };
    let atomic = |remote_addr, rkey, compare_add| rdma_sys::wr_t {
        atomic: rdma_sys::atomic_t { remote_addr, compare_add, swap: 0, rkey },
    };
    let (opcode, remote) = match template.opcode {
        SendOpcode::Send => (code::IBV_WR_SEND, None),
        SendOpcode::SendImmediate => (code::IBV_WR_SEND_WITH_IMM, None),
        SendOpcode::Write { address, rkey } => (code::IBV_WR_RDMA_WRITE, Some(rdma(address, rkey))),
        SendOpcode::WriteImmediate { address, rkey } => {
            (code::IBV_WR_RDMA_WRITE_WITH_IMM, Some(rdma(address, rkey)))
        }
        SendOpcode::Read { address, rkey } => (code::IBV_WR_RDMA_READ, Some(rdma(address, rkey))),
        SendOpcode::FetchAdd { address, rkey, add } => {
            (code::IBV_WR_ATOMIC_FETCH_AND_ADD, Some(atomic(address, rkey, add)))
        }
        SendOpcode::CompareSwap { address, rkey } => {
            (code::IBV_WR_ATOMIC_CMP_AND_SWP, Some(atomic(address, rkey, 0)))
        }
    };
    wr.opcode = opcode;
    if let Some(remote) = remote {
        wr.wr = remote;
    }
    wr
}

/// Links each WR to the next in the ring, except at the ends of chains.
fn link(requests: &mut [Request], templates: &[SendTemplate]) {
    let start = requests.as_mut_ptr();
    let length = requests.len();
    for (index, (request, template)) in requests.iter_mut().zip(templates).enumerate() {
        request.wr.get_mut().next = if template.ends_chain {
            null_mut()
        } else {
            // `wr` is the first field.
            start.wrapping_add((index + 1) % length).cast()
        };
    }
}

type PostRecv = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32;

/// Posts to one QP, with payloads in one MR. Its work requests are built when they are posted, for messages so large that
/// the cost does not matter: small messages in a steady state use the prebuilt rings.
pub struct Poster {
    qp: Arc<QueuePair>,
    memory: Arc<MemoryRegion>,
    post_send: PostSend,
    post_recv: PostRecv,
}

/// An RDMA WRITE with immediate data.
#[derive(Clone, Copy, Debug)]
pub struct ImmediateWrite {
    /// A number of the caller's, returned in its completion.
    pub wr_id: u64,
    /// Offset of the payload in the MR, in bytes.
    pub offset: usize,
    /// Length of the payload, in bytes.
    pub length_bytes: u32,
    /// Address in the peer's memory.
    pub address: u64,
    /// The peer's key for it.
    pub rkey: u32,
    /// Immediate data of the peer's receive completion.
    pub immediate: u32,
}

impl Poster {
    /// A poster for `qp` with payloads in `memory`.
    ///
    /// # Errors
    /// The device has no `post_send` or no `post_recv`.
    pub fn new(qp: &Arc<QueuePair>, memory: &Arc<MemoryRegion>) -> Result<Self, VerbsError> {
        let missing =
            |operation| VerbsError::returned(operation, "a device without it", libc::EOPNOTSUPP);
        // SAFETY: the QP and so its context are alive, and the table of operations is filled.
        let ops = unsafe { &(*(*qp.raw()).context).ops };
        Ok(Poster {
            post_send: qp.post_send().ok_or_else(|| missing(Operation::PostSend))?,
            post_recv: ops.post_recv.ok_or_else(|| missing(Operation::PostRecv))?,
            qp: Arc::clone(qp),
            memory: Arc::clone(memory),
        })
    }

    pub fn qpn(&self) -> u32 {
        self.qp.qpn()
    }

    /// The MR of the payloads.
    pub fn memory(&self) -> &MemoryRegion {
        &self.memory
    }

    /// Posts a signalled RDMA WRITE with immediate data.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EFAULT for a payload outside of the MR.
    pub fn write(&self, write: &ImmediateWrite) -> Result<(), PostError> {
        let element = self
            .memory
            .element(write.offset, write.length_bytes)
            .ok_or(PostError::new(libc::EFAULT))?;
        let mut wr = signalled(write.wr_id, write.immediate);
        wr.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.rdma = rdma_t { remote_addr: write.address, rkey: write.rkey };
        self.post(wr, Some(element))
    }

    /// Posts a signalled SEND of immediate data only.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`.
    pub fn tell(&self, wr_id: u64, immediate: u32) -> Result<(), PostError> {
        let mut wr = signalled(wr_id, immediate);
        wr.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        self.post(wr, None)
    }

    fn post(&self, mut wr: ibv_send_wr, mut element: Option<ibv_sge>) -> Result<(), PostError> {
        if let Some(element) = &mut element {
            wr.sg_list = element;
            wr.num_sge = 1;
        }
        let mut bad = null_mut();
        // SAFETY: the QP is alive; request and element live during the call, which copies them; the payload is in
        // the MR, which is kept.
        PostError::from_code(unsafe { (self.post_send)(self.qp.raw(), &raw mut wr, &raw mut bad) })
    }

    /// Posts a receive without a buffer, for immediate data.
    ///
    /// # Errors
    /// The error number of `ibv_post_recv`.
    pub fn receive(&self, wr_id: u64) -> Result<(), PostError> {
        let mut wr = ibv_recv_wr { wr_id, next: null_mut(), sg_list: null_mut(), num_sge: 0 };
        let mut bad = null_mut();
        // SAFETY: the QP is alive, and the request lives during the call, which copies it.
        PostError::from_code(unsafe { (self.post_recv)(self.qp.raw(), &raw mut wr, &raw mut bad) })
    }
}

fn signalled(wr_id: u64, immediate: u32) -> ibv_send_wr {
    // SAFETY: plain data, for which zero is valid.
    let mut wr: ibv_send_wr = unsafe { zeroed() };
    wr.wr_id = wr_id;
    wr.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
    wr.imm_data_invalidated_rkey_union.imm_data = immediate.to_be();
    wr
}
