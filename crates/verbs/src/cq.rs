//! Completion queues and their completions.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_cq, ibv_cq_init_attr_ex, ibv_wc, ibv_wc_opcode};

use crate::channel::Notices;
use crate::error::TeardownToken;
use crate::extended::{self, PollFunction};
use crate::{CompletionChannel, Context, CqCalls, Operation, Teardown, VerbsError};

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
        let (notices, channel) = match &events {
            None => (std::ptr::null(), std::ptr::null_mut()),
            Some(events) => (Arc::as_ptr(&events.notices), events.channel.raw()),
        };
        let user = notices.cast_mut().cast();
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
                let raw = extended::create_cq(context, init, calls);
                (raw, Operation::CreateCqEx)
            }
        };
        let raw = NonNull::new(raw).ok_or_else(|| VerbsError::last(operation, object()))?;
        let poll = if calls.extended {
            Some(extended::poll_function(context))
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
            extended::poll_stamped(
                self.raw.as_ptr(),
                POLL_BATCH as i32,
                batch.completions.as_mut_ptr().cast(),
                batch.stamps.as_mut_ptr(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            return Err(self.poll_failed(count));
        };
        let filled = &*batch;
        let stamps = filled.stamps.get(..count).unwrap_or_default();
        // SAFETY: the first `count` entries were filled.
        Ok((unsafe { filled.first(count) }, stamps))
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

/// The status of a work completion (`enum ibv_wc_status`; a newer library may have more): its name, what it usually
/// means, and what to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WcStatus(pub u32);

/// The texts of a status.
struct Text {
    name: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

impl WcStatus {
    /// A send or receive that was queued when its QP went to ERR: a consequence, not a cause.
    pub const FLUSHED: WcStatus = WcStatus(5);
    /// The peer refused the request as invalid.
    pub const REM_INV_REQ_ERR: WcStatus = WcStatus(9);
    /// The peer acknowledged none of the tries.
    pub const RETRY_EXC_ERR: WcStatus = WcStatus(12);

    /// Whether it is the consequence of an earlier error on the same QP.
    pub fn is_flush(self) -> bool {
        self == WcStatus::FLUSHED
    }

    /// Its name in `verbs.h`, without the prefix `IBV_WC_`.
    pub fn name(self) -> &'static str {
        self.text().name
    }

    /// Its usual meaning, as a clause.
    pub fn meaning(self) -> &'static str {
        self.text().meaning
    }

    /// What to try, as a clause.
    pub fn remedy(self) -> &'static str {
        self.text().remedy
    }

    fn text(self) -> Text {
        let (name, meaning, remedy) = match self.0 {
            0 => ("SUCCESS", "it succeeded", "nothing"),
            1 => (
                "LOC_LEN_ERR",
                "a message was longer than the receive posted for it, or longer than the port's limit",
                "use the same rocebench version on both ends; lower --size",
            ),
            2 => (
                "LOC_QP_OP_ERR",
                "this end's QP found its own work request inconsistent",
                "lower --inline, --post-list and the depths; update firmware and driver",
            ),
            4 => (
                "LOC_PROT_ERR",
                "this end's buffer is not covered by its memory registration",
                "report it with the command line: this is a fault of rocebench or the driver",
            ),
            5 => (
                "WR_FLUSH_ERR",
                "it waited in the queue when its QP failed; another error came first",
                "look at the first error: this one is only its result",
            ),
            7 => (
                "BAD_RESP_ERR",
                "the peer's answer did not fit the request",
                "check that both ends run a sound driver; try a smaller --mtu",
            ),
            8 => (
                "LOC_ACCESS_ERR",
                "an incoming write found no permission in local memory",
                "report it with the command line: this is a fault of rocebench or the driver",
            ),
            9 => (
                "REM_INV_REQ_ERR",
                "the peer refused the request: too long for its receive, or an operation that its QP does not allow",
                "use the same rocebench version on both ends; lower --size or --max-rd-atomic; with Soft-RoCE on a \
                 slow host raise --timeout, it also refuses needless retransmissions",
            ),
            10 => (
                "REM_ACCESS_ERR",
                "the peer's memory key, address or permission did not match the request",
                "the peer may have restarted: run again; if it stays, report it with the command line",
            ),
            11 => (
                "REM_OP_ERR",
                "the peer could not complete the request on its side",
                "look at the peer's `dmesg` and at its output for the first error",
            ),
            12 => (
                "RETRY_EXC_ERR",
                "the peer did not acknowledge within the timeout, retries included: it died, packets are lost, or they go to a wrong address",
                "check the link, the GID index and MTU on both ends and that UDP port 4791 is open; on a lossy or loaded network raise --timeout and --retry-cnt",
            ),
            13 => (
                "RNR_RETRY_EXC_ERR",
                "the peer had no receive posted each time this end tried (receiver not ready)",
                "raise --rx-depth, --rnr-retry (7 is for ever) or --min-rnr-timer, or give the receiver more --workers",
            ),
            19 => (
                "FATAL_ERR",
                "the device reported a fatal error",
                "look at `dmesg`; the device may need a reset",
            ),
            20 => (
                "RESP_TIMEOUT_ERR",
                "a response did not come in time",
                "check that the peer is alive; raise --timeout",
            ),
            21 => (
                "GENERAL_ERR",
                "the device gave no more specific reason",
                "look at `dmesg` and at the vendor's error code",
            ),
            _ => (
                "other status",
                "an error that this version does not know",
                "look it up in `verbs.h` (enum ibv_wc_status) and look at `dmesg`",
            ),
        };
        Text { name, meaning, remedy }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_header() {
        use rdma_sys::ibv_wc_status as header;
        for (code, name) in [
            (header::IBV_WC_SUCCESS, "SUCCESS"),
            (header::IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"),
            (header::IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"),
            (header::IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"),
            (header::IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"),
            (header::IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR"),
            (header::IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"),
            (header::IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"),
            (header::IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"),
            (header::IBV_WC_REM_OP_ERR, "REM_OP_ERR"),
            (header::IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"),
            (header::IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"),
            (header::IBV_WC_FATAL_ERR, "FATAL_ERR"),
            (header::IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR"),
            (header::IBV_WC_GENERAL_ERR, "GENERAL_ERR"),
        ] {
            assert_eq!(WcStatus(code).name(), name);
        }
        assert!(WcStatus(header::IBV_WC_WR_FLUSH_ERR).is_flush());
    }
}
