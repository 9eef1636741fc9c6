//! A node, as others reach it: accepts one session after another and does what its coordinator says.

pub mod events;
mod facts;
pub mod listener;
pub mod options;
mod perftest;
pub mod rank;
mod session;
mod slot;
