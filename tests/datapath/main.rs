//! Workers and what they touch, on the null library's `loop0`, both ends in this process.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod accounting;
mod bench;
mod buffers;
mod by_hand;
mod deaths;
mod edges;
mod errors;
mod flows;
mod limits;
mod loopback_node;
mod null_services;
mod open_loop;
mod pauses;
mod queueing;
mod spreading;
mod steadiness;
mod verify;
