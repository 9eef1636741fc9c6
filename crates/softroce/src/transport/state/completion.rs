//! Completions: the entries of a CQ.

/// The status of a work request; the numbers are those of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is libibverbs' name
pub enum Status {
    Success = 0,
    LocalLengthError = 1,
    LocalProtectionError = 4,
    FlushError = 5,
    LocalAccessError = 8,
    RemoteInvalidRequestError = 9,
    RemoteAccessError = 10,
    RemoteOperationError = 11,
    RetryExceededError = 12,
    RnrRetryExceededError = 13,
}

/// The kind of a completed operation; the numbers are those of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is libibverbs' name
pub enum CompletionKind {
    Send = 0,
    RdmaWrite = 1,
    RdmaRead = 2,
    CompareSwap = 3,
    FetchAdd = 4,
    Receive = 128,
    ReceiveRdmaWithImmediate = 129,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub wr_id: u64,
    /// Its status. If it is an error, only `wr_id`, `status` and `qpn` are defined.
    pub status: Status,
    pub kind: CompletionKind,
    /// Bytes received, read or written; for a datagram including the 40 bytes of the global header.
    pub length_bytes: u32,
    /// Immediate data, as on the wire.
    pub immediate: Option<u32>,
    /// The QP.
    pub qpn: u32,
    /// The QP that sent a datagram.
    pub source_qpn: u32,
    /// Whether a datagram's 40 bytes of global header precede the payload.
    pub has_grh: bool,
    /// Whether the sender asked for an event.
    pub solicited: bool,
}

impl Completion {
    /// One that tells nothing but this.
    pub(crate) fn of(qpn: u32, wr_id: u64, status: Status, kind: CompletionKind) -> Completion {
        Completion {
            wr_id,
            status,
            kind,
            length_bytes: 0,
            immediate: None,
            qpn,
            source_qpn: 0,
            has_grh: false,
            solicited: false,
        }
    }
}

const _: () = assert!(size_of::<Completion>() == 32);
