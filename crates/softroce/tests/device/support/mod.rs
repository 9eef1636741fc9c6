//! What the tests share: ends of connections, a peer made of packets, and waiting.

pub mod end;
pub mod look;
pub mod peer;
pub mod raw;
