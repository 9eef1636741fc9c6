//! The mistakes that a lesson makes for real.

use serde::{Deserialize, Serialize};

use settings::{Op, names};

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

    #[test]
    fn each_mistake_has_a_name_and_an_operation_that_shows_it() {
        for &mistake in Mistake::ALL {
            assert!(mistake.fits(mistake.usual_op()));
            let written = serde_json::to_value(mistake).unwrap();
            assert_eq!(written, mistake.name());
        }
    }
}
