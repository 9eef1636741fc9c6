//! What the workers of a run on the bench must report: computed from what the device served, and from when each worker looked
//! at its CQs, by the rules of the window that `docs/dev/architecture.md` and `worker/edges.rs` tell.

use std::collections::{HashMap, VecDeque};

use datapath::{WindowEdges, WorkerReport};
use metrics::latency::{Digits, Recorder};
use metrics::timeline::MOST_COUNTS;
use metrics::{QpTimeline, Timeline};
use null_verbs::loopback::{Served, ServiceTimes, Serving};
use plan::Case;
use results::model::FlowResult;
use settings::{CqMode, Settings, TimeSpan};
use verbs::POLL_BATCH;

use crate::bench::{Over, Pass, longest_pass_ns};
use crate::loopback_node::Choices;

/// A look is late after this part of the window, and a window that is not open after that part opens regardless.
const LATE_PARTS: u64 = 400;
const GIVE_UP_PARTS: u64 = 50;

/// What both ends' workers must report of a run by time.
pub struct Truth {
    /// The client's, then the server's.
    pub ends: [Vec<WorkerTruth>; 2],
    /// Messages of the client whose completions were seen, in their order.
    seen: Vec<Seen>,
}

/// What a worker must report.
pub struct WorkerTruth {
    window: Watch,
    /// By index of the QP.
    pub qps: Vec<QpTruth>,
}

#[derive(Clone, Default)]
pub struct QpTruth {
    pub completed_before: u64,
    pub completed: u64,
    pub received: u64,
    pub latencies_ns: Vec<u64>,
}

/// Messages whose completion a worker of the client saw.
struct Seen {
    /// The number of the pass.
    look: usize,
    qp: usize,
    messages: u64,
    is_in_window: bool,
}

/// A completion in a CQ.
#[derive(Clone, Copy)]
enum Entry {
    Sent(usize, Served),
    Received(usize),
}

impl Truth {
    /// Of a run whose windows had these edges, and whose passes began with the warm-up. Fails unless the reports of both
    /// ends are these.
    pub fn new(over: &Over, edges: WindowEdges) -> Truth {
        let case = &over.rest.case;
        let ends = [&over.rest.client, &over.rest.server];
        let mut qps = HashMap::new();
        for (end, (_, shared, _)) in ends.iter().enumerate() {
            let contexts = shared.qp_contexts().iter().enumerate();
            qps.extend(contexts.map(|(qp, context)| (context.qp.qpn(), (end, qp))));
        }
        let mut cqs = ends.map(|(objects, ..)| vec![VecDeque::new(); objects.cqs().len()]);
        let counts = ends.map(|(_, _, reports)| reports.len());
        let mut truth = Truth {
            ends: counts.map(|count| {
                (0..count)
                    .map(|_| WorkerTruth {
                        window: Watch::new(edges),
                        qps: vec![QpTruth::default(); case.qps as usize],
                    })
                    .collect()
            }),
            seen: Vec::new(),
        };
        let cq_of = |count: usize, qp: usize| match case.cq {
            CqMode::Shared => 0,
            CqMode::PerWorker => qp % count,
            CqMode::PerQp => qp,
        };
        let mut served = over.served.iter().peekable();
        for (number, look) in over.history.looks.iter().enumerate() {
            while let Some(served) = served.next_if(|it| it.done_ns <= look.at_ns) {
                let (end, qp) = qps[&served.qp_num];
                if case.op.profile().receives {
                    let cqs = &mut cqs[1 - end];
                    let cq = cq_of(cqs.len(), qp);
                    cqs[cq].push_back(Entry::Received(qp));
                }
                if served.is_signalled {
                    let cq = cq_of(cqs[end].len(), qp);
                    cqs[end][cq].push_back(Entry::Sent(qp, *served));
                }
            }
            let (end, index) = match look.thread.checked_sub(counts[0]) {
                None => (0, look.thread),
                Some(index) => (1, index),
            };
            let mut batches = Vec::new();
            for cq in (0..cqs[end].len())
                .filter(|cq| case.cq == CqMode::Shared || cq % counts[end] == index)
            {
                let count = cqs[end][cq].len().min(POLL_BATCH);
                batches.push(cqs[end][cq].drain(..count).collect());
            }
            truth.look(case, end, index, (number, *look), &batches);
        }
        truth.check(over);
        truth
    }

