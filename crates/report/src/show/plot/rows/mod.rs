//! Rows of figures: flows of cases with what they were measured with, of both sides, put together into lines and
//! charts by `groups`.

pub(crate) mod case_settings;
pub(crate) mod groups;

use std::borrow::Cow;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use results::{
    load::Loaded,
    model::{
        BEYOND, CaseConfig, CaseFlow, CaseResult, FlowConfig, FlowResult, Latency, Run, Window,
        percentile,
    },
};
use settings::{Pattern, ROWS};

use crate::observe::{Metric, Observation, Observed, Spread};
use crate::show::plot::{figure::Cell, rows::case_settings::Value};

pub(crate) use case_settings::{Setting, device_words, minute, revision};
pub(crate) use groups::{Group, Groups, Line, OfRun, joined, range};

/// A flow of a case and its settings; files of one revision are launches of it.
#[derive(Clone, Debug)]
pub(crate) struct Sample<'a> {
    /// The file of the first launch.
    pub(crate) loaded: &'a Loaded,
    /// The flow in it, with the runs of all launches.
    pub(crate) observed: Observed<'a>,
    /// Of the side that the others are held against.
    pub(crate) is_base: bool,
    launches: Vec<(&'a Loaded, &'a CaseResult)>,
    values: BTreeMap<Setting, Value>,
}

