//! What one node has and does in a run: device, cores and memory, the verbs objects of its ends of flows and their
//! connection, the running workers, and the results from their counts.

mod arrivals;
pub mod common_network;
pub mod connect_cm;
pub mod cores;
pub(crate) mod cpu_times;
pub mod device_limits;
pub mod flow_end;
pub mod lesson;
pub mod memory_needs;
pub mod needs;
pub mod node_threads;
pub mod open_loop;
mod options;
pub mod outcome;
pub mod perftest_launch;
pub(crate) mod port_counters;
pub mod port_path;
pub mod qp_contexts_by_cm;
pub mod qp_service;
mod queues;
pub(crate) mod rails;
pub mod resources;
pub mod running_node;
pub mod sampled;
pub mod server;
pub mod setup;
mod stall;
pub mod verbs_objects;
mod window;
