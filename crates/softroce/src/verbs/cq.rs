//! Completion queues, plain and extended, whose completions are read field by field (`ibv_create_cq_ex(3)`); and
//! completion channels, which wake programs that sleep.

use std::cell::UnsafeCell;
use std::io;
use std::net::IpAddr;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use rdma_sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask,
    ibv_cq_init_attr_mask as Mask, ibv_event_type, ibv_poll_cq_attr, ibv_wc, ibv_wc_flags,
    imm_data_invalidated_rkey_union_t,
};

use super::context::{Acks, Context, Queue, Source};
use super::domain::Pd;
use super::errno::{code, minus_one_or_zero, pointer_or_errno, refuse, zero_or_error};
use super::object::{Behind, Latch, Use, Users};
use super::query::{MAX_CQE, completion_vectors};
use crate::lock::Lock;
use crate::transport;
use crate::transport::Completion;

/// An event of a CQ, for the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Notice(pub(super) *mut ibv_cq);

// SAFETY: the pointer is only carried, never followed, on the way to the program.
unsafe impl Send for Notice {}
// SAFETY: as above.
unsafe impl Sync for Notice {}

/// The data of a completion channel.
pub(super) struct Channel {
    pub(super) notices: Arc<Queue<Notice>>,
    pub(super) users: Users,
    /// Those whose events come here.
    pub(super) cqs: Lock<Vec<transport::Cq>>,
    _context: Use,
}

impl Behind<ibv_comp_channel> for Channel {}

impl Channel {
    /// The next event. Some programs request an event on a CQ, take some of its completions, and wait (perftest's `-b
    /// -e` of version 4.5). They rely on adapters, such as Mellanox', on which a request on a CQ that is not empty
    /// raises an event at once. Here the event is raised when the program waits, so that programs that emptied the CQ
    /// get no useless one.
    fn next(&self) -> io::Result<Notice> {
        if self.notices.is_empty() {
            for cq in self.cqs.lock().iter() {
                cq.remind();
            }
        }
        self.notices.next()
    }
}

pub unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let made = Queue::new().map(|notices| {
        let fd = notices.fd();
        let channel = Channel {
            notices: Arc::new(notices),
            users: Users::default(),
            cqs: Lock::default(),
            // SAFETY: an open context.
            _context: unsafe { Context::from_raw(context) }.users.begin(),
        };
        channel.lend(ibv_comp_channel { context, fd, refcnt: 0 })
    });
    pointer_or_errno(made.map_err(|error| code(&error)))
}

/// `ibv_destroy_comp_channel(3)`. EBUSY while a CQ uses it.
pub unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    // SAFETY: a live channel, which goes if nobody uses it.
    zero_or_error(unsafe {
        let unused = Channel::from_raw(channel).users.none();
        unused.map(|()| drop(Channel::take_back(channel)))
    })
}

/// `ibv_get_cq_event(3)`: blocks, or returns -1 with EAGAIN if the descriptor is non-blocking.
pub unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: a live channel of an open context, and two writable places; the CQ lives at least until its event is
    // acknowledged.
    minus_one_or_zero(unsafe {
        Context::own((*channel).context).and_then(|_| {
            let next = Channel::from_raw(channel).next();
            let Notice(source) = next.map_err(|error| code(&error))?;
            cq.write(source);
            cq_context.write((*source).cq_context);
            Ok(())
        })
    })
}

/// The data of a CQ.
pub(super) struct Cq {
    pub(super) transport: transport::Cq,
    pub(super) users: Users,
    pub(super) completion_acks: Arc<Acks>,
    pub(super) async_acks: Arc<Acks>,
    channel: Option<(*mut ibv_comp_channel, Use)>,
    /// The service level of datagrams' completions.
    pub(super) datagram_sl: u8,
    _context: Use,
    _domain: Option<Use>,
    /// Held from `start_poll` to `end_poll`.
    pub(super) polling: Latch,
    /// The completion that `start_poll` or `next_poll` took last, and its stamp; protected by `polling`.
    pub(super) current: UnsafeCell<Option<(Completion, u64)>>,
}

/// The struct is the extended one, whose first members are those of `ibv_cq`.
impl Behind<ibv_cq, ibv_cq_ex> for Cq {}

/// `IBV_WC_EX_WITH_COMPLETION_TIMESTAMP`, a bit of `wc_flags` when a CQ is created.
pub(super) const STAMPS: u64 = 1 << 7;

