//! The outcome of a lesson, and which errors each mistake can cause.

use crate::protocol::endpoints::EndpointsError;
use crate::protocol::mistake::Mistake;
use verbs::{Operation, VerbsError, WcStatus};

/// The outcome of a lesson.
#[derive(Debug)]
pub struct Outcome {
    /// The error, if there was one.
    pub error: Option<ObservedError>,
    pub arrived: bool,
}

/// The error that a mistake caused.
#[derive(Debug)]
pub enum ObservedError {
    Call(VerbsError),
    /// A completion with an error.
    Completion(WcStatus),
    /// The ends' arrays do not fit each other.
    Array(EndpointsError),
    NoCompletion,
}

impl Mistake {
    /// Whether this mistake can cause this error. Devices differ in where they detect it.
    pub fn promises(self, error: &ObservedError) -> bool {
        let refused_at_rtr = matches!(
            error,
            ObservedError::Call(VerbsError::Call { operation: Operation::ModifyToRtr { .. }, .. })
        );
        match self {
            Mistake::Gid => refused_at_rtr || completes_as(error, &[WcStatus::RETRY_EXC_ERR.0]),
            Mistake::Rkey => completes_as(error, &[10]),
            Mistake::NoRecv => completes_as(error, &[13]),
            Mistake::QpCount => matches!(error, ObservedError::Array(EndpointsError::Count { .. })),
            // Refused as invalid, reported as an error by the other end, or dropped silently.
            Mistake::Mtu => {
                refused_at_rtr || completes_as(error, &[9, 11, WcStatus::RETRY_EXC_ERR.0])
            }
        }
    }
}

fn completes_as(error: &ObservedError, codes: &[u32]) -> bool {
    matches!(error, ObservedError::Completion(status) if codes.contains(&status.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_are_not_the_promised_ones() {
        let refused = || {
            ObservedError::Call(VerbsError::Call {
                operation: Operation::ModifyToRtr { gid_index: None },
                object: String::new(),
                source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
            })
        };
        assert!(Mistake::Gid.promises(&refused()));
        assert!(!Mistake::Rkey.promises(&refused()));
        assert!(Mistake::Rkey.promises(&ObservedError::Completion(WcStatus(10))));
        for &mistake in Mistake::ALL {
            assert!(!mistake.promises(&ObservedError::NoCompletion));
            assert!(!mistake.promises(&ObservedError::Completion(WcStatus::FLUSHED)));
        }
        let count = EndpointsError::Count { expected: 2, got: 1 };
        assert!(Mistake::QpCount.promises(&ObservedError::Array(count)));
        assert!(!Mistake::QpCount.promises(&ObservedError::Array(EndpointsError::Mtu(1))));
    }
}
