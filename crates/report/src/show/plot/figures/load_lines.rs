//! Latency over load, line by line: what open loops measured, or the trials of searches where no rates were asked for,
//! and what the closed loop says with the same settings. It must not know how it is drawn.

use super::groups::Line;
use super::sample::Sample;
use super::settings::order_of_rate;
use crate::observe::standing::{self, Standing};
use crate::observe::{Metric, Spread};
use crate::results::model::{
    CaseFlow, FlowResult, Load, LoadSearch, LoadVerdict, Run, Trial, TrialOutcome,
};
use crate::show::plot::draw::palette::Look;
use settings::Settings;

/// The percentiles that are drawn.
pub(super) const PERCENTILES: [Metric; 3] = [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns];

/// Trials at loads that differ by less than this share of the closed loop's maximum are one point.
const TOLD_APART: f64 = 0.02;

/// Open loops that differ in their load only.
#[derive(Debug)]
pub(super) struct LoadLine<'a> {
    pub(super) name: String,
    pub(super) look: Look,
    /// By achieved load.
    pub(super) points: Vec<LoadPoint>,
    /// The closed loop with the same settings, from the same file.
    pub(super) closed: Option<ClosedLoop>,
    pub(super) searches: Vec<&'a LoadSearch>,
}

/// What was measured at one load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadPoint {
    /// The load as it was asked for: `50%`, `2M`; of trials what was searched for.
    pub(super) asked: String,
    /// Messages a second that were planned.
    pub(super) offered: Option<Spread>,
    /// Messages a second that completed.
    pub(super) achieved: Spread,
    /// Of latency, in nanoseconds, as [`PERCENTILES`].
    pub(super) latency_ns: [Option<Spread>; 3],
    /// How late messages were posted, in nanoseconds.
    pub(super) lateness_p99_ns: Option<Spread>,
    pub(super) verdict: LoadVerdict,
    /// Latency is of one message in so many, chosen at random.
    pub(super) recorded_one_in: u64,
    /// Complete runs, or trials.
    pub(super) runs: usize,
    /// Those of them that kept their schedule, of which the figures are unless there is none.
    pub(super) kept: usize,
}

/// A closed loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClosedLoop {
    /// Messages a second.
    pub(super) achieved: Spread,
    /// Of latency, in nanoseconds, as [`PERCENTILES`].
    pub(super) latency_ns: [Option<Spread>; 3],
    pub(super) runs: usize,
}

/// Where a sample stands on a line: by the load that was asked for, so that the same load in two files is two samples
/// of the same place; `None` of what says nothing of loads.
pub(super) fn place(sample: &Sample<'_>) -> Option<f64> {
    let (flow, settings) = (&sample.flow, &sample.flow.settings);
    if settings.is_closed_loop() {
        let is_searched = flow.is_first() && !flow.case.searches.is_empty();
        return is_searched.then_some(0.0);
    }
    let mut runs = of_launch(flow);
    let has_load = runs.any(|(_, moved, _)| moved.load.is_some());
    has_load.then(|| order_of_rate(settings))
}

impl<'a> LoadLine<'a> {
    /// What `line` has; its closed loop is looked for among `closed`.
    pub(super) fn of(
        name: String,
        look: Look,
        line: &Line<'a>,
        closed: &[Sample<'a>],
    ) -> LoadLine<'a> {
        let samples = || line.points.iter().map(|(_, sample)| sample);
        let searched = || samples().filter(|sample| sample.is_closed_loop());
        let open = || samples().filter(|sample| !sample.is_closed_loop());
        let searches: Vec<&LoadSearch> = searched()
            .flat_map(Sample::launches)
            .flat_map(|flow| &flow.case.searches)
            .collect();
        let mut points: Vec<LoadPoint> = open().filter_map(point).collect();
        if points.is_empty() {
            points = searches
                .iter()
                .flat_map(|search| of_trials(search))
                .collect();
        }
        points.sort_by(|a, b| a.achieved.median.total_cmp(&b.achieved.median));
        let own = searched().find_map(closed_loop);
        let other = || open().find_map(|sample| closed_loop(same_but_closed(sample, closed)?));
        LoadLine {
            name,
            look,
            points,
            closed: own.or_else(other),
            searches,
        }
    }

    /// The highest load in messages a second that it speaks of.
    pub(super) fn most_per_second(&self) -> f64 {
        let points = self.points.iter().map(|point| point.achieved.high);
        let closed = self.closed.iter().map(|closed| closed.achieved.high);
        let searches = self.searches.iter();
        let bounds = searches.flat_map(|it| [it.lower_per_second, it.upper_per_second]);
        points
            .chain(closed)
            .chain(bounds.flatten())
            .fold(0.0, f64::max)
    }
}

/// The sample with the same settings in the same file whose load was not planned.
fn same_but_closed<'s, 'a>(
    sample: &Sample<'a>,
    closed: &'s [Sample<'a>],
) -> Option<&'s Sample<'a>> {
    let usual = Settings::default();
    let wanted = Settings {
        rate: usual.rate,
        arrivals: usual.arrivals,
        seed: usual.seed,
        ..sample.flow.settings.clone()
    };
    let path = |sample: &Sample<'a>| {
        let config = sample.flow.config?;
        Some((
            &config.name,
            &config.from_device,
            &config.to_device,
            config.path_mtu,
        ))
    };
    closed.iter().find(|other| {
        std::ptr::eq(other.loaded, sample.loaded)
            && path(other) == path(sample)
            && other.flow.settings == wanted
    })
}

