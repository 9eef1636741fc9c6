//! Runs unmodified programs of Debian's packages on the preloaded device, each between two or more processes on this
//! machine, and checks their output.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bandwidth;
mod captures;
mod child;
mod devices;
mod fabric;
mod kernel_files;
mod latency;
mod library;
mod mpi;
mod pair;
mod perftest;
mod pingpong;
mod rdma_cm;
mod refused;
mod shared_address;
mod ucx;
mod vanished;
