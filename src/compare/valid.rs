//! Whether a run may be compared at all: whole, without errors, and its parts make up its totals.

use crate::results::model::{Direction, DoubtKind, Run};

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

pub(super) fn of_run(run: &Run) -> Validity {
    if run.interrupted {
        return Validity::Stopped;
    }
    if let Some(failure) = &run.failure {
        return Validity::Bad(format!("failed: {}", failure.message));
    }
    if !run.complete {
        return Validity::Bad("is not complete".to_owned());
    }
    let directions = std::iter::once(&run.forward).chain(&run.reverse);
    if let Some(reason) = directions.clone().filter_map(trouble).next() {
        return Validity::Bad(reason);
    }
    directions
        .flat_map(|direction| &direction.window.doubts)
        .find(|doubt| doubt.kind.spoils_rates())
        .map_or(Validity::Counts, |doubt| Validity::Doubtful(doubt.kind))
}

fn trouble(direction: &Direction) -> Option<String> {
    let totals = &direction.totals;
    if totals.errors > 0 {
        return Some(format!("has {} completions with an error", totals.errors));
    }
    // Files may leave the QPs out to be small.
    if direction.qps.is_empty() {
        return None;
    }
    let sum = |of: fn(&crate::results::model::QpResult) -> u64| -> u128 {
        direction.qps.iter().map(|qp| u128::from(of(qp))).sum()
    };
    let (messages, bytes) = (sum(|qp| qp.messages), sum(|qp| qp.bytes));
    if messages != u128::from(totals.messages) {
        let total = totals.messages;
        return Some(format!("has {total} messages, and its QPs {messages}"));
    }
    if bytes != u128::from(totals.bytes) {
        let total = totals.bytes;
        return Some(format!("has {total} bytes, and its QPs {bytes}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{Doubt, Failure, QpResult, Totals};

    fn run() -> Run {
        Run {
            complete: true,
            forward: Direction {
                totals: Totals {
                    messages: 5,
                    bytes: 500,
                    ..Totals::default()
                },
                qps: [2, 3]
                    .map(|messages| QpResult {
                        messages,
                        bytes: messages * 100,
                        ..QpResult::default()
                    })
                    .to_vec(),
                ..Direction::default()
            },
            ..Run::default()
        }
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
    fn a_run_whose_parts_make_up_its_totals_counts() {
        assert_eq!(of_run(&run()), Validity::Counts);
        let mut small = run();
        small.forward.qps.clear();
        assert_eq!(of_run(&small), Validity::Counts);
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
            bad(|run| run.forward.totals.errors = 1),
            "has 1 completions with an error"
        );
        assert_eq!(
            bad(|run| run.forward.totals.messages = 6),
            "has 6 messages, and its QPs 5"
        );
        assert_eq!(
            bad(|run| run.forward.qps[0].bytes = 0),
            "has 500 bytes, and its QPs 300"
        );
        assert!(
            bad(|run| run.reverse = Some(Direction {
                totals: Totals {
                    errors: 2,
                    ..Totals::default()
                },
                ..Direction::default()
            }))
            .contains("has 2 completions")
        );
    }

    #[test]
    fn doubtful_rates_are_left_out_and_a_drift_is_none() {
        let with = |kind| {
            let mut run = run();
            run.forward.window.doubts.push(Doubt {
                kind,
                message: String::new(),
            });
            of_run(&run)
        };
        assert_eq!(with(DoubtKind::Drift), Validity::Counts);
        for kind in [DoubtKind::WindowLength, DoubtKind::EdgeMissed] {
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
