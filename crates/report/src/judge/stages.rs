//! Stages of `rocebench accept`: what the judges of any sweep say of a stage's cases decides whether it is well; and what all
//! stages say of the fabric.

use settings::Pattern;

use super::check::{Check, Path, Verdict};
use super::finding::{Finding, SLOW_OR_LOSSY, Subject};
use super::findings::Findings;
use super::threshold::{Demands, failing, judge};
use crate::observe::{Metric, format::counted};
use results::model::{ResultFile, Run, StageResult, StageVerdict};

/// Findings besides those of a place with which a stage has failed.
const FAILING: [&str; 3] = ["incast_falls", "lost_messages", LOST_PACKETS];

const LOST_PACKETS: &str = "lost_packets";

/// Findings with which it is not known whether something is wrong.
const UNKNOWN: [&str; 5] =
    ["lost_flows", "doubtful_flows", "flows_not_begun", "flows_differ", SCATTER];

const SCATTER: &str = "flows_scatter";

/// Findings that say that nothing is.
const WELL: [&str; 3] = ["flows_alike", "few_flows", "incast"];

/// Judges a stage by a file of its cases alone.
pub fn judge_stage(name: &str, file: &ResultFile, demands: &Demands) -> StageResult {
    let report = Findings::new(file);
    let cases = file.cases.iter().map(|case| case.id.clone()).collect();
    if let Some(check) = &report.check {
        return StageResult { cases, ..preflight(name, check) };
    }
    let suites = judge(file, demands);
    let limit = failing(&suites).map(|flows| format!("{demands} {flows}.").trim_start().to_owned());
    let is_below = suites.iter().flat_map(|suite| &suite.flows).any(|flow| flow.is_broken);
    let is_ping_pong = file.cases.iter().any(|case| case.config.ping_pong);
    let bad = report.iter().find(|finding| {
        SLOW_OR_LOSSY.contains(&finding.id)
            || FAILING.contains(&finding.id) && (finding.id != LOST_PACKETS || lose_mostly(file))
    });
    let unknown = report.iter().find(|finding| {
        // Paths of a large network are of several lengths.
        UNKNOWN.contains(&finding.id) && !(finding.id == SCATTER && is_ping_pong)
    });
    let p50_ns = report.meshes.first().and_then(|mesh| mesh.matrix.median(Metric::P50Ns));
    let of_latency = p50_ns.filter(|_| is_ping_pong).map(|ns| {
        format!("No node or path stands out; the median p50 is {}.", Metric::P50Ns.text(ns))
    });
    let of_rates =
        report.iter().find(|finding| WELL.contains(&finding.id)).map(|it| it.text.clone());
    let (verdict, text, nodes) = if let Some(finding) = bad {
        (StageVerdict::Failed, finding.text.clone(), places(finding))
    } else if let Some(text) = failed_runs(file) {
        (StageVerdict::Failed, text, Vec::new())
    } else if let (true, Some(text)) = (is_below, &limit) {
        (StageVerdict::Failed, text.clone(), Vec::new())
    } else if let Some(finding) = unknown {
        (StageVerdict::NotJudged, finding.text.clone(), places(finding))
    } else if let Some(text) = limit {
        (StageVerdict::NotJudged, text, Vec::new())
    } else if file.cases.is_empty() {
        (StageVerdict::NotJudged, "Nothing was measured.".to_owned(), Vec::new())
    } else {
        let text = of_latency.or(of_rates).unwrap_or_else(|| "Nothing looks wrong.".to_owned());
        (StageVerdict::Ok, text, Vec::new())
    };
    StageResult { nodes, cases, ..StageResult::new(name, verdict, text) }
}

/// A check of paths: how many work, and the first of what is wrong. Those that are not known are no pass.
fn preflight(name: &str, check: &Check) -> StageResult {
    let mut problems = check.findings.iter().skip(1).filter(|finding| finding.is_problem());
    let Some(first) = problems.next() else {
        let verdict = if check.is_well() { StageVerdict::Ok } else { StageVerdict::NotJudged };
        return StageResult::new(name, verdict, check.headline());
    };
    let is_unknown = |path: &Path| matches!(path.verdict, Verdict::Unknown(_));
    let is_known = |path: &Path| matches!(path.verdict, Verdict::Works(_) | Verdict::KeptApart);
    let are_unknown = first.id != "rail_left_out"
        && check.paths.iter().all(|path| is_unknown(path) || is_known(path));
    let verdict = if are_unknown { StageVerdict::NotJudged } else { StageVerdict::Failed };
    let text = format!("{} {}", check.headline(), first.text);
    StageResult { nodes: places(first), ..StageResult::new(name, verdict, text) }
}

