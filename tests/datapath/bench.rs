//! Both ends of a run on `loop0` in one thread and in virtual time: the workers' passes come one after the other in an
//! order that follows from a seed, the device's servers take the times that the test sets, and time passes only from one
//! event to the next. What is measured is therefore exact: the expected value is computed from what the device served.

use node::outcome::{PortFacts, apart_doubt, end_report};
use std::ops::Range;
use std::sync::Arc;

use datapath::{Phase, Shared, SteppedThread, SteppedThreads, WindowEdges, WorkerReport};
use metrics::latency::{Clock, Digits, Recorder, VirtualTime};
use metrics::timeline::MOST_COUNTS;
use metrics::{QpTimeline, Timeline};
use node::needs::effective_workers;
use node::run::{FlowEnd, Sampled};
use node::threads::NodeThreads;
use null_verbs::loopback::{self, Served, ServiceTimes, Serving};
use plan::{Case, Flow, Side};
use protocol::endpoints::Endpoints;
use protocol::handshake::ClockOffset;
use protocol::node_report::EndReport;
use results::model::DoubtKind;
use settings::{Settings, TimeSpan};

use crate::loopback_node::{Choices, Pair, Rest, Steer, WorkerError, port};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// A thread that waits for a planned time wakes so long before it (`WAKE_EARLY_NS` of the data path).
const WAKE_EARLY_NS: u64 = 100_000;

/// Passes at one instant after which nothing can be left to do.
const MOST_PASSES: u32 = 100_000;

/// A worker that looks at its CQs less often than so many times in a window, or than so, takes itself for one that was away.
const LOOKS_A_WINDOW: u64 = 400;
const AWAY_NS: u64 = 500 * US;

/// The longest time between two looks of a worker that is there, in a window of this length.
pub fn longest_pass_ns(window_ns: u64) -> u64 {
    (window_ns / LOOKS_A_WINDOW).clamp(1, AWAY_NS)
}

/// Time from the word of a window to its start.
pub const LEAD_NS: u64 = 5 * MS;

pub struct SetUp {
    pub case: Case,
    /// The server's, which is another where no session would allow it.
    pub server_case: Option<Case>,
    /// Changes what the client is told of the server.
    pub tamper: fn(&mut Endpoints),
    /// Of the order of passes and of the device's random numbers.
    pub seed: u64,
    pub serving: Serving,
    /// Time between two passes of a thread; `None`: passes come at the events alone, as if threads polled infinitely fast.
    pub pass_ns: Option<u64>,
}

impl SetUp {
    /// A bench whose threads see each event when it happens.
    pub fn new(case: Case, seed: u64, serving: Serving) -> SetUp {
        SetUp { case, server_case: None, tamper: |_| {}, seed, serving, pass_ns: None }
    }

    /// A bench whose WRs take times by chance beside each other, which may be short or long.
    pub fn delayed(case: Case, seed: u64) -> SetUp {
        let most_ns = [1, 5 * US, 100 * US][seed as usize % 3];
        SetUp::new(case, seed, Serving::Delays { most_ns })
    }

    /// A run of `messages` on each QP, or until a worker fails after what `before` does; that is ended as a session does it.
    pub fn failing(&self, messages: u64, before: impl FnOnce(&mut Bench<'_>)) -> Rest {
        self.run(|bench: &mut Bench<'_>| {
            before(bench);
            bench.run_counted(messages, None).unwrap_err();
            bench.set_phase(Phase::Abort);
        })
        .1
        .rest
    }

