//! What a connection manager tells its program.

use std::net::IpAddr;

use crate::wire::cm::{RejReason, Rep, Req, SidrRep, SidrReq};

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection's number at this manager.
    pub comm: u32,
    pub happening: Happening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    pub listener: u64,
    pub peer: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A new connection is asked for.
    Requested(Asker, Box<Req>),
    /// The QP of a datagram service is asked for.
    LookedUp(Asker, Box<SidrReq>),
    /// The QP of a datagram service, or why there is none.
    Found(Box<SidrRep>),
    /// The request was accepted; the program has to establish the connection.
    Replied(Box<Rep>),
    /// The other end knows that it was accepted.
    Established,
    /// The other end refused it, with the private data of its program.
    Rejected(RejReason, Box<[u8]>),
    /// The other end does not answer.
    Unreachable,
    Disconnected,
    TimeWaitOver,
}
