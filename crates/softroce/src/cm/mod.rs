//! The connection manager of a port: connections from the request to the end of their time wait, as plain data that is
//! given messages and the time, and hands out messages and events (InfiniBand specification volume 1, chapter 12).
//!
//! ```text
//! asks:     connect → REQ sent → REP received → establish → established
//! answers:  REQ received → accept → REP sent → RTU → established
//! both:     disconnect → DREQ sent → DREP → time wait → forgotten
//! ```
//!
//! A datagram service is looked up by one request and one reply, in which the program is told a QP:
//!
//! ```text
//! asks:     look up → SIDR_REQ sent → found
//! answers:  SIDR_REQ received → answer → answered, until the program lets go of it
//! ```

mod connection;
mod manager;
#[cfg(test)]
mod tests;

pub use connection::{Asker, Connection, Datagram, Event, Happening, Output, Unheard};
pub use manager::{CmError, Manager};
