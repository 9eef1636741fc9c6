//! Unmodified programs on the preloaded device, where more is to be checked than that each does its work: files, refusals,
//! several processes at an address, ends that die. `scripts/peers` has the programs themselves, with their options.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod child;
mod devices;
mod names;
mod pair;
mod processes;
mod rdma_cm;
mod refused;
