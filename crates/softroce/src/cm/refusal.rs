//! Rejections by a manager that keeps no connection for it.

use crate::wire::cm::{Comms, Handled, Message, REJ_DATA_BYTES, Rej, RejReason};

pub(super) fn refusal(comms: Comms, of: Handled, reason: RejReason) -> Message {
    Message::Rej(Box::new(Rej {
        comms,
        of,
        reason,
        ca_guid: None,
        private_data: [0; REJ_DATA_BYTES],
    }))
}
