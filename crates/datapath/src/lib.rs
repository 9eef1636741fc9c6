//! The worker loops: the code that runs for every message. A loop allocates nothing, takes no lock, prints nothing
//! and makes no system call except those of verbs and, if the case asks for it, sleeping.

mod geometry;
mod layout;
mod lock_step;
mod operation;
mod qp_context;
mod report;
mod schedule;
mod shared;
mod value_checks;
mod worker;
mod worker_threads;

pub use geometry::Geometry;
pub use layout::{Layout, Numbered, Peers, Regions, Sizes, received_bytes, sends_inline};
pub use lock_step::{LockStep, StepPart};
pub use operation::{RemoteMemory, initiator_access, send_opcode, target_access};
pub use qp_context::{QpContext, Receiver, Sender, SharedReceives};
pub use report::{
    FailedCompletion, GapSamples, Mismatch, Place, QpReport, Trouble, WorkerLoad, WorkerReport,
    WorkerSteps,
};
pub use schedule::TOLERATED_NS;
pub use shared::{Activity, Counts, Phase, Shared, WindowEdges, WindowProgress};
pub use value_checks::{check_sums, check_written, fill_for_reads};
pub use worker::{Sleep, ThreadSpec, WORKER_BYTES_PER_QP, WorkerSpec};
pub use worker_threads::{SteppedThread, SteppedThreads, WorkerPool, WorkerPoolError};
