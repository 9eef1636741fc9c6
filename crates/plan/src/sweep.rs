//! A whole sweep: its cases in order, all checked, and how often each runs; and why it cannot be run as requested.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use results::model::CheckRound;
use serde::{Deserialize, Serialize};
use settings::{Given, Misfit, ROWS, Rate, Scope, SettingError, Settings, Stop, TimeSpan};

use crate::config::FlowTable;
use crate::flow::{Flow, FlowDevice, Side};
use crate::matrix::Axes;
use crate::nodes::{MOST_NODES, Nodes};

/// Cases in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// At least one; ids are unique.
    pub cases: Vec<Case>,
    /// The nodes between which their flows go.
    pub nodes: Nodes,
}

impl Sweep {
    /// Every requested case between two ends, with defaults for all other settings.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn new(given: &Given) -> Result<Sweep, PlanError> {
        Sweep::with_flows(given, &[], Nodes::TwoEnds)
    }

    /// Every case of these flows between these nodes. Flows without a value of their own take it from `given`; without flows
    /// there is one, from the first node to the second.
    pub fn with_flows(
        given: &Given,
        flows: &[FlowTable],
        nodes: Nodes,
    ) -> Result<Sweep, PlanError> {
        match (flows.is_empty(), given.has("pattern")) {
            (false, true) => return Err(PlanError::PatternWithFlows),
            (true, false) if nodes.count() > 2 => {
                return Err(PlanError::NoFlows { nodes: nodes.count() });
            }
            _ => {}
        }
        let mut cases = Axes::new(given, flows, &nodes)?.cases()?;
        for flow in cases.iter_mut().flat_map(|case| &mut case.flows) {
            flow.from_device = flow.from_device.take().or_else(|| nodes.device(flow.from));
            flow.to_device = flow.to_device.take().or_else(|| nodes.device(flow.to));
        }
        cases.iter().try_for_each(check)?;
        Ok(Sweep { cases, nodes })
    }

    /// Checks a case that no plan made, such as a peer's: every range, its flows, and combinations of settings.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn check(case: &Case) -> Result<(), PlanError> {
        check_ranges(case)?;
        check_flows(case)?;
        check(case)
    }

    /// How often each case is run.
    pub fn runs(&self) -> u32 {
        self.cases.first().map_or(1, |case| case.runs)
    }

    /// How often each case is run at most.
    pub fn most_runs(&self) -> u32 {
        self.cases.first().map_or(1, Case::most_runs)
    }

    /// The most workers that any case has at a node.
    pub fn max_workers(&self) -> u32 {
        self.cases
            .iter()
            .map(|case| {
                let last_set = case.flows.iter().map(|flow| flow.worker_set).max().unwrap_or(0);
                case.workers * (u32::from(last_set) + 1)
            })
            .max()
            .unwrap_or(0)
    }

    /// The longest that warm-ups and measurements of so many runs of each case take together, connecting and draining
    /// not counted; `None` when runs end after a number of messages.
    pub fn longest(&self, runs: u32) -> Option<Duration> {
        let mut spans = self.cases.iter().map(Case::longest);
        let one_round =
            spans.try_fold(Duration::ZERO, |sum, span| Some(sum.saturating_add(span?)))?;
        Some(one_round.saturating_mul(runs))
    }
}

/// Checks combinations of settings, of the case as a whole and of each flow.
fn check(case: &Case) -> Result<(), PlanError> {
    check_scope(case, case, Scope::Case)?;
    let is_alone = matches!(case.flows.as_slice(), [flow] if flow.name == Flow::FORWARD);
    case.flows.iter().try_for_each(|flow| {
        let checked = check_scope(case, flow, Scope::Flow);
        checked.map_err(|error| if is_alone { error } else { error.in_flow(&flow.name) })
    })
}

fn check_scope(case: &Case, settings: &Settings, scope: Scope) -> Result<(), PlanError> {
    match settings.misfit(scope) {
        None => Ok(()),
        Some(misfit) => Err(PlanError::Misfit { misfit, case: Some(case.id.clone()) }),
    }
}

