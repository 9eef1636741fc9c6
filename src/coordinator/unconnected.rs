//! Why the nodes of a session are not connected.

use crate::coordinator::ranks::Missing;
use protocol::error::ConnectError;
use protocol::failure::RunFailure;

/// Why the nodes are not connected.
#[derive(Clone)]
pub(crate) enum Unconnected {
    /// One cannot be reached.
    Unreachable(ConnectError),
    Failed(RunFailure),
}

impl From<Missing> for Unconnected {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Connect(error) => Unconnected::Unreachable(error),
            Missing::Refused(failure) => Unconnected::Failed(failure),
        }
    }
}

impl From<ConnectError> for Unconnected {
    fn from(error: ConnectError) -> Self {
        Unconnected::Unreachable(error)
    }
}

impl From<RunFailure> for Unconnected {
    fn from(failure: RunFailure) -> Self {
        Unconnected::Failed(failure)
    }
}

impl From<Unconnected> for RunFailure {
    fn from(error: Unconnected) -> Self {
        match error {
            Unconnected::Unreachable(error) => error.into(),
            Unconnected::Failed(failure) => failure,
        }
    }
}
