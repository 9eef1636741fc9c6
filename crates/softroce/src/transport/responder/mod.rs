//! What a responder does: executes requests and answers them.

pub(crate) mod due_reads;
pub(crate) mod fetches;
pub(crate) mod inbound_requests;
pub(crate) mod messages;
pub(crate) mod receive_flush;
pub(crate) mod replies;
pub(crate) mod unreliable;
