//! Whether a link lives, for those who do not own it.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::shared::Shared;

/// What shows whether a link lives. It keeps the socket open, so it goes with the link.
#[derive(Clone, Debug)]
pub struct Pulse(pub(super) Arc<Shared>);

/// What a [`Pulse`] shows at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// The peer has said goodbye, or is gone, whether this end has read that yet or not.
    pub is_ending: bool,
    /// How often something came from the peer.
    pub heard: u64,
}

impl Pulse {
    pub fn signs(&self) -> Signs {
        let shared = &*self.0;
        let has_failed = shared.failure.get().is_some();
        Signs {
            is_ending: has_failed
                || shared.is_parting.load(Ordering::Relaxed)
                || has_hung_up(&shared.stream),
            heard: shared.heard.load(Ordering::Relaxed),
        }
    }
}

/// Whether the other end has closed the connection or is gone; what it sent before may be unread.
pub fn has_hung_up(stream: &TcpStream) -> bool {
    let mut sockets = [PollFd::new(stream, PollFlags::RDHUP)];
    // That the call was interrupted says nothing; whoever asks does so again.
    poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
