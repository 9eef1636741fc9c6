//! Whether a run may be compared at all: whole, without errors or doubts, and without a figure that cannot be.

use super::contradiction;
use crate::results::model::{CaseConfig, DoubtKind, Run};

/// What is to be done with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// Its figures count.
    Counts,
    /// The user stopped it: it tells nothing, good or bad.
    Stopped,
    /// Its rates may be wrong through no fault of what was measured.
    Doubtful(DoubtKind),
    /// It went wrong, so what the case does is not told by the others alone.
    Bad(String),
}

/// What is to be done with a run of a case with these settings.
pub(super) fn of_run(config: &CaseConfig, run: &Run) -> Validity {
    if run.interrupted {
        return Validity::Stopped;
    }
    if let Some(failure) = &run.failure {
        return Validity::Bad(format!("failed: {}", failure.message));
    }
    if !run.complete {
        return Validity::Bad("is not complete".to_owned());
    }
    let errors = run.flows.iter().map(|flow| flow.totals.errors);
    if let Some(errors) = errors.max().filter(|errors| *errors > 0) {
        return Validity::Bad(format!("has {errors} completions with an error"));
    }
    let mut doubts = run.flows.iter().flat_map(|flow| &flow.window.doubts);
    if let Some(doubt) = doubts.find(|doubt| doubt.kind.spoils_rates()) {
        return Validity::Doubtful(doubt.kind);
    }
    contradiction::of_run(config, run).map_or(Validity::Counts, Validity::Bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{Doubt, Failure, FlowResult};

    fn run() -> Run {
        Run {
            complete: true,
            flows: vec![FlowResult::default(), FlowResult::default()],
            ..Run::default()
        }
    }

    fn of_run(run: &Run) -> Validity {
        super::of_run(&CaseConfig::default(), run)
    }

    fn bad(change: impl Fn(&mut Run)) -> String {
        let mut run = run();
        change(&mut run);
        match of_run(&run) {
            Validity::Bad(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(bad(|run| run.complete = false), "is not complete");
        let failure = Failure {
            message: "the peer died".to_owned(),
            hint: None,
        };
        assert_eq!(
            bad(|run| run.failure = Some(failure.clone())),
            "failed: the peer died"
        );
        assert_eq!(
            bad(|run| run.flows[0].totals.errors = 1),
            "has 1 completions with an error"
        );
        assert_eq!(
            bad(|run| run.flows[0].window.seconds = -1.0),
            "has a window (s) of -1, below 0"
        );
        assert!(bad(|run| run.flows[1].totals.errors = 2).contains("has 2 completions"));
    }

    #[test]
    fn doubtful_rates_are_left_out_and_a_drift_is_none() {
        let with = |kind| {
            let mut run = run();
            run.flows[0].window.doubts.push(Doubt {
                kind,
                message: String::new(),
            });
            of_run(&run)
        };
        assert_eq!(with(DoubtKind::Drift), Validity::Counts);
        for kind in [
            DoubtKind::WindowLength,
            DoubtKind::EdgeMissed,
            DoubtKind::NotTogether,
            DoubtKind::ScheduleNotKept,
        ] {
            assert_eq!(with(kind), Validity::Doubtful(kind));
        }
    }

    #[test]
    fn what_the_user_stopped_is_left_out() {
        let mut stopped = run();
        stopped.interrupted = true;
        stopped.complete = false;
        assert_eq!(of_run(&stopped), Validity::Stopped);
    }
}
