//! One end of a run: its device, cores and memory, the verbs objects of a case and their connection, the running
//! workers, and the results from their counts. It must not know which end controls the session, nor sweeps.

pub mod connect_cm;
pub mod cores;
mod device_limits;
pub mod memory_needs;
pub mod needs;
pub mod outcome;
pub mod perftest_launch;
pub mod port_path;
pub mod qp_contexts_by_cm;
pub mod resources;
pub mod running_node;
pub mod setup;
mod sleep_channels;
mod stall;
pub mod verbs_objects;
mod window;
