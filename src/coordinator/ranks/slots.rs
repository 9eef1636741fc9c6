//! Rank 0 keeps a slot for each other rank: it checks a rank that joins, and keeps its link in the slot until it is taken.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use machine::threads;
use protocol::failure::RunFailure;
use protocol::handshake::PeerInfo;
use protocol::handshakes::{Handshakes, Most};
use protocol::join::Joining;
use protocol::join_message::Join;
use protocol::link::Link;
use protocol::newcomer::Newcomer;
use protocol::token::Token;

/// How long all ranks may take to join. A launcher may load the program at each node first.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// How long a rank that has joined before may take to join again. It does so at once if it lives.
pub(super) const AGAIN_LIMIT: Duration = Duration::from_secs(2);

/// Interval between two looks at the port and the ranks.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Missing ranks that an error names.
const MOST_NAMED: usize = 8;

/// The slots of all ranks but 0, and what each rank must have.
pub(super) struct Slots {
    /// Rank 0's own job, number, version and options.
    pub(super) own: Join,
    token: Option<Token>,
    /// Facts about rank 0's host.
    facts: Value,
    /// The launcher's name for each rank's host; empty if unknown.
    hosts: Vec<String>,
    state: Mutex<State>,
}

/// The slots, and how the job stands.
pub(super) struct State {
    /// All ranks have been there at once.
    pub(super) is_complete: bool,
    /// Why the ranks are not of one job.
    pub(super) refused: Option<RunFailure>,
    /// The answer to ranks that come now.
    pub(super) over: Option<RunFailure>,
    /// The name that a rank without proof of the token gave itself.
    pub(super) unproven: Option<String>,
    /// One for each rank but 0.
    pub(super) slots: Vec<Slot>,
}

/// A rank that has joined.
pub(crate) type Joined = (Link, PeerInfo);

impl State {
    /// Refuses the job for a rank that is not of it, unless all ranks have been there.
    fn refuse(&mut self, why: &RunFailure) {
        if !self.is_complete {
            self.refused.get_or_insert_with(|| why.clone());
        }
    }
}

/// The place of one rank.
pub(super) struct Slot {
    pub(super) host: Option<String>,
    pub(super) link: Option<Joined>,
    pub(super) was_here: bool,
    pub(super) absent_since: Instant,
    /// It knows that the job is over, or is not waited for any more.
    pub(super) is_done: bool,
}

impl Slot {
    /// Its link, which it is without from now on.
    pub(super) fn leave(&mut self) -> Option<Joined> {
        self.absent_since = Instant::now();
        self.link.take()
    }

    /// How long it may be absent.
    pub(super) fn limit(&self) -> Duration {
        if self.was_here { AGAIN_LIMIT } else { FIRST_LIMIT }
    }
}