    /// A worker takes these batches of its CQs.
    fn look(
        &mut self,
        case: &Case,
        end: usize,
        index: usize,
        (number, look): (usize, Pass),
        batches: &[Vec<Entry>],
    ) {
        let worker = &mut self.ends[end][index];
        let window = &mut worker.window;
        window.reach(look.at_ns, number);
        let is_in_window = window.state == State::Open;
        let is_before = matches!(window.state, State::Ahead | State::CatchingUp);
        for entry in batches.iter().flatten() {
            match *entry {
                Entry::Received(qp) => worker.qps[qp].received += u64::from(is_in_window),
                Entry::Sent(qp, served) => {
                    let messages = u64::from(case.signal_every);
                    let of_qp = &mut worker.qps[qp];
                    of_qp.completed += messages * u64::from(is_in_window);
                    of_qp.completed_before += messages * u64::from(is_before);
                    if served.posted_ns <= window.record_until_ns {
                        of_qp.latencies_ns.push(look.at_ns - served.posted_ns);
                    }
                    if end == 0 {
                        self.seen.push(Seen { look: number, qp, messages, is_in_window });
                    }
                }
            }
        }
        if window.state == State::CatchingUp {
            let was_full = batches.iter().any(|batch| batch.len() == POLL_BATCH);
            window.after_pass(was_full, look.at_ns, number);
        }
    }

    fn check(&self, over: &Over) {
        let reports = [&over.rest.client.2, &over.rest.server.2];
        for (workers, of_end) in self.ends.iter().zip(reports) {
            for (truth, report) in workers.iter().zip(of_end) {
                truth.check(report);
            }
        }
        let [sums, _] = [over.rest.client_sums(), over.rest.server_sums()];
        let served = over.rest.client.1.qp_contexts().iter().map(|it| {
            over.served.iter().filter(|served| served.qp_num == it.qp.qpn()).count() as u64
        });
        assert_eq!(sums.posted_in_all, served.collect::<Vec<_>>());
    }

    /// The latencies of all of the client's messages that its histograms hold, sorted.
    pub fn latencies_ns(&self) -> Vec<u64> {
        let mut latencies: Vec<u64> = self.ends[0]
            .iter()
            .flat_map(|worker| &worker.qps)
            .flat_map(|qp| qp.latencies_ns.clone())
            .collect();
        latencies.sort_unstable();
        latencies
    }

    /// What the device did for each QP of the client in the window of its worker, whatever the rules of the window are.
    pub fn done_in_windows(&self, over: &Over) -> Vec<u64> {
        let workers = &self.ends[0];
        over.rest
            .client
            .1
            .qp_contexts()
            .iter()
            .enumerate()
            .map(|(qp, context)| {
                let (start_ns, end_ns) = workers[qp % workers.len()].window_ns();
                over.served
                    .iter()
                    .filter(|it| {
                        let of_qp = it.qp_num == context.qp.qpn();
                        of_qp && it.done_ns > start_ns && it.done_ns <= end_ns
                    })
                    .count() as u64
            })
            .collect()
    }

    /// The client's messages in its workers' windows, by QP.
    pub fn completed(&self) -> Vec<u64> {
        self.sum(|qp| qp.completed)
    }

    fn sum(&self, figure: fn(&QpTruth) -> u64) -> Vec<u64> {
        (0..self.ends[0][0].qps.len())
            .map(|qp| self.ends[0].iter().map(|it| figure(&it.qps[qp])).sum())
            .collect()
    }

    /// Time in the window `at_ns`, after so many passes.
    fn elapsed_ns(&self, edges: WindowEdges, at_ns: u64, looks: usize) -> u64 {
        let windows = self.ends[0].iter().map(|worker| &worker.window);
        let first_ns = windows
            .clone()
            .filter(|window| window.opened_in.is_some_and(|look| look < looks))
            .map(|window| window.start_ns)
            .min();
        let last_ns =
            if windows.clone().all(|window| window.closed_in.is_some_and(|look| look < looks)) {
                windows.map(|window| window.end_ns).max().unwrap()
            } else {
                at_ns.min(edges.closes_raw)
            };
        let first_ns = first_ns.unwrap_or(u64::MAX).min(edges.opens_raw);
        last_ns.saturating_sub(first_ns)
    }

