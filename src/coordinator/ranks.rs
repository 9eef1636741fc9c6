//! The other ranks of a launcher's job, at rank 0: a port at which they join, and their links until a session takes them.
//! A rank whose session has ended comes again.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use machine::threads;
use protocol::error::{ConnectError, LinkError};
use protocol::failure::RunFailure;
use protocol::join_message::Join;
use protocol::message::Message;
use protocol::token::Token;
pub(crate) use slots::Joined;
use slots::{AGAIN_LIMIT, Slot, Slots, TICK, accept_until};

mod slots;

/// How long those that have not joined yet may take to hear that the job is over.
const LATECOMERS_LIMIT: Duration = Duration::from_secs(3);

/// The same where the user stops the job: a launcher stops the others too.
const STOPPED_LIMIT: Duration = Duration::from_millis(500);

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

    /// Waits until all are there, and tells `told` again and again how many of how many are, rank 0 included. Returns the
    /// names of all: their hosts, with the rank where several are on one.
    ///
    /// # Errors
    /// One does not come, or is none of this job.
    pub fn gather(
        &self,
        stop: &AtomicBool,
        mut told: impl FnMut(u32, u32),
    ) -> Result<Vec<String>, RunFailure> {
        self.wait(stop, &mut told)?;
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
            let _ = link.send(&Message::Goodbye);
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
    /// One did not come.
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

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
