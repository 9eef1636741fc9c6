//! The table of metrics: what each is called, how it is written, which direction is better, and where its value is. A
//! new one is a row here; terminal, CSV, page, figures, comparisons and conditions follow.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Connect, FlowResult, Latency, LockStep, Run};
use crate::numbers::{exact, fixed, rate_text, time_text};

/// What is known of a metric; [`Metric`] has a function for each, which says what it is.
struct Row {
    name: &'static str,
    /// What a person types and reads, and another name that is understood too.
    short: [&'static str; 2],
    noun: &'static str,
    unit: &'static str,
    title: &'static str,
    axis: &'static str,
    column: (&'static str, usize, f64),
    /// What has none is shown and not compared.
    margin: Option<f64>,
    higher_is_better: bool,
    is_of_offer: bool,
    /// Shown in tables where it was asked for alone.
    on_request: bool,
    source: Source,
}

/// What a figure is of.
enum Source {
    Flow(fn(&FlowResult) -> Option<f64>),
    /// What a run's nodes did for a flow.
    Nodes(fn(&Run, &FlowResult) -> Option<f64>),
    /// A flow's latencies; unknown if they are too few.
    Latency(fn(&Latency) -> Option<u64>),
    /// How late messages of an open loop were posted.
    Lateness(fn(&Latency) -> Option<u64>),
    /// How long completions waited to be seen.
    Seen(fn(&Latency) -> Option<u64>),
    SetUp(fn(&Connect) -> Option<f64>),
    /// The times of a run's set-ups; unknown if they are too few.
    SetUpTimes(fn(&Latency) -> Option<u64>),
    Steps(fn(&LockStep) -> Option<f64>),
    /// The times of a run's steps; unknown if they are too few.
    StepTimes(fn(&Latency) -> Option<u64>),
    /// A case's searches over loads, which runs have not.
    Search,
}

impl Row {
    /// What most are, for those parts that a row does not say.
    const USUAL: Row = Row {
        name: "",
        short: ["", ""],
        noun: "",
        unit: "",
        title: "",
        axis: "",
        column: ("", 0, 1.0),
        margin: None,
        higher_is_better: false,
        is_of_offer: false,
        on_request: false,
        source: Source::Search,
    };
}

/// Makes the metrics from the rows.
macro_rules! metrics {
    ($($(#[$doc:meta])+ $metric:ident => { $($part:ident: $value:expr),* $(,)? })*) => {
        /// One figure of a flow, or of set-up. In documents it is its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(with = "String")]
        #[serde(try_from = "String", into = "String")]
        pub enum Metric {
            $($(#[$doc])+ $metric),*
        }

        impl Metric {
            /// All, in the order in which they are shown.
            pub const ALL: &[Metric] = &[$(Metric::$metric),*];

            fn row(self) -> &'static Row {
                match self {
                    $(Metric::$metric => &Row { $($part: $value,)* ..Row::USUAL }),*
                }
            }
        }
    };
}

// The tail of latency and CPU time scatter more than throughput, and fairness is close to 1. Those that are compared come first.
metrics! {
    /// Payload throughput, in 10^9 bits a second; over UC and UD of what was received.
    GbitPerS => {
        name: "gbit_per_s", short: ["bandwidth", "gbit"], noun: "throughput", unit: "Gb/s", title: "Bandwidth", axis: "Gb/s",
        column: ("Gb/s", 3, 1.0), margin: Some(0.03), higher_is_better: true,
        is_of_offer: true, source: Source::Flow(FlowResult::gbit_per_s),
    }
    /// Message rate, in 10^6 a second; over UC and UD of what was received.
    MmsgPerS => {
        name: "mmsg_per_s", short: ["rate", "mmsg"], noun: "rate", unit: "Mmsg/s", title: "Message rate", axis: "Mmsg/s",
        column: ("Mmsg/s", 4, 1.0), margin: Some(0.05), higher_is_better: true,
        is_of_offer: true, source: Source::Flow(FlowResult::mmsg_per_s),
    }
    /// Half of the latencies are at most this, in nanoseconds.
    P50Ns => {
        name: "latency_p50_ns", short: ["p50", "p50"], noun: "p50", unit: "ns", title: "Median latency", axis: "p50",
        column: ("p50 (µs)", 2, 1e3), margin: Some(0.03), higher_is_better: false,
        is_of_offer: false, source: Source::Latency(|times| times.p50),
    }
    /// 99 % of latencies are at most this, in nanoseconds.
    P99Ns => {
        name: "latency_p99_ns", short: ["p99", "p99"], noun: "p99", unit: "ns", title: "p99 latency", axis: "p99",
        column: ("p99 (µs)", 2, 1e3), margin: Some(0.10), higher_is_better: false,
        is_of_offer: false, source: Source::Latency(|times| times.p99),
    }
    /// 99.9 % of latencies are at most this, in nanoseconds.
    P99_9Ns => {
        name: "latency_p99_9_ns", short: ["p99.9", "p99.9"], noun: "p99.9", unit: "ns", title: "p99.9 latency", axis: "p99.9",
        column: ("p99.9 (µs)", 2, 1e3), margin: Some(0.20), higher_is_better: false,
        is_of_offer: false, source: Source::Latency(|times| times.p99_9),
    }
    /// Jain's index over the QPs.
    Fairness => {
        name: "fairness_jain", short: ["fairness", "jain"], noun: "fairness", unit: "", title: "Fairness (Jain’s index)",
        axis: "Jain's index", column: ("Jain", 3, 1.0), margin: Some(0.02), higher_is_better: true,
        is_of_offer: true, source: Source::Flow(|flow| Some(flow.fairness.as_ref()?.jain)),
    }
    /// CPU time of the workers of the node that posts the flow and of its embedded device, for 10^9 payload bytes of all flows
    /// to and from it.
    CpuSecondsPerGb => {
        name: "cpu_seconds_per_gb", short: ["cpu", "cpu"], noun: "cpu", unit: "s/GB", title: "CPU time a GB",
        axis: "CPU seconds a GB", column: ("CPU s/GB", 3, 1.0), margin: Some(0.10), higher_is_better: false,
        is_of_offer: false, source: Source::Nodes(|run, flow| run.cpu_seconds_per_gb(&flow.from)),
    }
    /// QPs that were set up, a second.
    ConnectionsPerS => {
        name: "connections_per_s", short: ["connections", "connections"], noun: "set-ups a second", unit: "/s",
        title: "Connections a second", axis: "connections a second", column: ("connections/s", 1, 1.0), margin: Some(0.05),
        higher_is_better: true, is_of_offer: false, source: Source::SetUp(|connect| connect.connections_per_second),
    }
    /// 99 % of rounds were set up in at most this time, in nanoseconds.
    SetupP99Ns => {
        name: "setup_p99_ns", short: ["setup", "setup"], noun: "p99 of set-up", unit: "ns", title: "p99 set-up time",
        axis: "set-up p99", column: ("set-up p99 (ms)", 3, 1e6), margin: Some(0.10), higher_is_better: false,
        is_of_offer: false, source: Source::SetUpTimes(|times| times.p99),
    }
    /// The highest load that kept a limit of latency for sure, in messages a second.
    HighestLoad => {
        name: "highest_load_per_s", short: ["load", "load"], noun: "load", unit: "/s",
        title: "Highest load within a latency limit", axis: "messages a second", column: ("highest load (k/s)", 1, 1e3),
        margin: Some(0.05), higher_is_better: true, is_of_offer: false, source: Source::Search,
    }
    /// Bus bandwidth of iterations in lock-step, in 10^9 bits a second.
    BusGbitPerS => {
        name: "bus_gbit_per_s", short: ["bus", "busbw"], noun: "bus bandwidth", unit: "Gb/s", title: "Bus bandwidth",
        axis: "Gb/s", column: ("bus Gb/s", 3, 1.0), margin: Some(0.03), higher_is_better: true,
        source: Source::Steps(|steps| steps.bus_gbit_per_s),
    }
    /// Half of the steps in lock-step took at most this, in nanoseconds.
    StepP50Ns => {
        name: "step_p50_ns", short: ["step-p50", "step-p50"], noun: "p50 of steps", unit: "ns", title: "Median step time",
        axis: "step p50", column: ("step p50 (µs)", 2, 1e3), margin: Some(0.03), source: Source::StepTimes(|times| times.p50),
    }
    /// 99 % of the steps in lock-step took at most this, in nanoseconds.
    StepP99Ns => {
        name: "step_p99_ns", short: ["step", "step-p99"], noun: "p99 of steps", unit: "ns", title: "p99 step time",
        axis: "step p99", column: ("step p99 (µs)", 2, 1e3), margin: Some(0.10), source: Source::StepTimes(|times| times.p99),
    }
    /// Rounds of set-up that were measured.
    SetupRounds => {
        name: "setup_rounds", short: ["rounds", "rounds"], noun: "rounds", unit: "", title: "Rounds of set-up", axis: "rounds",
        column: ("rounds", 0, 1.0), margin: None, higher_is_better: true,
        is_of_offer: false, source: Source::SetUp(|connect| Some(connect.rounds as f64)),
    }
    /// Half of the rounds were set up in at most this time, in nanoseconds.
    SetupP50Ns => {
        name: "setup_p50_ns", short: ["setup-p50", "setup-p50"], noun: "p50 of set-up", unit: "ns", title: "Median set-up time",
        axis: "set-up p50", column: ("set-up p50 (ms)", 3, 1e6), margin: None, higher_is_better: false,
        is_of_offer: false, source: Source::SetUpTimes(|times| times.p50),
    }
    /// What the traffic moves that QPs are set up beside, without set-ups, in 10^9 bits a second.
    AloneGbitPerS => {
        name: "traffic_alone_gbit_per_s", short: ["alone", "alone"], noun: "traffic alone", unit: "Gb/s",
        title: "Traffic without set-ups", axis: "Gb/s", column: ("alone Gb/s", 3, 1.0), margin: None, higher_is_better: true,
        is_of_offer: true, source: Source::SetUp(|connect| connect.traffic_alone_gbit_per_s),
    }
    /// CPU time of everything on the machine that posts the flow, for 10^9 payload bytes of all flows to and from its node.
    MachineCpuSecondsPerGb => {
        name: "machine_cpu_seconds_per_gb", short: ["machine-cpu", "machine-cpu"], noun: "CPU time of the machine", unit: "s/GB",
        title: "CPU time of the machine a GB", axis: "CPU seconds of the machine a GB", column: ("host s/GB", 3, 1.0),
        margin: None, higher_is_better: false, is_of_offer: false,
        source: Source::Nodes(|run, flow| run.machine_cpu_seconds_per_gb(&flow.from)),
    }
    /// The longest latency, in nanoseconds.
    MaxNs => {
        name: "latency_max_ns", short: ["max", "max"], noun: "longest latency", unit: "ns", title: "Longest latency", axis: "max",
        column: ("max (µs)", 2, 1e3), margin: None, higher_is_better: false,
        is_of_offer: false, source: Source::Latency(|times| Some(times.max)),
    }
    /// The shortest latency, in nanoseconds.
    MinNs => {
        name: "latency_min_ns", short: ["min", "min"], noun: "shortest latency", unit: "ns", title: "Shortest latency", axis: "min",
        column: ("min (µs)", 2, 1e3), on_request: true, source: Source::Latency(|times| Some(times.min)),
    }
    /// 90 % of latencies are at most this, in nanoseconds.
    P90Ns => {
        name: "latency_p90_ns", short: ["p90", "p90"], noun: "p90", unit: "ns", title: "p90 latency", axis: "p90",
        column: ("p90 (µs)", 2, 1e3), on_request: true, source: Source::Latency(|times| times.p90),
    }
    /// 95 % of latencies are at most this, in nanoseconds.
    P95Ns => {
        name: "latency_p95_ns", short: ["p95", "p95"], noun: "p95", unit: "ns", title: "p95 latency", axis: "p95",
        column: ("p95 (µs)", 2, 1e3), on_request: true, source: Source::Latency(|times| times.p95),
    }
    /// 99.99 % of latencies are at most this, in nanoseconds.
    P99_99Ns => {
        name: "latency_p99_99_ns", short: ["p99.99", "p99.99"], noun: "p99.99", unit: "ns", title: "p99.99 latency",
        axis: "p99.99", column: ("p99.99 (µs)", 2, 1e3), on_request: true, source: Source::Latency(|times| times.p99_99),
    }
    /// The mean of latencies, in nanoseconds.
    MeanNs => {
        name: "latency_mean_ns", short: ["mean", "avg"], noun: "mean latency", unit: "ns", title: "Mean latency", axis: "mean",
        column: ("mean (µs)", 2, 1e3), on_request: true, source: Source::Latency(|times| Some(times.mean.round() as u64)),
    }
    /// The standard deviation of latencies, in nanoseconds.
    StddevNs => {
        name: "latency_stddev_ns", short: ["stddev", "stddev"], noun: "standard deviation of latency", unit: "ns",
        title: "Standard deviation of latency", axis: "stddev", column: ("stddev (µs)", 2, 1e3), on_request: true,
        source: Source::Latency(|times| Some(times.stddev.round() as u64)),
    }
    /// Throughput as a percentage of what the link and the protocol allow; of none where the link's speed is not known.
    PercentOfLimit => {
        name: "percent_of_limit", short: ["limit", "limit"], noun: "share of the limit", unit: "%",
        title: "Share of what the link allows", axis: "% of what the link allows", column: ("limit (%)", 1, 1.0), margin: None,
        higher_is_better: true, is_of_offer: true,
        source: Source::Flow(|flow| Some(100.0 * flow.limits.as_ref()?.share_of_limit?)),
    }
    /// Messages that an open loop planned, a second.
    OfferedPerS => {
        name: "offered_per_s", short: ["offered", "offered"], noun: "offered load", unit: "/s", title: "Offered load",
        axis: "messages a second", column: ("offered (k/s)", 2, 1e3), margin: None, higher_is_better: true,
        is_of_offer: true, source: Source::Flow(|flow| Some(flow.load.as_ref()?.offered_per_second)),
    }
    /// Messages that completed, a second, in an open loop.
    AchievedPerS => {
        name: "achieved_per_s", short: ["achieved", "achieved"], noun: "achieved load", unit: "/s", title: "Achieved load",
        axis: "messages a second", column: ("done (k/s)", 2, 1e3), margin: None, higher_is_better: true,
        is_of_offer: true, source: Source::Flow(|flow| Some(flow.mmsg_per_s()? * 1e6)),
    }
    /// 99 % of completions were seen at most so long after the device's stamp, in nanoseconds.
    SeenP99Ns => {
        name: "notice_p99_ns", short: ["seen", "seen"], noun: "p99 until a completion is seen", unit: "ns",
        title: "p99 until a completion is seen", axis: "seen p99", column: ("seen p99 (µs)", 2, 1e3), margin: None,
        higher_is_better: false, is_of_offer: false, source: Source::Seen(|times| times.p99),
    }
    /// 99 % of an open loop's messages were posted at most so late, in nanoseconds.
    LateP99Ns => {
        name: "lateness_p99_ns", short: ["late", "late"], noun: "p99 of lateness", unit: "ns", title: "p99 of lateness",
        axis: "late p99", column: ("late p99 (µs)", 2, 1e3), margin: None, higher_is_better: false,
        is_of_offer: false, source: Source::Lateness(|times| times.p99),
    }
}

impl Metric {
    /// Those that are compared and judged.
    pub fn compared() -> impl Iterator<Item = Metric> {
        Metric::ALL.iter().copied().filter(|metric| metric.row().margin.is_some())
    }

    /// Its name in documents that programs read; ends in its unit.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The metric of a name; also of what a person types: `p99`, `fairness` or `jain`, `cpu`.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL
            .iter()
            .copied()
            .find(|metric| metric.name() == name || metric.row().short.contains(&name))
    }

    /// What a person types and reads: `bandwidth`, `rate`, `p50`, `p99`, `p99.9`, `fairness`, `cpu`.
    pub fn short_name(self) -> &'static str {
        self.row().short[0]
    }

    /// What a person types, of all that are compared, with commas.
    pub fn short_names() -> String {
        let names: Vec<&str> = Metric::compared().map(Metric::short_name).collect();
        names.join(", ")
    }

    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// Its unit, as people write it; empty for a figure without one.
    pub fn unit(self) -> &'static str {
        self.row().unit
    }

    /// A figure of it with its unit, as sentences have it: `21.10 Gb/s`, `12.4 µs`, `1.234 M/s`.
    pub fn text(self, value: f64) -> String {
        match self.unit() {
            "ns" => time_text(value),
            "/s" => rate_text(value),
            unit => format!("{} {unit}", exact(value)).trim_end().to_owned(),
        }
    }

    /// Two figures of it: `9.5 to 10.5 Gb/s`, the unit once, where both have the same.
    pub fn range(self, low: f64, high: f64) -> String {
        let [low, high] = [low, high].map(|value| self.text(value));
        if low == high {
            return low;
        }
        let low = match (low.split_once(' '), high.split_once(' ')) {
            (Some((number, unit)), Some((_, other))) if unit == other => number,
            _ => &low,
        };
        format!("{low} to {high}")
    }

    /// The heading of its column in a table for a terminal: `p50 µs`.
    pub fn heading(self) -> String {
        self.row().column.0.replace(['(', ')'], "")
    }

    /// A figure of it as a cell of its column: all have as many digits after the point, but very small ones.
    pub fn cell(self, value: f64) -> String {
        fixed(self.in_column(value), self.row().column.1)
    }

    /// A figure of it in the unit of its column.
    pub fn in_column(self, value: f64) -> f64 {
        value / self.row().column.2
    }

    /// Title of a figure of it.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What stands at its axis.
    pub fn axis(self) -> &'static str {
        self.row().axis
    }

    /// Heading of its column in a table, digits after the point there, and what it is divided by.
    pub fn column(self) -> (&'static str, usize, f64) {
        self.row().column
    }

    /// How much of it does not matter unless a user says otherwise: 0.03 is 3 %.
    pub fn default_margin(self) -> f64 {
        self.row().margin.unwrap_or_default()
    }

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        self.row().higher_is_better
    }

