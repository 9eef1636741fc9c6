//! A node, as others reach it: accepts one session after another and does what its coordinator says. It must not know
//! sweeps.

mod facts;
mod flow_ends;
pub mod listener;
mod node_run;
mod perftest;
pub mod rank;
mod run;
mod set_up;
