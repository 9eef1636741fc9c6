//! Workers and what they touch, on the null library's `loop0`, both ends in this process.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod accounting;
mod bench;
mod buffers;
mod deaths;
mod errors;
mod exact;
mod fairness;
mod flows;
mod latencies;
mod limits;
mod loopback_node;
mod moderation;
mod null_services;
mod open_loop;
mod ping_pong;
mod planned;
mod queueing;
mod spreading;
mod steadiness;
mod totals;
mod verify;
mod windows;
