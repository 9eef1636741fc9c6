//! Completion queues and their completions.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_cq, ibv_cq_init_attr_ex, ibv_wc, ibv_wc_opcode};

use super::channel::Notices;
use super::error::{Teardown, TeardownToken};
use super::extended_poll::{self, CqCalls, PollFunction};
use super::{CompletionChannel, Context, Operation, VerbsError, WcStatus};

/// The most completions taken by one poll: enough to spread the cost of a poll and a clock reading, few enough that a
/// worker checks the phase and its other CQs often.
pub const POLL_BATCH: usize = 32;

type NotifyFunction = unsafe extern "C" fn(*mut ibv_cq, i32) -> i32;

pub struct CompletionQueue {
    context: Arc<Context>,
    raw: NonNull<ibv_cq>,
    poll: PollFunction,
    has_stamps: bool,
    events: Option<Events>,
    destroyed: bool,
}

/// Event state of a CQ on a channel.
struct Events {
    channel: Arc<CompletionChannel>,
    request: NotifyFunction,
    notices: Arc<Notices>,
}

// SAFETY: `ibv_poll_cq` and `ibv_destroy_cq` may be called from any thread, and the fields never change.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// `ibv_create_cq(3)` with room for `entries` completions, without a channel.
    pub fn new(context: &Arc<Context>, entries: u32) -> Result<Arc<Self>, VerbsError> {
        Self::with_calls(context, entries, CqCalls::USUAL, None)
    }

    /// As [`CompletionQueue::new`], with a channel that delivers its events once it is armed. `vector` is the
    /// completion vector (interrupt) of the device, modulo their number.
    pub fn with_channel(
        context: &Arc<Context>,
        entries: u32,
        channel: &Arc<CompletionChannel>,
        vector: usize,
    ) -> Result<Arc<Self>, VerbsError> {
        Self::with_calls(context, entries, CqCalls::USUAL, Some((channel, vector)))
    }

    /// As [`CompletionQueue::new`], or [`CompletionQueue::with_channel`] where there is a channel, by `calls`
    /// (`ibv_create_cq_ex(3)` but for the usual ones).
    pub fn with_calls(
        context: &Arc<Context>,
        entries: u32,
        calls: CqCalls,
        channel: Option<(&Arc<CompletionChannel>, usize)>,
    ) -> Result<Arc<Self>, VerbsError> {
        let Some((channel, vector)) = channel else {
            return Self::create(context, entries, calls, None, 0);
        };
        let vectors = context.completion_vectors();
        let vector = i32::try_from(vector % vectors).unwrap_or(0);
        // SAFETY: the context is open, so its table of operations is filled.
        let Some(request) = (unsafe { (*context.raw()).ops.req_notify_cq }) else {
            return Err(VerbsError::returned(
                Operation::ReqNotifyCq,
                context.name(),
                libc::EOPNOTSUPP,
            ));
        };
        let events = Events { channel: Arc::clone(channel), request, notices: Arc::default() };
        Self::create(context, entries, calls, Some(events), vector)
    }

    fn create(
        context: &Arc<Context>,
        entries: u32,
        calls: CqCalls,
        events: Option<Events>,
        vector: i32,
    ) -> Result<Arc<Self>, VerbsError> {
        let object = || format!("{} ({entries} entries)", context.name());
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        let (user, channel) = match &events {
            None => (std::ptr::null(), std::ptr::null_mut()),
            Some(events) => (Arc::as_ptr(&events.notices), events.channel.raw()),
        };
        let user = user.cast_mut().cast();
        // SAFETY: the context is open, as is the channel if there is one; what the user context points to lives
        // as long as the CQ; plain data, for which zero is valid.
        let (raw, operation) = unsafe {
            if calls == CqCalls::USUAL {
                let create = context.library().create_cq;
                let raw = create(context.raw(), count, user, channel, vector);
                (raw, Operation::CreateCq)
            } else {
                let mut init: ibv_cq_init_attr_ex = std::mem::zeroed();
                (init.cqe, init.cq_context) = (entries, user);
                (init.channel, init.comp_vector) = (channel, vector.cast_unsigned());
                let raw = extended_poll::create(context, init, calls);
                (raw, Operation::CreateCqEx)
            }
        };
        let raw = NonNull::new(raw).ok_or_else(|| VerbsError::last(operation, object()))?;
        let poll = if calls.extended {
            Some(extended_poll::poll_function(context))
        } else {
            // SAFETY: the context is open, so its table of operations is filled.
            unsafe { (*context.raw()).ops.poll_cq }
        };
        let Some(poll) = poll else {
            // SAFETY: made above, and nothing uses it.
            unsafe { (context.library().destroy_cq)(raw.as_ptr()) };
            return Err(VerbsError::returned(Operation::PollCq, object(), libc::EOPNOTSUPP));
        };
        if let Some(events) = &events {
            events.channel.joined();
        }
        Ok(Arc::new(CompletionQueue {
            context: Arc::clone(context),
            raw,
            poll,
            has_stamps: calls.extended && calls.stamps,
            events,
            destroyed: false,
        }))
    }

    /// Requests one event on the channel for the next completion (`ibv_req_notify_cq(3)`), unless one is already
    /// requested and not yet taken; returns whether the request is new. Completions already in the CQ cause no event.
    ///
    /// # Errors
    /// The failed call. Without a channel, nothing is requested.
    pub fn arm(&self) -> Result<bool, VerbsError> {
        let Some(events) = &self.events else {
            return Ok(false);
        };
        if !events.notices.arm() {
            return Ok(false);
        }
        // SAFETY: the CQ lives while `self` does.
        match unsafe { (events.request)(self.raw.as_ptr(), 0) } {
            0 => Ok(true),
            code => Err(VerbsError::returned(Operation::ReqNotifyCq, self.context.name(), code)),
        }
    }

    /// Takes up to [`POLL_BATCH`] completions. After an error the CQ is unusable.
    #[inline]
    pub fn poll<'b>(&self, batch: &'b mut WcBatch) -> Result<&'b [Completion], VerbsError> {
        // SAFETY: the CQ lives while `self` does, and the batch has room for POLL_BATCH entries.
        let count = unsafe {
            (self.poll)(self.raw.as_ptr(), POLL_BATCH as i32, batch.completions.as_mut_ptr().cast())
        };
        match usize::try_from(count) {
            // SAFETY: the library has filled the first `count` entries.
            Ok(count) => Ok(unsafe { batch.first(count) }),
            Err(_) => Err(self.poll_failed(count)),
        }
    }

    /// Whether its completions have stamps of the device ([`CqCalls::stamps`]).
    #[inline]
    pub fn has_stamps(&self) -> bool {
        self.has_stamps
    }

    /// As [`CompletionQueue::poll`], with the stamp of each completion, in ticks of [`super::StampClock`]; without stamps
    /// on a CQ that has none.
    pub fn poll_stamped<'b>(
        &self,
        batch: &'b mut WcBatch,
    ) -> Result<(&'b [Completion], &'b [u64]), VerbsError> {
        if !self.has_stamps {
            return Ok((self.poll(batch)?, &[]));
        }
        // SAFETY: the CQ lives while `self` does, and was made with stamps; the batch has room for POLL_BATCH of both.
        let count = unsafe {
            extended_poll::poll_stamped(
                self.raw.as_ptr(),
                POLL_BATCH as i32,
                batch.completions.as_mut_ptr().cast(),
                batch.stamps.as_mut_ptr(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            return Err(self.poll_failed(count));
        };
        let batch = &*batch;
        let stamps = batch.stamps.get(..count).unwrap_or_default();
        // SAFETY: the first `count` entries were filled.
        Ok((unsafe { batch.first(count) }, stamps))
    }

    #[cold]
    fn poll_failed(&self, code: i32) -> VerbsError {
        // ibv_poll_cq(3) promises a negative value, but no error number.
        VerbsError::Call {
            operation: Operation::PollCq,
            object: self.context.name().into(),
            source: std::io::Error::other(format!("it returned {code}")),
        }
    }

    pub(super) fn raw(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// A number that identifies this CQ while it lives; asynchronous events contain it.
    pub(super) fn identity(&self) -> usize {
        self.raw.as_ptr() as usize
    }
}

impl Teardown for CompletionQueue {
    const OPERATION: Operation = Operation::DestroyCq;

    fn object(&self) -> String {
        self.context.name().to_owned()
    }

    fn tear_down(&mut self, _: TeardownToken) -> i32 {
        self.destroyed = true;
        let mut code = 0;
        // SAFETY: its QPs held an `Arc` to it and are destroyed; events of a channel are acknowledged before; it
        // was not destroyed before.
        let mut destroy = || unsafe {
            code = (self.context.library().destroy_cq)(self.raw.as_ptr());
        };
        match &self.events {
            None => destroy(),
            Some(events) => events.channel.leave(self.raw.as_ptr(), &events.notices, destroy),
        }
        code
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        if !self.destroyed {
            self.tear_down(TeardownToken::new());
        }
    }
}

/// Room for the completions of one poll, and their stamps.
pub struct WcBatch {
    completions: [MaybeUninit<ibv_wc>; POLL_BATCH],
    stamps: [u64; POLL_BATCH],
}

impl WcBatch {
    pub fn new() -> Self {
        WcBatch {
            completions: [const { MaybeUninit::uninit() }; POLL_BATCH],
            stamps: [0; POLL_BATCH],
        }
    }

    /// The first `count` completions.
    ///
    /// # Safety
    /// They are filled.
    #[inline]
    unsafe fn first(&self, count: usize) -> &[Completion] {
        let start = self.completions.as_ptr().cast();
        // SAFETY: the caller's; the layouts are the same.
        unsafe { std::slice::from_raw_parts(start, count.min(POLL_BATCH)) }
    }
}

impl Default for WcBatch {
    fn default() -> Self {
        WcBatch::new()
    }
}

#[repr(transparent)]
pub struct Completion(ibv_wc);

impl Completion {
    #[inline]
    pub fn wr_id(&self) -> u64 {
        self.0.wr_id
    }

    /// Whether the work request succeeded.
    #[inline]
    pub fn is_success(&self) -> bool {
        self.0.status == 0
    }

    pub fn status(&self) -> WcStatus {
        WcStatus(self.0.status)
    }

    /// The vendor's error code, if it failed.
    pub fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }

    /// Bytes received; only for a receive that succeeded.
    #[inline]
    pub fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// The QP's number; after extended polling only of receives, and of what failed.
    pub fn qpn(&self) -> u32 {
        self.0.qp_num
    }

    /// Its name in `verbs.h`, without the prefix `IBV_WC_`; only for one that succeeded.
    pub fn opcode_name(&self) -> &'static str {
        match self.0.opcode {
            ibv_wc_opcode::IBV_WC_SEND => "SEND",
            ibv_wc_opcode::IBV_WC_RDMA_WRITE => "RDMA_WRITE",
            ibv_wc_opcode::IBV_WC_RDMA_READ => "RDMA_READ",
            ibv_wc_opcode::IBV_WC_RECV => "RECV",
            _ => "other",
        }
    }

    /// Whether this is a receive; only for one that succeeded.
    pub fn is_receive(&self) -> bool {
        self.0.opcode & ibv_wc_opcode::IBV_WC_RECV != 0
    }

    /// The immediate data in host order, where the message had some.
    pub fn immediate(&self) -> Option<u32> {
        const WITH_IMM: u32 = rdma_sys::ibv_wc_flags::IBV_WC_WITH_IMM.0;
        // SAFETY: both members are 32-bit numbers; the flag says that it is the immediate data.
        let bits = unsafe { self.0.imm_data_invalidated_rkey_union.imm_data };
        (self.0.wc_flags & WITH_IMM != 0).then(|| u32::from_be(bits))
    }
}
