//! A lesson as it travels: what is done, which mistake is made for real, and what the other end tells of itself.

use serde::{Deserialize, Serialize};

use settings::{Op, names};
use verbs::{QpState, Reliability};

/// Bytes of a message at most.
pub const MOST_BYTES: usize = 4096;

/// Bytes of a message that one packet of every larger MTU carries, and none of the small one.
pub const BETWEEN_MTUS_BYTES: usize = 500;

/// What is done. Both ends derive all their settings from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    pub op: Op,
    /// What goes wrong on purpose.
    pub mistake: Option<Mistake>,
    /// Length of the message, 1 to [`MOST_BYTES`] bytes.
    pub length_bytes: u32,
    /// Path MTU for both ends: 256, 512, 1024, 2048 or 4096 bytes; `None` for the largest that both ports have.
    pub mtu_bytes: Option<u32>,
    /// READ: what the other end's memory is to hold.
    pub offered: Option<String>,
}

impl Lesson {
    /// The lesson in which `text` is transferred.
    pub fn new(op: Op, mistake: Option<Mistake>, mtu_bytes: Option<u32>, text: &str) -> Lesson {
        Lesson {
            op,
            mistake,
            length_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            mtu_bytes,
            offered: op.profile().fetches.then(|| text.to_owned()),
        }
    }

    /// Whether it can be given: the length, and that the mistake can be made with the operation.
    pub fn check(&self) -> Result<(), String> {
        let most = u32::try_from(MOST_BYTES).unwrap_or(u32::MAX);
        if !(1..=most).contains(&self.length_bytes) {
            return Err(format!(
                "a lesson's message has 1 to {MOST_BYTES} bytes, not {}",
                self.length_bytes
            ));
        }
        let offered = self.offered.as_ref().map(String::len);
        let expected = self.op.profile().fetches.then_some(self.length_bytes as usize);
        if offered != expected {
            return Err("the text that is offered has not the message's length".to_owned());
        }
        if self.mtu_bytes.is_some_and(|mtu| !is_mtu(mtu)) {
            return Err("the MTU is none of 256, 512, 1024, 2048 and 4096".to_owned());
        }
        match self.mistake {
            Some(mistake) if !mistake.fits(self.op) => Err(format!(
                "the mistake {} cannot be made with {}",
                mistake.name(),
                self.op.name()
            )),
            _ => Ok(()),
        }
    }

    /// Retries and timeouts. They are short for a mistake, because the transfer is sure to fail.
    pub fn reliability(&self, initiator_reads: u8, responder_reads: u8) -> Reliability {
        let sound = Reliability {
            timeout: 17,
            retry_cnt: 3,
            rnr_retry: 7,
            min_rnr_timer: 12,
            initiator_reads,
            responder_reads,
        };
        match self.mistake {
            Some(Mistake::Gid) => Reliability { timeout: 15, ..sound },
            Some(Mistake::NoRecv) => Reliability { rnr_retry: 2, min_rnr_timer: 20, ..sound },
            _ => sound,
        }
    }

    /// Whether the other end posts a receive.
    pub fn posts_receive(&self) -> bool {
        self.op.profile().receives && self.mistake != Some(Mistake::NoRecv)
    }
}

fn is_mtu(bytes: u32) -> bool {
    matches!(bytes, 256 | 512 | 1024 | 2048 | 4096)
}

/// The other end before the transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherEnd {
    /// The states that its QP told, each asked for after the call that should lead to it.
    pub states: Vec<QpState>,
    /// The path MTU that it set.
    pub path_mtu_bytes: u32,
    /// The receive that it posted.
    pub receive: Option<PostedReceive>,
    /// The flags of its memory's registration, as C code.
    pub access: String,
    /// Virtual address at which its memory begins.
    pub address: u64,
    /// All bytes of its memory before the transfer.
    pub memory: Vec<u8>,
}

/// A receive that is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostedReceive {
    /// Comes back in its completion.
    pub wr_id: u64,
    /// Virtual address of its buffer.
    pub address: u64,
    /// Length of its buffer, in bytes.
    pub length_bytes: u32,
    /// The key of its buffer.
    pub lkey: u32,
}

