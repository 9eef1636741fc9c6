//! Runs unmodified programs of Debian's packages on the preloaded device, each between two or more processes on this
//! machine, and checks their output.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod child;
mod devices;
mod fabric;
mod names;
mod pair;
mod perftest;
mod pingpongs;
mod processes;
mod rdma_cm;
mod refused;
mod ucx;
