//! RoCEv2 in user space. What is here so far is the wire format: packets as they stand in UDP datagrams
//! to port 4791, parsed and built, with their invariant CRC.

pub mod net;
pub mod transport;
pub mod verbs;
pub mod wire;
