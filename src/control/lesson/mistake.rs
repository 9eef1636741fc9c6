//! The mistakes that a lesson makes for real, and which errors each promises.

use serde::{Deserialize, Serialize};

use crate::control::message::EndpointsError;
use crate::plan::Op;
use verbs::{Operation, VerbsError, WcStatus};

/// A mistake that people make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// This end's packets go to a GID where nobody is.
    Gid,
    /// This end uses a wrong remote key.
    Rkey,
    /// The other end posts no receive.
    NoRecv,
    /// This end has two QPs, the other one.
    QpCount,
    /// Each end sets another path MTU.
    Mtu,
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
    /// All of them.
    pub const ALL: [Mistake; 5] = [
        Mistake::Gid,
        Mistake::Rkey,
        Mistake::NoRecv,
        Mistake::QpCount,
        Mistake::Mtu,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mistake::Gid => "gid",
            Mistake::Rkey => "rkey",
            Mistake::NoRecv => "no-recv",
            Mistake::QpCount => "qp-count",
            Mistake::Mtu => "mtu",
        }
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
            Mistake::Rkey => op != Op::Send,
            Mistake::NoRecv => op == Op::Send,
            Mistake::Mtu => op == Op::Write,
        }
    }

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
    fn each_mistake_has_a_name_and_an_operation_that_shows_it() {
        for mistake in Mistake::ALL {
            assert!(mistake.fits(mistake.usual_op()));
            let written = serde_json::to_value(mistake).unwrap();
            assert_eq!(written, mistake.name());
        }
    }

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
        for mistake in Mistake::ALL {
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
