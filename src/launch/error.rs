//! Why the place of this process among the ranks is not known, as types.

use crate::plan::node_list::{ListError, MOST_NODES};

use super::launcher::Launcher;

/// Why the place of this process among the ranks is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum LaunchError {
    #[error("the variable {name} of {launcher} is `{value}`, which is not a number")]
    NoNumber { launcher: Launcher, name: &'static str, value: String },
    #[error("the variable {name} of {launcher} is not a list of nodes: {source}")]
    NoList { launcher: Launcher, name: &'static str, source: ListError },
    #[error("{0} does not provide the number of ranks")]
    NumberUntold(Launcher),
    #[error("{0} does not provide the address of rank 0")]
    Rank0Untold(Launcher),
    #[error("--ranks is {given}, but {launcher} started {started}")]
    OtherNumber { launcher: Launcher, started: u32, given: u32 },
    #[error("this is rank {rank}, but there are only {ranks}, counted from 0")]
    RankOutside { rank: u32, ranks: u32 },
    #[error("a job has at most {MOST_NODES} ranks, not {0}")]
    TooMany(u32),
    #[error("--rank-0 has port {written}, --port is {flag}")]
    TwoPorts { written: u16, flag: u16 },
    #[error("rank 0 runs on {here}, but {launcher} sends the other ranks to {hosts}")]
    Rank0Elsewhere { launcher: Launcher, here: String, hosts: String },
}

impl LaunchError {
    pub fn hint(&self) -> &'static str {
        match self {
            LaunchError::NumberUntold(_) | LaunchError::RankOutside { .. } => {
                "give all ranks the same --ranks N"
            }
            LaunchError::TooMany(_) => "start fewer, or several jobs",
            LaunchError::Rank0Untold(_) | LaunchError::Rank0Elsewhere { .. } => {
                "give all ranks the same --rank-0 HOST"
            }
            LaunchError::OtherNumber { .. } | LaunchError::TwoPorts { .. } => {
                "leave one of them out"
            }
            LaunchError::NoNumber { .. } | LaunchError::NoList { .. } => {
                "start the ranks again with the launcher, or name the nodes with --nodes and unset its variables"
            }
        }
    }
}
