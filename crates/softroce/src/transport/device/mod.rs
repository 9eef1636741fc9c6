//! The device: its port, its tables of QPs and memory, the packets that leave and arrive, and the work that is done for it
//! by turns. It must not know what becomes of a request or an answer: `requester`, `responder` and `congestion` do that.

pub(crate) mod arrivals;
pub(crate) mod core;
pub(crate) mod engine;
pub(crate) mod generation;
pub(crate) mod gsi;
pub(crate) mod held;
pub(crate) mod outbox;
pub(crate) mod port_state;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod round;
pub(crate) mod statistics;
pub(crate) mod tables;
pub(crate) mod work;
