//! What an open loop has to tell: computed from the planned times of its messages, and from when the device had them.
#![allow(clippy::print_stderr)]

use std::ops::Range;

use datapath::{Phase, WindowEdges, WorkerLoad, WorkerReport};
use metrics::latency::{Digits, Recorder};
use null_verbs::loopback::{Served, Serving};
use plan::Case;
use results::model::{FlowResult, Latency, Load, LoadVerdict, NotKeptBy, can_tell};
use settings::{Arrivals, Op, Rate, Settings, TimeSpan};

use crate::bench::{Bench, Over, SECOND, SetUp, longest_pass_ns};
use crate::exact::constant;
use crate::loopback_node::{Choices, case_of, small};

/// When virtual time begins, and with it a warm-up.
pub const START_NS: u64 = SECOND;

/// A seed, and what it chose: told where its test fails, which so can be had again.
pub struct Seed {
    pub number: u64,
    pub choices: Choices,
    case: Option<(Case, Serving)>,
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}: {:?}", self.number, self.case);
        }
    }
}

impl Seed {
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.choices.upto(range.end - range.start) - 1
    }

    pub fn bench(&mut self, case: &Case, serving: Serving) -> SetUp {
        self.case = Some((case.clone(), serving.clone()));
        SetUp::new(case.clone(), self.number, serving)
    }
}

/// Does `one` for so many seeds.
pub fn for_seeds(seeds: u64, mut one: impl FnMut(&mut Seed)) {
    for number in 0..seeds {
        one(&mut Seed { number, choices: Choices(number), case: None });
    }
}

/// Settings of an open loop to vary.
pub fn at_rate(seed: &Seed, messages_per_second: u64, window_ns: u64) -> Settings {
    Settings {
        rate: Rate::Messages(messages_per_second),
        iterations_per_qp: None,
        duration_seconds: TimeSpan::from_ns(window_ns),
        seed: seed.number,
        ..small(Op::Write)
    }
}

/// The planned times of each QP until an instant. Fixed ones are computed; those by chance are when messages are posted
/// where nothing is in their way, which is a run of its own.
pub fn planned_times(seed: &Seed, case: &Case, until_ns: u64) -> Vec<Vec<u64>> {
    let qps = case.settings.qps;
    let Rate::Messages(per_second) = case.settings.rate else {
        panic!("{:?}", case.settings.rate);
    };
    if case.settings.arrivals == Arrivals::Poisson {
        let free = case_of(Settings {
            arrivals: Arrivals::Poisson,
            qps,
            tx_depth: 64,
            ..at_rate(seed, per_second, SECOND)
        });
        let set_up = SetUp::new(free, seed.number, constant(1, true));
        let ((), over) = set_up.run(|bench| {
            bench.set_phase(Phase::Warmup);
            bench.run_until_ns(until_ns);
        });
        return posted_by_qp(&over);
    }
    let gap_ns = 1e9 / per_second as f64 * f64::from(qps);
    (0..qps)
        .map(|qp| {
            let mut after_ns = ((f64::from(qp) + 0.5) / f64::from(qps) - 1.0) * gap_ns;
            let times = std::iter::repeat_with(move || {
                after_ns += gap_ns;
                START_NS + after_ns.round_ties_even() as u64
            });
            times.take_while(|at_ns| *at_ns < until_ns).collect()
        })
        .collect()
}

/// What the device did for each QP of the client, in its order.
pub fn served_by_qp(over: &Over) -> Vec<Vec<Served>> {
    let contexts = over.rest.client.1.qp_contexts().iter();
    let of_qp = |qpn: u32| over.served.iter().filter(move |it| it.qp_num == qpn);
    contexts.map(|context| of_qp(context.qp.qpn()).copied().collect()).collect()
}

/// When each message was posted, by QP of the client.
pub fn posted_by_qp(over: &Over) -> Vec<Vec<u64>> {
    served_by_qp(over)
        .into_iter()
        .map(|served| served.into_iter().map(|it| it.posted_ns).collect())
        .collect()
}

/// When each of these messages is done by one server that takes them in this order, from when they come; it stands still
/// meanwhile (D. V. Lindley 1952, "The theory of queues with a single server").
pub fn done_ns(come_ns: &[u64], service_ns: impl Fn(usize) -> u64, still: &Range<u64>) -> Vec<u64> {
    let mut free_ns = 0;
    come_ns
        .iter()
        .enumerate()
        .map(|(index, &come_ns)| {
            let mut begins_ns = come_ns.max(free_ns);
            if still.contains(&begins_ns) {
                begins_ns = still.end;
            }
            free_ns = begins_ns + service_ns(index);
            if begins_ns < still.start && free_ns > still.start {
                free_ns += still.end - still.start;
            }
            free_ns
        })
        .collect()
}

pub struct Ran {
    pub edges: WindowEdges,
    /// When the workers gave up what they had not posted.
    gave_up_ns: u64,
    pub away: Range<u64>,
    pub over: Over,
}

impl Ran {
    /// A measurement of an open loop, in which the client's first thread is away for a while.
    pub fn new(set_up: &SetUp, warm_up_ns: u64, window_ns: u64, away: Range<u64>) -> Ran {
        Ran::with(set_up, warm_up_ns, window_ns, away, |_| {})
    }

