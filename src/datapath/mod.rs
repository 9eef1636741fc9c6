//! The worker loops: what runs for every message. Nothing in a loop allocates, locks, prints or makes
//! a system call beyond what verbs itself does, but to sleep where that was asked for. It must not know sockets, files or results.

mod geometry;
mod lane;
mod layout;
mod operation;
mod pattern;
mod report;
mod shared;
mod trouble;
mod worker;
mod worker_pool;
mod wr_id;

pub use geometry::Geometry;
pub use lane::{Lane, Receiver, Sender, check_written, fill_for_reads};
pub use layout::{Layout, sends_inline};
pub use operation::{RemoteMemory, initiator_access, send_opcode, target_access};
pub use report::{QpReport, WorkerReport};
pub use shared::{Counts, Edges, Phase, Shared, WindowProgress};
pub use trouble::{FailedCompletion, Mismatch, Place, Trouble};
pub use worker::{Sleep, WORKER_BYTES_PER_QP, WorkerSpec};
pub use worker_pool::{WorkerPool, WorkerPoolError};
