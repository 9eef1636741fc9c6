//! What packets leave and come by: a UDP socket, or a network in memory. It must not know packets.
#![allow(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::slice;
use std::sync::Arc;

use super::fabric::Fabric;
use super::sockets::{Batch, SendOptions, Socket};

const NONE: RawFd = -1;

pub enum Attachment {
    /// A socket of this machine.
    Udp(Socket),
    /// A place in a network in memory, with its address there.
    Fabric(Arc<Fabric>, SocketAddr),
}

impl Attachment {
    /// The socket's descriptor; -1 for none.
    pub fn fd(&self) -> RawFd {
        match self {
            Attachment::Udp(socket) => socket.fd(),
            Attachment::Fabric(..) => NONE,
        }
    }

    /// The time to live or hop limit of packets that set none.
    pub fn hop_limit(&self) -> io::Result<u8> {
        match self {
            Attachment::Udp(socket) => socket.hop_limit(),
            Attachment::Fabric(..) => Ok(64),
        }
    }

    /// Sends the pieces as one datagram, or as one split into segments; never blocks.
    ///
    /// # Safety
    /// The pieces are readable.
    pub unsafe fn send(&self, pieces: &[libc::iovec], options: &SendOptions) -> io::Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Attachment::Udp(socket) => unsafe { socket.send(pieces, options) },
            Attachment::Fabric(fabric, source) => {
                let mut bytes = Vec::with_capacity(pieces.iter().map(|it| it.iov_len).sum());
                for piece in pieces {
                    // SAFETY: the caller's promise.
                    bytes.extend_from_slice(unsafe {
                        slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len)
                    });
                }
                fabric.send(*source, &bytes, options);
                Ok(())
            }
        }
    }

    /// Sends the bytes as one datagram, or as one split into segments; never blocks.
    pub fn send_bytes(&self, bytes: &[u8], options: &SendOptions) -> io::Result<()> {
        let piece =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the bytes are borrowed until the call is over.
        unsafe { self.send(&[piece], options) }
    }

    /// Receives up to `most` datagrams, at most [`super::sockets::BATCH`]; returns their number, 0 if none wait.
    pub fn receive(&self, batch: &mut Batch, most: usize) -> io::Result<usize> {
        match self {
            Attachment::Udp(socket) => socket.receive(batch, most),
            Attachment::Fabric(fabric, own) => Ok(fabric.receive(own.ip(), batch, most)),
        }
    }
}