impl<'a> Sample<'a> {
    pub(crate) fn new(loaded: &'a Loaded, flow: CaseFlow<'a>, is_base: bool) -> Sample<'a> {
        let values = Setting::each().into_iter().map(|it| (it, it.value(loaded, &flow, is_base)));
        Sample {
            loaded,
            launches: vec![(loaded, flow.case)],
            values: values.collect(),
            observed: Observed::new(flow),
            is_base,
        }
    }

    /// Takes the same case of another file as a further launch; returns whether it is one.
    pub(crate) fn add_launch(&mut self, other: &Sample<'a>) -> bool {
        let (own, others) = (&self.observed.flow, &other.observed.flow);
        let mut rows = ROWS.iter().filter(|row| !row.may_differ);
        let is_launch = others.case.id == own.case.id
            && others.name() == own.name()
            && rows.all(|row| row.is_equal(&own.settings, &others.settings))
            && !self.files().any(|file| std::ptr::eq(file, other.loaded));
        if is_launch {
            self.launches.extend(&other.launches);
            self.observed.runs.extend(other.observed.runs.clone());
        }
        is_launch
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &Observation<'a>> {
        self.observed.counted()
    }

    /// Its runs that have figures and do not count.
    pub(crate) fn uncounted(&self) -> impl Iterator<Item = &Observation<'a>> {
        self.observed.runs.iter().filter(|run| !run.counts() && run.standing.has_figures())
    }

    /// Runs that count, of all, as a cell.
    pub(crate) fn runs_cell(&self) -> Cell {
        let (runs, counted) = (self.observed.runs.len(), self.counted().count());
        Cell::Text(if counted == runs { runs.to_string() } else { format!("{counted} of {runs}") })
    }

    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        self.observed.spread(metric)
    }

    /// Median, lowest and highest of a metric, as its column has them.
    pub(crate) fn spread_cells(&self, metric: Metric) -> [Cell; 3] {
        Cell::of_spread(metric, self.spread(metric))
    }

    /// A run's number, with its file where there are several.
    pub(crate) fn run_name(&self, run: &Run) -> String {
        let file = self.launches.iter().find(|(_, case)| {
            let mut runs = case.runs.iter();
            self.launches.len() > 1 && runs.any(|own| std::ptr::eq(own, run))
        });
        let stem = file.and_then(|(loaded, _)| loaded.path.file_stem());
        stem.map_or(run.run.to_string(), |it| format!("{} of {}", run.run, it.to_string_lossy()))
    }

    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseResult> {
        self.launches.iter().map(|(_, case)| *case)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &'a Loaded> {
        self.launches.iter().map(|(loaded, _)| *loaded)
    }

    /// All flows of all cases of all files, the base's first; but for those of pairs, which are each of two nodes of many
    /// and never run all at once: a line says nothing of them.
    pub(crate) fn of_sides(sides: Sides<'a>) -> Vec<Sample<'a>> {
        let base = sides.base.iter().map(|loaded| (loaded, true));
        let new = sides.only_new().map(|loaded| (loaded, false));
        base.chain(new)
            .flat_map(|(loaded, is_base)| {
                loaded
                    .result
                    .cases
                    .iter()
                    .filter(|case| case.config.pattern != Some(Pattern::Pairs))
                    .flat_map(CaseResult::flows)
                    .map(move |flow| Sample::new(loaded, flow, is_base))
            })
            .collect()
    }

    fn some(sides: impl Into<Sides<'a>>, is_wanted: fn(&Sample<'a>) -> bool) -> Vec<Sample<'a>> {
        let mut samples = Sample::of_sides(sides.into());
        samples.retain(is_wanted);
        samples
    }

    /// Those that moved data for its own sake.
    pub(crate) fn transfers(sides: impl Into<Sides<'a>>) -> Vec<Sample<'a>> {
        Sample::some(sides, |it| !it.is_set_up())
    }

    /// Those of them that moved as much as they could: the throughput of an open loop is what was offered.
    pub(crate) fn closed_loops(sides: impl Into<Sides<'a>>) -> Vec<Sample<'a>> {
        Sample::some(sides, |it| !it.is_set_up() && it.is_closed_loop())
    }

    /// Those that measured set-up, each case once.
    pub(crate) fn set_ups(sides: impl Into<Sides<'a>>) -> Vec<Sample<'a>> {
        Sample::some(sides, |it| it.is_set_up() && it.observed.flow.is_first())
    }

    /// Those that moved data and have the times that the metric is a figure of.
    pub(crate) fn with_times(sides: impl Into<Sides<'a>>, metric: Metric) -> Vec<Sample<'a>> {
        let mut samples = Sample::transfers(sides);
        samples.retain(|sample| {
            let mut runs = sample.observed.runs.iter().filter(|_| sample.observed.flow.has(metric));
            runs.any(|run| {
                let times = metric.samples(run.run, run.moved);
                run.standing.has_figures() && times.is_some_and(|times| times.count > 0)
            })
        });
        samples
    }

    /// Those that posted at planned times, and those for which a load was searched.
    pub(crate) fn loads(sides: impl Into<Sides<'a>>) -> Vec<Sample<'a>> {
        Sample::some(sides, |sample| {
            let flow = &sample.observed.flow;
            let is_searched = flow.is_first() && !flow.case.searches.is_empty();
            !sample.is_set_up() && (!sample.is_closed_loop() || is_searched)
        })
    }

    /// Whether completions posted its messages.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.observed.flow.settings.is_closed_loop()
    }

    fn is_set_up(&self) -> bool {
        self.observed.flow.settings.is_set_up()
    }

    /// Names the files in which it was measured, `order`th of those of its line.
    pub(crate) fn set_files(&mut self, order: usize, words: &str) {
        let value = Value::number(order as f64, words.to_owned());
        self.values.insert(Setting::Files, value);
    }

    pub(crate) fn value(&self, setting: Setting) -> &Value {
        static NOTHING: Value = Value::NONE;
        self.values.get(&setting).unwrap_or(&NOTHING)
    }
}

const POINTS_A_DECADE: f64 = 16.0;

/// The quantiles from the median on, as 1 / (1 - q), with the latencies of all launches in nanoseconds, as far as samples can
/// tell them.
pub(crate) fn latency_tail(sample: &Sample<'_>, metric: Metric) -> Vec<(f64, f64)> {
    let counted = sample.counted();
    let latencies: Vec<&Latency> = counted
        .filter_map(|run| metric.samples(run.run, run.moved))
        .filter(|it| it.count > 0)
        .collect();
    let mut histograms = latencies.iter().filter_map(|it| it.histogram().ok());
    let Some(mut merged) = histograms.next().filter(|it| !it.is_empty()) else {
        return of_percentiles(latencies);
    };
    // Those of other bounds are left out; one case's runs have none.
    for histogram in histograms {
        let _ = merged.add(&histogram);
    }
    points(&merged)
}

/// The same of each run that does not count, a few percentiles.
pub(crate) fn uncounted_tail(sample: &Sample<'_>, metric: Metric) -> Vec<(f64, f64)> {
    let runs = sample.uncounted().filter_map(|run| metric.samples(run.run, run.moved));
    let percentiles = runs.flat_map(|times| of_percentiles(vec![times]));
    percentiles.filter(|(x, _)| [2.0, 100.0, 1000.0].contains(x)).collect()
}

/// The run in the middle by its p99, with the percentiles that it has.
fn of_percentiles(mut latencies: Vec<&Latency>) -> Vec<(f64, f64)> {
    latencies.sort_by_key(|latency| latency.p99);
    let Some(latency) = latencies.get(latencies.len() / 2) else {
        return Vec::new();
    };
    latency
        .percentiles()
        .filter_map(|(of, ns)| Some(((1.0 / (1.0 - of.quantile)).round(), ns? as f64)))
        .collect()
}

/// Quantiles evenly over log(1 / (1 - q)), as far as there are enough samples.
fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let last = histogram.len() as f64 / BEYOND as f64;
    let places = (0..)
        .map(|step| 10f64.powf(f64::from(step) / POINTS_A_DECADE))
        .take_while(|x| *x < last)
        .filter(|x| *x > 2.0);
    let mut points: Vec<(f64, f64)> = std::iter::once(2.0)
        .chain(places)
        .chain([last])
        .filter_map(|x| Some((x, percentile(histogram, 1.0 - 1.0 / x)? as f64)))
        .collect();
    points.dedup();
    points
}

/// Name of the flow that stands for all of a case.
pub const ALL_FLOWS: &str = "all flows together";

/// The results as figures with lines and tables of cases show them.
pub fn of_patterns(results: &[Loaded]) -> Cow<'_, [Loaded]> {
    let mut cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    if !cases.any(is_of_pattern) {
        return Cow::Borrowed(results);
    }
    let summed = results.iter().map(|Loaded { path, result }| {
        let shown = result
            .cases
            .iter()
            .map(|case| if is_of_pattern(case) { sum(case) } else { case.clone() });
        Loaded { path: path.clone(), result: result.with_cases(shown.collect()) }
    });
    Cow::Owned(summed.collect())
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
        config: CaseConfig { settings, flows: vec![config], check: None },
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
        lock_step: run.lock_step.clone(),
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
        self.new.iter().filter(move |loaded| !self.base.iter().any(|base| base.is_copy_of(loaded)))
    }
}

