//! Completion queues.

use std::cell::UnsafeCell;
use std::net::IpAddr;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use rdma_sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask,
    ibv_event_type, ibv_wc, ibv_wc_flags, imm_data_invalidated_rkey_union_t,
};

use super::channel::{Channel, Notice};
use super::context::Context;
use super::domain::Pd;
use super::errno::{pointer_or_errno, zero_or_error};
use super::events::Acks;
use super::latch::Latch;
use super::limits::{MAX_CQE, completion_vectors};
use super::object::Behind;
use super::occurrence::Source;
use super::users::{Use, Users};
use crate::transport::{self, Completion};

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

/// `IBV_WC_EX_WITH_COMPLETION_TIMESTAMP`.
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
    let channel = init.channel;
    let has_domain = init.comp_mask & ibv_cq_init_attr_mask::IBV_CQ_INIT_ATTR_MASK_PD.0 != 0;
    let domain = if has_domain { init.parent_domain } else { null_mut() };
    // SAFETY: a live channel and a live domain, or null.
    let (its_channel, its_domain) = unsafe { (channel.as_ref(), domain.as_ref()) };
    if its_channel.is_some_and(|channel| channel.context != context)
        || its_domain.map(|domain| domain.context) != has_domain.then_some(context)
    {
        return Err(libc::EINVAL);
    }
    // SAFETY: as above, and an open context.
    let (behind, domain, device) = unsafe {
        (
            its_channel.map(|_| Channel::of(channel)),
            its_domain.map(|_| Pd::of(domain)),
            Context::own(context)?,
        )
    };
    // Its events contain its address.
    let object = Cq::reserve();
    let completion_acks = Arc::new(Acks::default());
    let async_acks = Arc::new(Acks::default());
    let on_event: Box<dyn Fn() + Send + Sync> = match behind {
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
    if let Some(channel) = behind {
        channel.cqs.lock().push(transport.clone());
    }
    // SAFETY: pointers, integers, optional function pointers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_cq_ex = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.channel = channel;
    verbs.cq_context = init.cq_context;
    verbs.cqe = c_int::try_from(transport.capacity()).unwrap_or(c_int::MAX);
    let inner = Cq {
        transport,
        users: Users::default(),
        completion_acks,
        async_acks,
        channel: behind.map(|behind| (channel, behind.users.begin())),
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
            let transport = &Cq::of(cq).transport;
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
            let inner = Cq::of(cq);
            inner.users.none()?;
            if let Some((channel, _)) = &inner.channel {
                let channel = Channel::of(*channel);
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
    let inner = unsafe { Cq::of(cq) };
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
    unsafe { Cq::of(cq) }.transport.arm(solicited_only != 0);
    0
}

pub unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    // SAFETY: a live CQ.
    unsafe { Cq::of(cq) }.completion_acks.acknowledge(events);
}
