//! What this host is and has: its kernel, CPUs, cores that are taken, memory that is left, and RDMA devices as the
//! kernel tells them.

mod cgroup;
pub mod core_list;
pub mod core_locks;
pub mod cpu;
pub mod dcb;
pub mod device;
pub mod host;
pub mod lossless;
pub mod memory;
pub mod open_files;
pub mod threads;
