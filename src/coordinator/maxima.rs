//! What shares of `--rate` are of: the message rates of the same case as a closed loop, which ran before in the sweep.

use plan::{Case, Flow};
use protocol::failure::RunFailure;
use report::observe::standing::{self, Standing};
use results::model::{ResultFile, Run};
use statistics::median;

/// A case that nodes can run, and what its shares are of.
pub(super) struct Rated {
    /// With messages a second in place of shares.
    pub(super) case: Case,
    /// For each of its flows, messages a second of the closed loop; `None` where its rate is no share.
    maxima: Vec<Option<f64>>,
}

/// Messages a second: the median over the runs that count of what each moved, in 10^6 a second. Where none counts, over those
/// in doubt: a load that is asked for need not be exact, and its own figures say what became of it.
pub(super) fn median_per_second<'a>(
    runs: impl Iterator<Item = &'a Run>,
    mmsg_per_s: impl Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    let (mut counted, mut doubtful) = (Vec::new(), Vec::new());
    for run in runs {
        let standing = standing::of_run(run);
        match mmsg_per_s(run).filter(|_| standing.has_figures()) {
            Some(rate) if standing == Standing::Counts => counted.push(rate),
            rate => doubtful.extend(rate),
        }
    }
    let rate = median(&counted).or_else(|| median(&doubtful))?;
    Some(rate * 1e6)
}

impl Rated {
    /// The case with its shares known from the cases of the sweep that have run.
    ///
    /// # Errors
    /// The closed loop came to no result.
    pub(super) fn new(
        case: &Case,
        cases: &[Case],
        measured: &ResultFile,
    ) -> Result<Rated, RunFailure> {
        let Some(closed) = case.closed_loop() else {
            return Ok(Rated { case: case.clone(), maxima: vec![None; case.flows.len()] });
        };
        let id = cases
            .iter()
            .find(|it| it.settings == closed.settings && it.flows == closed.flows)
            .map(|it| &it.id);
        let runs = (measured.cases.iter()).filter(|it| Some(&it.id) == id).flat_map(|it| &it.runs);
        let maximum =
            |flow: &Flow| median_per_second(runs.clone(), |run| run.flow(&flow.name)?.mmsg_per_s());
        let rated = case.with_maxima(maximum).ok_or_else(|| {
            let closed_id = id.map_or("the closed loop", |id| id);
            let text = format!(
                "its rate is a share of the closed loop's rate, but {closed_id} has no result"
            );
            let hint = "fix that case first, or give --rate in messages a second";
            RunFailure::new(text, Some(hint.to_owned()))
        })?;
        Ok(Rated {
            maxima: case
                .flows
                .iter()
                .map(|flow| flow.rate.share().and_then(|_| maximum(flow)))
                .collect(),
            case: rated,
        })
    }

    /// Tells a run's flows what their shares are of.
    pub(super) fn tell(&self, run: &mut Run) {
        let directions = self.case.flows.iter().zip(&self.maxima).flat_map(|(flow, maximum)| {
            std::iter::repeat_n(maximum, if flow.bidirectional { 2 } else { 1 })
        });
        for (flow, maximum) in run.flows.iter_mut().zip(directions) {
            if let Some(load) = &mut flow.load {
                load.maximum_per_second = *maximum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::model::{Doubt, DoubtKind, FlowResult};

    #[test]
    fn runs_in_doubt_are_asked_where_none_counts_and_failed_ones_never() {
        let run = |number, complete, kind: Option<DoubtKind>| {
            let mut flow = FlowResult::default();
            flow.window.doubts.extend(kind.map(|kind| Doubt { kind, message: String::new() }));
            Run { run: number, complete, flows: vec![flow], ..Run::default() }
        };
        let missed = Some(DoubtKind::EdgeMissed);
        let runs =
            [run(1, true, None), run(3, true, None), run(9, true, missed), run(7, false, None)];
        let of =
            |runs: &[Run]| median_per_second(runs.iter(), |run: &Run| Some(f64::from(run.run)));
        assert_eq!(of(&runs), Some(2e6));
        assert_eq!(of(&runs[2..]), Some(9e6));
        assert_eq!(of(&runs[3..]), None);
    }
}
