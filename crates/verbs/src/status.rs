//! Completion statuses: their names, what they usually mean, and what to try.

use std::fmt;

/// The status of a work completion (`enum ibv_wc_status`; a newer library may have more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WcStatus(pub u32);

/// The texts of a status.
struct Text {
    name: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

impl WcStatus {
    /// A send or receive that was queued when its QP went to ERR: a consequence, not a cause.
    pub const FLUSHED: WcStatus = WcStatus(5);
    /// The peer refused the request as invalid.
    pub const REM_INV_REQ_ERR: WcStatus = WcStatus(9);
    /// The peer acknowledged none of the tries.
    pub const RETRY_EXC_ERR: WcStatus = WcStatus(12);

    /// Whether it is the consequence of an earlier error on the same QP.
    pub fn is_flush(self) -> bool {
        self == WcStatus::FLUSHED
    }

    /// Its name in `verbs.h`, without the prefix `IBV_WC_`.
    pub fn name(self) -> &'static str {
        self.text().name
    }

    /// Its usual meaning, as a clause.
    pub fn meaning(self) -> &'static str {
        self.text().meaning
    }

    /// What to try, as a clause.
    pub fn remedy(self) -> &'static str {
        self.text().remedy
    }

    fn text(self) -> Text {
        let (name, meaning, remedy) = match self.0 {
            0 => ("SUCCESS", "it succeeded", "nothing"),
            1 => (
                "LOC_LEN_ERR",
                "a message was longer than the receive posted for it, or longer than the port's limit",
                "use the same rocebench version on both ends; lower --size",
            ),
            2 => (
                "LOC_QP_OP_ERR",
                "this end's QP found its own work request inconsistent",
                "lower --inline, --post-list and the depths; update firmware and driver",
            ),
            4 => (
                "LOC_PROT_ERR",
                "this end's buffer is not covered by its memory registration",
                "report it with the command line: this is a fault of rocebench or the driver",
            ),
            5 => (
                "WR_FLUSH_ERR",
                "it waited in the queue when its QP failed; another error came first",
                "look at the first error: this one is only its result",
            ),
            7 => (
                "BAD_RESP_ERR",
                "the peer's answer did not fit the request",
                "check that both ends run a sound driver; try a smaller --mtu",
            ),
            8 => (
                "LOC_ACCESS_ERR",
                "an incoming write found no permission in local memory",
                "report it with the command line: this is a fault of rocebench or the driver",
            ),
            9 => (
                "REM_INV_REQ_ERR",
                "the peer refused the request: too long for its receive, or an operation that its QP does not allow",
                "use the same rocebench version on both ends; lower --size or --max-rd-atomic; with Soft-RoCE on a \
                 slow host raise --timeout, it also refuses needless retransmissions",
            ),
            10 => (
                "REM_ACCESS_ERR",
                "the peer's memory key, address or permission did not match the request",
                "the peer may have restarted: run again; if it stays, report it with the command line",
            ),
            11 => (
                "REM_OP_ERR",
                "the peer could not complete the request on its side",
                "look at the peer's `dmesg` and at its output for the first error",
            ),
            12 => (
                "RETRY_EXC_ERR",
                "the peer did not acknowledge within the timeout, retries included: it died, packets are lost, or they go to a wrong address",
                "check the link, the GID index and MTU on both ends and that UDP port 4791 is open; on a lossy or loaded network raise --timeout and --retry-cnt",
            ),
            13 => (
                "RNR_RETRY_EXC_ERR",
                "the peer had no receive posted each time this end tried (receiver not ready)",
                "raise --rx-depth, --rnr-retry (7 is for ever) or --min-rnr-timer, or give the receiver more --workers",
            ),
            19 => (
                "FATAL_ERR",
                "the device reported a fatal error",
                "look at `dmesg`; the device may need a reset",
            ),
            20 => (
                "RESP_TIMEOUT_ERR",
                "a response did not come in time",
                "check that the peer is alive; raise --timeout",
            ),
            21 => (
                "GENERAL_ERR",
                "the device gave no more specific reason",
                "look at `dmesg` and at the vendor's error code",
            ),
            _ => (
                "other status",
                "an error that this version does not know",
                "look it up in `verbs.h` (enum ibv_wc_status) and look at `dmesg`",
            ),
        };
        Text { name, meaning, remedy }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_header() {
        use rdma_sys::ibv_wc_status as header;
        for (code, name) in [
            (header::IBV_WC_SUCCESS, "SUCCESS"),
            (header::IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"),
            (header::IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"),
            (header::IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"),
            (header::IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"),
            (header::IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR"),
            (header::IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"),
            (header::IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"),
            (header::IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"),
            (header::IBV_WC_REM_OP_ERR, "REM_OP_ERR"),
            (header::IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"),
            (header::IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"),
            (header::IBV_WC_FATAL_ERR, "FATAL_ERR"),
            (header::IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR"),
            (header::IBV_WC_GENERAL_ERR, "GENERAL_ERR"),
        ] {
            assert_eq!(WcStatus(code).name(), name);
        }
        assert!(WcStatus(header::IBV_WC_WR_FLUSH_ERR).is_flush());
    }
}
