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
    use crate::results::model::{Failure, FlowResult};
    use crate::results::sample::{self, doubt, rows, with};

    fn run() -> Run {
        Run {
            failure: Some(Failure::default()),
            ..sample::run(vec![FlowResult::default(); 2])
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for [damage, reason] in rows(
            "
failure=null; complete=false | is not complete
failure/message=the peer died | failed: the peer died
failure=null; flows/0/totals/errors=1 | has 1 completions with an error
failure=null; flows/1/totals/errors=2 | has 2 completions with an error
failure=null; flows/0/window/seconds=-1.0 | has a window (s) of -1, below 0
",
        ) {
            let found = of_run(&CaseConfig::default(), &with(&run(), damage));
            assert_eq!(found, Validity::Bad(reason.to_owned()), "{damage}");
        }
    }

    #[test]
    fn doubtful_rates_and_what_the_user_stopped_are_left_out_and_a_drift_is_none() {
        let validity = |run: &Run| of_run(&CaseConfig::default(), run);
        for &kind in DoubtKind::ALL {
            let mut run = with(&run(), "failure=null");
            run.flows[0].window.doubts.push(doubt(kind));
            let expected = match kind {
                DoubtKind::Drift => Validity::Counts,
                kind => Validity::Doubtful(kind),
            };
            assert_eq!(validity(&run), expected);
        }
        let stopped = with(&run(), "failure=null; interrupted=true; complete=false");
        assert_eq!(validity(&stopped), Validity::Stopped);
    }
}
