//! What a sweep is asked for.

use std::sync::Arc;
use std::time::Duration;

use crate::coordinator::ranks::Ranks;
use node::resources::NodeOptions;
use plan::{RailsAsked, Searches, Sweep};
use protocol::token::Token;

/// Where the second of two nodes is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A server at this host and port.
    Remote(String, u16),
    Local,
}

/// The nodes of this process, and the server that they meet.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The second of two nodes.
    pub target: Target,
    /// Library, device and cores of the nodes in this process.
    pub resources: NodeOptions,
    /// The token shared with the servers.
    pub token: Option<Token>,
}

/// How to run a sweep.
pub struct SweepOptions {
    pub sweep: Sweep,
    pub ends: Ends,
    /// Host and port of the server that is each of the sweep's nodes; empty where the nodes are not servers.
    pub servers: Vec<(String, u16)>,
    /// The other ranks of a launcher's job, where the sweep's nodes are its ranks.
    pub ranks: Option<Arc<Ranks>>,
    /// The program's arguments, secrets left out.
    pub command_line: Vec<String>,
    /// Run each case with perftest as well.
    pub against: Option<Against>,
    /// Run the cases in rounds: the first is a victim alone, the others are it beside attackers.
    pub beside: Option<Rounds>,
    /// Search each case for loads as well.
    pub searches: Option<Searches>,
    /// Measure again what looks bad in rounds of pairs.
    pub quick: bool,
    /// Which rails flows go between, where nodes have several.
    pub rails: RailsAsked,
}

impl SweepOptions {
    /// A sweep alone: between two ends or nodes of this process, without comparisons and searches.
    pub fn new(sweep: Sweep, ends: Ends) -> SweepOptions {
        SweepOptions {
            sweep,
            ends,
            servers: Vec::new(),
            ranks: None,
            command_line: Vec::new(),
            against: None,
            beside: None,
            searches: None,
            quick: false,
            rails: RailsAsked::default(),
        }
    }
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

/// Rounds of a victim alone and beside each attacker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Names of the attackers, in the order of the sweep's cases from the second on.
    pub attackers: Vec<String>,
    /// Least rounds that count; even.
    pub least: u32,
    /// Most rounds, those that do not count included; even.
    pub most: u32,
}
