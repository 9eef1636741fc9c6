//! The device through its C functions. Both ends are in this process: each opening of `soft0` takes its own address.

mod events;
mod extended;
mod objects;
mod states;
mod testbed;
mod threads;
mod transfers;