/// The nodes of a finding, also those of its rails.
fn places(finding: &Finding) -> Vec<String> {
    let of_rails = finding.subject.rails.iter().map(|(node, _)| node);
    finding.subject.nodes.iter().chain(of_rails).cloned().collect()
}

/// Whether most runs of a case lost packets. Rounds of pairs have one run each, and tell by themselves which path loses some.
fn lose_mostly(file: &ResultFile) -> bool {
    let loses = |run: &&Run| run.path_events.iter().any(|it| it.count > 0 && it.kind.is_loss());
    let mut cases = file.cases.iter().filter(|it| it.config.pattern != Some(Pattern::Pairs));
    cases.any(|case| 2 * case.runs.iter().filter(loses).count() > case.runs.len())
}

/// The first failure of a run, and how many there are.
fn failed_runs(file: &ResultFile) -> Option<String> {
    let runs = file.cases.iter().flat_map(|case| &case.runs).filter(|run| !run.interrupted);
    let failures: Vec<&str> =
        runs.clone().filter_map(|run| Some(&*run.failure.as_ref()?.message)).collect();
    let first = failures.first()?;
    Some(format!("{} of {} failed: {first}.", failures.len(), counted(runs.count(), "run")))
}

/// What the stages say of the fabric; `None` of a result without stages.
pub fn acceptance(stages: &[StageResult]) -> Option<String> {
    let Some((verdict, counts)) = not_well(stages) else {
        let all = counted(stages.len(), "stage");
        return (!stages.is_empty()).then(|| format!("The fabric is good: {all} ok."));
    };
    let lead = match verdict {
        StageVerdict::Failed => "The fabric is not good",
        _ => "It is not known whether the fabric is good",
    };
    let first = stages.iter().find(|stage| stage.verdict == verdict)?;
    Some(format!("{lead}: {counts}. {}: {}", first.name, first.text))
}

/// The gravest verdict, and how many stages failed or could not be judged; `None` where all are well.
pub fn not_well(stages: &[StageResult]) -> Option<(StageVerdict, String)> {
    let of = |verdict| stages.iter().filter(|stage| stage.verdict == verdict).count();
    let all = counted(stages.len(), "stage");
    match [StageVerdict::Failed, StageVerdict::NotJudged].map(of) {
        [0, 0] => None,
        [0, unknown] => {
            Some((StageVerdict::NotJudged, format!("{unknown} of {all} could not be judged")))
        }
        [failed, 0] => Some((StageVerdict::Failed, format!("{failed} of {all} failed"))),
        [failed, unknown] => {
            let counts = format!("{failed} of {all} failed, {unknown} could not be judged");
            Some((StageVerdict::Failed, counts))
        }
    }
}

/// A finding for each stage.
pub(super) fn stages(result: &ResultFile) -> impl Iterator<Item = Finding> {
    result.stages.iter().map(|stage| {
        let subject = Subject { nodes: stage.nodes.clone(), ..Subject::default() };
        let text = format!("Stage {}, {}: {}", stage.name, stage.verdict.word(), stage.text);
        match stage.verdict {
            StageVerdict::Ok => Finding::note("stage_ok", subject, text),
            StageVerdict::Failed => Finding::problem("stage_failed", subject, text),
            StageVerdict::NotJudged => Finding::problem("stage_not_judged", subject, text),
        }
    })
}

#[cfg(test)]
mod tests {
    use results::{
        model::{PathEvent, PathEventKind},
        sample::{
            has,
            mesh::{Mesh, Slow},
        },
    };

    use super::*;
    use crate::judge::threshold::Condition;

    fn judged(file: &ResultFile) -> StageResult {
        judge_stage("mesh", file, &Demands::default())
    }

    fn verdict(file: &ResultFile) -> (StageVerdict, Vec<String>) {
        let stage = judged(file);
        (stage.verdict, stage.nodes)
    }

