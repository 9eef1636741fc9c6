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
mod buffers;
mod calls;
mod choice;
mod clients;
mod connect;
mod connect_cm;
mod cores;
mod deaths;
mod distributions;
mod doctor;
mod explain;
mod fake;
mod faults;
mod flows;
mod frames;
mod hostile;
mod hostile_clients;
mod interrupt;
mod learn;
mod liars;
mod limits;
mod live;
mod mask;
mod memory;
mod nodes;
mod on_hardware;
mod options;
mod outputs;
mod pace;
mod paths;
mod patterns;
mod ping_pong;
mod polling;
mod process_limits;
mod quick;
mod rails;
mod refused;
mod send;
mod send_refused;
mod services;
mod spreading;
mod stage;
mod templates;
mod transfers;

use testing::program::{Ended, call};

/// A sweep whose every byte is checked.
const CHECKED: &str = "-d soft0 --timeout 18 --warmup 0 --verify --quiet";

/// All runs of so many cases are whole, and every byte is right.
#[track_caller]
fn whole(words: &str, cases: usize) -> Ended {
    call(&format!("{CHECKED} {words}")).is_whole(cases)
}
