//! Memory of GPUs for adapters: which GPUs there are, memory of one, its export as a dmabuf, and copies. The libraries of the
//! makers are opened when they are first needed, so that nothing is needed to build, and nothing where no GPU is used.
//!
//! Only what a buffer for RDMA takes is declared here: no kernels, no managed memory, no virtual memory management.

mod cuda;
mod driver;
mod error;
mod library;
mod memory;
mod rocm;

pub use driver::{Gpu, Maker};
pub use error::GpuError;
pub use memory::{Export, GpuMemory};
