//! Completion queues, and completion channels, which wake programs that sleep.

use std::io;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use rdma_sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask,
};

use crate::Lock;
use crate::context::Context;
use crate::domain::Pd;
use crate::engine::{CqEngine, CqRequest, Objects};
use crate::errno::{code, minus_one_or_zero, pointer_or_errno, zero_or_error};
use crate::events::{CqNotifier, Notice, ObjectEvents, Queue, Source};
use crate::object::{Behind, Use, Users};

/// The data of a completion channel.
struct Channel {
    notices: Arc<Queue<Notice>>,
    users: Users,
    /// Those whose events come here; each is live.
    cqs: Lock<Vec<Notice>>,
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
            for Notice(cq) in self.cqs.lock().iter() {
                // SAFETY: a CQ is taken from the list before it goes.
                unsafe { (Cq::<()>::from_raw(*cq).engine_of)(*cq) }.remind();
            }
        }
        self.notices.next()
    }
}

/// `ibv_create_comp_channel(3)`. EOPNOTSUPP on a device without channels.
pub unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    // SAFETY: an open context.
    let open = unsafe { Context::from_raw(context) };
    if !open.engine().has_channels() {
        return pointer_or_errno(Err(libc::EOPNOTSUPP));
    }
    let made = Queue::new().map(|notices| {
        let fd = notices.fd();
        let channel = Channel {
            notices: Arc::new(notices),
            users: Users::default(),
            cqs: Lock::default(),
            _context: open.users.begin(),
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
#[repr(C)]
pub(crate) struct Cq<E = ()> {
    /// The engine's part, and the end of the object, by functions that know the former's type.
    engine_of: unsafe fn(*mut ibv_cq) -> &'static dyn CqEngine,
    free: unsafe fn(*mut ibv_cq),
    pub(crate) users: Users,
    pub(crate) events: ObjectEvents,
    channel: Option<(*mut ibv_comp_channel, CqNotifier, Use)>,
    _uses: [Use; 2],
    _domain: Option<Use>,
    pub(crate) engine: E,
}

/// The struct is the extended one, whose first members are those of `ibv_cq`.
impl<E> Behind<ibv_cq, ibv_cq_ex> for Cq<E> {}

fn verbs_size(engine: &dyn CqEngine) -> c_int {
    c_int::try_from(engine.capacity()).unwrap_or(c_int::MAX)
}

/// # Safety
/// As of [`new_cq`]; the engine is that of the context.
pub(crate) unsafe fn make<E: Objects>(
    engine: &E,
    context: *mut ibv_context,
    init: &ibv_cq_init_attr_ex,
) -> Result<*mut ibv_cq, c_int> {
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
    let (channel, domain, open) = unsafe {
        (
            its_channel.map(|_| Channel::from_raw(init.channel)),
            its_pd.map(|_| Pd::from_raw(pd)),
            Context::own(context)?,
        )
    };
    let counted = open.made.cqs.begin_within(open.limits.attributes.max_cq)?;
    // Its events contain its address.
    let cq = Cq::<E::Cq>::reserve();
    let events = ObjectEvents::new(&open.events, Source::Cq(cq));
    let notifier = channel.map(|channel| CqNotifier::new(&channel.notices, cq));
    let made = engine
        .create_cq(CqRequest {
            cq,
            capacity: init.cqe,
            wc_flags: init.wc_flags,
            events: events.clone(),
            notifier: notifier.clone(),
        })
        .inspect_err(|_| {
            // SAFETY: reserved above, and nothing was made there.
            unsafe { Cq::<E::Cq>::give_up(cq) };
        })?;
    // SAFETY: pointers, integers, optional function pointers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_cq_ex = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.channel = init.channel;
    verbs.cq_context = init.cq_context;
    verbs.cqe = verbs_size(&made);
    let inner = Cq {
        // SAFETY: as the caller's: an object of this engine.
        engine_of: |object| unsafe { E::cq(object) },
        free: Cq::<E::Cq>::free,
        users: Users::default(),
        events,
        channel: channel
            .zip(notifier)
            .map(|(channel, notifier)| (init.channel, notifier, channel.users.begin())),
        _uses: [open.users.begin(), counted],
        _domain: domain.map(|domain| domain.users.begin()),
        engine: made,
    };
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(cq, verbs) };
    if let Some(channel) = channel {
        channel.cqs.lock().push(Notice(cq));
    }
    Ok(cq)
}

/// Creates a CQ of at least the requested size, for `ibv_create_cq(3)` and `ibv_create_cq_ex(3)`.
///
/// # Errors
/// EINVAL for a size of 0 or above the limit, for a vector that the device does not have, and for a channel or a domain
/// of another context, of which the latter makes no difference; ENOMEM beyond the device's number of CQs.
pub unsafe fn new_cq(
    context: *mut ibv_context,
    init: &ibv_cq_init_attr_ex,
) -> Result<*mut ibv_cq_ex, c_int> {
    // SAFETY: an open context.
    let open = unsafe { Context::from_raw(context) };
    let limits = &open.limits;
    let most = limits.attributes.max_cqe.cast_unsigned();
    let has_vector = init.comp_vector < limits.completion_vectors.cast_unsigned();
    if !(1..=most).contains(&init.cqe) || !has_vector {
        return Err(libc::EINVAL);
    }
    // SAFETY: as the caller's.
    unsafe { open.maker.make_cq(context, init) }.map(<*mut ibv_cq>::cast)
}

/// `ibv_create_cq(3)`. EINVAL for a size of 0 or above the limit, a completion vector that the device does not have, or a
/// channel of another context.
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
    pointer_or_errno(unsafe { new_cq(context, &init) }).cast()
}

/// `ibv_resize_cq(3)`. EINVAL for a size of 0, above the limit, or below the number of waiting completions; EOPNOTSUPP
/// where the engine cannot.
pub unsafe extern "C" fn resize_cq(cq: *mut ibv_cq, entries: c_int) -> c_int {
    // SAFETY: a live CQ of an open context; like libibverbs, only this call writes the field.
    zero_or_error(unsafe {
        Context::own((*cq).context).and_then(|context| {
            if !(1..=context.limits.attributes.max_cqe).contains(&entries) {
                return Err(libc::EINVAL);
            }
            let engine = (Cq::<()>::from_raw(cq).engine_of)(cq);
            engine.resize(entries.cast_unsigned())?;
            (*cq).cqe = verbs_size(engine);
            Ok(())
        })
    })
}

/// `ibv_destroy_cq(3)`: waits until the program has acknowledged all events that it took. EBUSY while a QP uses it.
pub unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: a live CQ of an open context, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        Context::own((*cq).context).and_then(|_| {
            let inner = Cq::<()>::from_raw(cq);
            inner.users.none()?;
            if let Some((channel, ..)) = &inner.channel {
                Channel::from_raw(*channel).cqs.lock().retain(|served| *served != Notice(cq));
            }
            (inner.engine_of)(cq).close();
            inner.events.end();
            if let Some((_, notifier, _)) = &inner.channel {
                notifier.end();
            }
            (inner.free)(cq);
            Ok(())
        })
    })
}

pub unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    // SAFETY: a live CQ.
    if let Some((_, notifier, _)) = unsafe { &Cq::<()>::from_raw(cq).channel } {
        notifier.acknowledge(events);
    }
}
