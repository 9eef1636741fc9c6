//! The worker threads of a node: starts them, waits until they are ready, and collects their workers' reports.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use machine::threads::{self, CoreError, ThreadError};
use metrics::Clock;
use verbs::{VerbsError, WcBatch};

use crate::worker::{FlowService, Kind, KindVisitor, Pass, Service, Worker, WorkerPlace};
use crate::{Phase, Shared, Sleep, ThreadSpec, WorkerReport, WorkerSpec};

/// The time limit for pinning all threads and allocating their workers' histograms.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The worker threads of a node, which serve all of its flows.
pub struct WorkerPool {
    flows: Vec<Arc<Shared>>,
    /// Each returns its workers' reports with the numbers of their flows.
    threads: Vec<JoinHandle<Vec<(usize, WorkerReport)>>>,
    /// The kernel's numbers of them.
    numbers: Vec<u32>,
}

/// A thread could not be started or did not return.
#[derive(Debug, thiserror::Error)]
pub enum WorkerPoolError {
    /// The kernel could not create a thread.
    #[error(transparent)]
    Spawn(#[from] ThreadError),
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A thread was not ready in time, or died.
    #[error("worker thread {index} ended unexpectedly: this is a fault of rocebench")]
    Lost { index: usize },
}

impl WorkerPool {
    /// Starts a thread for each spec and waits until all are pinned and ready. Each of `flows` must have been made for
    /// as many workers as there are threads that serve it.
    ///
    /// # Errors
    /// A thread cannot be created, or a core cannot be used.
    pub fn start(
        flows: &[Arc<Shared>],
        mut threads: Vec<ThreadSpec>,
    ) -> Result<WorkerPool, WorkerPoolError> {
        let count = threads.len();
        let served = parts(flows, &mut threads);
        for (flow, shared) in flows.iter().enumerate() {
            let sleeps = threads
                .iter()
                .zip(&served)
                .filter(|(_, parts)| parts.iter().any(|part| part.flow == flow))
                .filter_map(|(thread, _)| thread.sleep.as_ref());
            shared.set_wakeups(sleeps.map(|it| Arc::clone(it.sleeper.wakeup())).collect());
        }
        let (to_pool, ready) = bounded(count);
        let mut pool = WorkerPool {
            flows: flows.to_vec(),
            threads: Vec::with_capacity(count),
            numbers: Vec::with_capacity(count),
        };
        for (index, (spec, parts)) in threads.into_iter().zip(served).enumerate() {
            let ready_sender = to_pool.clone();
            let thread = threads::spawn(format!("worker-{index}"), move || {
                work(&parts, spec.core, spec.sleep, &ready_sender)
            })?;
            pool.threads.push(thread);
        }
        drop(to_pool);
        for index in 0..count {
            let started = ready.recv_timeout(START_LIMIT);
            pool.numbers.push(started.map_err(|_| WorkerPoolError::Lost { index })??);
        }
        Ok(pool)
    }

    /// The kernel's numbers of the threads.
    pub fn thread_numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Tells the workers of all flows to exit, and collects their reports: for each flow those of its workers, in order
    /// of the threads that serve it.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn finish(mut self) -> Result<Vec<Vec<WorkerReport>>, WorkerPoolError> {
        self.exit();
        let mut reports: Vec<Vec<WorkerReport>> = self.flows.iter().map(|_| Vec::new()).collect();
        for (index, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            for (flow, report) in thread.join().map_err(|_| WorkerPoolError::Lost { index })? {
                reports[flow].push(report);
            }
        }
        Ok(reports)
    }

    fn exit(&self) {
        for flow in &self.flows {
            flow.set_phase(Phase::Exit);
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.exit();
        for thread in self.threads.drain(..) {
            // The thread has already printed the panic.
            let _ = thread.join();
        }
    }
}

/// Takes the parts that each thread serves out of its spec, and numbers the workers of each flow.
fn parts(flows: &[Arc<Shared>], threads: &mut [ThreadSpec]) -> Vec<Vec<Part>> {
    let mut workers = vec![0; flows.len()];
    threads
        .iter_mut()
        .enumerate()
        .map(|(thread, thread_spec)| {
            let core = thread_spec.core;
            std::mem::take(&mut thread_spec.flows)
                .into_iter()
                .enumerate()
                .filter_map(|(flow, part)| {
                    let (shared, worker) = (flows.get(flow)?, workers.get_mut(flow)?);
                    let spec = part?;
                    *worker += 1;
                    Some(Part {
                        flow,
                        shared: Arc::clone(shared),
                        spec,
                        place: WorkerPlace { worker: *worker - 1, thread, core },
                    })
                })
                .collect()
        })
        .collect()
}

/// The worker threads of a node without threads: whoever owns them calls each pass. So a test decides in which order they
/// run, and at which times. They never sleep.
pub struct SteppedThreads(Vec<Vec<Part>>);

impl SteppedThreads {
    /// A thread for each spec. Each of `flows` must have been made for as many workers as there are threads that serve
    /// it.
    pub fn new(flows: &[Arc<Shared>], mut threads: Vec<ThreadSpec>) -> Self {
        SteppedThreads(parts(flows, &mut threads))
    }

