//! `--slo` and `--knee`: searches for the highest load that keeps limits of latency, by trials at rates of its own
//! choice (`driver`, `judge`), whose evidence (`evidence`) makes bounds (`bounds`). This file puts them into a sweep.

mod bounds;
mod driver;
mod evidence;
mod judge;

use results::model::{FlowResult, LoadSearch, Run};
use settings::{Stop, TimeSpan};

use plan::{Case, Searches};

use self::driver::{Ask, Trials, search};
use super::maxima::median_per_second;
use super::observer::TrialStart;
use super::sweeper::{StopReason, Sweeper};

/// Searches a case, whose closed loop has run, for each goal. What it came to is in the sweep's result.
pub(super) fn of_case(
    sweeper: &mut Sweeper<'_>,
    index: usize,
    case: &Case,
    searches: &Searches,
) -> Result<(), StopReason> {
    let Some(template) = searches.templates.get(index) else {
        return Ok(());
    };
    // A failed closed loop has told why.
    let Some(maximum) = maximum(sweeper, case) else {
        return Ok(());
    };
    let span = match template.stop() {
        Stop::DurationNs(ns) => TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX),
        Stop::MessagesPerQp(_) => return Ok(()),
    };
    for goal in &searches.goals {
        let mut trials = OfCase { sweeper, index, case, template };
        let (found, done) = search(goal, maximum, span, &mut trials);
        publish(sweeper, case, found);
        done?;
    }
    Ok(())
}

/// Messages a second of the closed loop: those of the slower direction, the median of its runs.
fn maximum(sweeper: &Sweeper<'_>, case: &Case) -> Option<f64> {
    let entry = sweeper.outcome.result.cases.last().filter(|entry| entry.id == case.id)?;
    median_per_second(entry.runs.iter(), |run: &Run| {
        let rates: Option<Vec<f64>> = run.flows.iter().map(FlowResult::mmsg_per_s).collect();
        rates?.into_iter().reduce(f64::min)
    })
}

fn publish(sweeper: &mut Sweeper<'_>, case: &Case, found: LoadSearch) {
    let result = &mut sweeper.outcome.result;
    let Some(entry) = result.cases.last_mut().filter(|it| it.id == case.id) else {
        return;
    };
    entry.searches.push(found);
    if let Some(found) = result.cases.last().and_then(|it| it.searches.last()) {
        sweeper.observer.search_finished(case, found, result);
    }
}

struct OfCase<'a, 's> {
    sweeper: &'a mut Sweeper<'s>,
    index: usize,
    case: &'a Case,
    template: &'a Case,
}

impl Trials for OfCase<'_, '_> {
    fn run(&mut self, ask: Ask, start: TrialStart<'_>) -> Result<Run, StopReason> {
        // Trials are independent of each other, and the same again with the same --seed.
        let place = (self.index as u64) << 32 | u64::from(ask.seed);
        let seed = fastrand::Rng::with_seed(self.template.seed ^ place.rotate_left(17)).u64(..);
        let trial = self.template.as_trial(start.load, ask.span, seed >> 1);
        let total = self.sweeper.options.sweep.cases.len();
        let observer = &mut *self.sweeper.observer;
        observer.trial_started(self.index, total, self.case, start);
        self.sweeper.trial(&trial, start.number)
    }

    fn note(&mut self, text: &str) {
        let text = format!("{}: {text}", self.case.id);
        self.sweeper.observer.note(&text);
    }
}
