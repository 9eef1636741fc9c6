//! What the workers of an end offered in an open loop, and whether they kept its schedule. It must not know links or
//! messages.

use datapath::{TOLERATED_NS, WindowEdges, WorkerLoad};
use metrics::histogram::Recorder;
use report::results::model::{Doubt, DoubtKind, Gaps, Latency, Load, LoadVerdict, Totals};
use settings::Settings;
use statistics::gaps_p_value;

use crate::node::flow_end::FinishedEnd;

/// The lateness of 99 % of messages that is tolerated: this part of the median latency, and [`TOLERATED_NS`] at least.
const TOLERATED_PART: f64 = 0.1;

/// The part of what was offered that may be missing.
const MISSING: f64 = 0.01;

/// A test of the gaps fails below this probability: once in a thousand runs that are as they should be.
const LEAST_P_VALUE: f64 = 0.001;

const REMEDY: &str =
    "pin workers to cores of their own (--cores), use more --workers, or lower --rate";

/// The workers' part of an open loop.
pub(crate) struct OpenLoop<'a> {
    workers: Vec<&'a WorkerLoad>,
    asked_per_second: f64,
    /// Length of the window that was planned; `None` if it ended with something else.
    planned_seconds: Option<f64>,
}

impl<'a> OpenLoop<'a> {
    /// That of an end; `None` of a closed loop.
    pub(crate) fn of(flow: &Settings, finished: &'a FinishedEnd) -> Option<OpenLoop<'a>> {
        let asked_per_second = flow.planned_rate().messages_per_second(flow.mean_bytes())?;
        let loads = finished.workers.iter().filter_map(|it| it.load.as_ref());
        let is_timed = finished.edges != WindowEdges::OF_PHASE;
        let length = match flow.stop() {
            settings::Stop::DurationNs(ns) => Some(ns as f64 * 1e-9),
            settings::Stop::MessagesPerQp(_) => None,
        };
        Some(OpenLoop {
            workers: loads.collect(),
            asked_per_second,
            planned_seconds: length.filter(|_| is_timed),
        })
    }

    fn service_recorders(&self, qp: usize) -> impl Iterator<Item = &Recorder> {
        let of_worker = move |load: &&'a WorkerLoad| load.service.get(qp)?.as_ref();
        self.workers.iter().filter_map(of_worker)
    }

    /// From post to completion seen, of a QP.
    pub(crate) fn service_of(&self, qp: usize) -> Option<Latency> {
        Recorder::merged(self.service_recorders(qp))?.latency()
    }

    /// From post to completion seen.
    pub(crate) fn service(&self) -> Option<Latency> {
        let of_worker = |load: &&'a WorkerLoad| load.service.iter().flatten();
        Recorder::merged(self.workers.iter().flat_map(of_worker))?.latency()
    }

    /// How late messages of a QP were posted.
    pub(crate) fn lateness_of(&self, qp: usize) -> Option<Latency> {
        let lateness = self.workers.iter().flat_map(|load| &load.lateness);
        let of_qp = lateness
            .filter(|(of, _)| *of == qp)
            .map(|(_, recorder)| recorder);
        Recorder::merged(of_qp)?.latency()
    }

    /// How late messages were posted.
    pub(crate) fn lateness(&self) -> Option<Latency> {
        let lateness = self.workers.iter().flat_map(|load| &load.lateness);
        Recorder::merged(lateness.map(|(_, recorder)| recorder))?.latency()
    }

    fn sum(&self, figure: fn(&WorkerLoad) -> u64) -> u64 {
        self.workers.iter().map(|load| figure(load)).sum()
    }

    /// The load of a window of `seconds`, in which this was moved, and a doubt if the schedule was not kept.
    pub(crate) fn load(
        &self,
        totals: &Totals,
        seconds: f64,
        latency: Option<&Latency>,
        lateness: Option<&Latency>,
    ) -> (Load, Option<Doubt>) {
        let per_second = |messages: u64, seconds: f64| match seconds > 0.0 {
            true => messages as f64 / seconds,
            false => 0.0,
        };
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
        };
        let late_with_room = self.sum(|load| load.late_with_room);
        let why = not_kept(&load, late_with_room, latency, lateness);
        let falls_short = load.achieved_per_second < (1.0 - MISSING) * load.offered_per_second;
        load.verdict = match &why {
            Some(_) => LoadVerdict::NotKept,
            None if falls_short && load.queue_full_messages > 0 => LoadVerdict::Overloaded,
            None => LoadVerdict::Kept,
        };
        let doubt = why.map(|why| Doubt {
            kind: DoubtKind::ScheduleNotKept,
            message: format!("{why}: {REMEDY}"),
        });
        (load, doubt)
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
        let worst = tests
            .into_iter()
            .min_by(|a, b| a.p_value.total_cmp(&b.p_value))?;
        Some(Gaps {
            p_value: (worst.p_value * count).min(1.0),
            ..worst
        })
    }
}

/// How late 99 % of messages may be posted where this is the median latency, both in nanoseconds.
pub fn tolerated_ns(latency_p50_ns: u64) -> f64 {
    (latency_p50_ns as f64 * TOLERATED_PART).max(TOLERATED_NS as f64)
}

/// Why the schedule was not kept.
fn not_kept(
    load: &Load,
    late_with_room: u64,
    latency: Option<&Latency>,
    lateness: Option<&Latency>,
) -> Option<String> {
    let late_ns = lateness.map_or(0, |it| it.p99.unwrap_or(it.max)) as f64;
    let tolerated_ns = tolerated_ns(latency.map_or(0, |it| it.p50.unwrap_or(it.min)));
    if late_ns > tolerated_ns {
        return Some(format!(
            "1 % of the messages were posted {:.1} us late or more, and {:.1} us are tolerated",
            late_ns / 1e3,
            tolerated_ns / 1e3
        ));
    }
    if late_with_room as f64 > MISSING * load.offered as f64 {
        return Some(format!(
            "{late_with_room} of {} messages were not posted in the window, though their send queues had room",
            load.offered
        ));
    }
    let gaps = load.gaps.as_ref()?;
    (gaps.p_value < LEAST_P_VALUE).then(|| {
        format!(
            "the times between posts are not distributed as requested (Anderson-Darling, p = {:.1e})",
            gaps.p_value
        )
    })
}
