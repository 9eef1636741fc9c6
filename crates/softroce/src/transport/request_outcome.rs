//! How a request went that the peer sent.

use super::completion::Status;
use crate::wire::NakCode;

/// A request that is refused: what the peer is told and how a receive that it took ends.
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

/// How a request went.
pub(super) enum Taken {
    Done,
    NotReady,
}
