//! Packets that no device of ours sends, from a peer that is only a socket: broken, hostile, or of other makes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod admission;
mod congestion;
#[path = "../support/counter.rs"]
mod counter;
mod datagrams;
mod device;
mod failures;
mod fetches;
mod peer;
mod requests;
mod strangers;
