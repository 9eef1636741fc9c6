//! Running a sweep from the command line: a finished plan is printed or handed to the coordinator, and what came of it
//! becomes an exit code. Nothing is parsed or validated here.

use std::sync::{Arc, atomic::AtomicBool};

use crate::{
    cli::{
        signals::stop_flag_or_unread,
        sweep::{output::Output, plan::RunPlan},
        terminal::{ExitKind, Failure, say},
    },
    coordinator::{
        interface::Observer as _, ranks::Ranks, sweep::run_sweep, sweeper::SweepOutcome,
    },
};
use machine::threads::allowed_cores;
use report::judge::{
    check::{Check, NO_PATHS},
    searches::{TOO_FEW_MESSAGES, searches},
    stages::not_well,
    threshold::{failing, judge},
};
use results::model::{CaseResult, Certainty, StageResult, StageVerdict};
use statistics::LEAST_OBSERVATIONS;

#[cfg(test)]
mod any_words_tests;
mod dry_run;
mod output;
pub mod plan;

pub use output::{refused, stage_text};

/// Runs the sweep, or prints its cases where that was asked for.
///
/// # Errors
/// What stopped it, or that runs failed.
pub fn execute(plan: RunPlan) -> Result<(), Failure> {
    let stop = stop_flag_or_unread().map_err(Failure::failed)?;
    execute_until(plan, &stop, None)
}

/// As [`execute`] until `stop` is set, with the other ranks of a launcher's job where they are the nodes.
pub fn execute_until(
    mut plan: RunPlan,
    stop: &AtomicBool,
    ranks: Option<Arc<Ranks>>,
) -> Result<(), Failure> {
    let note = allowed_cores().ok().and_then(|cores| plan.fit_to(cores.len()));
    if plan.dry_run {
        return dry_run::print(&plan, note);
    }
    plan.options.ranks = ranks;
    plan.options.command_line = plan.typed.take().unwrap_or_else(|| {
        command_line(std::env::args_os().map(|word| word.to_string_lossy().into_owned()))
    });
    let mut output = Output::open(&plan)?;
    for text in note.into_iter().chain(few_runs(&plan)) {
        output.observers().note(&text);
    }
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
    // A run without an end has no other.
    if outcome.interrupted && plan.output.period.is_none() {
        let unstarted = not_started(left, wanted).map(|text| text + ", ").unwrap_or_default();
        let text = format!("interrupted; {unstarted}the results so far are kept");
        return Err(Failure::failed(text));
    }
    if let Some(error) = &outcome.lost {
        let what = not_started(left, wanted).unwrap_or_else(|| "no further run".to_owned());
        return Err(Failure::new(format!("{what}: {error}"), false, error.hint()));
    }
    if plan.options.stages.is_some() {
        return accepted(&outcome.result.stages);
    }
    if plan.options.why.is_some_and(|request| request.is_alone)
        && let Some(diagnosis) = cases.iter().find_map(|case| case.diagnosis.as_ref())
    {
        return match diagnosis.certainty {
            Certainty::NotMeasured if outcome.failed_runs == 0 => {
                Err(Failure::failed(diagnosis.answer.trim_end_matches('.').to_owned())
                    .with_hint("measure longer (-D), or stop what else runs here"))
            }
            Certainty::NotMeasured => failed_runs(outcome, wanted),
            _ => Ok(()),
        };
    }
    if plan.options.check.is_some() {
        let check = Check::of_file(&outcome.result);
        return match &check {
            Some(check) if check.is_well() => Ok(()),
            Some(check) => Err(Failure::failed(check.headline().trim_end_matches('.'))),
            None => Err(Failure::failed(format!("nothing was checked: {NO_PATHS}"))
                .with_hint("give two nodes or more, and the rails of each with --device")),
        };
    }
    let unmet = unmet_demands(plan, outcome);
    let runs = if outcome.failed_runs == 0 {
        comparisons(cases).and_then(|()| searches_verdict(cases))
    } else {
        failed_runs(outcome, wanted)
    };
    let Some((kind, sentence)) = unmet else {
        return runs;
    };
    let others = runs.err().inspect(Failure::print);
    let has_failed = others.is_some_and(|it| it.kind() != ExitKind::Undone);
    Err(Failure::failed(sentence).with_kind(if has_failed { ExitKind::Failed } else { kind }))
}

