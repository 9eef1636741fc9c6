//! The state of QPs, CQs and peers, and what it is made of. Nothing here acts on a device, which it must not know.

pub(crate) mod completion;
pub(crate) mod cq_context;
pub(crate) mod path;
pub(crate) mod peer;
pub(crate) mod qp_attributes;
pub(crate) mod qp_context;
pub(crate) mod recv_queue;
pub(crate) mod repeat_budget;
pub(crate) mod request;
pub(crate) mod request_outcome;
pub(crate) mod request_packets;
pub(crate) mod requester;
pub(crate) mod responder;
pub(crate) mod send_queue;
pub(crate) mod sending_rate;
