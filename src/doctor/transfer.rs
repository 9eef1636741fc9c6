//! Runs a small transfer of each operation in both directions and checks every byte, as a sweep of a few messages.
//! Small messages of one packet come first, then large ones of many full packets, which fail alone if the path does
//! not carry the RDMA MTU.

use std::sync::atomic::AtomicBool;

use crate::coordinator::interface::Observer;
use crate::coordinator::interface::{Ends, SweepOptions, Target};
use crate::coordinator::sweep::run_sweep;
use crate::coordinator::sweeper::SweepOutcome;
use node::resources::NodeOptions;
use plan::Sweep;
use protocol::failure::RunFailure;
use protocol::token::Token;
use results::model::{Failure, ResultFile};
use settings::{Given, Op};

use protocol::finding::{Finding, State};

/// Messages in each direction, for each operation and size.
const MESSAGES: u64 = 32;

const SMALL: &str = "64";
const LARGE: &str = "64K";

const WHY: &str = "this is a small benchmark: it connects QPs, sends messages both ways, and compares every byte on \
                   arrival";

/// The transfers of an examination.
pub(super) struct TransferCheck<'a> {
    pub(super) target: Target,
    pub(super) resources: &'a NodeOptions,
    pub(super) token: Option<&'a Token>,
    pub(super) stop: &'a AtomicBool,
}

/// The results of the transfers.
pub(super) struct TransferResults {
    pub(super) findings: Vec<Finding>,
    /// The last result, with both ends' devices and the path MTU.
    pub(super) result: Option<ResultFile>,
    pub(super) full_packets_passed: bool,
    pub(super) interrupted: bool,
}

/// The result of one operation with one size; `None` if it was not tried.
type OperationOutcome = Option<Result<(), Failure>>;

impl TransferCheck<'_> {
    pub(super) fn run(&self) -> TransferResults {
        let mut done = TransferResults {
            findings: Vec::new(),
            result: None,
            full_packets_passed: false,
            interrupted: false,
        };
        let small = match self.sweep(SMALL) {
            Ok(outcome) => outcome,
            Err(error) => {
                done.interrupted = error.interrupted;
                done.findings.push(not_begun(&error));
                return done;
            }
        };
        // If no small message passes, no large one does; save the time.
        let large = (any_passed(&small) && !small.interrupted).then(|| self.sweep(LARGE));
        done.interrupted = small.interrupted;
        let large = match large {
            Some(Ok(outcome)) => Some(outcome),
            Some(Err(error)) => {
                done.findings.push(not_begun(&error));
                None
            }
            None => None,
        };
        if let Some(large) = &large {
            done.full_packets_passed = any_passed(large);
            done.interrupted |= large.interrupted;
        }
        for op in Op::BASIC {
            let outcomes =
                [of_op(&small.result, op), large.as_ref().and_then(|it| of_op(&it.result, op))];
            done.findings.extend(judge(op, outcomes));
        }
        done.result = Some(large.map_or(small.result, |large| large.result));
        done
    }

    fn sweep(&self, size: &str) -> Result<SweepOutcome, RunFailure> {
        let ends = Ends {
            target: self.target.clone(),
            resources: self.resources.clone(),
            token: self.token.cloned(),
        };
        let options = SweepOptions::new(sweep(size), ends);
        run_sweep(&options, self.stop, &mut NoObserver)
    }
}

fn any_passed(outcome: &SweepOutcome) -> bool {
    Op::BASIC.iter().any(|op| matches!(of_op(&outcome.result, *op), Some(Ok(()))))
}

/// A sweep of each operation once, with fewer retries than usual, half a second apart: failures show quickly, while a
/// busy machine has time to answer.
fn sweep(size: &str) -> Sweep {
    let given = Given::from([
        ("op", "send,write,read"),
        ("size", size),
        ("tx-depth", "8"),
        ("rx-depth", "16"),
        ("bidirectional", "true"),
        ("iters", MESSAGES.to_string().as_str()),
        ("warmup", "0"),
        ("verify", "true"),
        ("no-latency", "true"),
        ("timeout", "17"),
        ("retry-cnt", "3"),
    ]);
    // The settings are constant; a test checks them.
    Sweep::new(&given).unwrap_or_default()
}

fn of_op(result: &ResultFile, op: Op) -> OperationOutcome {
    let case = result.cases.iter().find(|case| case.config.op == op.into())?;
    // A run that the user stopped proves nothing.
    let run = case.runs.first().filter(|run| !run.interrupted)?;
    Some(match &run.failure {
        None if run.complete => Ok(()),
        None => Err(Failure::default()),
        Some(failure) => Err(failure.clone()),
    })
}

fn judge(op: Op, [small, large]: [OperationOutcome; 2]) -> Option<Finding> {
    Some(match (small?, large) {
        (Err(failure), _) => finding(op, State::Broken, format!("64 bytes: {}", failure.message))
            .remedy(remedy(failure)),
        (Ok(()), Some(Err(failure))) => finding(
            op,
            State::Broken,
            format!(
                "small messages pass, large ones do not (64 bytes, 64 KiB): {}",
                failure.message
            ),
        )
        .remedy(remedy(failure)),
        (Ok(()), Some(Ok(()))) => finding(
            op,
            State::Ok,
            format!("{MESSAGES} messages each of 64 bytes and 64 KiB, both ways, every byte right"),
        ),
        (Ok(()), None) => finding(
            op,
            State::Ok,
            format!("{MESSAGES} messages of 64 bytes, both ways, every byte right"),
        ),
    })
}

fn remedy(failure: Failure) -> String {
    failure.hint.unwrap_or_else(|| "see what the other end printed".to_owned())
}

fn finding(op: Op, state: State, found: String) -> Finding {
    Finding::new("transfer", state, found, WHY).of(op.name())
}

fn not_begun(error: &RunFailure) -> Finding {
    let remedy = error.hint.clone();
    Finding::new("transfer", State::Broken, format!("not started: {error}"), WHY)
        .remedy(remedy.unwrap_or_else(|| "see what the other end printed".to_owned()))
}

/// Shows nothing: the findings contain all results.
struct NoObserver;

impl Observer for NoObserver {}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(message: &str) -> OperationOutcome {
        Some(Err(Failure { message: message.into(), hint: Some("try".into()) }))
    }

    #[test]
    fn the_sweep_is_each_operation_both_ways_and_checked() {
        for (size, bytes) in [(SMALL, 64), (LARGE, 65_536)] {
            let cases = sweep(size).cases;
            let ops: Vec<Op> = cases.iter().map(|case| case.op.transfer()).collect();
            assert_eq!(ops, Op::BASIC);
            for case in &cases {
                assert_eq!((case.size_bytes, case.qps), (bytes, 1));
                assert!(case.verify && case.bidirectional);
            }
        }
    }

    #[test]
    fn full_packets_that_fail_alone_point_at_the_mtu() {
        let found = judge(Op::Write, [Some(Ok(())), failed("retries")]).unwrap();
        assert_eq!(found.state, State::Broken);
        assert_eq!(found.label(), "transfer write");
        assert!(found.found.contains("large ones do not"));
        let all = judge(Op::Send, [failed("retries"), None]).unwrap();
        assert_eq!(all.found, "64 bytes: retries");
        assert_eq!(all.remedy.as_deref(), Some("try"));
    }

    #[test]
    fn what_was_not_tried_is_not_told() {
        assert_eq!(judge(Op::Read, [None, None]), None);
        let small = judge(Op::Read, [Some(Ok(())), None]).unwrap();
        assert_eq!(small.state, State::Ok);
    }
}
