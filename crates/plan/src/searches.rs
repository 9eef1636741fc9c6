//! A sweep that searches each case for a load. A case runs as a closed loop, whose maximum no load exceeds, and once
//! more at a rate, as the template of the trials.

use std::fmt;
use std::str::FromStr;

use results::model::{LatencyLimit, Percentile};
use settings::{Given, Rate, Settings, Stop, TimeSpan, Workload};

use crate::config::FlowTable;
use crate::nodes::Nodes;
use crate::sweep::{Case, PlanError, Sweep};

/// The rate of the templates: the closed loop's maximum.
const WHOLE: &str = "100%";

/// The length of a trial when none is asked for.
const USUAL_DURATION: &str = "1s";

/// Settings that trials do not have, and why.
const NOT_TAKEN: [(&str, &str); 7] = [
    ("pattern", "a search finds the load of one flow"),
    ("rate", "a search chooses the rates itself"),
    ("iters", "a trial ends after a time"),
    ("signal-every", "each message of a trial has its own time and its own completion"),
    ("post-list", "each message of a trial is posted alone, at its time"),
    ("spread", "each QP of a trial has its own planned times"),
    ("no-latency", "a search needs latencies"),
];

/// Searches, each over all cases of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Searches {
    /// What for; at least one.
    pub goals: Vec<Goal>,
    /// For each case of the sweep, that case at a rate.
    pub templates: Vec<Case>,
}

impl Searches {
    /// Trials that a search takes, about.
    pub const USUAL_TRIALS: u32 = 30;

    /// The most trials of a search: if it needs more, they scatter too much to settle it.
    pub const MOST_TRIALS: u32 = 60;

    /// The closed loops of the requested sweep, and the searches over them.
    ///
    /// # Errors
    /// The first setting that does not fit, or as [`Sweep::with_flows`].
    pub fn new(
        goals: Vec<Goal>,
        given: &Given,
        flows: &[FlowTable],
        nodes: Nodes,
    ) -> Result<(Sweep, Searches), PlanError> {
        if let Some((flag, why)) = NOT_TAKEN.into_iter().find(|(flag, _)| given.has(flag)) {
            return refused(flag, why);
        }
        if !flows.is_empty() {
            return Err(PlanError::SearchWithFlows);
        }
        let connect = Workload::Connect.to_string();
        if given.values("op").contains(&connect) {
            return refused("op connect", "a search is about messages, not set-up");
        }
        if given.values("arrivals").len() > 1 {
            return refused("arrivals", "a search takes one value of it");
        }
        let mut adapted = given.clone();
        for (flag, text) in [("rate", WHOLE), ("duration", USUAL_DURATION)] {
            if let Some(row) = Settings::row(flag).filter(|_| !given.has(flag)) {
                // It is what the row takes.
                adapted.set(row, text).unwrap_or_default();
            }
        }
        let sweep = Sweep::with_flows(&adapted, &[], nodes)?;
        let (cases, mut templates): (Vec<Case>, Vec<Case>) =
            (sweep.cases.into_iter()).partition(|case| case.rate.is_closed());
        for (case, template) in cases.iter().zip(&mut templates) {
            template.id.clone_from(&case.id);
        }
        let sweep = Sweep { cases, nodes: sweep.nodes };
        Ok((sweep, Searches { goals, templates }))
    }

    /// The templates as cases of a sweep, for checks.
    pub fn as_sweep(&self, of: &Sweep) -> Sweep {
        Sweep { cases: self.templates.clone(), nodes: of.nodes.clone() }
    }
}

fn refused(flag: &'static str, why: &'static str) -> Result<(Sweep, Searches), PlanError> {
    Err(PlanError::NotWithSearch { flag, why })
}

impl Case {
    /// The case with so many messages a second in its only flow, for a time, with other planned times.
    #[must_use]
    pub fn as_trial(&self, messages_per_second: u64, span: TimeSpan, seed: u64) -> Case {
        let mut case = self.clone();
        for settings in
            case.flows.iter_mut().map(|flow| &mut flow.settings).chain([&mut case.settings])
        {
            settings.rate = Rate::Messages(messages_per_second);
            settings.seed = seed;
            settings.set_stop(Stop::DurationNs(span.ns()));
        }
        case
    }
}

