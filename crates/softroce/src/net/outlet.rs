//! A sending socket, its port, and what waits for room in it. It is connected to the first destination that it sends
//! to, so that the kernel keeps the route; to others each datagram looks it up.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use super::backlog::Backlog;
use super::flow::Flow;
use super::outgoing::Outgoing;
use super::sockets::{SendOptions, Socket};

/// A socket of the pool.
pub struct Outlet {
    socket: Socket,
    /// Its port.
    pub port: u16,
    /// What waits for room in it.
    pub backlog: Backlog,
    /// The destination that it is connected to; `None` if the first one could not be.
    connected_to: OnceLock<Option<SocketAddr>>,
}

impl Outlet {
    /// An outlet that has sent nothing.
    pub fn new(socket: Socket, port: u16) -> Outlet {
        Outlet {
            socket,
            port,
            backlog: Backlog::default(),
            connected_to: OnceLock::new(),
        }
    }

    /// The socket's descriptor.
    pub fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    /// The time to live or hop limit of packets that set none.
    pub fn hop_limit(&self) -> io::Result<u8> {
        self.socket.hop_limit()
    }

    /// Sends in one system call, as a whole or not at all; never blocks.
    pub fn send(&self, outgoing: &impl Outgoing, flow: &Flow) -> io::Result<()> {
        let destination = flow.destination;
        let connect = || self.socket.connect(destination).ok().map(|()| destination);
        let options = SendOptions {
            is_connected: *self.connected_to.get_or_init(connect) == Some(destination),
            ..flow.send_options()
        };
        match outgoing.send_on(&self.socket, options) {
            // A connected socket reports an ICMP error of an earlier datagram by the next call, which sends nothing (udp(7)).
            Err(error) if options.is_connected && error.kind() != io::ErrorKind::WouldBlock => {
                outgoing.send_on(&self.socket, options)
            }
            sent => sent,
        }
    }
}