    /// The same, with something else set before.
    pub fn with(
        set_up: &SetUp,
        warm_up_ns: u64,
        window_ns: u64,
        away: Range<u64>,
        set: impl FnOnce(&mut Bench<'_>),
    ) -> Ran {
        let ((edges, gave_up_ns), over) = set_up.run(|bench| {
            set(bench);
            if !away.is_empty() {
                bench.away(0, away.start, away.end - away.start);
            }
            bench.set_phase(Phase::Warmup);
            // A thread that looks less often takes itself for one that was away.
            let pass_ns = longest_pass_ns(window_ns);
            (0..warm_up_ns / pass_ns).for_each(|_| bench.run_for(pass_ns));
            bench.run_until_ns(START_NS + warm_up_ns);
            let edges = bench.open_window(0, window_ns);
            bench.run_until("end of the window", 3_600 * SECOND, |bench| {
                bench.pair.client.shared.window().is_closed
            });
            bench.set_phase(Phase::Drain);
            let gave_up_ns = bench.now_ns() + SECOND;
            bench.run_until_ns(gave_up_ns);
            bench.close_window();
            (edges, gave_up_ns)
        });
        Ran { edges, gave_up_ns, away, over }
    }
}

pub const NEVER: Range<u64> = 0..0;

/// What an open loop has to tell.
pub struct Expected {
    pub offered: u64,
    pub never_sent: u64,
    pub queue_full_messages: u64,
    pub queue_full_ns: u64,
    pub late_with_room: u64,
    /// Messages that completed in the window; `None` where the worker was away over an edge of it.
    pub completed: Option<u64>,
    pub latency: Recorder,
    pub lateness: Recorder,
    pub service: Recorder,
}

impl Expected {
    /// From planned times that reach beyond the window.
    pub fn new(planned: &[Vec<u64>], ran: &Ran) -> Expected {
        let (edges, away) = (ran.edges, &ran.away);
        let seen = |at_ns: u64| if away.contains(&at_ns) { away.end } else { at_ns };
        let served = served_by_qp(&ran.over);
        let window = edges.opens_raw..edges.closes_raw;
        let in_window = |at_ns: u64| at_ns.clamp(window.start, window.end);
        let new = || Recorder::new(Digits::Two);
        let done = served.iter().flatten().map(|it| seen(it.done_ns));
        // What piled up since the last look may come for as long again.
        let look_ns = (window.end - window.start) / 400;
        let reach_ns = away.end + (away.end - away.start) + look_ns;
        let is_over_edge =
            |edge_ns: u64| away.start <= edge_ns && edge_ns <= reach_ns && !away.is_empty();
        let mut expected = Expected {
            offered: 0,
            never_sent: 0,
            queue_full_messages: 0,
            queue_full_ns: 0,
            late_with_room: 0,
            completed: (!is_over_edge(window.start) && !is_over_edge(window.end))
                .then(|| done.filter(|at_ns| window.contains(at_ns)).count() as u64),
            latency: new(),
            lateness: new(),
            service: new(),
        };
        // From the last look before to the first one after.
        let mut looks = ran.over.history.looks.iter();
        let last = looks.rfind(|look| look.thread == 0 && look.at_ns < away.end);
        let absence = last.map_or(NEVER, |look| look.at_ns..away.end);
        let absence = if absence.end - absence.start > longest_pass_ns(window.end - window.start) {
            absence
        } else {
            NEVER
        };
        for (times, of_qp) in planned.iter().zip(&served) {
            // A full queue had room when the worker came back, which may have been so since its last look.
            let waiting = times.iter().zip(of_qp).find(|(planned_ns, it)| {
                **planned_ns <= absence.start && absence.start < it.posted_ns
            });
            let absence = if waiting.is_some_and(|(_, it)| it.posted_ns == absence.end) {
                absence.clone()
            } else {
                NEVER
            };
            let away_ns = in_window(absence.end) - in_window(absence.start);
            // Since when its messages have waited for room.
            let mut backlog_ns = None;
            for (index, &planned_ns) in times.iter().enumerate() {
                let message = of_qp.get(index);
                if message.is_none_or(|it| it.posted_ns > seen(planned_ns)) {
                    backlog_ns.get_or_insert(seen(planned_ns));
                }
                if window.contains(&planned_ns) {
                    expected.offered += 1;
                    expected.queue_full_messages += u64::from(backlog_ns.is_some());
                    match message {
                        Some(it) => {
                            let late_until_ns = backlog_ns.unwrap_or(it.posted_ns);
                            let behind_ns = if it.posted_ns >= absence.end {
                                absence.end.saturating_sub(planned_ns.max(absence.start))
                            } else {
                                0
                            };
                            expected
                                .lateness
                                .record(late_until_ns.saturating_sub(planned_ns) + behind_ns);
                            expected.latency.record(seen(it.done_ns) - planned_ns);
                            expected.service.record(seen(it.done_ns) - it.posted_ns);
                            let is_late = backlog_ns.is_none() && it.posted_ns >= window.end;
                            expected.late_with_room += u64::from(is_late);
                        }
                        None => {
                            expected.never_sent += 1;
                            expected.latency.record(ran.gave_up_ns - planned_ns);
                        }
                    }
                }
                let next_ns = times.get(index + 1).copied().unwrap_or(u64::MAX);
                if let (Some(began_ns), Some(it)) = (backlog_ns, message)
                    && next_ns > it.posted_ns
                {
                    expected.queue_full_ns += in_window(it.posted_ns) - in_window(began_ns);
                    backlog_ns = None;
                }
            }
            if let Some(began_ns) = backlog_ns {
                expected.queue_full_ns += window.end - in_window(began_ns);
            }
            expected.queue_full_ns -= away_ns;
        }
        expected
    }

