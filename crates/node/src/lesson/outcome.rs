//! The outcome of a lesson, and which errors each mistake can cause.

use protocol::endpoints::EndpointsError;
use protocol::mistake::Mistake;
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

impl ObservedError {
    /// Whether `mistake` can cause it. Devices differ in where they detect one.
    pub fn is_caused_by(&self, mistake: Mistake) -> bool {
        let refused_at_rtr = matches!(
            self,
            ObservedError::Call(VerbsError::Call { operation: Operation::ModifyToRtr { .. }, .. })
        );
        match mistake {
            Mistake::Gid => refused_at_rtr || completes_as(self, &[WcStatus::RETRY_EXC_ERR.0]),
            Mistake::Rkey => completes_as(self, &[10]),
            Mistake::NoRecv => completes_as(self, &[13]),
            Mistake::QpCount => matches!(self, ObservedError::Array(EndpointsError::Count { .. })),
            // Refused as invalid, reported as an error by the other end, or dropped silently.
            Mistake::Mtu => {
                refused_at_rtr || completes_as(self, &[9, 11, WcStatus::RETRY_EXC_ERR.0])
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
        assert!(refused().is_caused_by(Mistake::Gid));
        assert!(!refused().is_caused_by(Mistake::Rkey));
        assert!(ObservedError::Completion(WcStatus(10)).is_caused_by(Mistake::Rkey));
        for &mistake in Mistake::ALL {
            assert!(!ObservedError::NoCompletion.is_caused_by(mistake));
            assert!(!ObservedError::Completion(WcStatus::FLUSHED).is_caused_by(mistake));
        }
        let count = EndpointsError::Count { expected: 2, got: 1 };
        assert!(ObservedError::Array(count).is_caused_by(Mistake::QpCount));
        assert!(!ObservedError::Array(EndpointsError::Mtu(1)).is_caused_by(Mistake::QpCount));
    }
}
