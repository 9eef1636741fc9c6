//! What can go wrong on a link, as types. Each text names the operation and the peer; each `hint` says what to do next.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use machine::threads;
use thiserror::Error;

pub use crate::handshake_error::{AcceptError, ConnectError, ExchangeError};
use crate::message::NodeFailure;

pub(crate) const SAME_VERSION: &str = "install the same version of rocebench on both ends";

/// A frame that could not be read or written.
#[derive(Clone, Debug, Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum FrameError {
    /// The stream ended between two frames.
    #[error("the connection was closed")]
    Closed,
    #[error("the connection ended inside a frame, after {got_bytes} of {expected_bytes} bytes")]
    Truncated {
        /// Bytes of the length or of the message that had come.
        got_bytes: usize,
        expected_bytes: usize,
    },
    #[error("a frame of {len_bytes} bytes is larger than the limit of {limit_bytes} bytes")]
    Oversized { len_bytes: u64, limit_bytes: usize },
    #[error("a frame is empty")]
    Empty,
    /// What it would become in memory is out of proportion.
    #[error("a frame has more than {limit} {what}, more than the protocol ever sends")]
    Excessive { what: &'static str, limit: u64 },
    #[error("a frame is not JSON: {reason}")]
    NotJson { reason: String },
    #[error("a frame is not a message of the protocol: {reason}")]
    NotMessage { reason: String },
    /// More frames came than are ever due at once.
    #[error(
        "{frames} frames ({bytes} bytes) wait unread, more than the protocol ever sends at once"
    )]
    Flood { frames: usize, bytes: usize },
    #[error("{0}")]
    Io(#[source] Arc<io::Error>),
}

/// Why an established link cannot go on, or why one wait on it ended.
#[derive(Clone, Debug, Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum LinkError {
    #[error("{peer} closed the connection")]
    PeerClosed { peer: SocketAddr },
    /// Nothing was heard, not even heart-beats, or nothing was taken by the other end.
    #[error("{peer} has been silent for {seconds:.1} s")]
    PeerSilent { peer: SocketAddr, seconds: f64 },
    #[error("{peer} is alive but sent nothing for {seconds:.1} s")]
    Overdue { peer: SocketAddr, seconds: f64 },
    #[error("reading from {peer}: {source}")]
    Protocol { peer: SocketAddr, source: FrameError },
    /// What is to be sent cannot be framed; nothing was sent and the link still works.
    #[error("sending `{kind}` to {peer}: {source}")]
    Unsendable { peer: SocketAddr, kind: &'static str, source: FrameError },
    #[error("{peer} sent `{got}` instead of `{expected}`")]
    Unexpected { peer: SocketAddr, expected: &'static str, got: &'static str },
    #[error("{peer} gave up: {}", why.reason)]
    Aborted { peer: SocketAddr, why: NodeFailure },
    #[error("interrupted while waiting for {peer}")]
    Interrupted { peer: SocketAddr },
    #[error("{operation} {peer}: {source}")]
    Io {
        /// The operation, with its preposition: `sending to`.
        operation: &'static str,
        peer: SocketAddr,
        source: Arc<io::Error>,
    },
}

impl LinkError {
    /// What to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            LinkError::PeerClosed { .. } => Some(
                "read the other end's output for the cause, start it again and repeat the run"
                    .into(),
            ),
            LinkError::PeerSilent { .. } => Some(
                "check that the other host is up and that the network between both works".into(),
            ),
            LinkError::Overdue { .. } => Some("look at the other end: it may lack CPU time".into()),
            LinkError::Protocol { .. } | LinkError::Unexpected { .. } => Some(SAME_VERSION.into()),
            LinkError::Unsendable { .. } => Some("run fewer QPs, or smaller cases".into()),
            LinkError::Aborted { why, .. } => why.hint.clone(),
            LinkError::Io { source, .. } => threads::remedy(&**source).map(str::to_owned),
            LinkError::Interrupted { .. } => None,
        }
    }

    /// Whether the fault is in what was asked for (exit code 2), not in the run (1).
    pub fn bad_input(&self) -> bool {
        matches!(self, LinkError::Aborted { why, .. } if why.bad_input)
    }

    /// Whether the peer is gone or can no longer be understood, so that nothing more can come from it.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            LinkError::Overdue { .. }
                | LinkError::Interrupted { .. }
                | LinkError::Unsendable { .. }
        )
    }
}
