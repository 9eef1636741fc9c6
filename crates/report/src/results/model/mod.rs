//! What a result file says, version 1: the types of which the JSON, its schema and the CSV are made.
//! Every figure has its unit in its name; what was not measured is `None`, never 0. Gigabits are 10^9
//! bits, not 2^30. Every field is in the file, also where it is `null`, but for `beside`; a file that lacks one is
//! refused.

mod beside;
mod case_flow;
mod config;
mod distribution;
mod file;
mod flow;
mod host;
mod load;
mod node;
mod path_event;
mod perftest;
mod run;
mod search;
mod set_up;
mod window;

pub use beside::{BesideAttacker, HarmFactor};
pub use case_flow::{CaseFlow, subject};
pub use config::{CLIENT, CaseConfig, FORWARD, FlowConfig, REVERSE, SERVER};
pub use distribution::{Bandwidth, Latency, Percentile};
pub use file::{CaseResult, Node, ResultFile, SCHEMA_VERSION, Tool};
pub use flow::{
    Delivery, Fairness, FlowResult, Limits, QpResult, ReceiveQueues, Received, StarvedQp, Totals,
};
pub use host::{Device, Host};
pub use load::{Gaps, Load, LoadVerdict, NotKeptBy};
pub use node::{NodeClock, NodeResult, WorkerResult};
pub use path_event::{LossUnknown, LossUnknownReason, PathEvent, PathEventKind};
pub use perftest::{PerftestComparison, PerftestPair};
pub use run::{Failure, Run};
pub use search::{LatencyLimit, LoadSearch, SearchEnd, Trial, TrialOutcome};
pub use set_up::{Connect, ConnectStep};
pub use window::{Doubt, DoubtKind, QpTimeline, Timeline, Window};