    /// Runs `body` on it, and ends the workers.
    pub fn run<T>(&self, body: impl FnOnce(&mut Bench<'_>) -> T) -> (T, Over) {
        let (clock, time) = Clock::of_virtual_time();
        let (pair, nodes) = self.connected(&clock);
        self.run_on(pair, &nodes, (clock, time), body)
    }

    /// Runs `body` so many times on the same QPs, each time with new workers.
    pub fn run_again(&self, times: u32, body: impl Fn(&mut Bench<'_>), judge: impl Fn(&Rest)) {
        let (clock, time) = Clock::of_virtual_time();
        let (mut pair, nodes) = self.connected(&clock);
        for _ in 0..times {
            let ((), over) = self.run_on(pair, &nodes, (clock.clone(), time.clone()), |bench| {
                body(bench);
                bench.set_phase(Phase::Refill);
            });
            over.rest.assert_clean();
            judge(&over.rest);
            pair = over.rest.again(&clock);
        }
    }

    fn connected(&self, clock: &Clock) -> (Pair, [NodeThreads; 2]) {
        let device_clock = clock.clone();
        loopback::own_device(move || device_clock.raw());
        loopback::set_seed(self.seed);
        loopback::serve(self.serving.clone());
        let case = &self.case;
        let node = || NodeThreads::new(effective_workers(case), case.poll);
        let (mut client, mut server) = (node(), node());
        let ends = [&mut client, &mut server];
        let cases = [case, self.server_case.as_ref().unwrap_or(case)];
        let pair = Pair::connected(&port(), clock, cases, ends, self.tamper);
        (pair, [client, server])
    }

    fn run_on<T>(
        &self,
        pair: Pair,
        [client, server]: &[NodeThreads; 2],
        (clock, time): (Clock, VirtualTime),
        body: impl FnOnce(&mut Bench<'_>) -> T,
    ) -> (T, Over) {
        let stepped = [(&pair.client, client), (&pair.server, server)].map(|(end, threads)| {
            let of_workers = vec![end.objects.worker_specs()];
            let of_threads = threads.specs(&[], of_workers).unwrap();
            // An end that only offers memory has no workers.
            let specs = if end.objects.workers() > 0 { of_threads } else { Vec::new() };
            SteppedThreads::new(&[Arc::clone(&end.shared)], specs)
        });
        let threads = |end: usize| {
            stepped[end].threads().map(move |thread| Stepped {
                is_client: end == 0,
                thread,
                away_until_ns: 0,
            })
        };
        let mut bench = Bench {
            pair: &pair,
            threads: threads(0).chain(threads(1)).collect(),
            time,
            order: Choices(self.seed),
            pass_ns: self.pass_ns,
            longest_ns: u64::MAX,
            events: Vec::new(),
            sampled: None,
        };
        let outcome = body(&mut bench);
        let (reports, sampled) = bench.finish();
        drop(stepped);
        let rest = pair.into_rest(reports);
        let over = Over { rest, served: loopback::take_served(), sampled, clock };
        (outcome, over)
    }
}

/// Runs `messages` on each QP of a case, after a warm-up of so many messages in all: nothing went wrong, and payloads are
/// right where they are verified.
pub fn whole(case: &Case, seed: u64, messages: u64, warm_up: Option<u64>) -> Rest {
    let (outcome, Over { rest, .. }) = SetUp::delayed(case.clone(), seed)
        .run(|bench: &mut Bench<'_>| bench.run_counted(messages, warm_up));
    rest.assert_clean();
    outcome.unwrap();
    if case.verify {
        assert_eq!(rest.verified(), None, "{case:?}");
    }
    rest
}

/// A thread of one of the two nodes.
struct Stepped<'s> {
    is_client: bool,
    thread: SteppedThread<'s>,
    away_until_ns: u64,
}

pub struct Bench<'s> {
    pub pair: &'s Pair,
    /// The client's, then the server's.
    threads: Vec<Stepped<'s>>,
    pub time: VirtualTime,
    order: Choices,
    pass_ns: Option<u64>,
    /// The longest time without a pass.
    longest_ns: u64,
    /// Instants at which something happens besides, ascending.
    events: Vec<(u64, Event)>,
    /// Samples of the client's window.
    sampled: Option<Sampled>,
}

/// What happens at an instant.
#[derive(Clone, Copy)]
enum Event {
    /// A thread is away until then.
    Leaves(usize, u64),
    Passes,
    /// A sample of the client's window is taken, and the next so much later.
    Sample(u64),
}

impl Bench<'_> {
    /// Ends the workers: the client's reports and the server's, and the samples.
    fn finish(mut self) -> ([Vec<WorkerReport>; 2], Option<Sampled>) {
        self.set_phase(Phase::Exit);
        let mut reports = [Vec::new(), Vec::new()];
        for stepped in self.threads {
            let of_flows = stepped.thread.into_reports().into_iter();
            let of_end = &mut reports[usize::from(!stepped.is_client)];
            of_end.extend(of_flows.map(|(_, report)| report));
        }
        (reports, self.sampled)
    }

    pub fn now_ns(&self) -> u64 {
        self.time.now_ns()
    }

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Thread `thread`, of which the client has the first, makes no pass from an instant on, for so long.
    pub fn away(&mut self, thread: usize, from_ns: u64, length_ns: u64) {
        self.plan(from_ns, Event::Leaves(thread, from_ns + length_ns));
        self.plan(from_ns + length_ns, Event::Passes);
    }

    /// Takes samples of the client's window at this interval, as the thread does that steers a run.
    pub fn sample_every(&mut self, interval_ns: u64) {
        let case = &self.pair.case;
        self.sampled = Some(Sampled {
            flow: Timeline::default(),
            qps: QpTimeline::new(case.qps as usize, MOST_COUNTS, None),
        });
        self.plan(self.now_ns() + interval_ns, Event::Sample(interval_ns));
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        let place = self.events.partition_point(|(planned_ns, _)| *planned_ns <= at_ns);
        self.events.insert(place, (at_ns, event));
    }

    /// Tells both ends' workers what to do, the receiving end first, and lets them enter it.
    pub fn set_phase(&mut self, phase: Phase) {
        if !matches!(phase, Phase::Measure | Phase::Drain) {
            self.longest_ns = u64::MAX;
        }
        self.pair.set_phase(phase);
        self.passes();
    }

    /// One pass of each thread that is there, in an order by the seed.
    fn pass(&mut self) -> bool {
        let now_ns = self.now_ns();
        let count = self.threads.len();
        let first = self.order.upto(count as u64) as usize;
        let mut found = false;
        for index in (0..count).map(|index| (first + index) % count) {
            let stepped = &mut self.threads[index];
            if stepped.away_until_ns <= now_ns {
                found |= stepped.thread.pass();
            }
        }
        found
    }

    /// Passes at this instant until there is nothing left to do at it.
    fn passes(&mut self) {
        if self.pass_ns.is_some() {
            self.pass();
            return;
        }
        for _ in 0..MOST_PASSES {
            let device = || (loopback::next_due_ns(), loopback::served_count());
            let before = device();
            let found = self.pass();
            let now_ns = self.now_ns();
            let is_due = self.threads.iter().any(|stepped| {
                let edge_ns = stepped.thread.edge_raw();
                stepped.away_until_ns <= now_ns
                    && edge_ns
                        .is_some_and(|edge_ns| edge_ns > 0 && edge_ns + WAKE_EARLY_NS <= now_ns)
            });
            // Where nobody looks, the device does nothing.
            let has_done = device() != before;
            if !found && !is_due && !has_done {
                return;
            }
        }
        panic!("no end of passes at {}", self.now_ns());
    }

    /// The next instant at which something happens, `until_ns` at the latest.
    fn next_ns(&self, until_ns: u64) -> u64 {
        let now_ns = self.now_ns();
        if let Some(pass_ns) = self.pass_ns {
            return (now_ns + pass_ns).min(until_ns);
        }
        let edges = self
            .threads
            .iter()
            .filter_map(|it| it.thread.edge_raw())
            .flat_map(|edge_ns| [edge_ns, edge_ns.saturating_add(WAKE_EARLY_NS)]);
        let planned = self.events.first().map(|(at_ns, _)| *at_ns);
        let next_ns = edges
            .chain(loopback::next_due_ns())
            .chain(planned)
            .filter(|at_ns| *at_ns > now_ns)
            .min();
        let latest_ns = until_ns.min(now_ns.saturating_add(self.longest_ns));
        next_ns.unwrap_or(latest_ns).min(latest_ns)
    }

    /// Lets time pass until an instant, with all that happens until then.
    pub fn run_until_ns(&mut self, until_ns: u64) {
        while self.now_ns() < until_ns {
            self.step(until_ns);
        }
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, ns: u64) {
        self.run_until_ns(self.now_ns() + ns);
    }

    /// Lets time pass until `done`. Panics if that takes longer than `limit_ns` of virtual time.
    pub fn run_until(&mut self, what: &str, limit_ns: u64, mut done: impl FnMut(&Self) -> bool) {
        let until_ns = self.now_ns() + limit_ns;
        while !done(self) {
            assert!(self.now_ns() < until_ns, "no {what}: {}", self.pair.describe());
            self.step(until_ns);
        }
    }

    fn step(&mut self, until_ns: u64) {
        let (now_ns, next_ns) = (self.now_ns(), self.next_ns(until_ns));
        self.time.advance(next_ns - now_ns);
        while let Some(&(at_ns, event)) = self.events.first()
            && at_ns <= next_ns
        {
            self.events.remove(0);
            match event {
                Event::Leaves(thread, back_ns) => self.threads[thread].away_until_ns = back_ns,
                Event::Passes => {}
                Event::Sample(interval_ns) => {
                    // Before the passes of this instant, as a sample of another thread may come.
                    let shared = &self.pair.client.shared;
                    let window = shared.window();
                    if let (1.., Some(sampled)) = (window.elapsed_ns, &mut self.sampled) {
                        sampled.flow.push(window.elapsed_ns, window.completed);
                        if let Some(qps) = &mut sampled.qps {
                            qps.push(window.elapsed_ns, |of_qps| shared.read_completed(of_qps));
                        }
                    }
                    self.plan(at_ns + interval_ns, event);
                }
            }
        }
        self.passes();
    }

    /// Warms up for so long, sets a window of `window_ns` and returns its edges: time has not reached its start.
    pub fn open_window(&mut self, warm_up_ns: u64, window_ns: u64) -> WindowEdges {
        self.set_phase(Phase::Warmup);
        self.run_for(warm_up_ns);
        let opens_raw = self.now_ns() + LEAD_NS;
        self.longest_ns = longest_pass_ns(window_ns);
        let edges = WindowEdges { opens_raw, closes_raw: opens_raw + window_ns };
        for end in [&self.pair.client, &self.pair.server] {
            end.shared.set_edges(edges);
        }
        self.set_phase(Phase::Measure);
        edges
    }

    /// Runs until the windows of both ends are closed and the queues empty.
    pub fn close_window(&mut self) {
        self.run_until("end of the window", 3_600 * SECOND, |bench| {
            bench.pair.client.shared.window().is_closed
        });
        self.come_to_rest().unwrap();
    }

    pub fn measure(&mut self, warm_up_ns: u64, window_ns: u64) -> WindowEdges {
        let edges = self.open_window(warm_up_ns, window_ns);
        self.close_window();
        edges
    }
}

impl Steer for Bench<'_> {
    fn pair(&self) -> &Pair {
        self.pair
    }

