//! Runs unmodified programs of Debian's packages on the preloaded device, each between two or more processes on this
//! machine, and checks their output.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod captures;
mod child;
mod devices;
mod fabric;
mod kernel_files;
mod mpi;
mod pair;
mod perftest;
mod pingpongs;
mod rdma_cm;
mod refused;
mod shared_address;
mod ucx;
mod vanished;
