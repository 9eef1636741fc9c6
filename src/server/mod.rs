//! The server: accepts sessions and does what their clients ask for. It must not know sweeps.

mod handshakes;
pub mod listener;
mod perftest;
mod run;
mod setup;
