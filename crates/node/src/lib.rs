//! What one node has and does in a run: device, cores and memory, the verbs objects of its ends of flows and their
//! connection, the running workers, and the results from their counts.

pub mod common_network;
pub mod connect_cm;
pub mod cores;
pub mod device_limits;
pub mod lesson;
pub mod memory_needs;
pub mod needs;
pub mod node_threads;
pub mod open_loop;
mod options;
pub mod outcome;
pub mod perftest_launch;
pub mod port_path;
pub mod qp_contexts_by_cm;
pub mod qp_service;
mod queues;
pub(crate) mod rails;
pub mod resources;
pub mod run;
pub mod server;
pub mod setup;
pub mod verbs_objects;
mod window;