impl Slots {
    pub(super) fn new(own: Join, hosts: Vec<String>, token: Option<Token>, facts: Value) -> Slots {
        Slots {
            state: Mutex::new(State {
                is_complete: false,
                refused: None,
                over: None,
                unproven: None,
                slots: (1..own.ranks)
                    .map(|_| Slot {
                        host: None,
                        link: None,
                        was_here: false,
                        absent_since: Instant::now(),
                        is_done: false,
                    })
                    .collect(),
            }),
            own,
            token,
            facts,
            hosts,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits no more for those that are missing, and names them: those that were here, or those that never were.
    pub(super) fn give_up(&self, state: &mut State, were_here: bool) -> String {
        let mut named = Vec::new();
        let mut more = 0;
        for (index, slot) in state.slots.iter_mut().enumerate() {
            if slot.link.is_some() {
                continue;
            }
            slot.is_done = true;
            if slot.was_here != were_here {
                continue;
            }
            let rank = index + 1;
            let host = slot.host.as_ref().or_else(|| self.hosts.get(rank));
            match host {
                _ if named.len() == MOST_NAMED => more += 1,
                Some(host) => named.push(format!("rank {rank} ({host})")),
                None => named.push(format!("rank {rank}")),
            }
        }
        let mut text = named.join(", ");
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }

    /// Takes one that has connected, or tells it why not.
    fn take(&self, stream: TcpStream, ends: &AtomicBool) {
        let joining = match Joining::take(stream, ends) {
            Ok(joining) => joining,
            Err(error) => {
                tracing::debug!(%error, "a connection did not become a rank");
                return;
            }
        };
        let join = joining.join.clone();
        // With a token nothing is judged, told or ended before it is proved: anybody may say anything.
        let may_be_anybody = self.token.is_some();
        if !may_be_anybody && let Err(why) = self.admit(&join, &mut None) {
            joining.refuse(&why);
            self.knows(&join);
            return;
        }
        match joining.greet(self.token.as_ref(), &self.facts) {
            Ok(joined) => {
                let mut joined = Some(joined);
                if let (Err(why), Some((link, _))) = (self.admit(&join, &mut joined), &joined) {
                    why.tell(link);
                    self.knows(&join);
                }
            }
            Err(error) if error.bad_input() && !may_be_anybody => {
                let mut state = self.lock();
                state.refuse(&RunFailure {
                    message: format!("{}: {error}", join.who()),
                    ..RunFailure::from(error)
                });
            }
            Err(error) => {
                tracing::warn!(%error, who = join.who(), "a rank did not join");
                if may_be_anybody && error.bad_input() {
                    self.lock().unproven = Some(join.who());
                }
            }
        }
    }

    /// One that was refused has heard why, and does not come again.
    fn knows(&self, join: &Join) {
        let mut state = self.lock();
        if let Some(slot) = state.slots.get_mut((join.rank as usize).wrapping_sub(1)) {
            slot.is_done |= slot.link.is_none();
        }
    }

    /// Looks whether a rank is to be taken, and where it has come with its link, takes that; waits where the link that it had
    /// may be over.
    ///
    /// # Errors
    /// Why not. Before all are there, that ends the job.
    fn admit(&self, join: &Join, joined: &mut Option<Joined>) -> Result<(), RunFailure> {
        let mut newcomer = Newcomer::new(Instant::now());
        loop {
            let mut state = self.lock();
            if let Some(why) = &state.over {
                return Err(why.clone());
            }
            if let Some((text, hint)) = join.contradiction(&self.own) {
                let why = RunFailure::refused(text, hint);
                state.refuse(&why);
                return Err(why);
            }
            let slot = &mut state.slots[join.rank as usize - 1];
            let other = slot.link.as_ref().map(|(link, _)| link.pulse().signs());
            if other.is_none_or(|other| other.is_ending) {
                if joined.is_some() {
                    slot.was_here = true;
                    slot.host = Some(join.host.clone());
                    slot.link = joined.take();
                }
                return Ok(());
            }
            if !newcomer.may_wait(other, Instant::now()) {
                let first = slot.host.as_deref().unwrap_or_default();
                let text =
                    format!("rank {} joined twice, from {first} and from {}", join.rank, join.host);
                let why = RunFailure::refused(text, "start all ranks as one job, once");
                state.refuse(&why);
                return Err(why);
            }
            drop(state);
            thread::sleep(TICK);
        }
    }
}

/// Has ranks join until `ends` is set.
pub(super) fn accept_until(ends: &Arc<AtomicBool>, listener: &TcpListener, shared: &Arc<Slots>) {
    let handshakes = Handshakes::new(Most::awaited(shared.own.ranks as usize));
    while !ends.load(Ordering::Relaxed) {
        // Errors of accepting are of one connection, or of a moment.
        let accepted = if handshakes.is_full() { None } else { listener.accept().ok() };
        let Some((stream, peer)) = accepted else {
            thread::sleep(TICK);
            continue;
        };
        let (for_thread, end) = (Arc::clone(shared), Arc::clone(ends));
        // It counts until the closure is dropped, which a thread that cannot be had does at once.
        let spawned = handshakes.take(&stream, peer).and_then(|handshake| {
            Ok(threads::spawn("join", move || {
                for_thread.take(stream, &end);
                drop(handshake);
            })?)
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a rank that joins");
        }
    }
}