/// What every plan guarantees about its flows, but a peer may break.
fn check_flows(case: &Case) -> Result<(), PlanError> {
    let usual = if case.is_set_up() { 0..=1 } else { 1..=MOST_FLOWS };
    if !usual.contains(&case.flows.len()) {
        return refused(case, "it has no flow, or too many");
    }
    let mut names = HashSet::new();
    for flow in &case.flows {
        if !Flow::is_name_of_plan(&flow.name) || !names.insert(&flow.name) {
            return refused(case, "a flow has no name of its own");
        }
        if flow.from.max(flow.to) >= MOST_NODES {
            return refused(case, "a flow goes from or to no node");
        }
        let mut devices = [&flow.from_device, &flow.to_device].into_iter().flatten();
        if !devices.all(|it| FlowDevice::is_name(&it.name) && it.ib_port != Some(0)) {
            return refused(case, "a flow asks for a device without a name");
        }
        if flow.worker_set >= Flow::WORKER_SETS {
            return refused(case, "a flow asks for workers that no plan has");
        }
        if flow.is_set_up() {
            return refused(case, "set-up is not a flow");
        }
        let mut of_case = ROWS.iter().filter(|row| row.scope == Scope::Case);
        if !case.is_set_up() && !of_case.all(|row| row.is_equal(flow, case)) {
            return refused(case, "a flow differs in what holds for all of them");
        }
        check_ranges(flow)?;
    }
    Ok(())
}

fn refused(case: &Case, why: &'static str) -> Result<(), PlanError> {
    Err(PlanError::NoCase { case: case.id.clone(), why })
}

fn check_ranges(settings: &Settings) -> Result<(), PlanError> {
    let mut scratch = Settings::default();
    for row in ROWS {
        row.read(&mut scratch, &row.text(settings))?;
    }
    Ok(())
}

/// Flows of one case: 64 nodes, each to all others, are 4032.
pub(crate) const MOST_FLOWS: usize = 4_096;

/// One cell of the sweep's matrix, with every setting of it, which are fields of it. It is sent whole to each node, so that
/// settings cannot differ between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the case within its sweep, such as `send-shared-q16-64KiB`; unique.
    pub id: String,
    #[serde(flatten)]
    pub settings: Settings,
    /// What moves: one flow or several; where set-up is measured, the traffic meanwhile, which goes on until it is
    /// stopped, or none.
    pub flows: Vec<Flow>,
    /// It is a round of `mesh --check`: a flow that fails does not end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRound>,
}

impl Case {
    /// The case of these settings, with one flow, or none where set-up is measured without traffic.
    pub fn new(id: String, settings: Settings) -> Case {
        let mut moving = settings.clone();
        if settings.is_set_up() {
            moving.qps = settings.traffic_qps;
            moving.op = settings.op.transfer().into();
            moving.set_stop(Stop::DurationNs(TimeSpan::MAX.ns()));
        }
        let flows = if settings.has_traffic() { vec![Flow::forward(moving)] } else { Vec::new() };
        Case { id, settings, flows, check: None }
    }

    /// For tests: SENDs of 64 bytes on two QPs with a window of 1 µs.
    #[cfg(any(test, feature = "samples"))]
    pub fn sample() -> Case {
        let options = [
            ("qps", "2"),
            ("size", "64"),
            ("signal-every", "1"),
            ("mtu", "1024"),
            ("duration", "1us"),
            ("warmup", "0"),
        ];
        Case::new("send-shared-q2-64".to_owned(), options.into_iter().collect())
    }

    /// The ends of flows at a node, each with its flow's index.
    pub fn ends_at(&self, node: u32) -> impl Iterator<Item = (usize, &Flow, Side)> {
        self.flows.iter().enumerate().flat_map(move |(index, flow)| {
            let ends = [(flow.from, Side::Initiator), (flow.to, Side::Target)];
            ends.into_iter()
                .filter(move |(end, _)| *end == node)
                .map(move |(_, side)| (index, flow, side))
        })
    }

