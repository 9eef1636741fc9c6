//! A result file, version 1: the types behind the JSON, its schema and the CSV. Every figure has its
//! unit in its name. A figure that was not measured is `None`, never 0. Gigabits are 10^9 bits, not
//! 2^30. Every field except `beside` must be in the file, even if it is `null`.

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
