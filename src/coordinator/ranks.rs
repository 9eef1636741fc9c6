//! The other ranks of a launcher's job, at rank 0: a port at which they join, and their links until a session takes them.
//! A rank whose session has ended comes again.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use machine::threads;
use protocol::error::{ConnectError, LinkError};
use protocol::failure::RunFailure;
use protocol::handshake::PeerInfo;
use protocol::handshakes::{Handshakes, Most, Newcomer};
use protocol::join::{Join, Joining};
use protocol::link::Link;
use protocol::message::SessionMessage;
use protocol::token::Token;
use serde_json::Value;

/// How long those that have not joined yet may take to hear that the job is over.
const LATECOMERS_LIMIT: Duration = Duration::from_secs(3);

/// The same where the user stops the job: a launcher stops the others too.
const STOPPED_LIMIT: Duration = Duration::from_millis(500);

/// How long all ranks may take to join. A launcher may load the program at each node first.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// How long a rank that has joined before may take to join again. It does so at once if it lives.
const AGAIN_LIMIT: Duration = Duration::from_secs(2);

/// Interval between two looks at the port and the ranks.
const TICK: Duration = Duration::from_millis(10);

/// Missing ranks that an error names.
const MOST_NAMED: usize = 8;

/// The other ranks of a job.
pub struct Ranks {
    slots: Arc<Slots>,
    port: u16,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ranks {
    /// Has ranks join at `listener` from now on. `own` is what rank 0 tells of itself, `hosts` has the hosts of all ranks or
    /// nothing, `facts` are told to each.
    ///
    /// # Errors
    /// The socket cannot be set not to block, or there is no thread.
    pub fn open(
        listener: TcpListener,
        own: Join,
        hosts: Vec<String>,
        token: Option<Token>,
        facts: Value,
    ) -> std::io::Result<Ranks> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let slots = Arc::new(Slots::new(own, hosts, token, facts));
        let ends = Arc::new(AtomicBool::new(false));
        let (for_thread, end) = (Arc::clone(&slots), Arc::clone(&ends));
        let thread = threads::spawn("ranks", move || accept_until(&end, &listener, &for_thread))?;
        Ok(Ranks { slots, port, ends, thread: Some(thread) })
    }

    /// Waits until all are there, and reports again and again how many of how many are, rank 0 included. Returns the
    /// names of all: their hosts, with the rank where several are on one.
    ///
    /// # Errors
    /// One does not come, or is none of this job.
    pub fn gather(
        &self,
        stop: &AtomicBool,
        mut report: impl FnMut(u32, u32),
    ) -> Result<Vec<String>, RunFailure> {
        self.wait(stop, &mut report)?;
        let mut state = self.slots.lock();
        state.is_complete = true;
        let of_others = state.slots.iter().map(|it| it.host.clone());
        Ok(names(
            std::iter::once(Some(self.slots.own.host.clone()))
                .chain(of_others)
                .map(Option::unwrap_or_default)
                .collect(),
        ))
    }

    /// The links to ranks 1, 2 and so on, once all are there.
    ///
    /// # Errors
    /// One does not come back.
    pub(crate) fn take(&self, stop: &AtomicBool) -> Result<Vec<Joined>, Missing> {
        for slot in &mut self.slots.lock().slots {
            slot.absent_since = Instant::now();
        }
        self.wait(stop, &mut |_, _| {})?;
        let mut state = self.slots.lock();
        Ok(state.slots.iter_mut().filter_map(Slot::leave).collect())
    }

    /// Has the links that were taken wait for a session again.
    pub(crate) fn put_back(&self, links: Vec<Joined>) {
        for (slot, link) in self.slots.lock().slots.iter_mut().zip(links) {
            slot.link = Some(link);
        }
    }

    /// The TCP port at which they join.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// All have been told goodbye: nobody comes back.
    pub(crate) fn release(&self) {
        for slot in &mut self.slots.lock().slots {
            slot.is_done = true;
        }
    }

    /// Says goodbye to all ranks that no session has taken.
    pub fn part(&self) {
        let parked: Vec<_> = {
            let mut state = self.slots.lock();
            state.slots.iter_mut().filter_map(Slot::leave).collect()
        };
        for (link, _) in &parked {
            // One that is gone needs no word.
            let _ = link.send(SessionMessage::Goodbye);
        }
    }

    /// Ends the job: all ranks that are there or come within a moment are told why, a shorter one where the user stopped it.
    pub fn dismiss(&self, why: &RunFailure, is_stopped: bool) {
        let (parked, limit) = {
            let mut state = self.slots.lock();
            state.over = Some(why.clone());
            let limit = if is_stopped {
                STOPPED_LIMIT
            } else if state.is_complete {
                AGAIN_LIMIT
            } else {
                LATECOMERS_LIMIT
            };
            let parked: Vec<_> = state.slots.iter_mut().filter_map(Slot::leave).collect();
            (parked, limit)
        };
        for (link, _) in &parked {
            why.tell(link);
        }
        drop(parked);
        // Each comes again, sees that the port is closed or hears the same; one that was never there would come for long.
        let started = Instant::now();
        while !self.slots.lock().slots.iter().all(|slot| slot.is_done) && started.elapsed() < limit
        {
            thread::sleep(TICK);
        }
    }

