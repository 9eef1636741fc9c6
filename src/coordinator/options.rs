//! What a sweep is asked for.

use std::time::Duration;

use crate::node::resources::NodeOptions;
use crate::plan::Sweep;
use crate::protocol::token::Token;

/// Where the other end is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server at this host and port.
    Remote(String, u16),
    /// In this process.
    Local,
}

/// Which two ends meet.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The other.
    pub target: Target,
    /// This end's library, device and cores; in one process also the other's.
    pub resources: NodeOptions,
    /// The token shared with the server.
    pub token: Option<Token>,
}

/// How to run a sweep.
pub struct SweepOptions {
    /// What to run.
    pub sweep: Sweep,
    /// Who runs it.
    pub ends: Ends,
    /// The program's arguments, secrets left out.
    pub command_line: Vec<String>,
    /// Run each case with perftest as well.
    pub against: Option<Against>,
}

/// How many pairs, and how long perftest may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// Least pairs that count; even.
    pub pairs: u32,
    /// Most pairs, failed ones included; even.
    pub max_pairs: u32,
    /// Longest time for each end of perftest beyond its measurement.
    pub limit: Duration,
}
