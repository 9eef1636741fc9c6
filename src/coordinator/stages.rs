//! The stages of `rocebench accept`: the cases of each are run and then judged alone, before those of the next.

use std::sync::Arc;
use std::time::Instant;

use plan::{
    Case, Sweep,
    check::CheckRequest,
    stages::{RAILS, Way},
};
use protocol::failure::RunFailure;
use report::judge::stages::judge_stage;
use results::model::{self, ResultFile, StageResult, StageVerdict};
use results::numbers::for_people;

use super::interface::{Observer, PlannedStage, Stages, SweepOptions};
use super::sweeper::{StopReason, SweepOutcome, Sweeper};
use super::{check, quick};

/// Runs all stages for which there is time.
///
/// # Errors
/// The sweep ended before the last stage; the result has those so far.
pub(super) fn run_stages(sweeper: &mut Sweeper<'_>, of: &Stages) -> Result<(), StopReason> {
    let sweep = Arc::clone(&sweeper.sweep);
    let down = rails_down(sweeper);
    sweeper.outcome.result.stages.clone_from(&of.done);
    for (number, planned) in of.planned.iter().enumerate() {
        let (stage, cases) = (planned.stage, &sweep.cases[planned.cases.clone()]);
        let begun = sweeper.outcome.result.cases.len();
        let left = of.ends_at.saturating_duration_since(Instant::now());
        let too_long = stage.longest(cases).filter(|longest| *longest > left);
        let (result, done) = match too_long {
            Some(longest) => {
                let [longest, left] = [longest, left].map(for_people);
                let text =
                    format!("Left out: it takes up to {longest}, and {left} of --budget are left.");
                (StageResult::new(stage.name, StageVerdict::NotJudged, text), Ok(()))
            }
            None => {
                let done = match stage.way() {
                    Way::Check => run_check(sweeper, planned),
                    way => run_cases(sweeper, cases, way == Way::Quick),
                };
                let judged = judged(&sweeper.outcome.result, begun, planned);
                let is_rails = stage.name == RAILS;
                (down.clone().filter(|_| is_rails).unwrap_or(judged), done)
            }
        };
        sweeper.observer.stage_finished(&result);
        sweeper.outcome.result.stages.push(result);
        if let Err(StopReason::Lost(_)) = done {
            let others = leave_out(&of.planned[number + 1..], sweeper.observer);
            sweeper.outcome.result.stages.extend(others);
        }
        done?;
    }
    Ok(())
}

/// What becomes of stages whose sweep cannot begin because nodes cannot be reached: the first has failed.
///
/// # Errors
/// It cannot begin for another reason, or has no stages.
pub(super) fn unreached(
    options: &SweepOptions,
    failure: RunFailure,
    observer: &mut dyn Observer,
) -> Result<SweepOutcome, RunFailure> {
    let stages = options.stages.as_ref().and_then(|of| Some((of, of.planned.split_first()?)));
    let is_of_nodes = !failure.nodes.is_empty() && !failure.bad_input && !failure.interrupted;
    let Some((of, (first, others))) = stages.filter(|_| is_of_nodes) else {
        return Err(failure);
    };
    let names = options.sweep.nodes.names().into_iter();
    let nodes = names.map(|name| model::Node { name, ..model::Node::default() }).collect();
    let mut outcome = SweepOutcome::new(options, nodes);
    let remedy = failure.hint.as_ref().map_or_else(String::new, |it| format!(" Try: {it}."));
    let text = match &failure.nodes[..] {
        [node] => format!("{node} cannot be reached: {}.{remedy}", failure.message),
        _ => format!("{}.{remedy}", failure.message),
    };
    let failed = StageResult {
        nodes: failure.nodes,
        ..StageResult::new(first.stage.name, StageVerdict::Failed, text)
    };
    observer.stage_finished(&failed);
    outcome.result.stages = of.done.iter().cloned().chain([failed]).collect();
    outcome.result.stages.extend(leave_out(others, observer));
    Ok(outcome)
}

/// Stages that nodes are missing for.
fn leave_out(planned: &[PlannedStage], observer: &mut dyn Observer) -> Vec<StageResult> {
    let text = "Left out: not all nodes can be reached.";
    let stages = planned.iter().map(|it| it.stage.name);
    stages
        .map(|name| StageResult::new(name, StageVerdict::NotJudged, text.to_owned()))
        .inspect(|stage| observer.stage_finished(stage))
        .collect()
}

/// The rounds of a check, which go over rails by themselves.
fn run_check(sweeper: &mut Sweeper<'_>, planned: &PlannedStage) -> Result<(), StopReason> {
    let sweep = &sweeper.options.sweep;
    let cases = sweep.cases[planned.cases.clone()].to_vec();
    let pairs = Sweep { cases, nodes: sweep.nodes.clone() };
    check::run_rounds(sweeper, &pairs, CheckRequest::default())
}

fn run_cases(sweeper: &mut Sweeper<'_>, cases: &[Case], is_quick: bool) -> Result<(), StopReason> {
    for case in cases {
        let index = sweeper.outcome.result.cases.len();
        sweeper.run_case(index, case)?;
    }
    if is_quick { quick::measure_again(sweeper, cases) } else { Ok(()) }
}

/// What the cases from `begun` on say, as a sweep of their own.
fn judged(result: &ResultFile, begun: usize, planned: &PlannedStage) -> StageResult {
    let mut of_stage = result.with_cases(result.cases.iter().skip(begun).cloned().collect());
    of_stage.stages.clear();
    of_stage.command_line.clone_from(&planned.command);
    judge_stage(planned.stage.name, &of_stage, &planned.demands)
}

/// The stage of rails, where nodes have left some out.
fn rails_down(sweeper: &Sweeper<'_>) -> Option<StageResult> {
    let nodes = sweeper.nodes.iter().flatten().filter(|node| !node.facts.left_out.is_empty());
    let (names, reasons): (Vec<String>, Vec<String>) = nodes
        .map(|node| {
            let text = format!("{}: {}", node.name, node.facts.left_out.join("; "));
            (node.name.clone(), results::text::printable(&text, 300))
        })
        .unzip();
    let text = format!("Rails are left out: {}. Bring them up.", reasons.join("; "));
    (!names.is_empty()).then(|| StageResult {
        nodes: names,
        ..StageResult::new(RAILS, StageVerdict::Failed, text)
    })
}