/// What the highest load is searched for.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// The highest load that keeps these limits.
    Slo(Slo),
    /// The highest load whose p99 is at most so many times that at 10 % load.
    Knee(Factor),
    /// The highest load at which nothing is lost or sent again.
    ZeroLoss,
}

impl Goal {
    /// The percentile that takes the most messages to be told, 0 to 100.
    pub fn rarest(&self) -> f64 {
        match self {
            Goal::Slo(slo) => slo.limits.iter().map(|it| it.percentile).fold(0.0, f64::max),
            Goal::Knee(_) => 99.0,
            // Losses have no percentile; a trial of a handful of messages says nothing all the same.
            Goal::ZeroLoss => 50.0,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Slo(slo) => f.write_str(&slo.text),
            Goal::Knee(factor) => write!(f, "knee {}", factor.0),
            Goal::ZeroLoss => f.write_str("zero loss"),
        }
    }
}

/// Limits of latency that hold together: `p99<20us,p99.9<100us`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    text: String,
    /// At least one; percentiles differ.
    pub limits: Vec<LatencyLimit>,
}

/// Why a text gives no limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SloError {
    #[error("`{0}` is not a limit of latency: write p99<20us, or several as p99<20us,p99.9<100us")]
    Syntax(String),
    #[error("`{0}` is not a percentile of a limit: they are p50, p90, p95, p99, p99.9 and p99.99")]
    Percentile(String),
    #[error("`{0}` is not a time of a limit: write a number with ns, us, ms or s, above 0")]
    Time(String),
    #[error("{0} has two limits: leave the higher one out")]
    Twice(String),
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Slo, SloError> {
        let mut limits: Vec<LatencyLimit> = Vec::new();
        for part in text.split(',') {
            let (name, time) =
                part.split_once('<').ok_or_else(|| SloError::Syntax(part.to_owned()))?;
            let (name, time) = (name.trim(), time.trim());
            let known = Percentile::ALL
                .iter()
                .find(|it| it.name == name)
                .ok_or_else(|| SloError::Percentile(name.to_owned()))?;
            if limits.iter().any(|it| it.percentile == known.percent) {
                return Err(SloError::Twice(name.to_owned()));
            }
            let span = time
                .parse::<TimeSpan>()
                .ok()
                .filter(|it| it.ns() > 0)
                // A bare number would be seconds.
                .filter(|_| time.ends_with('s'));
            limits.push(LatencyLimit {
                percentile: known.percent,
                below_ns: span.ok_or_else(|| SloError::Time(time.to_owned()))?.ns(),
            });
        }
        Ok(Slo { text: text.split_whitespace().collect(), limits })
    }
}

/// How many times the latency at 10 % load: above 1, at most 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

impl Factor {
    pub fn value(self) -> f64 {
        self.0
    }
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Factor, String> {
        match text.parse::<f64>() {
            Ok(factor) if factor > 1.0 && factor <= 1_000.0 => Ok(Factor(factor)),
            _ => Err(format!("`{text}` is not a number above 1, at most 1000")),
        }
    }
}

#[cfg(test)]
mod tests {
    use results::sample::has;

    use super::*;

    fn searches(words: &[(&str, &str)]) -> Result<(Sweep, Searches), PlanError> {
        let goals = vec![Goal::Slo("p99<20us".parse().unwrap())];
        let given = words.iter().copied().collect();
        Searches::new(goals, &given, &[], Nodes::default())
    }

