//! A worker thread: a worker for each flow that it serves, and the loop that gives each its turn. With one flow the loop
//! is an instance for that worker's code; with several there is one dynamic call a pass and flow.

use std::sync::Arc;

use crossbeam_channel::Sender;
use verbs::{VerbsError, WcBatch};

use super::report::WorkerReport;
use super::shared::Shared;
use super::worker::{
    FlowService, Kind, KindVisitor, Pass, Service, Sleep, Worker, WorkerPlace, WorkerSpec,
};
use machine::cpu::{self, CoreError};

mod sleeping;

use sleeping::Sleeping;

/// A thread's part of one flow.
pub(super) struct Part {
    /// The flow's number among those of the node.
    pub(super) flow: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) spec: WorkerSpec,
    pub(super) place: WorkerPlace,
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
pub(super) fn work(
    parts: &[Part],
    core: Option<usize>,
    sleep: Option<Sleep>,
    ready: &Sender<Result<(), CoreError>>,
) -> Vec<(usize, WorkerReport)> {
    // Pins the thread first, so that its memory is on the core's NUMA node.
    let pinned = core.map_or(Ok(()), cpu::pin_current_thread);
    // If the receiver gave up, the phase is already Exit.
    let start = || drop(ready.send(pinned));
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

pub(super) fn boxed(part: &Part) -> Box<dyn FlowService + '_> {
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
