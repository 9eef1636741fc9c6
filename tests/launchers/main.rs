//! `rocebench mesh` under real launchers on this machine: each rank has an address of its own of the embedded device.
//! scripts/setup --tests installs them; where one is missing, its tests fail.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod job;
mod kubernetes;
mod mpi;
mod slurm;
