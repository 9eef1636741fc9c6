//! What the workers of an end offered in an open loop, and whether they kept its schedule.

use datapath::{TOLERATED_NS, WindowEdges, WorkerLoad};
use metrics::{Clock, latency::Recorder};
use results::model::{
    Doubt, DoubtKind, Gaps, Latency, Load, LoadVerdict, NotKeptBy, Totals, percentile,
};
use settings::{Arrivals, Settings};
use statistics::gaps_p_value;

use crate::{outcome::away_part, run::FlowEnd};

/// The lateness that is tolerated: this part of the latency, and [`TOLERATED_NS`] at least.
const TOLERATED_PART: f64 = 0.1;

/// The part of the messages beyond a percentile that may be late by more than that.
const LATE_PART: f64 = 0.5;

/// Percentiles that are printed for every open loop: where lateness spoils one, the schedule was not kept.
const PRINTED: [f64; 3] = [0.5, 0.99, 0.999];

/// The part of what was offered that may be posted after the window.
const LATE_WITH_ROOM: f64 = 0.01;

/// A test of the gaps fails below this probability: once in a thousand runs that are as they should be.
const LEAST_P_VALUE: f64 = 0.001;

const REMEDY: &str =
    "pin workers to cores of their own (--cores), use more --workers, or lower --rate";

/// The workers' part of an open loop.
pub(crate) struct OpenLoop<'a> {
    workers: Vec<&'a WorkerLoad>,
    asked_per_second: f64,
    arrivals: Arrivals,
    /// For how long it was to be on in the window; `None` if it ended with something else.
    planned_seconds: Option<f64>,
    /// The part of their windows for which the workers were away.
    away_part: f64,
}

