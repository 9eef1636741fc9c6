//! What a requester does: sends requests, handles answers and time-outs, completes.

pub(crate) mod answers;
pub(crate) mod local_check;
pub(crate) mod probe;
pub(crate) mod retry_timer;
pub(crate) mod send_completion;
pub(crate) mod transmit;
