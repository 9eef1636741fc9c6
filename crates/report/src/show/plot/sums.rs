//! Cases of a pattern with all their flows as one, so that figures of lines have one line for them, and tables one row.
//! The results that are drawn, and those that they are held against.

use std::borrow::Cow;

use settings::Pattern;

use results::load::Loaded;
use results::model::{CaseConfig, CaseResult, FlowConfig, FlowResult, Latency, Run, Window};

/// Name of the flow that stands for all of a case.
pub const ALL_FLOWS: &str = "all flows together";

/// The results as figures with lines and tables of cases show them.
pub fn of_patterns(results: &[Loaded]) -> Cow<'_, [Loaded]> {
    let mut cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    if !cases.any(is_of_pattern) {
        return Cow::Borrowed(results);
    }
    Cow::Owned(
        results
            .iter()
            .map(|loaded| {
                let cases = loaded
                    .result
                    .cases
                    .iter()
                    .map(|case| if is_of_pattern(case) { sum(case) } else { case.clone() });
                Loaded {
                    path: loaded.path.clone(),
                    result: loaded.result.with_cases(cases.collect()),
                }
            })
            .collect(),
    )
}

pub(super) fn is_of_pattern(case: &CaseResult) -> bool {
    case.config.pattern.is_some()
}

fn sum(case: &CaseResult) -> CaseResult {
    let flows = &case.config.flows;
    let mut settings = case.config.settings.clone();
    // An unset fan means all other nodes.
    let fan = u32::try_from(flows.len()).ok();
    match settings.pattern {
        Some(Pattern::Incast(_)) => settings.fan_in = fan,
        Some(Pattern::Outcast(_)) => settings.fan_out = fan,
        _ => {}
    }
    let first = flows.first().cloned().unwrap_or_default();
    let has_one_source = flows.iter().all(|flow| flow.from_device == first.from_device);
    let has_one_target = flows.iter().all(|flow| flow.to_device == first.to_device);
    let config = FlowConfig {
        name: ALL_FLOWS.to_owned(),
        from_device: first.from_device.clone().filter(|_| has_one_source),
        to_device: first.to_device.clone().filter(|_| has_one_target),
        ..first
    };
    let runs = case.runs.iter().map(|run| sum_of_run(run, &config));
    CaseResult {
        id: case.id.clone(),
        runs: runs.collect(),
        config: CaseConfig { settings, flows: vec![config] },
        ..CaseResult::default()
    }
}

fn sum_of_run(run: &Run, config: &FlowConfig) -> Run {
    let flows = &run.flows;
    let first = flows.first().map(|flow| flow.window.clone());
    let doubts = flows.iter().flat_map(|flow| &flow.window.doubts);
    let sum = FlowResult {
        name: config.name.clone(),
        from: config.from.clone(),
        to: config.to.clone(),
        window: Window { doubts: doubts.cloned().collect(), ..first.unwrap_or_default() },
        latency_ns: Latency::merged(flows, |flow| flow.latency_ns.as_ref()),
        service_ns: Latency::merged(flows, |flow| flow.service_ns.as_ref()),
        lateness_ns: Latency::merged(flows, |flow| flow.lateness_ns.as_ref()),
        notice_ns: Latency::merged(flows, |flow| flow.notice_ns.as_ref()),
        ..FlowResult::together(flows)
    };
    Run {
        run: run.run,
        started_at: run.started_at.clone(),
        complete: run.complete,
        interrupted: run.interrupted,
        failure: run.failure.clone(),
        flows: vec![sum],
        ..Run::default()
    }
}

/// What figures are drawn from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sides<'a> {
    pub new: &'a [Loaded],
    /// What they are compared with; empty without a base.
    pub base: &'a [Loaded],
}

impl<'a> Sides<'a> {
    /// The files of the new side that are not of the base too.
    pub(super) fn only_new(self) -> impl Iterator<Item = &'a Loaded> {
        self.new.iter().filter(move |loaded| !self.base.iter().any(|base| is_same(base, loaded)))
    }
}

fn is_same(one: &Loaded, other: &Loaded) -> bool {
    one.path.file_name() == other.path.file_name()
        && one.result.started_at == other.result.started_at
        && one.result.nodes == other.result.nodes
}

impl<'a, T: AsRef<[Loaded]> + ?Sized> From<&'a T> for Sides<'a> {
    fn from(new: &'a T) -> Sides<'a> {
        let (new, base) = (new.as_ref(), &[][..]);
        Sides { new, base }
    }
}

#[cfg(test)]
mod tests {
    use results::model::LoadVerdict;
    use results::sample::mesh::{ALONE_GBIT_PER_S, Mesh};
    use results::sample::{loaded, mixed};

    use super::*;

    #[test]
    fn a_case_of_a_pattern_is_one_flow_of_all() {
        let mesh = Mesh::quiet(4);
        let files = [mesh.incast(&[1, 3]), mesh.pairs(), mixed()];
        let results = files.map(loaded);
        let sums = of_patterns(&results);
        assert!(sums.iter().map(|it| it.result.cases.len()).eq([2, 6, 1]));
        assert_eq!(sums[2], results[2]);
        let case = &sums[0].result.cases[1];
        let flow = case.runs[0].flow(ALL_FLOWS).unwrap();
        let rate = flow.totals.gbit_per_s.unwrap();
        assert!((rate / ALONE_GBIT_PER_S - 1.0).abs() < 0.001, "{rate}");
        assert_eq!(flow.latency_ns.as_ref().unwrap().count, 3_000);
        assert!(flow.fairness.as_ref().unwrap().jain > 0.999);
        assert_eq!((case.config.fan_in, case.config.flows.len()), (Some(3), 1));
        assert!(matches!(of_patterns(&results[2..]), Cow::Borrowed(_)));
    }

    #[test]
    fn the_worst_of_the_verdicts_is_that_of_all() {
        let mut file = Mesh::new(3).flag("rate", "50%").all_to_all();
        let flows = &mut file.cases[0].runs[0].flows;
        let offered: f64 =
            flows.iter().filter_map(|it| it.load.as_ref()).map(|it| it.offered_per_second).sum();
        flows[2].load.as_mut().unwrap().verdict = LoadVerdict::Overloaded;
        let sum = sum(&file.cases[0]);
        let load = sum.runs[0].flows[0].load.as_ref().unwrap();
        assert_eq!(load.verdict, LoadVerdict::Overloaded);
        assert_eq!(load.offered_per_second, offered);
        // Whose distributions are not known.
        assert_eq!(sum.runs[0].flows[0].latency_ns, None);
    }
}