impl<'a, T: AsRef<[Loaded]> + ?Sized> From<&'a T> for Sides<'a> {
    fn from(new: &'a T) -> Sides<'a> {
        let (new, base) = (new.as_ref(), &[][..]);
        Sides { new, base }
    }
}

#[cfg(test)]
mod tests {
    use results::{
        model::LoadVerdict,
        sample::{
            self, loaded,
            mesh::{ALONE_GBIT_PER_S, Mesh},
            mixed,
        },
    };

    use super::*;

    fn case(runs: &[&[u64]], histograms: bool) -> CaseResult {
        sample::case(
            runs.iter()
                .map(|values| {
                    sample::run(vec![FlowResult {
                        latency_ns: sample::latency(values, 3, histograms),
                        ..FlowResult::default()
                    }])
                })
                .collect(),
        )
    }

    fn tail_of(case: CaseResult) -> Vec<(f64, f64)> {
        let loaded = sample::file(vec![case]);
        let flow = loaded.result.cases[0].flows().next().unwrap();
        latency_tail(&Sample::new(&loaded, flow, false), Metric::P99Ns)
    }

    #[test]
    fn runs_are_put_together_before_percentiles_are_read() {
        let (short, long) = (vec![100; 900], vec![1000; 100]);
        let tail = tail_of(case(&[&short, &long], true));
        // A thousand samples give p99, and nothing beyond it.
        assert_eq!(tail.first(), Some(&(2.0, 100.0)));
        assert_eq!(tail.last(), Some(&(100.0, 1000.0)));
        assert!(tail.is_sorted());
    }

    #[test]
    fn without_histograms_only_the_percentiles_are_known() {
        let values: Vec<u64> = (1..=1000).collect();
        let tail = tail_of(case(&[&values], false));
        let places: Vec<f64> = tail.iter().map(|point| point.0).collect();
        assert_eq!(places, [2.0, 10.0, 20.0, 100.0]);
        assert!(tail_of(CaseResult::default()).is_empty());
    }

    #[test]
    fn twenty_samples_tell_the_median_and_fewer_nothing() {
        assert_eq!(tail_of(case(&[&[42; 20]], true)), [(2.0, 42.0)]);
        assert!(tail_of(case(&[&[42; 19]], true)).is_empty());
    }

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