/// Creates a CQ of at least the requested size. EINVAL for a size of 0 or above the limit, for a vector that the device
/// does not have, and for a channel or a domain of another context. The domain makes no difference here.
pub(super) unsafe fn create(
    context: *mut ibv_context,
    init: &ibv_cq_init_attr_ex,
) -> Result<*mut ibv_cq_ex, c_int> {
    let has_vector = init.comp_vector < completion_vectors().cast_unsigned();
    if !(1..=MAX_CQE).contains(&init.cqe) || !has_vector {
        return Err(libc::EINVAL);
    }
    let has_domain = init.comp_mask & ibv_cq_init_attr_mask::IBV_CQ_INIT_ATTR_MASK_PD.0 != 0;
    let pd = if has_domain { init.parent_domain } else { null_mut() };
    // SAFETY: a live channel and a live domain, or null.
    let (its_channel, its_pd) = unsafe { (init.channel.as_ref(), pd.as_ref()) };
    if its_channel.is_some_and(|it| it.context != context)
        || its_pd.map(|it| it.context) != has_domain.then_some(context)
    {
        return Err(libc::EINVAL);
    }
    // SAFETY: as above, and an open context.
    let (channel, domain, device) = unsafe {
        (
            its_channel.map(|_| Channel::from_raw(init.channel)),
            its_pd.map(|_| Pd::from_raw(pd)),
            Context::own(context)?,
        )
    };
    // Its events contain its address.
    let object = Cq::reserve();
    let completion_acks = Arc::new(Acks::default());
    let async_acks = Arc::new(Acks::default());
    let on_event: Box<dyn Fn() + Send + Sync> = match channel {
        None => Box::new(|| ()),
        Some(channel) => {
            let notices = channel.notices.clone();
            let acks = completion_acks.clone();
            let notice = Notice(object);
            Box::new(move || notices.raise(notice, Some(acks.clone())))
        }
    };
    let raise = device.events_of(Source::Cq(object), &async_acks);
    let on_overrun = Box::new(move || raise(ibv_event_type::IBV_EVENT_CQ_ERR));
    let (capacity, has_stamps) = (init.cqe as usize, init.wc_flags & STAMPS != 0);
    let transport =
        transport::Cq::with_stamps(&device.nic, capacity, has_stamps, on_event, on_overrun);
    if let Some(channel) = channel {
        channel.cqs.lock().push(transport.clone());
    }
    // SAFETY: pointers, integers, optional function pointers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_cq_ex = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.channel = init.channel;
    verbs.cq_context = init.cq_context;
    verbs.cqe = c_int::try_from(transport.capacity()).unwrap_or(c_int::MAX);
    let inner = Cq {
        transport,
        users: Users::default(),
        completion_acks,
        async_acks,
        channel: channel.map(|channel| (init.channel, channel.users.begin())),
        datagram_sl: datagram_sl(device.address()),
        _context: device.users.begin(),
        _domain: domain.map(|domain| domain.users.begin()),
        polling: Latch::default(),
        current: UnsafeCell::new(None),
    };
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(object, verbs) };
    Ok(object.cast())
}

/// `ibv_create_cq(3)`. EINVAL for a size of 0 or above the limit, another completion vector than 0, or a channel of
/// another context.
pub unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    let init = ibv_cq_init_attr_ex {
        // Negative numbers become too large ones.
        cqe: entries.cast_unsigned(),
        cq_context,
        channel,
        comp_vector: vector.cast_unsigned(),
        wc_flags: 0,
        comp_mask: 0,
        flags: 0,
        parent_domain: null_mut(),
    };
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { create(context, &init) }).cast()
}

/// `ibv_resize_cq(3)`. EINVAL for a size of 0, above the limit, or below the number of waiting completions.
pub unsafe extern "C" fn resize_cq(cq: *mut ibv_cq, entries: c_int) -> c_int {
    // SAFETY: a live CQ of an open context; like libibverbs, only this call writes the field.
    zero_or_error(unsafe {
        Context::own((*cq).context).and_then(|_| {
            let transport = &Cq::from_raw(cq).transport;
            let capacity = entries.cast_unsigned();
            if !(1..=MAX_CQE).contains(&capacity) || !transport.resize(capacity as usize) {
                return Err(libc::EINVAL);
            }
            (*cq).cqe = c_int::try_from(transport.capacity()).unwrap_or(c_int::MAX);
            Ok(())
        })
    })
}