    /// Holds a run to it, and returns what its node reports.
    pub fn holds(&self, ran: Ran) -> FlowResult {
        ran.over.rest.assert_clean();
        let served = served_by_qp(&ran.over);
        let late_with_room: u64 = ran
            .over
            .rest
            .client
            .2
            .iter()
            .filter_map(|worker| worker.load.as_ref())
            .map(|load: &WorkerLoad| load.late_with_room)
            .sum();
        assert_eq!(late_with_room, self.late_with_room);
        let sum = |of: fn(&WorkerReport) -> u64| ran.over.rest.client.2.iter().map(of).sum();
        let away_ns = [
            sum(|worker| worker.away_raw),
            sum(|worker| worker.window_raw.map_or(0, |(start, end)| end - start)),
        ];
        let report = ran.over.report();
        let posted: Vec<u64> = served.iter().map(|it| it.len() as u64).collect();
        assert_eq!(report.posted_in_all, posted);
        let sent = report.sent.unwrap();
        let load = sent.load.as_ref().unwrap();
        assert_eq!(
            (load.offered, load.never_sent, load.queue_full_messages),
            (self.offered, self.never_sent, self.queue_full_messages)
        );
        assert_eq!(load.queue_full_seconds, self.queue_full_ns as f64 * 1e-9);
        assert_eq!(sent.latency_ns, self.latency_as_reported());
        assert_eq!(sent.lateness_ns, self.lateness.latency());
        assert_eq!(sent.service_ns, self.service.latency());
        if let Some(completed) = self.completed {
            assert_eq!(sent.totals.messages, completed);
            // Each edge is at the worker's last look before it.
            let seconds = (ran.edges.closes_raw - ran.edges.opens_raw) as f64 * 1e-9;
            assert!((sent.window.seconds / seconds - 1.0).abs() <= 1.0 / 400.0);
            let per_second = completed as f64 / sent.window.seconds;
            assert_eq!(load.achieved_per_second, per_second);
        }
        let seconds = (ran.edges.closes_raw - ran.edges.opens_raw) as f64 * 1e-9;
        assert_eq!((load.verdict, load.not_kept_by), self.verdict(load, seconds, away_ns));
        sent
    }

    /// By the rules of docs/open-loop.md.
    fn verdict(
        &self,
        load: &Load,
        seconds: f64,
        [away_ns, all_ns]: [u64; 2],
    ) -> (LoadVerdict, Option<NotKeptBy>) {
        let offered = self.offered as f64;
        let missing = (load.offered_per_second - load.achieved_per_second) * seconds;
        let is_overload = missing > 0.01 * offered && missing > 4.0 * offered.sqrt();
        let gaps = load.gaps.as_ref();
        let reasons = [
            (NotKeptBy::Away, is_overload && missing <= offered * away_ns as f64 / all_ns as f64),
            (NotKeptBy::NotPosted, self.late_with_room as f64 > 0.01 * offered),
            (NotKeptBy::Gaps, gaps.is_some_and(|it| it.p_value < 0.001)),
            (NotKeptBy::Lateness, [0.5, 0.99, 0.999].into_iter().any(|it| self.is_spoilt(it))),
        ];
        match (reasons.iter().find(|(_, is)| *is), is_overload) {
            (Some((by, _)), _) => (LoadVerdict::NotKept, Some(*by)),
            (None, true) => (LoadVerdict::Overloaded, None),
            (None, false) => (LoadVerdict::Kept, None),
        }
    }

    /// Half of the messages beyond a percentile that is told are late by more than a tenth of it, and 2 µs.
    fn is_spoilt(&self, quantile: f64) -> bool {
        let [latency, lateness] = [&self.latency, &self.lateness].map(Recorder::histogram);
        let told_ns = latency.value_at_quantile(quantile);
        let late_ns = lateness.value_at_quantile(1.0 - (1.0 - quantile) / 2.0);
        can_tell(latency.len(), quantile) && late_ns as f64 > (told_ns as f64 * 0.1).max(2_000.0)
    }

    /// The latencies, without percentiles that lateness spoils.
    fn latency_as_reported(&self) -> Option<Latency> {
        let latency = self.latency.latency()?;
        (!self.is_spoilt(0.5))
            .then(|| latency.with_percentiles(|of, ns| ns.filter(|_| !self.is_spoilt(of.quantile))))
    }
}
