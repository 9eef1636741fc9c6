//! What a case measures: a transfer, or set-up itself. It must not know how either is run.

use std::fmt;
use std::str::FromStr;

use super::case::{Case, Op, SetUp, Stop};
use super::words::{WordError, find};

/// A word of `--op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Messages are moved by this operation.
    Transfer(Op),
    /// QPs are created, connected and destroyed.
    Connect,
}

impl Workload {
    /// All, in the order in which they are listed.
    pub const ALL: [Workload; 4] = [
        Workload::Transfer(Op::Send),
        Workload::Transfer(Op::Write),
        Workload::Transfer(Op::Read),
        Workload::Connect,
    ];

    /// The word of the command line and of the result file.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Transfer(op) => op.name(),
            Workload::Connect => "connect",
        }
    }

    /// The operation that moves data: what is measured, or what goes on beside the set-ups.
    pub fn op(self) -> Op {
        match self {
            Workload::Transfer(op) => op,
            Workload::Connect => Op::Write,
        }
    }
}

impl FromStr for Workload {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        find(word, &Workload::ALL, Workload::name)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Case {
    /// What is measured.
    pub fn workload(&self) -> Workload {
        match self.setup {
            Some(_) => Workload::Connect,
            None => Workload::Transfer(self.op),
        }
    }

    /// The case of what is moved: itself; where set-up is measured, the traffic meanwhile, which goes on until
    /// it is stopped; `None` without traffic.
    pub fn moving(&self) -> Option<Case> {
        let Some(SetUp { traffic_qps }) = self.setup else {
            return Some(self.clone());
        };
        (traffic_qps > 0).then(|| Case {
            qps: traffic_qps,
            setup: None,
            stop: Stop::DurationNs(u64::MAX),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sweep, SweepSpec};
    use super::*;

    #[test]
    fn words_are_read_back() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        let error = "conect".parse::<Workload>().unwrap_err().to_string();
        assert!(error.contains("did you mean `connect`"), "{error}");
        assert_eq!("connect".parse::<Op>().ok(), None, "not an operation");
    }

    #[test]
    fn traffic_is_a_case_without_set_up() {
        let mut case = Sweep::new(&SweepSpec::default()).unwrap().cases.remove(0);
        assert_eq!(case.moving(), Some(case.clone()));
        assert_eq!(case.workload(), Workload::Transfer(Op::Send));
        case.setup = Some(SetUp { traffic_qps: 3 });
        assert_eq!(case.workload(), Workload::Connect);
        let traffic = case.moving().unwrap();
        assert_eq!((traffic.qps, traffic.setup), (3, None));
        case.setup = Some(SetUp { traffic_qps: 0 });
        assert_eq!(case.moving(), None);
    }
}
