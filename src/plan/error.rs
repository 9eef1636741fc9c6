//! Why a sweep cannot be run as requested. Every variant knows the option that fixes it.

use settings::{Service, SettingError, Settings, Workload, listed};

use super::case::MOST_FLOWS;

/// A sweep that makes no sense. [`PlanError::flag`] names the option to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlanError {
    /// A value that its setting does not take.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// Batches that do not fit into the send queue.
    #[error("--{flag} {value} does not fit into --tx-depth {tx_depth} (case {case})")]
    BatchTooDeep {
        /// `signal-every` or `post-list`.
        flag: &'static str,
        value: u32,
        /// The send queue's depth in this case.
        tx_depth: u32,
        /// Id of the first such case.
        case: String,
    },
    /// A posted list that ends in the middle of a signalled batch.
    #[error(
        "--post-list {post_list} is not a multiple of --signal-every {signal_every} (case {case})"
    )]
    ListDoesNotFit {
        /// WRs in one post.
        post_list: u32,
        /// WRs of one signalled batch; less than `post_list`.
        signal_every: u32,
        /// Id of the first such case.
        case: String,
    },
    /// A setting that set-up cannot be measured with.
    #[error(
        "--{flag} does not go together with --op connect, whose traffic goes one way and is not checked"
    )]
    NotWithConnect {
        /// The option's long name.
        flag: &'static str,
    },
    /// A setting that a search over loads cannot have.
    #[error("--{flag} does not go together with --slo and --knee: {why}")]
    NotWithSearch {
        /// The option's long name.
        flag: &'static str,
        why: &'static str,
    },
    /// A search over flows of a file.
    #[error(
        "--slo and --knee search for the rate of one flow, and each [[flow]] has a rate of its own, which the others' \
         latency depends on"
    )]
    SearchWithFlows,
    /// A setting that no case has use for.
    #[error("--{flag} has no effect {why}")]
    NoEffect {
        /// The option's long name.
        flag: &'static str,
        why: &'static str,
    },
    /// Two ends of a measurement.
    #[error(
        "--duration and --iters exclude each other: a run ends after a time or after a number of messages"
    )]
    TwoStops,
    /// A measurement without length.
    #[error("--duration 0 measures nothing")]
    NoDuration,
    /// A product beyond all reason.
    #[error("the lists' product is {cases} cases; a sweep has at most {most}")]
    TooManyCases {
        cases: u64,
        /// Cases with as many flows that a sweep may have.
        most: u64,
        /// The option with the longest list.
        longest: &'static str,
    },
    /// Sizes, spreading or load that do not fit the rest.
    #[error("--{flag} does not fit: {why} (case {case})")]
    Misfit {
        /// The option's long name.
        flag: &'static str,
        why: String,
        /// Id of the first such case.
        case: String,
    },
    /// An operation that a service has not.
    #[error("--op {op} does not go over --service {service}: {} carries {} (case {case})", upper(*service), operations(*service))]
    NotCarried {
        op: Workload,
        service: Service,
        /// Id of the first such case.
        case: String,
    },
    /// A message larger than a packet, over a service whose messages are packets.
    #[error(
        "--{flag} does not fit --service ud: a datagram is one packet, of at most {most_bytes} bytes with {mtu}, and the \
         case has messages of {size_bytes} (case {case})"
    )]
    DatagramTooLong {
        /// `size` or `size-mix`.
        flag: &'static str,
        size_bytes: u32,
        most_bytes: u32,
        /// What limits it: `--mtu 1024`.
        mtu: String,
        /// Id of the first such case.
        case: String,
    },
    /// A CQ larger than `ibv_create_cq` can be asked for.
    #[error("one CQ would need {entries} entries, more than any can have (case {case})")]
    CqTooLarge {
        /// WRs that can be outstanding on the QPs of that CQ.
        entries: u64,
        /// Id of the first such case.
        case: String,
    },
    /// Something about one of several flows.
    #[error("flow `{flow}`: {error}")]
    InFlow { flow: String, error: Box<PlanError> },
    /// An end of a flow that is no node.
    #[error("`{key}`: no node is named `{name}`{}", suggestion(nearest.as_deref()))]
    UnknownNode {
        /// `from`, `to` or `pattern`.
        key: &'static str,
        name: String,
        nearest: Option<String>,
        /// The names of all nodes.
        names: String,
    },
    /// A flow without a way.
    #[error("it goes from `{node}` to itself")]
    ToItself { node: String },
    /// A pattern beside flows of a file.
    #[error("--pattern makes the flows, and the file has [[flow]] tables")]
    PatternWithFlows,
    /// More senders or receivers than there are.
    #[error("--{flag} {value} is more than the {others} other nodes of an {pattern}")]
    FanTooWide {
        /// `fan-in` or `fan-out`.
        flag: &'static str,
        value: u32,
        others: u32,
        pattern: &'static str,
    },
    /// A bisection of an odd number.
    #[error("--pattern bisection needs an even number of nodes, and there are {nodes}")]
    OddNodes { nodes: usize },
    /// Flows of all cases beyond all reason.
    #[error("the sweep has at least {flows} flows in all its cases; the limit is {most}")]
    TooManyFlowsInAll { flows: u64, most: u64 },
    /// More than two nodes without flows.
    #[error("there are {nodes} nodes, and no --pattern or [[flow]] between them")]
    NoFlows { nodes: usize },
    /// Flows beyond all reason.
    #[error("there are {flows} flows; a case has at most {MOST_FLOWS}")]
    TooManyFlows { flows: usize },
    /// Set-up measured beside flows of a file.
    #[error(
        "--op connect measures set-up beside --traffic-qps QPs with RDMA WRITEs, not beside [[flow]]"
    )]
    ConnectWithFlows,
    /// Flows that no plan makes; a peer may.
    #[error("the case {case} is not valid: {why}")]
    NoCase { case: String, why: &'static str },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// A service as people write it beside its operations.
fn upper(service: Service) -> String {
    service.name().to_uppercase()
}

fn operations(service: Service) -> String {
    let names: Vec<&str> = service.ops().iter().map(|op| op.name()).collect();
    listed(&names)
}

impl PlanError {
    /// The long name, without dashes, of the option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            PlanError::Setting(SettingError::OutOfRange { flag, .. })
            | PlanError::BatchTooDeep { flag, .. }
            | PlanError::NotWithConnect { flag }
            | PlanError::NotWithSearch { flag, .. }
            | PlanError::Misfit { flag, .. }
            | PlanError::DatagramTooLong { flag, .. }
            | PlanError::NoEffect { flag, .. } => flag,
            // Values are read before a sweep is made of them; what a peer sends has no flag.
            PlanError::Setting(SettingError::Syntax(_)) => "",
            PlanError::ListDoesNotFit { .. } => "post-list",
            PlanError::TwoStops | PlanError::NoDuration => "duration",
            PlanError::TooManyCases { longest, .. } => longest,
            PlanError::CqTooLarge { .. } => "qps",
            PlanError::NotCarried { .. } => "op",
            PlanError::InFlow { error, .. } => error.flag(),
            PlanError::UnknownNode { key, .. } => key,
            PlanError::ToItself { .. } => "to",
            PlanError::NoFlows { .. } => "nodes",
            PlanError::ConnectWithFlows => "op",
            PlanError::PatternWithFlows
            | PlanError::OddNodes { .. }
            | PlanError::TooManyFlowsInAll { .. } => "pattern",
            PlanError::FanTooWide { flag, .. } => flag,
            PlanError::SearchWithFlows => "flow",
            PlanError::TooManyFlows { .. } | PlanError::NoCase { .. } => "",
        }
    }

    /// The same, of one of several flows.
    #[must_use]
    pub(super) fn in_flow(self, name: &str) -> PlanError {
        PlanError::InFlow {
            flow: name.to_owned(),
            error: Box::new(self),
        }
    }

    /// The name of the flow that it is about, where one of several is.
    pub fn flow(&self) -> Option<&str> {
        match self {
            PlanError::InFlow { flow, .. } => Some(flow),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            PlanError::Setting(SettingError::OutOfRange { flag, min, max, .. }) => {
                match Settings::row(flag).map_or("", |row| row.range_hint) {
                    "" => format!("give --{flag} a value from {min} to {max}"),
                    hint => hint.to_owned(),
                }
            }
            PlanError::Setting(SettingError::Syntax(_)) => {
                "`rocebench --help` shows the values of each setting".into()
            }
            PlanError::BatchTooDeep {
                flag,
                value,
                tx_depth,
                ..
            } => {
                format!(
                    "raise --tx-depth to at least {value}, or lower --{flag} to at most {tx_depth}"
                )
            }
            PlanError::ListDoesNotFit {
                post_list,
                signal_every,
                ..
            } => {
                let below = post_list - post_list % signal_every;
                format!("take --post-list {below}, or --signal-every {post_list}")
            }
            PlanError::NotWithConnect { flag } => {
                format!("leave --{flag} out, or take connect out of --op and measure it by itself")
            }
            PlanError::NotWithSearch { flag, .. } => {
                format!("leave --{flag} out, or measure without a search")
            }
            PlanError::SearchWithFlows => {
                "leave the flows out of the file, or sweep over rates with `rate` in each of them"
                    .into()
            }
            PlanError::NoEffect { flag, .. } => format!("leave --{flag} out"),
            PlanError::TwoStops => "leave one of them out".into(),
            PlanError::NoDuration => "give --duration a time such as 5s, or use --iters".into(),
            PlanError::TooManyCases { longest, .. } => {
                format!("shorten the lists, --{longest} first; --dry-run shows the cases")
            }
            PlanError::Misfit { flag, .. } => match *flag {
                "spread" => "take --cq per-worker or per-qp, or --workers 1".into(),
                "outstanding" => {
                    "change --outstanding, --tx-depth or --signal-every, or leave --outstanding out"
                        .into()
                }
                "ud-fan-out" => "raise --tx-depth, lower --qps, or leave --ud-fan-out out".into(),
                "memory" => {
                    "take --cq per-worker or per-qp with --recv-queue per-qp, or --workers 1".into()
                }
                "pace" => {
                    "take --pace worker, or --op send or write with a rate in messages or bits"
                        .into()
                }
                "iters" => "give --duration a time instead".into(),
                "timestamps" => {
                    "take --poll-api extended and leave --no-latency out, or take --timestamps cpu"
                        .into()
                }
                "domains" => "take --cq per-worker or per-qp, or --workers 1".into(),
                "size-mix" => "raise --tx-depth or --qps, or choose simpler weights".into(),
                flag => format!("change --{flag}, or leave it out"),
            },
            PlanError::NotCarried { op, service, .. } => {
                let others = Service::ALL.iter().filter(|it| it.carries(*op));
                let others: Vec<&str> = others.map(|it| it.name()).collect();
                format!(
                    "take {op} out of --op, or {service} out of --service; {op} goes over {}",
                    others.join(" and ")
                )
            }
            PlanError::DatagramTooLong {
                flag, most_bytes, ..
            } => format!(
                "give --{flag} at most {most_bytes} bytes; over uc and rc messages take several packets"
            ),
            PlanError::CqTooLarge { .. } => {
                "lower --qps, --tx-depth or --rx-depth, or take --cq per-qp".into()
            }
            PlanError::InFlow { error, .. } => error.hint(),
            PlanError::UnknownNode { names, .. } => format!("the nodes are {names}"),
            PlanError::ToItself { .. } => "name two different nodes in `from` and `to`".into(),
            PlanError::NoFlows { .. } => {
                "choose a --pattern, such as pairs, or write [[flow]] tables in a file (--config)"
                    .into()
            }
            PlanError::PatternWithFlows => {
                "leave --pattern out, or the flows out of the file".into()
            }
            PlanError::FanTooWide { flag, others, .. } => {
                format!("give --{flag} at most {others}, or add nodes to --nodes")
            }
            PlanError::OddNodes { .. } => "add a node to --nodes, or leave one out".into(),
            PlanError::TooManyFlowsInAll { .. } => {
                "shorten the lists, or give fewer nodes or a pattern of fewer flows, such as ring"
                    .into()
            }
            PlanError::TooManyFlows { .. } => {
                "measure some of them at a time; --pattern pairs has each pair, in rounds".into()
            }
            PlanError::ConnectWithFlows => {
                "take connect out of --op, or the flows out of the file".into()
            }
            PlanError::NoCase { .. } => "install the same version of rocebench on both ends".into(),
        }
    }
}
