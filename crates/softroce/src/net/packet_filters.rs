//! Programs that the kernel runs for each packet (classic BPF): whether a socket takes it, and which socket of a group
//! gets it. It must not know why.
#![allow(unsafe_code)]

use std::io;

use libc::{c_int, sock_filter, socklen_t};

use super::sockets::Socket;

/// An instruction of a program.
pub const fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips so many instructions if the accumulator is `k`.
pub const fn skip_if_equal(k: u32, skipped: u8) -> sock_filter {
    sock_filter { jt: skipped, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

/// Installs a filter that drops all incoming packets, so that they take no memory.
pub fn refuse_incoming(socket: &Socket) -> io::Result<()> {
    let mut accept_no_byte = [instruction(libc::BPF_RET | libc::BPF_K, 0)];
    attach(socket, libc::SO_ATTACH_FILTER, &mut accept_no_byte)
}

/// Removes the filter of [`refuse_incoming`]; without one nothing happens.
pub fn accept_incoming(socket: &Socket) -> io::Result<()> {
    match socket.set(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        outcome => outcome,
    }
}

/// Gives each packet for the address of this socket to the socket of its group (SO_REUSEPORT) whose place the program
/// returns. A place that no socket has means any socket of the group, and a packet too short for the program the first.
pub fn pick_by(socket: &Socket, program: &mut [sock_filter]) -> io::Result<()> {
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

fn attach(socket: &Socket, option: c_int, program: &mut [sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let length = size_of::<libc::sock_fprog>() as socklen_t;
    // SAFETY: the program has as many instructions as it says; the kernel copies them.
    let outcome = unsafe {
        libc::setsockopt(socket.fd(), libc::SOL_SOCKET, option, (&raw const program).cast(), length)
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
