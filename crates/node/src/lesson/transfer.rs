//! The attributes of a QP's connection and of the WR to post, used for the calls and for their description.

use verbs::{Path, Reliability, RemoteQp};

use settings::Op;

use super::step::Note;

/// Attributes of an end's QP.
pub(crate) struct Connection {
    pub(crate) remote: RemoteQp,
    pub(crate) path: Path,
    pub(crate) reliability: Reliability,
    /// A remark on the GID.
    pub(crate) gid_note: Note,
    /// A remark on the MTU.
    pub(crate) mtu_note: Note,
}

pub(crate) struct Transfer {
    pub(crate) op: Op,
    pub(crate) wr_id: u64,
    pub(crate) length_bytes: u32,
    /// Its target in the other end's memory.
    pub(crate) address: u64,
    pub(crate) rkey: u32,
    pub(crate) wrong_rkey: bool,
}