    /// The longest that warm-up and measurement of a run take together; `None` where it ends after a number of messages.
    pub fn longest(&self) -> Option<Duration> {
        match self.stop() {
            Stop::DurationNs(ns) => {
                Some(self.warmup.longest().saturating_add(Duration::from_nanos(ns)))
            }
            Stop::MessagesPerQp(_) => None,
        }
    }

    /// How often it is run at most: where it is several times, runs whose figures do not count are made up for.
    pub fn most_runs(&self) -> u32 {
        match self.runs {
            1 => 1,
            runs => 2 * runs,
        }
    }

    /// Whether the rate of a flow is a share of what the closed loop moves.
    pub fn has_shares(&self) -> bool {
        self.flows.iter().any(|flow| flow.rate.share().is_some())
    }

    /// The closed loop whose maximum the shares of `--rate` are of: the same case without them. `None` where no flow has
    /// a share.
    pub fn closed_loop(&self) -> Option<Case> {
        if !self.has_shares() {
            return None;
        }
        let mut closed = self.clone();
        let mut all_settings: Vec<&mut Settings> =
            closed.flows.iter_mut().map(|flow| &mut flow.settings).collect();
        all_settings.push(&mut closed.settings);
        for settings in all_settings.into_iter().filter(|it| it.rate.share().is_some()) {
            settings.rate = Rate::Closed;
            settings.drop_idle();
        }
        Some(closed)
    }

    /// The case with messages a second in place of shares, by what each of its flows moved in the closed loop; `None`
    /// where that is not known.
    pub fn with_maxima(&self, messages_per_second: impl Fn(&Flow) -> Option<f64>) -> Option<Case> {
        let mut case = self.clone();
        for (flow, requested) in case.flows.iter_mut().zip(&self.flows) {
            if let Some(share) = requested.rate.share() {
                let rate = (messages_per_second(requested)? * share).round().max(1.0);
                flow.rate = Rate::Messages(rate as u64);
            }
        }
        if let [only] = case.flows.as_slice() {
            case.settings.rate = only.rate;
        }
        Some(case)
    }

    /// The span of the measurement, for people.
    pub fn stop_text(&self) -> String {
        match self.stop() {
            Stop::MessagesPerQp(rounds) if self.is_set_up() => format!("{rounds} rounds"),
            Stop::DurationNs(ns) => TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX).to_string(),
            Stop::MessagesPerQp(messages) => format!("{messages} messages a QP"),
        }
    }
}

impl Deref for Case {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Case {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

/// Why a sweep cannot be run as requested. [`PlanError::flag`] names the option that fixes it.
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
    #[error("--{flag} cannot be used with --slo, --knee and --loss-search: {why}")]
    NotWithSearch { flag: &'static str, why: &'static str },
    #[error("--{flag} does not go together with --{mode}: {why}")]
    NotWithMode { flag: &'static str, mode: &'static str, why: &'static str },
    #[error(
        "--slo, --knee and --loss-search search for the rate of one flow, not for rates of [[flow]] tables"
    )]
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
        /// The key whose value it is: `from`, `to` or `pattern`.
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
        /// The option that is too large: `fan-in` or `fan-out`.
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

impl PlanError {
    /// The long name, without dashes, of the option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            PlanError::Setting(SettingError::OutOfRange { flag, .. })
            | PlanError::NotWithSearch { flag, .. }
            | PlanError::NotWithMode { flag, .. } => flag,
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
    pub(crate) fn in_flow(self, name: &str) -> PlanError {
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
            PlanError::NotWithMode { flag, mode, .. } => {
                format!("leave --{flag} out, or measure without --{mode}")
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

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

fn of_case(id: Option<&str>) -> String {
    id.map_or(String::new(), |id| format!(" (case {id})"))
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
