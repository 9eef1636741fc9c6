//! What this host is and has: its kernel, CPUs, cores that are taken, memory that is left, and RDMA devices as the
//! kernel tells them.

pub mod device;
pub mod host;
pub mod pci;
pub mod threads;
