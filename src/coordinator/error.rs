//! Why a sweep could not begin, or ends before its last run.

use crate::node::resources::ResourcesError;
use crate::protocol::error::ConnectError;
use crate::protocol::failure::RunFailure;

/// A sweep that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// No connection to the server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No device here.
    #[error(transparent)]
    NodeResources(#[from] ResourcesError),
    /// The other end could not be started in this process.
    #[error("cannot start the other end in this process: {0}")]
    Local(#[source] std::io::Error),
    /// The link broke before the first run.
    #[error(transparent)]
    Link(#[from] crate::protocol::error::LinkError),
    /// An end cannot do what the sweep asks for.
    #[error(transparent)]
    Refused(RunFailure),
}

impl SweepError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            SweepError::Connect(error) => error.hint(),
            SweepError::NodeResources(error) => error.hint(),
            SweepError::Link(error) => error.hint(),
            SweepError::Local(_) => None,
            SweepError::Refused(failure) => failure.hint.clone(),
        }
    }

    /// Whether the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            SweepError::Connect(error) => error.bad_input(),
            SweepError::NodeResources(error) => error.is_bad_input(),
            SweepError::Link(error) => error.bad_input(),
            SweepError::Local(_) => false,
            SweepError::Refused(failure) => failure.bad_input,
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        match self {
            SweepError::Connect(error) => error.is_interrupt(),
            SweepError::Refused(failure) => failure.interrupted,
            _ => false,
        }
    }
}

/// Why a sweep ends before its last run.
pub(crate) enum Halt {
    /// The user stopped it.
    Interrupted,
    /// The peer cannot be reached again.
    Lost(ConnectError),
    /// This end cannot go on.
    Broken(SweepError),
}
