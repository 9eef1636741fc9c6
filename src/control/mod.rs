//! The control path: framing, handshake and the session state machines of coordinator and server.

pub mod clock_offset;
mod connect_cm;
pub mod coordinator;
mod cores;
mod device_limits;
mod dial;
mod drain;
mod end_report;
pub mod error;
mod exchange;
pub mod fabric;
pub mod failure;
pub mod feature;
pub mod file_message;
pub mod frame;
pub mod handshake;
mod handshake_error;
mod handshakes;
mod json_bounds;
pub mod lesson;
pub mod link;
pub mod memory_needs;
mod memory_offer;
pub mod message;
mod metric;
mod needs;
mod outcome;
pub mod pairs;
mod perftest_client;
mod perftest_server;
mod port_path;
pub mod posts;
pub mod rig;
mod run;
mod seat;
mod serve_run;
mod serve_setup;
pub mod server;
mod session;
mod setup_bench;
mod setup_cm;
mod setup_run;
mod setup_steps;
mod setup_tcp;
mod setup_watch;
mod silence;
mod sleepers;
mod stall;
pub mod station;
pub mod token;
mod transmit;
mod window;

/// Version of the protocol between the two ends. It rises with every change that an older end would
/// misread; both ends must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// Version of this program, as it is told to the peer.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");
