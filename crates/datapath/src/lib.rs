//! The worker loops: the code that runs for every message. A loop allocates nothing, takes no lock, prints nothing
//! and makes no system call except those of verbs and, if the case asks for it, sleeping.

mod atomic;
mod earliest;
mod geometry;
mod layout;
mod numbered;
mod operation;
mod pattern;
mod peers;
mod qp_context;
mod qp_counts;
mod regions;
mod report;
mod schedule;
mod shared;
mod shared_receives;
mod sizes;
mod source;
mod stepped;
mod trouble;
mod value_checks;
mod watched;
mod worker;
mod worker_pool;
mod worker_thread;
mod wr_id;

pub use geometry::Geometry;
pub use layout::{Layout, received_bytes, sends_inline};
pub use numbered::Numbered;
pub use operation::{RemoteMemory, initiator_access, send_opcode, target_access};
pub use peers::Peers;
pub use qp_context::{QpContext, Receiver, Sender};
pub use regions::{Regions, pages};
pub use report::{GapSamples, QpReport, WorkerLoad, WorkerReport};
pub use shared::{Counts, Phase, Shared, WindowEdges, WindowProgress};
pub use shared_receives::SharedReceives;
pub use sizes::Sizes;
pub use stepped::{SteppedThread, SteppedThreads};
pub use trouble::{FailedCompletion, Mismatch, Place, Trouble};
pub use value_checks::{check_sums, check_written, fill_for_reads};
pub use worker::{Sleep, TOLERATED_NS, ThreadSpec, WORKER_BYTES_PER_QP, WorkerSpec};
pub use worker_pool::{WorkerPool, WorkerPoolError};
