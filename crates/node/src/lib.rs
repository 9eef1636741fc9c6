//! What one node has and does in a run: device, cores and memory, the verbs objects of its ends of flows and their
//! connection, the running workers, and the results from their counts.

mod cm_caller;
pub mod connect_cm;
pub mod lesson;
pub mod memory_needs;
pub mod memory_place;
pub mod needs;
pub mod open_loop;
pub mod outcome;
pub mod perftest;
pub mod port_path;
pub mod ports;
pub mod resources;
pub mod run;
pub mod server;
pub mod session;
pub mod threads;
pub mod verbs_objects;