impl<'a> OpenLoop<'a> {
    /// That of an end; `None` of a closed loop.
    pub(crate) fn new(flow: &Settings, end: &'a FlowEnd, clock: &Clock) -> Option<OpenLoop<'a>> {
        let asked_per_second = flow.planned_rate().messages_per_second(flow.mean_bytes())?;
        let loads = end.reports.iter().filter_map(|it| it.load.as_ref());
        let is_timed = end.shared.edges() != WindowEdges::OF_PHASE;
        let on_ns = flow.window_ns().map(|window_ns| flow.on_ns(window_ns));
        Some(OpenLoop {
            workers: loads.collect(),
            asked_per_second,
            arrivals: flow.arrivals,
            planned_seconds: on_ns.filter(|_| is_timed).map(|ns| ns as f64 * 1e-9),
            away_part: away_part(&end.reports, clock),
        })
    }

    /// From post to completion seen, of a QP.
    pub(crate) fn service_of(&self, qp: usize) -> Option<Recorder> {
        Recorder::merged(self.workers.iter().filter_map(|load| load.service.get(qp)?.as_ref()))
    }

    /// From post to completion seen.
    pub(crate) fn service(&self) -> Option<Recorder> {
        Recorder::merged(self.workers.iter().flat_map(|load| load.service.iter().flatten()))
    }

    /// How late messages of a QP were posted.
    pub(crate) fn lateness_of(&self, qp: usize) -> Option<Recorder> {
        Recorder::merged(self.workers.iter().filter_map(|load| {
            let place = load.lateness.binary_search_by_key(&qp, |(of, _)| *of).ok()?;
            load.lateness.get(place).map(|(_, samples)| samples)
        }))
    }

    /// How late messages were posted.
    pub(crate) fn lateness(&self) -> Option<Recorder> {
        Recorder::merged(
            self.workers.iter().flat_map(|load| &load.lateness).map(|(_, samples)| samples),
        )
    }

    fn sum(&self, figure: fn(&WorkerLoad) -> u64) -> u64 {
        self.workers.iter().map(|load| figure(load)).sum()
    }

    /// The load of a window of `seconds`, in which this was moved, and a doubt if the schedule was not kept.
    pub(crate) fn load(
        &self,
        totals: &Totals,
        seconds: f64,
        latency: Option<&Recorder>,
        lateness: Option<&Recorder>,
    ) -> (Load, Option<Doubt>) {
        let offered = self.sum(|load| load.offered);
        let mut load = Load {
            asked_per_second: self.asked_per_second,
            maximum_per_second: None,
            offered,
            offered_per_second: per_second(offered, self.planned_seconds.unwrap_or(seconds)),
            achieved_per_second: per_second(totals.messages, seconds),
            never_sent: self.sum(|load| load.never_sent),
            queue_full_messages: self.sum(|load| load.queue_full_messages),
            queue_full_seconds: self.sum(|load| load.queue_full_ns) as f64 * 1e-9,
            recorded_one_in: self
                .workers
                .iter()
                .map(|load| load.recorded_one_in)
                .max()
                .unwrap_or(1),
            gaps: self.gaps(),
            verdict: LoadVerdict::Kept,
            not_kept_by: None,
        };
        let missing_per_second = load.offered_per_second - load.achieved_per_second;
        let missing = missing_per_second * self.planned_seconds.unwrap_or(seconds);
        let is_overload = Load::is_overload(self.arrivals, offered as f64, missing);
        let late = latency.zip(lateness).and_then(|(all, late)| spoilt(all, late));
        let why = if is_overload && missing <= self.away_part * offered as f64 {
            Some((NotKeptBy::Away, self.away(missing)))
        } else {
            self.not_posted(&load)
                .or_else(|| wrong_gaps(&load))
                .map(|(by, text)| (by, late.clone().unwrap_or(text)))
                .or_else(|| Some((NotKeptBy::Lateness, late?)))
        };
        load.not_kept_by = why.as_ref().map(|(by, _)| *by);
        load.verdict = match &why {
            Some(_) => LoadVerdict::NotKept,
            None if is_overload => LoadVerdict::Overloaded,
            None => LoadVerdict::Kept,
        };
        let doubt = why.map(|(_, why)| Doubt {
            kind: DoubtKind::ScheduleNotKept,
            message: format!("{why}: {REMEDY}"),
        });
        (load, doubt)
    }

    /// Nobody can tell whether the system or the workers kept what is missing from being done.
    fn away(&self, missing: f64) -> String {
        format!(
            "{missing:.0} messages did not complete in the window, and the workers did not run for {:.1} % of it",
            self.away_part * 100.0
        )
    }

    fn not_posted(&self, load: &Load) -> Option<(NotKeptBy, String)> {
        let late_with_room = self.sum(|worker| worker.late_with_room);
        (late_with_room as f64 > LATE_WITH_ROOM * load.offered as f64).then(|| {
            let text = format!(
                "{late_with_room} of {} messages were not posted in the window, though their send queues had room",
                load.offered
            );
            (NotKeptBy::NotPosted, text)
        })
    }

    /// The test of all workers' gaps: the least of their probabilities, times the number of tests (Bonferroni).
    fn gaps(&self) -> Option<Gaps> {
        let tests: Vec<Gaps> = (self.workers.iter())
            .filter_map(|load| {
                let gaps = &load.gaps;
                let p_value = gaps_p_value(&gaps.mean_gaps, gaps.messages_of_gap)?;
                Some(Gaps {
                    messages_of_gap: gaps.messages_of_gap,
                    samples: gaps.mean_gaps.len() as u64,
                    p_value,
                })
            })
            .collect();
        let count = tests.len() as f64;
        let worst = tests.into_iter().min_by(|a, b| a.p_value.total_cmp(&b.p_value))?;
        Some(Gaps { p_value: (worst.p_value * count).min(1.0), ..worst })
    }
}

fn wrong_gaps(load: &Load) -> Option<(NotKeptBy, String)> {
    let gaps = load.gaps.as_ref()?;
    (gaps.p_value < LEAST_P_VALUE).then(|| {
        let text = format!(
            "the times between posts do not have the requested distribution (Anderson-Darling, p = {:.1e})",
            gaps.p_value
        );
        (NotKeptBy::Gaps, text)
    })
}

/// Whether lateness spoils a percentile of latency that is printed.
pub fn is_spoilt(latency: &Recorder, lateness: &Recorder) -> bool {
    spoilt(latency, lateness).is_some()
}

/// The lowest printed percentile that lateness spoils. It is mostly the cause where gaps are wrong, and says more.
fn spoilt(latency: &Recorder, lateness: &Recorder) -> Option<String> {
    let mut printed = PRINTED.into_iter();
    let (quantile, late) = printed
        .find_map(|quantile| Some((quantile, Late::spoils(latency, lateness, quantile)?)))?;
    Some(format!(
        "p{} of latency would include rocebench's own delay: {} % of the messages were posted at least {:.1} us \
         late, and the limit is {:.1} us",
        percent(quantile),
        percent((1.0 - quantile) * LATE_PART),
        late.late_ns / 1e3,
        late.tolerated_ns / 1e3
    ))
}

/// Without the last binary digits: 1 - 0.999 is a little more than 0.001.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Lateness that spoils a percentile of latency.
struct Late {
    late_ns: f64,
    tolerated_ns: f64,
}

impl Late {
    /// Whether it does so: more than half of the messages beyond the percentile may be there because they were posted late.
    /// Of a latency that is above its percentile T the rest, without lateness, is above T - t unless lateness is above t. So
    /// if at most half of the share beyond is late by more than t, at least half of it is above T - t by itself: p99.9 that is
    /// told is at most t above the true p99.95. What waits behind messages that were late is not late, and not seen here.
    fn spoils(latency: &Recorder, lateness: &Recorder, quantile: f64) -> Option<Late> {
        let told_ns = percentile(latency.histogram(), quantile)?;
        let beyond = (1.0 - quantile) * LATE_PART;
        let late = Late {
            late_ns: lateness.histogram().value_at_quantile(1.0 - beyond) as f64,
            tolerated_ns: (told_ns as f64 * TOLERATED_PART).max(TOLERATED_NS as f64),
        };
        (late.late_ns > late.tolerated_ns).then_some(late)
    }
}

/// These figures of latencies of messages that were posted late, without the percentiles that the lateness spoils; `None` if it
/// spoils the median.
pub(crate) fn unspoilt(
    figures: Latency,
    latency: &Recorder,
    lateness: Option<&Recorder>,
) -> Option<Latency> {
    let Some(lateness) = lateness else {
        return Some(figures);
    };
    if Late::spoils(latency, lateness, 0.5).is_some() {
        return None;
    }
    Some(figures.with_percentiles(|of, ns| {
        ns.filter(|_| Late::spoils(latency, lateness, of.quantile).is_none())
    }))
}

fn per_second(messages: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { messages as f64 / seconds } else { 0.0 }
}
