//! What tests and benchmarks share. Each feature brings what one kind of test needs, so
//! that a crate's own tests do not build the program.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what fails here fails a test"
)]

#[cfg(feature = "program")]
pub mod check;
pub mod embedded_device;
#[cfg(feature = "program")]
pub mod network;
#[cfg(feature = "null-library")]
pub mod null_library;
#[cfg(feature = "null-node")]
pub mod null_node;
pub mod own_network;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
pub mod sessions;
#[cfg(feature = "program")]
pub mod table;
#[cfg(feature = "verbs-user")]
pub mod verbs_user;
pub mod wait;