fn closed_loop(sample: &Sample<'_>) -> Option<ClosedLoop> {
    let counted = sample
        .launches()
        .flat_map(of_launch)
        .filter(|(_, _, counts)| *counts);
    let moved: Vec<_> = counted.map(|(run, moved, _)| (run, moved)).collect();
    let rates = Spread::of(moved.iter().filter_map(|(_, moved)| per_second(moved)));
    Some(ClosedLoop {
        achieved: rates?,
        latency_ns: PERCENTILES.map(|metric| spread(&moved, metric)),
        runs: moved.len(),
    })
}

fn per_second(moved: &FlowResult) -> Option<f64> {
    Some(moved.mmsg_per_s()? * 1e6)
}

/// What the flow moved in each run that has figures, and whether they count.
fn of_launch<'f, 'a>(
    flow: &'f CaseFlow<'a>,
) -> impl Iterator<Item = (&'a Run, &'a FlowResult, bool)> + use<'f, 'a> {
    let runs = standing::of_case_flow(flow).filter(|(_, standing)| standing.has_figures());
    runs.filter_map(|(run, standing)| Some((run, flow.result(run)?, standing == Standing::Counts)))
}

fn spread(moved: &[(&Run, &FlowResult)], metric: Metric) -> Option<Spread> {
    Spread::of(
        moved
            .iter()
            .filter_map(|(run, flow)| metric.of(run, Some(flow))),
    )
}

fn point(sample: &Sample<'_>) -> Option<LoadPoint> {
    let all: Vec<_> = (sample.launches().flat_map(of_launch))
        .filter(|(_, moved, _)| moved.load.is_some())
        .collect();
    let kept = all.iter().filter(|(_, _, counts)| *counts).count();
    let used = all.iter().filter(|(_, _, counts)| *counts || kept == 0);
    let used: Vec<_> = used.map(|(run, moved, _)| (*run, *moved)).collect();
    let loads = || used.iter().filter_map(|(_, moved)| moved.load.as_ref());
    let overloaded = loads()
        .filter(|load| load.verdict == LoadVerdict::Overloaded)
        .count();
    let lateness = used
        .iter()
        .filter_map(|(_, moved)| moved.lateness_ns.as_ref()?.p99);
    Some(LoadPoint {
        asked: sample.flow.settings.rate.to_string(),
        offered: Spread::of(loads().map(|load| load.offered_per_second)),
        achieved: Spread::of(used.iter().filter_map(|(_, moved)| per_second(moved)))?,
        latency_ns: PERCENTILES.map(|metric| spread(&used, metric)),
        lateness_p99_ns: Spread::of(lateness.map(|ns| ns as f64)),
        recorded_one_in: loads().map(|load| load.recorded_one_in).max().unwrap_or(1),
        verdict: match (kept, overloaded) {
            (0, _) => LoadVerdict::NotKept,
            (kept, overloaded) if overloaded * 2 >= kept => LoadVerdict::Overloaded,
            _ => LoadVerdict::Kept,
        },
        runs: all.len(),
        kept,
    })
}

/// Points of the trials that ran, those at loads side by side together.
fn of_trials(search: &LoadSearch) -> Vec<LoadPoint> {
    let is_late = |trial: &Trial| trial.outcome == TrialOutcome::NotKept;
    let ran = search.trials.iter();
    let mut ran: Vec<&Trial> = ran
        .filter(|trial| trial.outcome != TrialOutcome::Failed)
        .filter(|trial| trial.asked_per_second.is_finite())
        .collect();
    ran.sort_by(|a, b| a.asked_per_second.total_cmp(&b.asked_per_second));
    let (late, kept): (Vec<&Trial>, Vec<&Trial>) =
        ran.into_iter().partition(|trial| is_late(trial));
    let width = search.maximum_per_second * TOLD_APART;
    let mut bins: Vec<Vec<&Trial>> = Vec::new();
    for trial in kept.into_iter().chain(late) {
        let is_near = |bin: &&mut Vec<&Trial>| {
            bin.first().is_some_and(|first| {
                is_late(first) == is_late(trial)
                    && trial.asked_per_second - first.asked_per_second < width
            })
        };
        match bins.last_mut().filter(is_near) {
            Some(bin) => bin.push(trial),
            None => bins.push(vec![trial]),
        }
    }
    bins.iter().filter_map(|bin| of_bin(search, bin)).collect()
}

fn of_bin(search: &LoadSearch, bin: &[&Trial]) -> Option<LoadPoint> {
    // Shorter trials only steer.
    let longest = bin.iter().map(|trial| trial.seconds).fold(0.0, f64::max);
    let bin: Vec<&Trial> = bin
        .iter()
        .copied()
        .filter(|trial| trial.seconds >= longest)
        .collect();
    let of = |figure: fn(&Trial) -> Option<u64>| {
        Spread::of(
            bin.iter()
                .filter_map(|trial| figure(trial))
                .map(|ns| ns as f64),
        )
    };
    let offered = Spread::of(bin.iter().map(|trial| trial.asked_per_second))?;
    let achieved = Spread::of(bin.iter().map(|trial| trial.achieved_per_second))?;
    let missing = offered.median - achieved.median;
    let is_overload = Load::is_overload(offered.median * longest, missing * longest);
    let late = bin
        .iter()
        .filter(|trial| trial.outcome == TrialOutcome::NotKept)
        .count();
    Some(LoadPoint {
        asked: search.asked.clone(),
        verdict: match late {
            0 if is_overload => LoadVerdict::Overloaded,
            0 => LoadVerdict::Kept,
            _ => LoadVerdict::NotKept,
        },
        recorded_one_in: 1,
        offered: Some(offered),
        achieved,
        latency_ns: [
            of(|trial| trial.p50_ns),
            of(|trial| trial.p99_ns),
            of(|trial| trial.p99_9_ns),
        ],
        lateness_p99_ns: of(|trial| trial.lateness_p99_ns),
        runs: bin.len(),
        kept: bin.len() - late,
    })
}