    #[test]
    fn each_case_is_a_closed_loop_with_a_template_of_trials() {
        let axes = [("qps", "1,4"), ("cq", "shared,per-qp"), ("arrivals", "fixed")];
        let (sweep, searches) = searches(&axes).unwrap();
        assert_eq!((sweep.cases.len(), searches.templates.len()), (4, 4));
        for (case, template) in sweep.cases.iter().zip(&searches.templates) {
            assert!(case.rate.is_closed() && case.signal_every == 1);
            assert_eq!(case.stop(), Stop::DurationNs(1_000_000_000));
            assert_eq!((case.qps, case.cq), (template.qps, template.cq));
            assert_eq!(template.arrivals.to_string(), "fixed");
            let trial = template.as_trial(777, TimeSpan::from_ns(250_000_000).unwrap(), 5);
            let rates = (trial.rate, trial.flows[0].rate);
            assert_eq!(rates, (Rate::Messages(777), Rate::Messages(777)));
            assert_eq!((trial.seed, trial.flows[0].seed), (5, 5));
            assert_eq!(trial.stop(), Stop::DurationNs(250_000_000));
            Sweep::check(&trial).unwrap();
        }
    }

    #[test]
    fn a_duration_that_is_given_is_that_of_trials() {
        let (sweep, _) = searches(&[("duration", "3s")]).unwrap();
        assert_eq!(sweep.cases[0].stop(), Stop::DurationNs(3_000_000_000));
    }

    #[test]
    fn what_a_search_cannot_have_is_refused_with_a_reason() {
        for (flag, text) in [
            ("pattern", "ring"),
            ("rate", "50%"),
            ("iters", "100"),
            ("signal-every", "4"),
            ("post-list", "2"),
            ("spread", "round-robin"),
            ("no-latency", "true"),
            ("op", "connect"),
            ("arrivals", "poisson,fixed"),
        ] {
            let error = searches(&[(flag, text)]).unwrap_err();
            assert!(error.flag().starts_with(flag), "{error}");
            has(error.to_string(), ["--slo"]);
            assert!(!error.hint().is_empty());
        }
        let path = std::path::Path::new("s.toml");
        let file = crate::ConfigFile::parse("[[flow]]\n", path, &[]);
        let flows = file.unwrap().flows;
        let error = Searches::new(Vec::new(), &Given::default(), &flows, Nodes::default());
        assert_eq!(error.unwrap_err(), PlanError::SearchWithFlows);
    }

    #[test]
    fn limits_are_read() {
        let slo: Slo = "p99<20us, p99.9 < 0.1ms".parse().unwrap();
        let limits = slo.limits.iter().map(|it| (it.percentile, it.below_ns));
        assert!(limits.eq([(99.0, 20_000), (99.9, 100_000)]), "{slo:?}");
        let knee = Goal::Knee("2.5".parse().unwrap());
        for (goal, text, rarest) in [
            (Goal::Slo(slo), "p99<20us,p99.9<0.1ms", 99.9),
            (knee, "knee 2.5", 99.0),
            (Goal::ZeroLoss, "zero loss", 50.0),
        ] {
            assert_eq!((&*goal.to_string(), goal.rarest()), (text, rarest));
        }
        for (text, ns) in [("p50<1s", 1_000_000_000), ("p90<700ns", 700), ("p99.99<1.5µs", 1_500)]
        {
            assert_eq!(text.parse::<Slo>().unwrap().limits[0].below_ns, ns);
        }
    }

    #[test]
    fn what_is_no_limit_is_said() {
        let error = |text: &str| text.parse::<Slo>().unwrap_err();
        for text in ["", "p99", "p99>20us", "p99<20us,"] {
            assert!(matches!(error(text), SloError::Syntax(_)), "{text}");
        }
        for text in ["p80<20us", "<20us", "99<20us", "p99.999<1us", "P99<1us"] {
            assert!(matches!(error(text), SloError::Percentile(_)), "{text}");
        }
        let times = "p99< p99<20 p99<=20us p99<0us p99<-1us p99<20m p99<20h p99<1e3us";
        for text in times.split(' ') {
            assert!(matches!(error(text), SloError::Time(_)), "{text}");
        }
        assert_eq!(error("p99<1us,p99<2us"), SloError::Twice("p99".into()));
        for text in ["1", "0", "-3", "nan", "inf", "1001", "x", ""] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }
}