    fn wait(&self, stop: &AtomicBool, report: &mut dyn FnMut(u32, u32)) -> Result<(), Missing> {
        loop {
            if stop.load(Ordering::Relaxed) {
                let host = "the other ranks".to_owned();
                return Err(Missing::Connect(ConnectError::Interrupted { host }));
            }
            {
                let mut state = self.slots.lock();
                if let Some(failure) = &state.refused {
                    return Err(Missing::Refused(failure.clone()));
                }
                for (slot, rank) in state.slots.iter_mut().zip(1..) {
                    let link = slot.link.as_ref();
                    match link.map_or(Ok(()), |(link, _)| link.check()) {
                        Ok(()) => {}
                        Err(LinkError::Aborted { mut why, .. }) => {
                            let host = slot.host.as_deref().unwrap_or_default();
                            why.reason = format!("at rank {rank} ({host}): {}", why.reason);
                            return Err(Missing::Refused(why.into()));
                        }
                        Err(_) => drop(slot.leave()),
                    }
                }
                let here = state.slots.iter().filter(|it| it.link.is_some()).count();
                let joined = u32::try_from(here).unwrap_or(u32::MAX).saturating_add(1);
                report(joined, self.slots.own.ranks);
                if here == state.slots.len() {
                    return Ok(());
                }
                let mut absent = state.slots.iter().filter(|it| it.link.is_none());
                if let Some(late) = absent.find(|it| it.absent_since.elapsed() >= it.limit()) {
                    let (is_first, seconds) = (!late.was_here, late.limit().as_secs_f64());
                    let missing = self.slots.give_up(&mut state, !is_first);
                    return Err(Missing::Connect(ConnectError::NotJoined {
                        missing,
                        unproven: state.unproven.clone(),
                        is_first,
                        seconds,
                        port: self.port,
                    }));
                }
            }
            thread::sleep(TICK);
        }
    }
}

/// Why not all are there.
pub(crate) enum Missing {
    /// A rank did not come within its limit.
    Connect(ConnectError),
    /// One is none of this job.
    Refused(RunFailure),
}

impl From<Missing> for RunFailure {
    fn from(missing: Missing) -> RunFailure {
        match missing {
            Missing::Connect(error) => error.into(),
            Missing::Refused(failure) => failure,
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Names of nodes: their hosts, with the number of the rank where several are on one.
fn names(hosts: Vec<String>) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for host in &hosts {
        *count.entry(host.clone()).or_default() += 1;
    }
    hosts
        .into_iter()
        .enumerate()
        .map(|(rank, host)| match count.get(&host) {
            Some(2..) => format!("{host}.{rank}"),
            _ => host,
        })
        .collect()
}

/// Rank 0 checks each other rank that joins, and keeps its link in a slot until it is taken.
struct Slots {
    /// Rank 0's own job, number, version and options.
    own: Join,
    token: Option<Token>,
    /// Facts about rank 0's host.
    facts: Value,
    /// The launcher's name for each rank's host; empty if unknown.
    hosts: Vec<String>,
    state: Mutex<State>,
}

/// The slots, and how the job stands.
struct State {
    /// All ranks have been there at once.
    is_complete: bool,
    /// Why the ranks are not of one job.
    refused: Option<RunFailure>,
    /// The answer to ranks that come now.
    over: Option<RunFailure>,
    /// The name that a rank without proof of the token gave itself.
    unproven: Option<String>,
    /// One for each rank but 0.
    slots: Vec<Slot>,
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
struct Slot {
    host: Option<String>,
    link: Option<Joined>,
    was_here: bool,
    absent_since: Instant,
    /// It knows that the job is over, or is not waited for any more.
    is_done: bool,
}

impl Slot {
    /// Its link, which it is without from now on.
    fn leave(&mut self) -> Option<Joined> {
        self.absent_since = Instant::now();
        self.link.take()
    }

    /// How long it may be absent.
    fn limit(&self) -> Duration {
        if self.was_here { AGAIN_LIMIT } else { FIRST_LIMIT }
    }
}

impl Slots {
    fn new(own: Join, hosts: Vec<String>, token: Option<Token>, facts: Value) -> Slots {
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits no more for those that are missing, and names them: those that were here, or those that never were.
    fn give_up(&self, state: &mut State, were_here: bool) -> String {
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
fn accept_until(ends: &Arc<AtomicBool>, listener: &TcpListener, shared: &Arc<Slots>) {
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

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
