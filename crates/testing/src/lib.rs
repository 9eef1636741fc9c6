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
pub mod capture;
#[cfg(feature = "program")]
pub mod cells;
#[cfg(feature = "program")]
pub mod check;
pub mod fuzz;
#[cfg(feature = "program")]
pub mod namespace;
#[cfg(feature = "program")]
pub mod netem;
#[cfg(feature = "null-library")]
pub mod null_library;
#[cfg(feature = "null-node")]
pub mod null_node;
pub mod pcap;
#[cfg(feature = "program")]
pub mod perftest;
#[cfg(feature = "null-library")]
pub mod persona;
pub mod preload;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
pub mod proxy;
#[cfg(feature = "program")]
pub mod server;
#[cfg(feature = "results")]
pub mod synthetic_results;
#[cfg(feature = "program")]
pub mod traffic;
#[cfg(feature = "verbs-user")]
pub mod verbs_user;
pub mod wait;
#[cfg(feature = "program")]
pub mod wire;
