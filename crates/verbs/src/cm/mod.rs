//! The connection manager (rdma_cm), the kernel's or the embedded device's: ids, their events, and a QP's transitions with its attributes.
//!
//! QPs stay this project's own: an id has no QP (`id.qp` is NULL), only the QP's number, and `rdma_init_qp_attr(3)`
//! returns the attributes of each transition. So librdmacm's own device contexts are not used: QPN, port and GID
//! index mean the same in all contexts of a device.

mod address;
mod error;
mod event;
mod event_kind;
mod id;
mod library;
mod transitions;

pub use address::CmAddress;
pub use error::{CmError, CmStep, RejectReason};
pub use event::CmEvent;
pub use event_kind::CmEventKind;
pub use id::{CmChannel, CmId, CmParameters, MAX_PRIVATE_BYTES};
pub use transitions::CmTransitionError;