    /// The threads, each with a worker for each flow that it serves.
    pub fn threads(&self) -> impl Iterator<Item = SteppedThread<'_>> {
        self.0.iter().map(|parts| SteppedThread {
            workers: parts.iter().map(|part| (part.flow, boxed(part))).collect(),
            batch: WcBatch::new(),
        })
    }
}

/// A thread that runs only while it is called.
pub struct SteppedThread<'s> {
    /// Each with the number of its flow.
    workers: Vec<(usize, Box<dyn FlowService + 's>)>,
    batch: WcBatch,
}

impl SteppedThread<'_> {
    /// Gives each worker a pass over its CQs. Returns whether one of them found completions.
    pub fn pass(&mut self) -> bool {
        let mut found = false;
        for (_, worker) in &mut self.workers {
            found |= worker.pass(&mut self.batch) == Pass::Found;
        }
        found
    }

    /// The next instant at which a thread that sleeps would have to be awake, as a raw clock reading.
    pub fn edge_raw(&self) -> Option<u64> {
        self.workers.iter().filter_map(|(_, worker)| worker.edge_raw()).min()
    }

    /// The reports of its workers, each with the number of its flow.
    pub fn into_reports(self) -> Vec<(usize, WorkerReport)> {
        self.workers.into_iter().map(|(flow, worker)| (flow, worker.report())).collect()
    }
}

// A worker thread: a worker for each flow that it serves, and the loop that gives each its turn. With one flow the loop
// is an instance for that worker's code; with several there is one dynamic call a pass and flow.

/// A thread's part of one flow.
struct Part {
    /// The flow's number among those of the node.
    flow: usize,
    shared: Arc<Shared>,
    spec: WorkerSpec,
    place: WorkerPlace,
}

impl Part {
    fn kind(&self) -> Kind {
        Kind::from_shared(&self.shared)
    }

    /// The worker with the const parameters of its kind.
    fn worker<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
        &self,
    ) -> Worker<'_, VERIFY, LATENCY, CONTENDED, FEED> {
        Worker::new(&self.shared, &self.spec, self.place)
    }
}

/// Serves the parts until all of their flows are told to exit; returns a report for each with the flow's number. Tells
/// `ready` when the thread is pinned and has allocated everything.
fn work(
    parts: &[Part],
    core: Option<usize>,
    sleep: Option<Sleep>,
    ready: &Sender<Result<u32, CoreError>>,
) -> Vec<(usize, WorkerReport)> {
    // Pins the thread first, so that its memory is on the core's NUMA node.
    let pinned = core.map_or(Ok(()), threads::pin_current_thread);
    // If the receiver gave up, the phase is already Exit.
    let start = || drop(ready.send(pinned.map(|()| threads::thread_number())));
    // Clocks agree with each other, so that of one flow serves all.
    let clock = parts.first().map(|part| part.shared.clock().clone());
    let sleeping = sleep.zip(clock).map(|(sleep, clock)| Sleeping::new(sleep, clock));
    if let [part] = parts {
        let report = part.kind().visit(ServeAlone { part, start, sleeping });
        return vec![(part.flow, report)];
    }
    let mut several = Several { workers: parts.iter().map(boxed).collect() };
    start();
    serve(&mut several, sleeping);
    let reports = several.workers.into_iter().map(FlowService::report);
    parts.iter().map(|part| part.flow).zip(reports).collect()
}

fn boxed(part: &Part) -> Box<dyn FlowService + '_> {
    part.kind().visit(Boxed(part))
}

/// Makes the worker of a part and serves it until told to exit.
struct ServeAlone<'s, F> {
    part: &'s Part,
    /// Is called once the worker is made.
    start: F,
    sleeping: Option<Sleeping>,
}

impl<F: FnOnce()> KindVisitor for ServeAlone<'_, F> {
    type Out = WorkerReport;

    fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
        self,
    ) -> WorkerReport {
        let mut worker = self.part.worker::<VERIFY, LATENCY, CONTENDED, FEED>();
        (self.start)();
        serve(&mut worker, self.sleeping);
        worker.into_report()
    }
}

