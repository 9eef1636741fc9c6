//! What came of a lesson and of its mistake, and which errors each mistake promises.

use crate::protocol::endpoints::EndpointsError;
use crate::protocol::mistake::Mistake;
use verbs::{Operation, VerbsError, WcStatus};

/// What a lesson came to.
#[derive(Debug)]
pub struct Outcome {
    /// The error that came.
    pub mishap: Option<Mishap>,
    /// The message is where it should be.
    pub arrived: bool,
}

/// What came of a mistake.
#[derive(Debug)]
pub enum Mishap {
    /// A call failed.
    Call(VerbsError),
    /// A completion with an error.
    Completion(WcStatus),
    /// The ends' arrays do not fit.
    Array(EndpointsError),
    /// No completion came.
    Silence,
}

const RETRY_EXCEEDED: WcStatus = WcStatus(12);

impl Mistake {
    /// Whether this is an error that it promises. Devices differ in where they notice.
    pub fn promises(self, mishap: &Mishap) -> bool {
        let refused_at_rtr = || {
            matches!(
                mishap,
                Mishap::Call(VerbsError::Call {
                    operation: Operation::ModifyToRtr { .. },
                    ..
                })
            )
        };
        let completes_as = |codes: &[u32]| matches!(mishap, Mishap::Completion(status) if codes.contains(&status.0));
        match self {
            Mistake::Gid => refused_at_rtr() || completes_as(&[RETRY_EXCEEDED.0]),
            Mistake::Rkey => completes_as(&[10]),
            Mistake::NoRecv => completes_as(&[13]),
            Mistake::QpCount => matches!(mishap, Mishap::Array(EndpointsError::Count { .. })),
            // Refused as invalid, as an error at the other end, or thrown away without a word.
            Mistake::Mtu => refused_at_rtr() || completes_as(&[9, 11, RETRY_EXCEEDED.0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_are_not_the_promised_ones() {
        let refused = || {
            Mishap::Call(VerbsError::Call {
                operation: Operation::ModifyToRtr { gid_index: None },
                object: String::new(),
                source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
            })
        };
        assert!(Mistake::Gid.promises(&refused()));
        assert!(!Mistake::Rkey.promises(&refused()));
        assert!(Mistake::Rkey.promises(&Mishap::Completion(WcStatus(10))));
        for &mistake in Mistake::ALL {
            assert!(!mistake.promises(&Mishap::Silence));
            assert!(!mistake.promises(&Mishap::Completion(WcStatus::FLUSHED)));
        }
        let count = EndpointsError::Count {
            expected: 2,
            got: 1,
        };
        assert!(Mistake::QpCount.promises(&Mishap::Array(count)));
        assert!(!Mistake::QpCount.promises(&Mishap::Array(EndpointsError::Mtu(1))));
    }
}