/// Whether all stages are well.
///
/// # Errors
/// How many are not.
pub fn accepted(stages: &[StageResult]) -> Result<(), Failure> {
    match not_well(stages) {
        None => Ok(()),
        Some((StageVerdict::Failed, counts)) => Err(Failure::failed(counts)),
        Some((_, counts)) => Err(Failure::undone(counts)),
    }
}

/// Runs failed, of so many.
fn failed_runs(outcome: &SweepOutcome, wanted: usize) -> Result<(), Failure> {
    let text = format!("{} of {wanted} runs failed", outcome.failed_runs);
    let kind = match (outcome.only_bad_input, outcome.only_unmeasured) {
        (true, _) => ExitKind::BadInput,
        (_, true) => ExitKind::Undone,
        _ => ExitKind::Failed,
    };
    let hint = "each is explained above and in the JSON file";
    Err(Failure::failed(text).with_kind(kind).with_hint(hint))
}

/// That a single run decides whether a flow keeps what is demanded of it. What looks slow in a quick search has further runs.
fn few_runs(plan: &RunPlan) -> Option<String> {
    let (demands, runs) = (&plan.output.demands, runs_of_a_case(plan));
    let is_judged = !demands.are_none() && !plan.options.quick;
    (is_judged && (runs as usize) < LEAST_OBSERVATIONS).then(|| {
        format!("{demands} is of the median of the runs, which a single slow one of {runs} decides: use --runs 5")
    })
}

/// `None` where all were.
fn not_started(left: usize, wanted: usize) -> Option<String> {
    (left > 0).then(|| format!("{left} of {wanted} runs were not started"))
}

/// How often a case is to run, at least.
fn runs_of_a_case(plan: &RunPlan) -> u32 {
    match (&plan.options.against, &plan.options.beside) {
        (Some(against), _) => against.pairs,
        (None, Some(beside)) => beside.least,
        (None, None) => plan.options.sweep.runs(),
    }
}

/// What the options demand of the figures and is not so, or cannot be judged.
fn unmet_demands(plan: &RunPlan, outcome: &SweepOutcome) -> Option<(ExitKind, String)> {
    let demands = &plan.output.demands;
    let suites = if demands.are_none() { Vec::new() } else { judge(&outcome.result, demands) };
    let flows = failing(&suites).map(|flows| format!("{demands}: {flows}"));
    let limit = plan.output.fail_victim;
    let victim = limit.and_then(|limit| failing_victim(&outcome.result.cases, limit));
    let is_broken = suites.iter().flat_map(|suite| &suite.flows).any(|flow| flow.is_broken);
    let kind = if is_broken || victim.is_some() { ExitKind::Failed } else { ExitKind::Undone };
    let unmet: Vec<String> = flows.into_iter().chain(victim).collect();
    (!unmet.is_empty()).then(|| (kind, unmet.join("; ")))
}

/// What `--fail-victim` demands and is not so. Says what is not clear.
fn failing_victim(cases: &[CaseResult], limit: f64) -> Option<String> {
    let [failing, unclear] = harm(cases, limit);
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
    let compared = cases.iter().filter_map(|case| case.comparison.as_ref());
    let made: Vec<_> = compared.filter(|it| !it.base_command.is_empty()).collect();
    let failed =
        made.iter().filter(|it| it.rounds.iter().all(|round| round.failure.is_some())).count();
    if failed == 0 {
        return Ok(());
    }
    let text =
        format!("{failed} of {} comparisons with perftest failed in every round", made.len());
    Err(Failure::failed(text)
        .with_hint("perftest's output is in the JSON file (cases[].comparison.rounds[].output)"))
}

