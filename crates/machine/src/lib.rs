//! What this host is and has: its kernel, CPUs and kinds of cores, cores that are taken, memory that is left, limits of its control groups, and
//! RDMA devices as the kernel tells them.

pub mod control_groups;
pub mod device;
pub mod host;
pub mod optional_counters;
pub mod pci;
pub mod processors;
pub mod surroundings;
pub mod threads;