    /// Fails unless the time lines of the flow and of its QPs hold what was seen until each sample.
    pub fn check_timelines(&self, over: Over, edges: WindowEdges) -> FlowResult {
        let qps = over.rest.case.qps as usize;
        let mut flow = Timeline::default();
        let mut of_qps = QpTimeline::new(qps, MOST_COUNTS, None);
        let last_look = over.history.looks.len();
        let samples = over.history.samples.iter().copied().chain([(0, last_look)]);
        for (at_ns, looks) in samples {
            let elapsed_ns = self.elapsed_ns(edges, at_ns, looks);
            let seen = || self.seen.iter().take_while(|seen| seen.look < looks);
            let messages = seen().filter(|seen| seen.is_in_window).map(|seen| seen.messages).sum();
            if looks == last_look {
                flow.finish(elapsed_ns, messages);
            } else if elapsed_ns > 0 {
                flow.push(elapsed_ns, messages);
                if let Some(of_qps) = &mut of_qps {
                    of_qps.push(elapsed_ns, |counts| {
                        seen().for_each(|seen| counts[seen.qp] += seen.messages);
                    });
                }
            }
        }
        let window_ns = self.elapsed_ns(edges, 0, last_look);
        let before = self.sum(|qp| qp.completed_before);
        let by_end = self.sum(|qp| qp.completed_before + qp.completed);
        let of_qps = of_qps.map(|of_qps| of_qps.finish(window_ns, &before, &by_end));
        let sent = over.report().sent.unwrap();
        let timeline = sent.timeline.as_ref().unwrap();
        let seconds = |at_ns: u64| (at_ns / 1_000) as f64 / 1e6;
        let points = flow.samples().iter();
        let ends: Vec<f64> = points.clone().map(|it| seconds(it.at_ns)).collect();
        let messages: Vec<u64> = points.map(|it| it.messages).collect();
        assert_eq!((&timeline.at_seconds, &timeline.messages), (&ends, &messages));
        let stall = flow.longest_stall_ns() as f64 / 1e9;
        assert_eq!(timeline.longest_stall_seconds, Some(stall));
        let of_report =
            sent.qp_timeline.as_ref().map(|it| (it.at_seconds.clone(), it.messages.clone()));
        let expected =
            of_qps.map(|it| (it.ends_ns.into_iter().map(seconds).collect(), it.messages));
        assert_eq!(of_report, expected);
        sent
    }
}

impl WorkerTruth {
    pub fn window_ns(&self) -> (u64, u64) {
        (self.window.start_ns, self.window.end_ns)
    }

    pub fn unattended_ns(&self) -> [u64; 2] {
        self.window.unattended_ns
    }

    pub fn away_ns(&self) -> u64 {
        self.window.away_ns
    }

    /// Whether its window opened with empty CQs.
    pub fn has_caught_up(&self) -> bool {
        !self.window.gave_up
    }

    fn check(&self, report: &WorkerReport) {
        let worker = report.index;
        let window = (report.window_raw, report.unattended_raw, report.away_raw);
        let expected = (Some(self.window_ns()), self.unattended_ns(), self.away_ns());
        assert_eq!(window, expected, "worker {worker}");
        for (truth, reported) in self.qps.iter().zip(&report.qps) {
            let counts = [reported.completed_before, reported.completed, reported.received];
            let true_counts = [truth.completed_before, truth.completed, truth.received];
            assert_eq!(counts, true_counts, "worker {worker}");
            if let Some(recorder) = &reported.latency {
                let of_truth = recorder_of(&truth.latencies_ns);
                assert_eq!(recorder.histogram(), of_truth.histogram(), "worker {worker}");
            }
        }
    }
}

/// A run by time of so long.
pub fn timed(settings: Settings, window_ns: u64) -> Settings {
    Settings { iterations_per_qp: None, duration_seconds: TimeSpan::from_ns(window_ns), ..settings }
}

/// Servers that take these times: one for each QP, or one for all.
pub fn servers(times: ServiceTimes, is_of_qp: bool) -> Serving {
    Serving::Servers { times, is_of_qp, queue_limit: None }
}

/// Servers that take the same time for each message.
pub fn constant(ns: u64, is_of_qp: bool) -> Serving {
    servers(ServiceTimes::Constant(ns), is_of_qp)
}

/// Servers whose times have an exponential distribution.
pub fn exponential(mean_ns: u64, is_of_qp: bool) -> Serving {
    servers(ServiceTimes::Exponential(mean_ns as f64), is_of_qp)
}

/// Servers that take these times in turn.
pub fn list(times_ns: Vec<u64>, is_of_qp: bool) -> Serving {
    servers(ServiceTimes::List(times_ns), is_of_qp)
}

/// Service times of some kind with about this mean.
pub fn any_times(choices: &mut Choices, mean_ns: u64) -> ServiceTimes {
    let list = (0..7).map(|_| choices.upto(2 * mean_ns)).collect();
    match choices.upto(3) {
        1 => ServiceTimes::Constant(mean_ns),
        2 => ServiceTimes::Exponential(mean_ns as f64),
        _ => ServiceTimes::List(list),
    }
}

