//! The outcome of a request from the peer.

use super::completion::Status;
use crate::wire::NakCode;

/// The refusal of a request: the NAK for the peer, and the status of a receive that it used.
pub(crate) struct Refusal {
    pub(crate) code: NakCode,
    pub(crate) receive_status: Status,
}

impl Refusal {
    pub(crate) fn invalid() -> Refusal {
        Refusal { code: NakCode::InvalidRequest, receive_status: Status::RemoteInvalidRequestError }
    }

    pub(crate) fn access() -> Refusal {
        Refusal { code: NakCode::RemoteAccessError, receive_status: Status::LocalAccessError }
    }
}

pub(crate) enum RequestOutcome {
    Done,
    NotReady,
    /// Nothing was done, since it changes memory that READs before it are still to be answered from.
    OvertakesRead,
}