    /// Whether tables show it only where it was asked for.
    pub fn is_on_request(self) -> bool {
        self.row().on_request
    }

    /// Whether it is of messages' latency.
    pub fn is_of_latency(self) -> bool {
        matches!(self.row().source, Source::Latency(_))
    }

    /// Whether it is of set-ups, which most runs have not.
    pub fn is_of_setup(self) -> bool {
        matches!(self.row().source, Source::SetUp(_) | Source::SetUpTimes(_))
    }

    /// Whether it is of steps, which only runs in lock-step have.
    pub fn is_of_steps(self) -> bool {
        matches!(self.row().source, Source::Steps(_) | Source::StepTimes(_))
    }

    /// Whether it is of a whole run, and of no flow of it.
    pub fn is_of_run(self) -> bool {
        self.is_of_setup() || self.is_of_steps()
    }

    /// Whether it is of the searches of a case, and of no run.
    pub fn is_of_search(self) -> bool {
        matches!(self.row().source, Source::Search)
    }

    /// Whether it is what was asked for in an open loop that keeps up, and therefore nothing to be judged.
    pub fn is_of_offer(self) -> bool {
        self.row().is_of_offer
    }

    /// The figure of a run's flow, or of the run's set-ups or steps; `None` when it was not measured.
    pub fn of(self, run: &Run, flow: Option<&FlowResult>) -> Option<f64> {
        match self.row().source {
            Source::Flow(figure) => figure(flow?),
            Source::Nodes(figure) => figure(run, flow?),
            Source::SetUp(figure) => figure(run.connect.as_ref()?),
            Source::Steps(figure) => figure(run.lock_step.as_ref()?),
            Source::Search => None,
            Source::Latency(figure)
            | Source::Lateness(figure)
            | Source::Seen(figure)
            | Source::SetUpTimes(figure)
            | Source::StepTimes(figure) => figure(self.samples(run, flow)?).map(|ns| ns as f64),
        }
    }