    fn set_phase(&mut self, phase: Phase) {
        Bench::set_phase(self, phase);
    }

    fn wait(&mut self, what: &str, mut done: impl FnMut(&Pair) -> bool) -> Result<(), WorkerError> {
        let mut failed = false;
        self.run_until(what, 3_600 * SECOND, |bench| {
            let is_done = done(bench.pair);
            failed = bench.pair.has_failed();
            is_done || failed
        });
        if failed { Err(WorkerError) } else { Ok(()) }
    }
}

/// What is left of a run on the bench.
pub struct Over {
    pub rest: Rest,
    /// What the device did, in its order.
    pub served: Vec<Served>,
    sampled: Option<Sampled>,
    clock: Clock,
}

impl Over {
    /// What the client's node reports.
    pub fn report(self) -> EndReport {
        self.doubted().0
    }

    /// The same, and what is doubted of the flow by both nodes and of both together.
    pub fn doubted(self) -> (EndReport, Vec<DoubtKind>) {
        let Rest { client, server, .. } = self.rest;
        let report = |(objects, shared, reports): (_, Arc<Shared>, _), side, sampled| {
            let flow = Flow::forward(shared.flow().clone());
            let end =
                FlowEnd { number: 0, flow, side, shared, objects, reports, unconnected: None };
            let ports = [PortFacts::new(end.objects.port())];
            end_report(&end, sampled, &ports, &self.clock)
        };
        let sampled =
            self.sampled.unwrap_or_else(|| Sampled { flow: Timeline::default(), qps: None });
        let ends =
            [report(client, Side::Initiator, Some(sampled)), report(server, Side::Target, None)];
        let same_clock = ClockOffset { offset_ns: 0, uncertainty_ns: 0 };
        let apart = apart_doubt(&ends.each_ref().map(|end| (end, same_clock)), false);
        let doubts = ends.iter().flat_map(|end| &end.doubts).chain(&apart);
        let kinds = doubts.map(|doubt| doubt.kind).collect();
        let [of_client, _] = ends;
        (of_client, kinds)
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

/// Servers that take these times in turn.
pub fn list(times_ns: Vec<u64>, is_of_qp: bool) -> Serving {
    servers(ServiceTimes::List(times_ns), is_of_qp)
}

/// A recorder as the workers', with these samples.
pub fn recorder_of(latencies_ns: &[u64]) -> Recorder {
    let mut recorder = Recorder::new(Digits::Two);
    latencies_ns.iter().for_each(|&ns| recorder.record(ns));
    recorder
}

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
