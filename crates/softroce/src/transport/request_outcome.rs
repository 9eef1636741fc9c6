//! The outcome of a request from the peer.

use super::completion::Status;
use crate::wire::NakCode;

/// The refusal of a request: the NAK for the peer, and the status of a receive that it used.
pub(super) struct Refusal {
    pub(super) code: NakCode,
    pub(super) receive_status: Status,
}

impl Refusal {
    pub(super) fn invalid() -> Refusal {
        Refusal {
            code: NakCode::InvalidRequest,
            receive_status: Status::RemoteInvalidRequestError,
        }
    }

    pub(super) fn access() -> Refusal {
        Refusal {
            code: NakCode::RemoteAccessError,
            receive_status: Status::LocalAccessError,
        }
    }
}

/// The outcome of a request.
pub(super) enum RequestOutcome {
    Done,
    NotReady,
    /// Nothing was done, since it changes memory that READs before it are still to be answered from.
    OvertakesRead,
}