/// Makes the worker of a part, to be called dynamically.
struct Boxed<'s>(&'s Part);

impl<'s> KindVisitor for Boxed<'s> {
    type Out = Box<dyn FlowService + 's>;

    fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
        self,
    ) -> Self::Out {
        Box::new(self.0.worker::<VERIFY, LATENCY, CONTENDED, FEED>())
    }
}

/// Runs until told to exit.
fn serve(service: &mut impl Service, sleeping: Option<Sleeping>) {
    let mut batch = WcBatch::new();
    // Separate loops: a thread that polls has no code for sleeping.
    let Some(mut sleeping) = sleeping else {
        while service.pass(&mut batch) != Pass::Exit {}
        return;
    };
    loop {
        match service.pass(&mut batch) {
            Pass::Exit => return,
            Pass::Found => sleeping.stay_awake(),
            Pass::Empty => sleeping.rest(service),
        }
    }
}

/// The workers of a thread that serves several flows, or none.
struct Several<'s> {
    workers: Vec<Box<dyn FlowService + 's>>,
}

impl Service for Several<'_> {
    fn pass(&mut self, batch: &mut WcBatch) -> Pass {
        let mut most = Pass::Exit;
        for worker in &mut self.workers {
            most = most.max(worker.pass(batch));
        }
        most
    }

    fn arm(&mut self) -> bool {
        let mut again = false;
        for worker in &mut self.workers {
            again |= worker.arm();
        }
        again
    }

    fn woken(&mut self) {
        for worker in &mut self.workers {
            worker.woken();
        }
    }

    fn is_catching_up(&self) -> bool {
        self.workers.iter().any(|worker| worker.is_catching_up())
    }

    fn edge_raw(&self) -> Option<u64> {
        self.workers.iter().filter_map(|worker| worker.edge_raw()).min()
    }

    /// Fails the first flow alone, which is enough to end the run.
    fn sleep_refused(&mut self, error: VerbsError) {
        if let Some(worker) = self.workers.first_mut() {
            worker.sleep_refused(error);
        }
    }
}

/// How long an adaptive thread polls in vain before it sleeps: about the latency that a sleep adds to a completion
/// (50 µs on the embedded device, less with an adapter's interrupt). Waiting as long as a sleep costs never takes
/// more than twice the time of the better choice.
const SPIN_NS: u64 = 50_000;

/// Sleeping after empty passes, for threads that do not poll for ever: a thread sleeps until a completion of any CQ of
/// any of its flows, the next edge of any of their windows, or the next phase of any of them.
///
/// Which channels it sleeps on: the CQs that are polled by exactly the same threads of a node (and are of one device)
/// are on one channel, and a thread sleeps on all channels that have CQs of its own. So a thread has one channel for
/// all the CQs that it alone polls, and one for those that it shares with the same other threads. A channel must have no
/// CQ that one of its threads does not poll: any of them may take the event of any CQ, and a thread that took one of a CQ
/// that it does not poll would leave the completion unseen and the CQ unarmed. Where several threads poll a CQ, who takes
/// its event arms it again at once (`Service::woken`), so that another thread is woken for what comes meanwhile.
struct Sleeping {
    sleep: Sleep,
    clock: Clock,
    /// Since when its passes have been empty.
    empty_since_raw: Option<u64>,
}

impl Sleeping {
    fn new(sleep: Sleep, clock: Clock) -> Self {
        Sleeping { sleep, clock, empty_since_raw: None }
    }

    /// Called after a pass that found completions.
    #[inline]
    fn stay_awake(&mut self) {
        self.empty_since_raw = None;
    }

    /// Called after a pass that found nothing.
    fn rest(&mut self, service: &mut impl Service) {
        // The next pass opens a window.
        if service.is_catching_up() {
            return;
        }
        if self.sleep.adaptive {
            let now_raw = self.clock.raw();
            let since_raw = *self.empty_since_raw.get_or_insert(now_raw);
            if self.clock.ns_between(since_raw, now_raw) < SPIN_NS {
                std::hint::spin_loop();
                return;
            }
        }
        if let Err(error) = self.sleep(service) {
            service.sleep_refused(error);
        }
    }

    /// See [`verbs::Sleeper::wait`] for why no completion is missed.
    fn sleep(&mut self, service: &mut impl Service) -> Result<(), VerbsError> {
        if service.arm() {
            return Ok(());
        }
        // Wakes at an edge of a window, as for a completion.
        let until_edge = service.edge_raw().map(|edge_raw| {
            Duration::from_nanos(self.clock.ns_between(self.clock.raw(), edge_raw))
        });
        self.sleep.sleeper.wait(until_edge)?;
        service.woken();
        Ok(())
    }
}
