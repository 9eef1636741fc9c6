//! Why a sweep cannot be run as requested. Every variant knows the option that fixes it.

use settings::{Misfit, SettingError, Settings};

use super::case::MOST_FLOWS;

/// A sweep that makes no sense. [`PlanError::flag`] names the option to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlanError {
    #[error("{0}")]
    Setting(#[from] SettingError),
    #[error("{misfit}{}", of_case(case.as_deref()))]
    Misfit {
        misfit: Misfit,
        /// Id of the first such case; none where it has no effect on any.
        case: Option<String>,
    },
    #[error("--{flag} cannot be used with --slo and --knee: {why}")]
    NotWithSearch { flag: &'static str, why: &'static str },
    #[error("--{flag} does not go together with --quick: {why}")]
    NotWithQuick { flag: &'static str, why: &'static str },
    #[error("--slo and --knee search for the rate of one flow, not for rates of [[flow]] tables")]
    SearchWithFlows,
    #[error("the lists make {cases} cases; a sweep has at most {most}")]
    TooManyCases {
        cases: u64,
        /// Cases with as many flows that a sweep may have.
        most: u64,
        /// The option with the longest list.
        longest: &'static str,
    },
    #[error("flow `{flow}`: {error}")]
    InFlow { flow: String, error: Box<PlanError> },
    #[error("`{key}`: no node is named `{name}`{}", suggestion(nearest.as_deref()))]
    UnknownNode {
        /// `from`, `to` or `pattern`.
        key: &'static str,
        name: String,
        nearest: Option<String>,
        /// The names of all nodes.
        names: String,
    },
    #[error("it goes from `{node}` to itself")]
    ToItself { node: String },
    #[error("--pattern and the file's [[flow]] tables exclude each other")]
    PatternWithFlows,
    #[error("--{flag} {value} is more than the {others} other nodes of an {pattern}")]
    FanTooWide {
        /// `fan-in` or `fan-out`.
        flag: &'static str,
        value: u32,
        others: u32,
        pattern: &'static str,
    },
    #[error("--pattern bisection needs an even number of nodes, not {nodes}")]
    OddNodes { nodes: usize },
    #[error("the sweep has at least {flows} flows in all its cases; the limit is {most}")]
    TooManyFlowsInAll { flows: u64, most: u64 },
    #[error("{nodes} nodes need a --pattern or [[flow]] tables")]
    NoFlows { nodes: usize },
    #[error("there are {flows} flows; a case has at most {MOST_FLOWS}")]
    TooManyFlows { flows: usize },
    #[error(
        "--op connect cannot be used with [[flow]]: its traffic is the RDMA WRITEs of --traffic-qps"
    )]
    ConnectWithFlows,
    /// Flows that no plan makes; a peer may.
    #[error("the case {case} is not valid: {why}")]
    NoCase { case: String, why: &'static str },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

fn of_case(id: Option<&str>) -> String {
    id.map_or(String::new(), |id| format!(" (case {id})"))
}

impl PlanError {
    /// The long name, without dashes, of the option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            PlanError::Setting(SettingError::OutOfRange { flag, .. })
            | PlanError::NotWithSearch { flag, .. }
            | PlanError::NotWithQuick { flag, .. } => flag,
            PlanError::Misfit { misfit, .. } => misfit.flag(),
            // Values are read before a sweep is made of them; what a peer sends has no flag.
            PlanError::Setting(SettingError::Syntax(_)) => "",
            PlanError::TooManyCases { longest, .. } => longest,
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
        PlanError::InFlow { flow: name.to_owned(), error: Box::new(self) }
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
            PlanError::Misfit { misfit, .. } => misfit.hint(),
            PlanError::NotWithSearch { flag, .. } => {
                format!("leave --{flag} out, or measure without a search")
            }
            PlanError::NotWithQuick { flag, .. } => {
                format!("leave --{flag} out, or measure without --quick")
            }
            PlanError::SearchWithFlows => {
                "leave the flows out of the file, or give each flow a `rate` and no search"
                    .into()
            }
            PlanError::TooManyCases { longest, .. } => {
                format!("shorten the lists, --{longest} first; --dry-run shows the cases")
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
                "shorten the lists, or choose fewer nodes or a pattern with fewer flows, such as ring"
                    .into()
            }
            PlanError::TooManyFlows { .. } => {
                "measure fewer flows at a time: --pattern pairs measures each pair, in rounds".into()
            }
            PlanError::ConnectWithFlows => {
                "take connect out of --op, or the flows out of the file".into()
            }
            PlanError::NoCase { .. } => "install the same version of rocebench on both ends".into(),
        }
    }
}
