//! The device through its C functions, as programs call them. Both ends are in this process: each opening of
//! `soft0` takes an address of its own.
#![allow(clippy::unwrap_used, clippy::panic)]

mod events;
mod extended;
mod objects;
mod states;
mod testbed;
mod transfers;