/// `ibv_destroy_cq(3)`: waits until the program has acknowledged all events that it took. EBUSY while a QP uses it.
pub unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: a live CQ of an open context, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        Context::own((*cq).context).and_then(|context| {
            let inner = Cq::from_raw(cq);
            inner.users.none()?;
            if let Some((channel, _)) = &inner.channel {
                let channel = Channel::from_raw(*channel);
                channel.cqs.lock().retain(|served| *served != inner.transport);
                drop(channel.notices.take_out(|notice| *notice == Notice(cq)));
            }
            context.end_events_of(Source::Cq(cq), &inner.async_acks);
            inner.completion_acks.wait();
            drop(Cq::take_back(cq));
            Ok(())
        })
    })
}

/// The `wc_flags` of a completion.
pub(super) fn wc_flags(completion: &Completion) -> u32 {
    let mut flags = 0;
    if completion.has_grh {
        flags |= ibv_wc_flags::IBV_WC_GRH.0;
    }
    if completion.immediate.is_some() {
        flags |= ibv_wc_flags::IBV_WC_WITH_IMM.0;
    }
    flags
}

/// The service level of a datagram's completion. RoCE v2 has none on the wire. What annex A17.4.5.1 wants of a
/// completion instead, whether an IPv4 or an IPv6 header is before the payload, has no member in `ibv_wc`; mlx5 says it
/// here, and UCX takes every adapter's to be so: 8 for UDP, and 2 for IPv4 or 1 for IPv6.
fn datagram_sl(address: IpAddr) -> u8 {
    const UDP: u8 = 8;
    UDP | if address.is_ipv4() { 2 } else { 1 }
}

fn work_completion(cq: &Cq, completion: &Completion) -> ibv_wc {
    ibv_wc {
        wr_id: completion.wr_id,
        status: completion.status as u32,
        opcode: completion.kind as u32,
        vendor_err: 0,
        byte_len: completion.length_bytes,
        imm_data_invalidated_rkey_union: imm_data_invalidated_rkey_union_t {
            imm_data: completion.immediate.unwrap_or(0),
        },
        qp_num: completion.qpn,
        src_qp: completion.source_qpn,
        wc_flags: wc_flags(completion),
        pkey_index: 0,
        slid: 0,
        sl: if completion.has_grh { cq.datagram_sl } else { 0 },
        dlid_path_bits: 0,
    }
}

/// `ibv_poll_cq(3)`: -1 after an overrun, and in a child of the process that opened the device.
///
/// # Safety
/// As for libibverbs: `wc` has room for `entries`.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    let Ok(most) = usize::try_from(entries) else {
        return -1;
    };
    let mut taken = 0;
    // SAFETY: a live CQ.
    let inner = unsafe { Cq::from_raw(cq) };
    let outcome = inner.transport.poll(most, |completion| {
        // SAFETY: the caller has room for `most`.
        unsafe { wc.add(taken).write(work_completion(inner, completion)) };
        taken += 1;
    });
    match outcome {
        Ok(_) => taken as c_int,
        Err(_) => {
            // Says so if the CQ is the parent's. SAFETY: a live CQ of an open context.
            let _ = unsafe { Context::own((*cq).context) };
            -1
        }
    }
}

pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ.
    unsafe { Cq::from_raw(cq) }.transport.arm(solicited_only != 0);
    0
}

pub unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    // SAFETY: a live CQ.
    unsafe { Cq::from_raw(cq) }.completion_acks.acknowledge(events);
}

/// Byte count, immediate data, QPN, source QPN, LIDs and service level: the fields that plain completions have.
const PLAIN_FIELDS: u64 = 0x7f;
/// Only one thread polls at a time; it makes no difference here.
const SINGLE_THREADED: u32 = 1;