/// Servers of some kind.
pub fn any_servers(choices: &mut Choices, mean_ns: u64) -> Serving {
    let times = any_times(choices, mean_ns);
    servers(times, choices.one(&[true, false]))
}

/// A recorder as the workers', with these samples.
pub fn recorder_of(latencies_ns: &[u64]) -> Recorder {
    let mut recorder = Recorder::new(Digits::Two);
    latencies_ns.iter().for_each(|&ns| recorder.record(ns));
    recorder
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ahead,
    CatchingUp,
    Open,
    Closed,
}

/// A worker's window.
#[derive(Default)]
struct Watch {
    opens_ns: u64,
    closes_ns: u64,
    late_ns: u64,
    away_after_ns: u64,
    /// For how long the worker was away while it was open.
    away_ns: u64,
    state: State,
    /// The last look.
    attended_ns: Option<u64>,
    /// Length and end of the absence whose backlog comes last.
    absence_ns: (u64, u64),
    start_ns: u64,
    end_ns: u64,
    unattended_ns: [u64; 2],
    record_until_ns: u64,
    /// The last pass while it caught up, if that left nothing behind.
    caught_up_ns: Option<u64>,
    gave_up: bool,
    opened_in: Option<usize>,
    closed_in: Option<usize>,
}

impl Watch {
    fn new(edges: WindowEdges) -> Watch {
        let (opens_ns, closes_ns) = (edges.opens_raw, edges.closes_raw);
        Watch {
            opens_ns,
            closes_ns,
            late_ns: (closes_ns - opens_ns) / LATE_PARTS,
            away_after_ns: longest_pass_ns(closes_ns - opens_ns),
            ..Watch::default()
        }
    }

    fn away_over(&self, edge_ns: u64, looked_ns: u64) -> u64 {
        let (length_ns, end_ns) = self.absence_ns;
        let before_ns = if length_ns + end_ns > edge_ns { length_ns } else { 0 };
        before_ns.max(looked_ns.saturating_sub(edge_ns))
    }

    fn open(&mut self, start_ns: u64, unattended_ns: u64, look: usize) {
        self.state = State::Open;
        (self.start_ns, self.unattended_ns[0]) = (start_ns, unattended_ns);
        self.record_until_ns = u64::MAX;
        self.opened_in = Some(look);
    }

    /// A look, before what it finds is counted.
    fn reach(&mut self, now_ns: u64, look: usize) {
        let attended_ns = self.attended_ns.replace(now_ns).unwrap_or(now_ns);
        let gap_ns = now_ns - attended_ns;
        let (length_ns, end_ns) = self.absence_ns;
        if gap_ns > self.late_ns && gap_ns + now_ns > length_ns + end_ns {
            self.absence_ns = (gap_ns, now_ns);
        }
        let (opens_ns, closes_ns) = (self.opens_ns, self.closes_ns);
        let gap_ns = if gap_ns > self.away_after_ns { gap_ns } else { 0 };
        if self.state == State::Open && now_ns < closes_ns {
            self.away_ns += gap_ns;
        }
        if self.state == State::Ahead && now_ns >= opens_ns {
            let away_ns = self.away_over(opens_ns, now_ns);
            if away_ns <= self.late_ns {
                self.away_ns = gap_ns;
                self.open(attended_ns, away_ns, look);
            } else {
                self.state = State::CatchingUp;
                // The pass of this look began before the edge.
                self.caught_up_ns = None;
            }
        } else if self.state == State::Open && now_ns >= closes_ns {
            self.unattended_ns[1] = self.away_over(closes_ns, now_ns);
            self.state = State::Closed;
            (self.end_ns, self.record_until_ns) = (attended_ns, attended_ns);
            self.closed_in = Some(look);
        }
    }

    /// A pass is over in which it caught up.
    fn after_pass(&mut self, was_full: bool, now_ns: u64, look: usize) {
        let opens_ns = self.opens_ns;
        let window_ns = self.closes_ns - opens_ns;
        let is_quick =
            self.caught_up_ns.is_some_and(|before_ns| now_ns - before_ns <= self.late_ns);
        let has_caught_up = is_quick && !was_full;
        if has_caught_up || now_ns >= opens_ns + window_ns / GIVE_UP_PARTS {
            self.gave_up = !has_caught_up;
            self.open(now_ns, self.away_over(opens_ns, now_ns), look);
        }
        self.caught_up_ns = Some(now_ns);
    }
}