    /// Whether the run has samples of this, be they too few.
    pub fn has_samples(self, run: &Run, flow: Option<&FlowResult>) -> bool {
        self.samples(run, flow).is_some()
    }

    /// The samples that it is a figure of; `None` where it is of none.
    pub fn samples<'a>(self, run: &'a Run, flow: Option<&'a FlowResult>) -> Option<&'a Latency> {
        match self.row().source {
            Source::Latency(_) => flow?.latency_ns.as_ref(),
            Source::Lateness(_) => flow?.lateness_ns.as_ref(),
            Source::Seen(_) => flow?.notice_ns.as_ref(),
            Source::SetUpTimes(_) => run.connect.as_ref()?.setup_ns.as_ref(),
            Source::StepTimes(_) => run.lock_step.as_ref()?.step_ns.as_ref(),
            _ => None,
        }
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.name().to_owned()
    }
}

/// A word that names no metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\" is not a metric; metrics are {}", Metric::short_names())]
pub struct UnknownMetric {
    /// What was given for one.
    pub word: String,
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(word: &str) -> Result<Metric, UnknownMetric> {
        Metric::from_name(word.trim()).ok_or_else(|| UnknownMetric { word: word.to_owned() })
    }
}

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;

    fn try_from(name: String) -> Result<Self, UnknownMetric> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Delivery, Totals};

    #[test]
    fn what_was_lost_is_no_throughput() {
        let mut flow = FlowResult {
            totals: Totals::in_window(2_000_000, 2_000_000_000, 0, 2.0),
            ..FlowResult::default()
        };
        let rates = |sent: &FlowResult| {
            [Metric::GbitPerS, Metric::MmsgPerS].map(|it| it.of(&Run::default(), Some(sent)))
        };
        assert_eq!(rates(&flow), [Some(8.0), Some(1.0)]);
        flow.delivery = Some(Delivery {
            goodput_gbit_per_s: Some(2.0),
            goodput_mmsg_per_s: Some(0.25),
            ..Delivery::of_qps(&[2_000_000], &[500_000])
        });
        assert_eq!(rates(&flow), [Some(2.0), Some(0.25)]);
        flow.delivery = Some(Delivery::of_qps(&[], &[]));
        // And what was sent is none either.
        assert_eq!(rates(&flow), [None, None]);
    }

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        for &metric in Metric::ALL {
            for name in [metric.name(), metric.short_name(), metric.row().short[1]] {
                assert_eq!(Metric::from_name(name), Some(metric), "{name}");
            }
            let has_unit = match metric.unit() {
                "ns" => metric.name().ends_with("_ns"),
                "Gb/s" | "Mmsg/s" | "/s" => metric.name().ends_with("_per_s"),
                _ => true,
            };
            assert!(has_unit, "{}", metric.name());
        }
        // Statistics know a metric by its place.
        assert!(
            Metric::compared().eq(Metric::ALL.iter().copied().take(Metric::compared().count()))
        );
    }

    #[test]
    fn figures_have_the_unit_that_fits() {
        for (metric, value, text) in [
            (Metric::GbitPerS, 21.1, "21.100 Gb/s"),
            (Metric::P99Ns, 12_400.0, "12.4 µs"),
            (Metric::HighestLoad, 1_234_000.0, "1.234 M/s"),
            (Metric::Fairness, 0.98, "0.980"),
        ] {
            assert_eq!(metric.text(value), text);
        }
    }
}
