//! What a CQ holds: completions.

/// How a work request ended; the numbers are those of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // each is libibverbs' name
pub enum Status {
    Success = 0,
    LocalLengthError = 1,
    LocalQpOperationError = 2,
    LocalProtectionError = 4,
    FlushError = 5,
    LocalAccessError = 8,
    RemoteInvalidRequestError = 9,
    RemoteAccessError = 10,
    RemoteOperationError = 11,
    RetryExceededError = 12,
    RnrRetryExceededError = 13,
    GeneralError = 21,
}

/// What completed; the numbers are those of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
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

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The work request's.
    pub wr_id: u64,
    /// How it ended. With any but success only `wr_id`, this and `qpn` count.
    pub status: Status,
    /// What it was.
    pub kind: CompletionKind,
    /// Bytes received, read or written; with a datagram the 40 bytes of the global header count too.
    pub length_bytes: u32,
    /// Immediate data, as it stood on the wire.
    pub immediate: Option<u32>,
    /// The QP that it happened on.
    pub qpn: u32,
    /// Of a datagram: the QP that sent it.
    pub source_qpn: u32,
    /// Of a datagram: 40 bytes of global header stand before the payload.
    pub has_grh: bool,
    /// The sender asked for an event.
    pub solicited: bool,
}
