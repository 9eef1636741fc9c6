//! Messages of the connection manager: datagrams of 256 bytes (MADs) between the QPs 1 of two ports (InfiniBand
//! specification volume 1, 12.6 and 13.4), and the header by which IP addresses travel in a request (annex A11). It
//! must not know states, timers or sockets.

mod fields;
mod ip_service;
mod mad;
mod messages;
mod req;
mod sidr;

pub use ip_service::{
    IP_HEADER_BYTES, IpHeader, PROGRAM_DATA_BYTES, TCP_PORT_SPACE, UDP_PORT_SPACE,
};
pub use mad::{CmMad, MAD_BYTES};
pub use messages::{
    Comms, Dreq, Handled, Message, Mra, REJ_DATA_BYTES, REP_DATA_BYTES, Rej, RejReason, Rep,
};
pub use req::{REQ_DATA_BYTES, Req, Transport};
pub use sidr::{
    SIDR_REP, SIDR_REP_DATA_BYTES, SIDR_REQ, SIDR_REQ_DATA_BYTES, SidrRep, SidrReq, SidrStatus,
};

/// The QP of the general services: connection managers send from it and to it.
pub const GSI_QPN: u32 = 1;
/// The queue key of that QP (specification 10.2.5.1).
pub const GSI_QKEY: u32 = 0x8001_0000;
