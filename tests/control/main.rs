//! What travels between two ends, over real sockets on loopback. No device.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod handshake;
mod link;