    #[test]
    fn what_is_slow_fails_and_is_named_with_the_command_that_explains_it() {
        let slow = Mesh::new(6).with(Slow::Sends(2, 0.5)).pairs();
        assert_eq!(verdict(&slow), (StageVerdict::Failed, vec!["node3".to_owned()]));
        has(judged(&slow).text, ["node3 sends 50 % less than", "To find out why: `rocebench mesh"]);
        let path = Mesh::new(6).with(Slow::Pair(0, 3, 0.5)).pairs();
        let ends = ["node1", "node4"].map(str::to_owned).to_vec();
        assert_eq!(verdict(&path), (StageVerdict::Failed, ends));
        assert_eq!(verdict(&Mesh::new(6).pairs()), (StageVerdict::Ok, Vec::new()));
        has(judged(&Mesh::new(6).pairs()).text, ["Nothing is slow: 30 flows"]);
        assert_eq!(verdict(&Mesh::new(6).incast(&[1, 5])).0, StageVerdict::Ok);
    }

    #[test]
    fn what_cannot_be_judged_is_no_pass() {
        let mesh = Mesh::new(6).noise(0.1).runs(1);
        let of_latency = mesh.clone().flag("ping-pong", "true").pairs();
        let scattered = mesh.pairs();
        assert_eq!(verdict(&scattered).0, StageVerdict::NotJudged);
        assert_eq!(verdict(&of_latency).0, StageVerdict::Ok);
        let mut stopped = Mesh::new(6).pairs();
        for run in &mut stopped.cases[0].runs {
            (run.complete, run.interrupted) = (false, true);
        }
        assert_eq!(verdict(&stopped).0, StageVerdict::NotJudged);
        let none = Mesh::new(6).pairs().with_cases(Vec::new());
        assert_eq!(verdict(&none).0, StageVerdict::NotJudged);
    }

    #[test]
    fn runs_that_fail_limits_and_lost_packets_fail_a_stage() {
        let failed = judged(&Mesh::quiet(4).failing([(0, 3)]).pairs());
        assert_eq!(failed.verdict, StageVerdict::Failed);
        has(failed.text, ["failed: ", "did not answer"]);
        let demands = |text| Demands { below: Condition::below(text).ok(), ..Demands::default() };
        let ring = Mesh::new(6).ring();
        for (least, expected) in [("9Gb", StageVerdict::Ok), ("99%link", StageVerdict::Failed)] {
            assert_eq!(judge_stage("rails", &ring, &demands(least)).verdict, expected);
        }
        let mut lossy = Mesh::new(6).incast(&[5]);
        for (run, losing) in lossy.cases[0].runs.iter_mut().zip([true, false, true]) {
            run.path_events.extend(losing.then(|| PathEvent {
                kind: PathEventKind::Resent,
                node: "node1".to_owned(),
                count: 3,
                counters: Vec::new(),
            }));
        }
        assert_eq!(verdict(&lossy).0, StageVerdict::Failed);
        lossy.cases[0].runs[0].path_events.clear();
        assert_eq!(verdict(&lossy).0, StageVerdict::Ok, "in one of three");
    }

    #[test]
    fn the_first_failure_is_the_answer() {
        let stage = |name, verdict| StageResult::new(name, verdict, format!("{name} says."));
        let [ok, unknown, failed] = [
            stage("mesh", StageVerdict::Ok),
            stage("rails", StageVerdict::NotJudged),
            stage("incast", StageVerdict::Failed),
        ];
        assert_eq!(acceptance(&[]), None);
        let said = |stages: &[StageResult]| acceptance(stages).unwrap();
        assert_eq!(said(&[ok.clone(), ok.clone()]), "The fabric is good: 2 stages ok.");
        has(said(&[ok.clone(), unknown.clone()]), ["not known", "rails: rails says."]);
        let whole = [ok, unknown, failed];
        let expected = "The fabric is not good: 1 of 3 stages failed, 1 could not be judged. incast: incast says.";
        assert_eq!(said(&whole), expected);
        let file = ResultFile { stages: whole.into(), ..Mesh::new(4).pairs() };
        let report = Findings::new(&file);
        let ids: Vec<&str> = report.findings.iter().take(3).map(|finding| finding.id).collect();
        assert_eq!(ids, ["stage_ok", "stage_not_judged", "stage_failed"]);
    }
}
