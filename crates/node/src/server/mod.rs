//! A node, as others reach it: accepts one session after another and does what its coordinator says.

pub mod events;
mod facts;
mod flow_ends;
pub mod listener;
mod node_run;
pub mod options;
mod perftest;
pub mod rank;
mod run;
mod session;
mod set_up;
mod slot;
