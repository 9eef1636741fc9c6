//! An address that several processes share. Each has one socket of the address' [group](super::reuse_group), its
//! **slot**, which it may read; and holds all others of the group, so that none leaves while anybody is there. The socket
//! of [requests](super::requests) is everybody's.
//!
//! A process gets the sockets from one that has them (SCM_RIGHTS), over a Unix socket with an abstract name (unix(7)):
//! `softroce/USER/ADDRESS/SLOT`. To listen there is to have the slot. The name goes with the process, however it ends,
//! and is looked for in the same network namespace as the address. Processes join one at a time: `.../join` is taken
//! by who does.
#![allow(unsafe_code)]

use std::fmt::Display;
use std::io::{IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown,
};

use super::reuse_group;
use super::reuse_group::{REQUESTS, SLOTS, SOCKETS};
use super::sockets::{Socket, accept_incoming, block_signals, refuse_incoming};

/// How long a process waits for its turn to join.
const TURN_PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits for the sockets from another, which may have been stopped.
const HANDING_PATIENCE: Duration = Duration::from_secs(1);
/// How long an address may be held by sockets that nobody hands over.
const LEAVING_PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(2);

/// A process' part in an address, until it is dropped.
pub struct Membership {
    /// Which of the group's sockets is this process': the first bits of its QP numbers ([`super::slot_of`]).
    pub slot: u8,
    group: Arc<Group>,
    thread: Option<JoinHandle<()>>,
    /// The process that joined, which a child of it did not.
    process: u32,
}

struct Group {
    sockets: Vec<Socket>,
    listener: UnixListener,
    ends: AtomicBool,
}

/// Joins the processes that have `address`, or is the first. Returns the socket of its slot, which takes packets from
/// now on, and that of requests.
///
/// # Errors
/// The call that failed; EADDRINUSE if all slots are taken, or the address by somebody who does not share it.
pub fn join(address: IpAddr) -> io::Result<(Socket, Socket, Membership)> {
    let names = Names(address);
    let _turn = names.turn()?;
    let sockets = names.sockets()?;
    let (slot, listener) = names.free_slot()?;
    let own = sockets.get(slot).ok_or_else(all_taken)?.duplicate()?;
    let requests = sockets.get(REQUESTS).ok_or_else(all_taken)?.duplicate()?;
    accept_incoming(&own)?;
    let group = Arc::new(Group { sockets, listener, ends: AtomicBool::new(false) });
    let serving = Arc::clone(&group);
    let thread =
        thread::Builder::new().name("softroce-share".into()).spawn(move || serving.serve())?;
    let membership =
        Membership { slot: slot as u8, group, thread: Some(thread), process: std::process::id() };
    Ok((own, requests, membership))
}

/// The abstract name of something at an address.
pub(super) fn name_of(address: IpAddr, what: impl Display) -> io::Result<SocketAddr> {
    let user = rustix::process::geteuid().as_raw();
    SocketAddr::from_abstract_name(format!("softroce/{user}/{address}/{what}"))
}

struct Names(IpAddr);

impl Names {
    fn of(&self, what: impl Display) -> io::Result<SocketAddr> {
        name_of(self.0, what)
    }

    /// Waits until nobody else joins; nobody does while the result lives.
    fn turn(&self) -> io::Result<UnixListener> {
        let name = self.of("join")?;
        while_in_use(TURN_PATIENCE, || UnixListener::bind_addr(&name))
    }

    /// The group's sockets, of another process or new.
    fn sockets(&self) -> io::Result<Vec<Socket>> {
        // The last process that had them may be about to end.
        while_in_use(LEAVING_PATIENCE, || {
            let of_another = (0..SLOTS).find_map(|slot| ask(&self.of(slot).ok()?));
            of_another.map_or_else(|| reuse_group::make_group(self.0), Ok)
        })
    }

    fn free_slot(&self) -> io::Result<(usize, UnixListener)> {
        for slot in 0..SLOTS {
            match UnixListener::bind_addr(&self.of(slot)?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                outcome => return outcome.map(|listener| (slot, listener)),
            }
        }
        Err(all_taken())
    }
}

/// Tries again and again, for so long, while somebody has what is asked for.
fn while_in_use<T>(patience: Duration, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt() {
            Err(it) if it.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn all_taken() -> io::Error {
    io::Error::from_raw_os_error(libc::EADDRINUSE)
}

/// Asks the process that listens at `name` for the group's sockets. `None` if nobody does, or does not answer.
fn ask(name: &SocketAddr) -> Option<Vec<Socket>> {
    let stream = UnixStream::connect_addr(name).ok()?;
    // Who has the name may be another user, and its sockets something else.
    if peer_user(&stream).ok()? != rustix::process::geteuid().as_raw() {
        return None;
    }
    stream.set_read_timeout(Some(HANDING_PATIENCE)).ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(&stream, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
    let mut sockets = Vec::with_capacity(SOCKETS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors.map(Socket::from));
        }
    }
    (sockets.len() == SOCKETS).then_some(sockets)
}

impl Group {
    /// Hands the sockets to processes that join, until the end.
    fn serve(&self) {
        // Signals are for the program's threads.
        block_signals();
        while !self.ends.load(Ordering::SeqCst) {
            match self.listener.accept() {
                // Who does not get them asks another process, or gives up.
                Ok((stream, _)) => drop(self.hand_over(&stream)),
                Err(_) => sleep(PAUSE),
            }
        }
    }

    fn hand_over(&self, stream: &UnixStream) -> io::Result<()> {
        if peer_user(stream)? != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let sockets: Vec<BorrowedFd<'_>> = self.sockets.iter().map(Socket::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::net::sendmsg(stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// The user of the process at the other end (SO_PEERCRED).
fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to such a struct and to its length.
    let outcome = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(peer.uid)
}

impl Membership {
    /// The descriptors of the group and of the name: a child of the process lets them go.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.group.sockets.iter().map(Socket::fd).chain([self.group.listener.as_raw_fd()])
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // A child has the same sockets and no such thread: what it did here would be done to its parent.
        if std::process::id() != self.process {
            return;
        }
        if let Some(own) = self.group.sockets.get(usize::from(self.slot)) {
            // Should it fail, the slot's next owner gets packets that it does not know.
            let _ = refuse_incoming(own);
        }
        self.group.ends.store(true, Ordering::SeqCst);
        // Ends the waiting in `accept`.
        let _ = rustix::net::shutdown(&self.group.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // The thread has already reported a panic.
            drop(thread.join());
        }
    }
}
