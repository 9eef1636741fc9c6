//! Hands the finished plan of a sweep to the control path and says how it went. Nothing is parsed or validated here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::coordinator::ranks::Ranks;
use crate::coordinator::sweep::run_sweep;
use crate::coordinator::sweeper::SweepOutcome;
use report::judge::threshold;
use report::show::sentences::failing;
use results::model::{BesideAttacker, CaseResult};

use crate::cli::signals::stop_flag;
use crate::cli::sweep::dry_run;
use crate::cli::sweep::output::Output;
use crate::cli::sweep::plan::RunPlan;
use crate::cli::sweep::searches;
use crate::cli::sweep::victims;
use crate::cli::terminal::errors::Failure;
use crate::cli::terminal::errors::say;

/// Runs the sweep, or prints its cases where that was asked for.
///
/// # Errors
/// What stopped it, or that runs failed.
pub fn execute(plan: RunPlan) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::failed)?;
    execute_until(plan, &stop, None)
}

/// As [`execute`] until `stop` is set, with the other ranks of a launcher's job where they are the nodes.
pub fn execute_until(
    mut plan: RunPlan,
    stop: &AtomicBool,
    ranks: Option<Arc<Ranks>>,
) -> Result<(), Failure> {
    if plan.dry_run {
        return dry_run::print(&plan);
    }
    plan.options.ranks = ranks;
    plan.options.command_line =
        command_line(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
    let mut output = Output::open(&plan)?;
    let outcome = run_sweep(&plan.options, stop, &mut output.observers())?;
    let written = output.close(&outcome.result, stop);
    match (verdict(&plan, &outcome), written) {
        (Err(failed), Err(unwritten)) => {
            unwritten.print();
            Err(failed)
        }
        (judged, written) => judged.and(written),
    }
}

/// What the exit code and the last line say.
fn verdict(plan: &RunPlan, outcome: &SweepOutcome) -> Result<(), Failure> {
    let cases = &outcome.result.cases;
    let done: usize = cases.iter().map(|case| case.runs.len()).sum();
    // With pairs it may have been more.
    let wanted = done.max(plan.options.sweep.cases.len() * runs_of_a_case(plan) as usize);
    let left = wanted - done;
    if outcome.interrupted {
        return Err(Failure::failed(format!(
            "interrupted; {left} of {wanted} runs were not started, the results so far are kept"
        )));
    }
    if let Some(error) = &outcome.lost {
        let text = format!("{left} of {wanted} runs were not started: {error}");
        return Err(Failure::new(text, false, error.hint()));
    }
    let unmet = unmet_demands(plan, outcome);
    let runs = if outcome.failed_runs == 0 {
        comparisons(cases).and_then(|()| searches::verdict(cases))
    } else {
        let text = format!("{} of {wanted} runs failed", outcome.failed_runs);
        let hint = "each is explained above and in the JSON file".to_owned();
        Err(Failure::new(text, outcome.only_bad_input, Some(hint)))
    };
    let Some(sentence) = unmet else {
        return runs;
    };
    if let Err(failure) = runs {
        failure.print();
    }
    Err(Failure::failed(sentence))
}

/// How often a case is to run, at least.
fn runs_of_a_case(plan: &RunPlan) -> u32 {
    match (&plan.options.against, &plan.options.beside) {
        (Some(against), _) => against.pairs,
        (None, Some(beside)) => beside.least,
        (None, None) => plan.options.sweep.runs(),
    }
}

/// What the options demand of the figures and is not so.
fn unmet_demands(plan: &RunPlan, outcome: &SweepOutcome) -> Option<String> {
    let demands = &plan.output.demands;
    let mut unmet = Vec::new();
    if !demands.are_none()
        && let Some(flows) = failing(&threshold::judge(&outcome.result, demands))
    {
        unmet.push(format!("{demands}: {flows}"));
    }
    if let Some(limit) = plan.output.fail_victim {
        unmet.extend(failing_victim(&outcome.result.beside, limit));
    }
    (!unmet.is_empty()).then(|| unmet.join("; "))
}

/// What `--fail-victim` demands and is not so. Says what is not clear.
fn failing_victim(attackers: &[BesideAttacker], limit: f64) -> Option<String> {
    let [failing, unclear] = victims::harm(attackers, limit);
    if !unclear.is_empty() {
        say(&format!(
            "rocebench: note: --fail-victim {limit}x is unclear, use more --pairs: {}",
            unclear.join("; ")
        ));
    }
    (!failing.is_empty()).then(|| format!("--fail-victim {limit}x: {}", failing.join("; ")))
}

/// Whether each comparison that was made has a pair that did not fail; what is in doubt fails nothing.
fn comparisons(cases: &[CaseResult]) -> Result<(), Failure> {
    let made: Vec<_> = cases.iter().filter_map(|case| case.perftest.as_ref()).collect();
    let failed =
        made.iter().filter(|it| it.pairs.iter().all(|pair| pair.failure.is_some())).count();
    if failed == 0 {
        return Ok(());
    }
    let text = format!("{failed} of {} comparisons with perftest failed in every pair", made.len());
    Err(Failure::failed(text)
        .with_hint("perftest's output is in the JSON file (perftest.pairs[].output)"))
}

/// The arguments as they are recorded: without the token.
fn command_line(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut recorded = Vec::new();
    let mut is_token_next = false;
    for argument in arguments {
        let is_token = is_token_next;
        is_token_next = argument == "--token";
        recorded.push(if is_token {
            "***".to_owned()
        } else if argument.starts_with("--token=") {
            "--token=***".to_owned()
        } else {
            argument
        });
    }
    recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_not_recorded() {
        let recorded = command_line(
            "rocebench h --token secret -q 4 --token=secret".split(' ').map(str::to_owned),
        )
        .join(" ");
        let expected = "rocebench h --token *** -q 4 --token=***";
        assert_eq!(recorded, expected);
    }
}