/// `ibv_create_cq_ex(3)`, by the pointer in `verbs_context`. EOPNOTSUPP for fields that completions do not have here
/// (wall-clock stamps, VLAN, flow tags, tag matching), and a CQ that ignores overruns; EINVAL as of `ibv_create_cq`, and
/// without the parent domain that is named.
pub(super) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    init: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: a readable struct of the caller's.
    let init = unsafe { &*init };
    let known = Mask::IBV_CQ_INIT_ATTR_MASK_FLAGS.0 | Mask::IBV_CQ_INIT_ATTR_MASK_PD.0;
    let unknown = init.comp_mask & !known;
    if init.wc_flags & !(PLAIN_FIELDS | STAMPS) != 0
        || init.comp_mask & Mask::IBV_CQ_INIT_ATTR_MASK_FLAGS.0 != 0
            && init.flags & !SINGLE_THREADED != 0
        || unknown != 0
    {
        refuse("ibv_create_cq_ex with such fields or flags");
        return pointer_or_errno(Err(libc::EOPNOTSUPP));
    }
    // SAFETY: as the caller's.
    let made = pointer_or_errno(unsafe { create(context, init) });
    // SAFETY: null, or just made, and nobody else has it.
    if let Some(verbs) = unsafe { made.as_mut() } {
        verbs.start_poll = Some(start_poll);
        verbs.next_poll = Some(next_poll);
        verbs.end_poll = Some(end_poll);
        fill_readers(verbs);
    }
    made
}

/// Takes one completion: 0, ENOENT if there is none, EIO after an overrun.
///
/// # Safety
/// `cq` is live, and this thread holds its latch.
unsafe fn advance(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: a live CQ.
    let inner = unsafe { Cq::from_raw(cq.cast()) };
    let outcome = inner.transport.take_stamped(1, |completion, stamp_ns| {
        // SAFETY: who holds the latch owns the place; the two fields are written by nobody else.
        unsafe {
            *inner.current.get() = Some((*completion, stamp_ns));
            (*cq).status = completion.status as u32;
            (*cq).wr_id = completion.wr_id;
        }
    });
    match outcome {
        Ok(0) => libc::ENOENT,
        Ok(_) => 0,
        Err(_) => libc::EIO,
    }
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: null or a readable struct.
    if unsafe { attr.as_ref() }.is_some_and(|attr| attr.comp_mask != 0) {
        return libc::EINVAL;
    }
    // SAFETY: a live CQ.
    let inner = unsafe { Cq::from_raw(cq.cast()) };
    // The latch is free while this thread does the device's work.
    match inner.transport.has_some() {
        Ok(true) => inner.polling.take(),
        Ok(false) => return libc::ENOENT,
        Err(_) => return libc::EIO,
    }
    // SAFETY: as above, and the latch is held.
    let outcome = unsafe { advance(cq) };
    if outcome != 0 {
        // The program calls `end_poll` only after a success.
        inner.polling.give();
    }
    outcome
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: a live CQ whose latch this thread took in `start_poll`.
    unsafe { advance(cq) }
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: a live CQ whose latch this thread took in `start_poll`.
    unsafe { Cq::from_raw(cq.cast()) }.polling.give();
}

/// Reads the completion that `start_poll` or `next_poll` took last, and its stamp; 0 if there was none.
///
/// # Safety
/// The caller is between `start_poll` and `end_poll`.
unsafe fn read<T: Default>(cq: *mut ibv_cq_ex, field: impl Fn(&Cq, &Completion, u64) -> T) -> T {
    // SAFETY: a live CQ whose latch this thread holds.
    let (inner, current) =
        unsafe { (Cq::from_raw(cq.cast()), *Cq::from_raw(cq.cast()).current.get()) };
    current.map_or_else(T::default, |(completion, stamp_ns)| field(inner, &completion, stamp_ns))
}

/// Defines the functions that read a field of the current completion, and gives them to the program.
macro_rules! readers {
    ($($name:ident -> $type:ty = $field:expr;)*) => {
        $(unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            // SAFETY: the caller is between `start_poll` and `end_poll`.
            unsafe { read(cq, $field) }
        })*

        fn fill_readers(verbs: &mut ibv_cq_ex) {
            $(verbs.$name = Some($name);)*
        }
    };
}

readers! {
    read_opcode -> u32 = |_, it, _| it.kind as u32;
    read_vendor_err -> u32 = |_, _, _| 0;
    read_byte_len -> u32 = |_, it, _| it.length_bytes;
    read_imm_data -> u32 = |_, it, _| it.immediate.unwrap_or(0);
    read_qp_num -> u32 = |_, it, _| it.qpn;
    read_src_qp -> u32 = |_, it, _| it.source_qpn;
    read_wc_flags -> c_uint = |_, it, _| wc_flags(it);
    read_slid -> u32 = |_, _, _| 0;
    read_sl -> u8 = |cq, it, _| if it.has_grh { cq.datagram_sl } else { 0 };
    read_dlid_path_bits -> u8 = |_, _, _| 0;
    read_completion_ts -> u64 = |_, _, stamp_ns| stamp_ns;
}
