//! Devices of processes that exit and fork. Each test runs itself again as a child process, which plays the other part.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod child;
#[path = "../support/completion.rs"]
mod completion;
#[path = "../support/counter.rs"]
mod counter;
#[path = "../support/end.rs"]
#[allow(dead_code)]
mod end;
mod exit;
mod fork;
#[path = "../packets/peer.rs"]
#[allow(dead_code)]
mod peer;
mod stopped;
