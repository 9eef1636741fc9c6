//! The program on the embedded device, end to end, on any Linux machine: no root, no RDMA, no lab.
//!
//! Workers poll, and a machine that runs tests is busy: where packets are not lost on purpose, `--timeout 18` waits a
//! second for an answer before it takes a packet for lost. What is asserted holds however busy the machine is, so tests
//! run beside each other.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod against;
mod against_broken;
mod against_refused;
mod beside;
mod clients;
mod cores;
mod deaths;
mod explain;
mod fake;
mod frames;
mod gpus;
mod hostile;
mod hostile_clients;
mod interrupt;
mod learn;
mod liars;
mod live;
mod memory;
mod nodes;
mod on_hardware;
mod outputs;
mod own_networks;
mod pauses;
mod process_limits;
mod recipes;
mod searches;
mod send;
mod soak;
mod stage;
mod tables;
mod templates;
mod transfers;
mod why;
