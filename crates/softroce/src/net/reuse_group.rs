//! The sockets of an address that several processes share: a group (SO_REUSEPORT) of which the kernel picks the one for
//! a packet by the first bits of its destination QPN; and for messages of connection managers, which all go to QPN 1, by
//! the first bits of the number that the receiver has given to the connection. Requests, which have no such number yet,
//! have a socket of their own, from which any process takes them. It must not know processes.
//!
//! The kernel knows a socket of a group by its place, and puts the last one into the place of one that leaves
//! (`reuseport_detach_sock` in Linux' `net/core/sock_reuseport.c`). So all that there will ever be are made at once, and
//! whoever uses one holds them all.

use std::io;
use std::iter::repeat_with;
use std::net::IpAddr;

use libc::sock_filter;

use super::sockets::{Socket, instruction, pick_by, refuse_incoming, skip_if_equal};
use crate::wire::cm::{GSI_QPN, SIDR_REP, SIDR_REQ};
use crate::wire::{Bth, Deth, UDP_PORT};

/// The bits of a number that say whose it is, its highest.
const SLOT_BITS: u32 = 5;
/// Sockets of a group that are a process's own.
pub const SLOTS: usize = 1 << SLOT_BITS;
/// The place of the socket for requests, behind them.
pub const REQUESTS: usize = SLOTS;
/// All sockets of a group.
pub const SOCKETS: usize = SLOTS + 1;
const QPN_BITS: u32 = 24;
/// Where management datagrams begin.
const MAD_AT: usize = Bth::BYTES + Deth::BYTES;
/// Where they say what message they are.
const ATTRIBUTE_AT: usize = MAD_AT + 16;
/// Where they have the sender's number of the connection (12.6), in an answer about a datagram service the receiver's.
const LOCAL_COMM_ID_AT: usize = MAD_AT + 24;
/// Where they have the receiver's. In a request, which has none yet, these bytes are 0.
const REMOTE_COMM_ID_AT: usize = LOCAL_COMM_ID_AT + 4;

/// The slot in a QP number.
pub const fn slot_of(qpn: u32) -> u8 {
    (qpn >> (QPN_BITS - SLOT_BITS)) as u8 & (SLOTS - 1) as u8
}

/// The QP number with another slot.
pub const fn with_slot(qpn: u32, slot: u8) -> u32 {
    let own_bits = QPN_BITS - SLOT_BITS;
    (slot as u32) << own_bits | qpn & ((1 << own_bits) - 1)
}

/// Makes the group of an address. None of its sockets takes packets yet.
///
/// # Errors
/// The socket call that failed; EADDRINUSE if somebody has the address, be it another group.
pub fn make_group(address: IpAddr) -> io::Result<Vec<Socket>> {
    let name = (address, UDP_PORT).into();
    // Without the option it fails if there is a group already, which this one would enlarge.
    Socket::udp(address)?.bind(name)?;
    let sockets: Vec<Socket> = repeat_with(|| {
        let socket = Socket::udp(address)?;
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        refuse_incoming(&socket)?;
        socket.bind(name)?;
        Ok(socket)
    })
    .take(SOCKETS)
    .collect::<io::Result<_>>()?;
    if let Some(any) = sockets.first() {
        pick_by(any, &mut slot_of_packet())?;
    }
    Ok(sockets)
}

fn slot_of_packet() -> [sock_filter; 14] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;
    const SHIFT: u32 = libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K;
    const PICK: sock_filter = instruction(libc::BPF_RET | libc::BPF_A, 0);
    let qpn_mask = (1 << QPN_BITS) - 1;
    [
        // Four bytes, of which the first is reserved.
        instruction(LOAD | libc::BPF_W, Bth::DESTINATION_QPN_AT as u32 - 1),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, qpn_mask),
        skip_if_equal(GSI_QPN, 2),
        instruction(SHIFT, QPN_BITS - SLOT_BITS),
        PICK,
        instruction(LOAD | libc::BPF_H, ATTRIBUTE_AT as u32),
        // A request for a datagram service has something else where others have the receiver's number.
        skip_if_equal(SIDR_REQ.into(), 6),
        skip_if_equal(SIDR_REP.into(), 2),
        instruction(LOAD | libc::BPF_W, REMOTE_COMM_ID_AT as u32),
        sock_filter { jf: 1, ..skip_if_equal(0, 3) },
        instruction(LOAD | libc::BPF_W, LOCAL_COMM_ID_AT as u32),
        instruction(SHIFT, u32::BITS - SLOT_BITS),
        PICK,
        instruction(libc::BPF_RET | libc::BPF_K, REQUESTS as u32),
    ]
}