/// The other end after the transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedEnd {
    /// The state that its QP tells now.
    pub state: QpState,
    /// All bytes of its memory after the transfer.
    pub memory: Vec<u8>,
    /// The completion in its CQ; `None` if there was none.
    pub completion: Option<SeenCompletion>,
}

/// A completion that was polled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCompletion {
    /// The `wr_id` of the work request that completed.
    pub wr_id: u64,
    /// A value of `enum ibv_wc_status`; 0 is success.
    pub status: u32,
    /// `RECV` and so on; empty for one that failed.
    pub opcode: String,
    /// Bytes received; 0 where that says nothing.
    pub byte_len: u32,
    /// Number of the QP at which it completed.
    pub qpn: u32,
    /// The vendor's code for the error; each vendor has its own.
    pub vendor_error: u32,
}

names! {
    /// A mistake that people make.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Mistake {
        /// This end's packets go to a GID where nobody is.
        Gid = "gid",
        /// This end uses a wrong remote key.
        Rkey = "rkey",
        /// The other end posts no receive.
        NoRecv = "no-recv",
        /// This end has two QPs, the other one.
        QpCount = "qp-count",
        /// Each end sets another path MTU.
        Mtu = "mtu",
    }
}

impl Mistake {
    /// Another name that people have for it, of its error.
    pub fn other_name(self) -> Option<&'static str> {
        (self == Mistake::NoRecv).then_some("rnr")
    }

    /// The operation that shows it where none is asked for.
    pub fn usual_op(self) -> Op {
        match self {
            Mistake::Gid | Mistake::NoRecv | Mistake::QpCount => Op::Send,
            Mistake::Rkey | Mistake::Mtu => Op::Write,
        }
    }

    /// Whether it can be made with an operation: a SEND has no remote key, a WRITE takes no receive, and Soft-RoCE
    /// looks at packets' lengths in WRITEs only.
    pub fn fits(self, op: Op) -> bool {
        match self {
            Mistake::Gid | Mistake::QpCount => true,
            Mistake::Rkey => !op.profile().receives,
            Mistake::NoRecv => op.profile().receives,
            Mistake::Mtu => op == Op::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use results::sample::has;

    #[test]
    fn what_a_peer_asks_for_is_checked() {
        for op in Op::BASIC {
            assert_eq!(Lesson::new(op, None, Some(1024), "hello").check(), Ok(()));
            let long = "x".repeat(MOST_BYTES + 1);
            for (mtu, text, says) in [
                (None, "", "has 1 to 4096 bytes"),
                (None, &*long, "has 1 to 4096 bytes"),
                (Some(1000), "x", "MTU"),
            ] {
                let lesson = Lesson::new(op, None, mtu, text);
                has(lesson.check().unwrap_err(), [says]);
            }
        }
        let mut read = Lesson::new(Op::Read, None, None, "hello");
        let differs = Err("the text that is offered has not the message's length".to_owned());
        read.length_bytes = 4096;
        assert_eq!(read.check(), differs);
        read.offered = None;
        assert_eq!(read.check(), differs);
        for (op, mistake) in
            [(Op::Send, Mistake::Rkey), (Op::Write, Mistake::NoRecv), (Op::Read, Mistake::Mtu)]
        {
            let lesson = Lesson::new(op, Some(mistake), None, "x");
            has(lesson.check().unwrap_err(), [mistake.name()]);
        }
    }

    #[test]
    fn broken_lessons_do_not_wait_long() {
        for &mistake in Mistake::ALL {
            let lesson = Lesson::new(mistake.usual_op(), Some(mistake), None, "x");
            let reliability = lesson.reliability(1, 1);
            let timeout_s = 4.096e-6 * f64::from(1u32 << reliability.timeout);
            let waits_s = timeout_s * f64::from(reliability.retry_cnt + 1);
            assert!(waits_s < 3.0, "{mistake:?}: {waits_s}");
        }
    }

    #[test]
    fn each_mistake_has_a_name_and_an_operation_that_shows_it() {
        for &mistake in Mistake::ALL {
            assert!(mistake.fits(mistake.usual_op()));
            let written = serde_json::to_value(mistake).unwrap();
            assert_eq!(written, mistake.name());
        }
    }
}
