//! Measures the set-up of QPs step by step: rounds of creating, connecting and destroying QPs, by TCP or by rdma_cm.

mod by_cm;
mod by_tcp;
pub mod connector;
pub mod objects;
pub mod steps;
pub mod watch;
