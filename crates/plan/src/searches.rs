//! A sweep that searches each case for a load. A case runs as a closed loop, whose maximum no load exceeds, and once
//! more at a rate, as the template of the trials.

use settings::{Given, Settings, Stop, TimeSpan, Workload};

use super::case::Case;
use super::error::PlanError;
use super::flow_table::FlowTable;
use super::goal::Goal;
use super::nodes::Nodes;
use super::sweep::Sweep;

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
            settings.rate = settings::Rate::Messages(messages_per_second);
            settings.seed = seed;
            settings.set_stop(Stop::DurationNs(span.ns()));
        }
        case
    }
}

#[cfg(test)]
mod tests {
    use settings::Rate;

    use super::*;
    use results::sample::has;

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
}
