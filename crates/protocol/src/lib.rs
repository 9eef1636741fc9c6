//! What travels between a coordinator and its nodes: frames, links with heart-beats, the handshake, messages, and failures
//! as they are told.

pub mod connection;
pub mod endpoints;
pub mod error;
pub mod failure;
pub mod frame;
pub mod handshake;
pub mod handshakes;
pub mod join;
pub mod lesson;
pub mod link;
mod link_threads;
pub mod message;
pub mod node_report;
pub mod token;

/// Version of the protocol between the two ends of a link. It rises with every change that an older end would
/// misread; both ends must have the same.
pub const PROTOCOL_VERSION: u32 = 5;

/// The version of the program, as peers tell each other.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");
