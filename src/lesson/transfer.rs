//! How a QP is to be connected and what is to be posted on it, for the calls and for what is told of them.

use verbs::{Path, Reliability, RemoteQp};

use settings::Op;

use super::step::Note;

/// How an end's QP is connected.
pub(crate) struct Connection {
    pub(crate) remote: RemoteQp,
    pub(crate) path: Path,
    pub(crate) reliability: Reliability,
    /// A word on the GID.
    pub(crate) gid_note: Note,
    /// A word on the MTU.
    pub(crate) mtu_note: Note,
}

/// What is posted.
pub(crate) struct Transfer {
    pub(crate) op: Op,
    pub(crate) wr_id: u64,
    pub(crate) length_bytes: u32,
    /// In the other end's memory.
    pub(crate) address: u64,
    pub(crate) rkey: u32,
    pub(crate) wrong_rkey: bool,
}
