//! The kernel's connection manager (rdma_cm): ids, their events, and a QP's transitions as it says. It must not know
//! cases or who connects to whom.
//!
//! QPs stay this project's own: an id never gets one (`id.qp` is NULL), it is told the QP's number, and
//! `rdma_init_qp_attr(3)` says what each transition takes. So librdmacm's own device contexts are not used: QPN, port
//! and GID index mean the same to all contexts of a device.

mod address;
mod channel;
mod error;
mod event;
mod event_kind;
mod id;
mod library;
mod transitions;

pub use address::CmAddress;
pub use channel::CmChannel;
pub use error::{CmError, CmStep, RejectReason};
pub use event::CmEvent;
pub use event_kind::CmEventKind;
pub use id::{CmId, CmParameters, MAX_PRIVATE_BYTES};
pub use transitions::CmTransitionError;
