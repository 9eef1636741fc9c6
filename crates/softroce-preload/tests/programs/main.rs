//! Runs unmodified programs of Debian's packages ibverbs-utils and perftest on the preloaded device, each between two
//! processes on this machine, and checks their output.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bandwidth;
mod child;
mod devices;
mod latency;
mod library;
mod pair;
mod perftest;
mod pingpong;
mod refused;
mod vanished;
