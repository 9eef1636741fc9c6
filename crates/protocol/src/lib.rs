//! What travels between a coordinator and its nodes: frames, links with heart-beats, the handshake, messages, and failures
//! as they are told.

pub mod clock_offset;
pub mod control_socket;
mod dial;
pub mod endpoints;
pub mod error;
pub mod examination;
pub mod exchange;
pub mod failure;
pub mod file_message;
pub mod finding;
pub mod frame;
pub mod handshake;
mod handshake_error;
pub mod handshakes;
pub mod join;
pub mod join_message;
mod json_bounds;
pub mod lesson_message;
pub mod link;
pub mod memory_offer;
pub mod message;
pub mod mistake;
pub mod newcomer;
pub mod node_report;
pub mod patience;
pub mod posts;
mod silence;
pub mod time_limits;
pub mod token;
mod transmit;

/// Version of the protocol between the two ends of a link. It rises with every change that an older end would
/// misread; both ends must have the same.
pub const PROTOCOL_VERSION: u32 = 4;

/// The version of the program, as peers tell each other.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");
