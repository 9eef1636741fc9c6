//! The one session of a server: who has it, and how one who comes meanwhile waits for its end.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::handshake::SlotError;
use protocol::link::{Link, Pulse};
use protocol::message::BusyInfo;
use protocol::newcomer::Newcomer;

/// How long one who waits does so before looking again at the session that is in the way.
const TICK: Duration = Duration::from_millis(20);

/// The place of the session.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    freed: Condvar,
    /// There is one session only.
    once: bool,
}

#[derive(Debug)]
enum State {
    Free,
    Held(Holder),
    /// The only session is over.
    Over,
}

#[derive(Debug)]
struct Holder {
    client: SocketAddr,
    since: Instant,
    /// `None` during the handshake.
    link: Option<Pulse>,
}

/// The session, given back when dropped.
#[derive(Debug)]
pub(super) struct SlotGuard(Arc<Slot>);

impl Slot {
    pub(super) fn new(once: bool) -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::new(State::Free), freed: Condvar::new(), once })
    }

    /// Takes the slot for `client`; where it may soon be free, waits a moment for that.
    ///
    /// # Errors
    /// It is taken: for good, or the client is to ask again.
    pub(super) fn enter(
        self: &Arc<Self>,
        client: SocketAddr,
        newcomer: &mut Newcomer,
    ) -> Result<SlotGuard, SlotError> {
        let mut state = self.lock();
        let now = Instant::now();
        match &*state {
            State::Free => {
                *state = State::Held(Holder { client, since: now, link: None });
                Ok(SlotGuard(Arc::clone(self)))
            }
            State::Over => Err(SlotError::Over),
            State::Held(Holder { client, since, link }) => {
                if newcomer.may_wait(link.as_ref().map(Pulse::signs), now) {
                    let waited = self.freed.wait_timeout(state, TICK);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                    return Err(SlotError::Ending);
                }
                Err(SlotError::Busy(BusyInfo {
                    client: client.to_string(),
                    since_seconds: since.elapsed().as_secs(),
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotGuard {
    /// The handshake is done: from now on this link shows whether the session lives.
    pub(super) fn serves(&self, link: &Link) {
        if let State::Held(holder) = &mut *self.0.lock() {
            holder.link = Some(link.pulse());
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let was_session = matches!(&*state, State::Held(holder) if holder.link.is_some());
        *state = if was_session && self.0.once { State::Over } else { State::Free };
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn newcomer() -> Newcomer {
        Newcomer::new(Instant::now())
    }

    /// A link, and its peer, which says nothing.
    fn link() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, address) = listener.accept().unwrap();
        (Link::new(near, address).unwrap(), peer)
    }

    #[test]
    fn one_is_asked_to_wait_until_a_handshake_has_failed() {
        let slot = Slot::new(true);
        let first = slot.enter(address(1), &mut newcomer()).unwrap();
        let mut second = newcomer();
        assert_eq!(slot.enter(address(2), &mut second).unwrap_err(), SlotError::Ending);
        drop(first);
        slot.enter(address(2), &mut second).unwrap();
    }

    #[test]
    fn a_session_whose_client_has_closed_is_waited_for() {
        let slot = Slot::new(false);
        let first = slot.enter(address(1), &mut newcomer()).unwrap();
        let (link, peer) = link();
        first.serves(&link);
        let mut second = newcomer();
        drop(peer);
        assert_eq!(slot.enter(address(2), &mut second).unwrap_err(), SlotError::Ending);
        drop(first);
        slot.enter(address(2), &mut second).unwrap();
    }

    #[test]
    fn after_the_only_session_there_is_none() {
        let slot = Slot::new(true);
        let only = slot.enter(address(1), &mut newcomer()).unwrap();
        let (link, _peer) = link();
        only.serves(&link);
        drop(only);
        assert_eq!(slot.enter(address(2), &mut newcomer()).unwrap_err(), SlotError::Over);
    }

    #[test]
    fn one_who_has_waited_long_enough_hears_who_has_the_slot() {
        let slot = Slot::new(false);
        let first = address(1);
        let _held = slot.enter(first, &mut newcomer()).unwrap();
        let long_ago = Instant::now().checked_sub(protocol::newcomer::END_LIMIT).unwrap();
        let busy = slot.enter(address(2), &mut Newcomer::new(long_ago)).unwrap_err();
        assert!(
            matches!(busy, SlotError::Busy(BusyInfo { client, .. }) if client == first.to_string())
        );
    }
}
