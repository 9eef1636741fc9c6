//! Runs one transfer on one QP step by step, optionally with one real mistake, and reports each step as typed facts.
//!
//! Client `explain` → `endpoints` both ways → both to RTS → server `explain_ready` → the transfer → client
//! `explain_look` → server `explain_seen`.

mod calls;
mod client;
mod connection;
mod objects;
mod outcome;
mod server;
mod step;
mod transfer;

use crate::protocol::lesson_message::Lesson;
use crate::protocol::mistake::Mistake;
use verbs::Reliability;

pub(crate) use client::LessonClient;
pub use outcome::{ObservedError, Outcome};
pub(crate) use server::serve_lesson;
pub use step::{Array, Begin, Call, End, Event, Field, Note, Part, Step, Topic};

impl Lesson {
    /// Retries and timeouts. They are short for a mistake, because the transfer is sure to fail.
    pub(crate) fn reliability(&self, initiator_reads: u8, responder_reads: u8) -> Reliability {
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
    pub(crate) fn posts_receive(&self) -> bool {
        self.op.profile().receives && self.mistake != Some(Mistake::NoRecv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