/// The arguments as they are recorded: without the token.
pub fn command_line(arguments: impl Iterator<Item = String>) -> Vec<String> {
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

/// Nothing, where each search that was made came to a load.
///
/// # Errors
/// The first that did not, and how many more.
fn searches_verdict(cases: &[CaseResult]) -> Result<(), Failure> {
    let made = searches(cases);
    let mut without = made.iter().filter(|search| search.is_problem());
    let Some(first) = without.next() else {
        return Ok(());
    };
    let mut text = first.text.trim_end_matches('.').to_owned();
    let more = without.count();
    if more > 0 {
        text += &format!("; {} of {} searches found no load", more + 1, made.len());
    }
    Err(Failure::new(text, first.id == TOO_FEW_MESSAGES, None))
}

/// `--fail-victim`: what is surely above a limit or could not be measured, and what may be above it, in words.
fn harm(cases: &[CaseResult], limit: f64) -> [Vec<String>; 2] {
    let (mut failing, mut unclear) = (Vec::new(), Vec::new());
    for attacked in cases.iter().filter_map(|case| case.comparison.as_ref()) {
        for figures in &attacked.metrics {
            let (Some((_, interval)), Some(text)) = (figures.harm(), figures.harm_text()) else {
                failing.push(format!("{}: could not be measured", attacked.id));
                continue;
            };
            let text = format!("{}: {} is {text} times worse", attacked.id, figures.metric.noun());
            match interval {
                Some((low, _)) if low > limit => failing.push(text),
                Some((_, high)) if high <= limit => {}
                _ => unclear.push(text),
            }
        }
    }
    [failing, unclear]
}

#[cfg(test)]
mod tests {
    use results::{
        Metric,
        model::{LoadSearch, SearchEnd, Verdict},
        sample::{Judged, has, in_turns},
    };

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

    fn case(end: SearchEnd, lower_per_second: Option<f64>) -> CaseResult {
        let search = LoadSearch { end, lower_per_second, ..LoadSearch::default() };
        CaseResult { id: "q4".into(), searches: vec![search], ..CaseResult::default() }
    }

    #[test]
    fn a_search_without_a_load_fails_the_sweep() {
        let text =
            |cases: &[CaseResult]| searches_verdict(cases).map_err(|it| (it.kind(), it.text()));
        for end in [SearchEnd::Found, SearchEnd::AllKeep, SearchEnd::TrialsSpent] {
            assert_eq!(text(&[case(end, Some(1.0))]), Ok(()));
        }
        assert_eq!(text(&[case(SearchEnd::ScheduleNotKept, Some(1.0))]), Ok(()));
        let none_keeps = text(&[case(SearchEnd::NoneKeeps, None)]).unwrap_err();
        assert_eq!(none_keeps.0, ExitKind::Failed);
        let too_few = text(&[case(SearchEnd::TooFewMessages, None)]).unwrap_err();
        assert_eq!(too_few.0, ExitKind::BadInput);
        let two = [
            case(SearchEnd::ScheduleNotKept, None),
            case(SearchEnd::Found, Some(1.0)),
            case(SearchEnd::Stopped, Some(1.0)),
        ];
        has(text(&two).unwrap_err().1, ["2 of 3 searches found no load"]);
    }

    #[test]
    fn only_what_is_proven_or_not_known_fails() {
        let beside = |id: &str, judged: &[Judged]| in_turns(id, ["alone", "beside"], 8, judged);
        // What is left of the throughput, and what p99 became.
        let left = |times: f64, low: f64| -> Judged {
            (Metric::GbitPerS, [times, 1.0], [1.0 / times, 1.0 / low], Verdict::Unclear)
        };
        let p99 = (Metric::P99Ns, [1.0, 1.8], [1.6, 1.8], Verdict::Unclear);
        let mut few = beside("few", &[left(3.0, 1.0)]);
        (few.metrics[0].low, few.metrics[0].high) = (None, None);
        let mut unmeasured = beside("c", &[left(1.0, 1.0)]);
        unmeasured.metrics[0].ratio = None;
        let attackers =
            [beside("a", &[left(1.5, 1.0), p99]), beside("b", &[left(1.6, 1.4)]), unmeasured, few]
                .map(|it| CaseResult { comparison: Some(it), ..CaseResult::default() });
        let failing = ["a: p99 is 1.80 [1.60, 1.80] times worse", "c: could not be measured"];
        let may = [
            "b: throughput is 1.60 [1.40, 1.60] times worse",
            "few: throughput is 3.00 times worse",
        ];
        assert_eq!(
            harm(&attackers, 1.5),
            [failing, may].map(|lines| lines.map(str::to_owned).to_vec())
        );
    }
}
