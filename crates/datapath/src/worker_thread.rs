//! A worker thread: a worker for each flow that it serves, and the loop that gives each its turn. With one flow the loop
//! is an instance for that worker's code; with several there is one dynamic call a pass and flow.

use std::sync::Arc;

use crossbeam_channel::Sender;
use settings::Spread;
use verbs::{VerbsError, WcBatch};

use super::layout::looks_at_values;
use super::report::WorkerReport;
use super::shared::Shared;
use super::worker::{FlowService, Pass, Service, Sleep, Worker, WorkerPlace, WorkerSpec, feed};
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

/// Makes the worker of a part, of the type that its flow needs, and calls it `$worker` in `$body`.
macro_rules! with_worker {
    ($part:expr, $worker:ident => $body:expr) => {{
        let part: &Part = $part;
        macro_rules! instance {
            ($verify:literal, $latency:literal, $contended:literal, $feed:ident) => {{
                #[allow(unused_mut)]
                let mut $worker = Worker::<$verify, $latency, $contended, { feed::$feed }>::new(
                    &part.shared,
                    &part.spec,
                    part.place,
                );
                $body
            }};
        }
        let flow = part.shared.flow();
        let feed = match (flow.is_closed_loop(), flow.spread) {
            (false, _) if part.shared.sends() => feed::PLANNED,
            (_, Spread::Own) => feed::OWN,
            _ => feed::SOURCE,
        };
        let key = (
            looks_at_values(flow),
            !flow.no_latency,
            part.shared.contended(),
            feed,
        );
        match key {
            (false, _, false, feed::PLANNED) => instance!(false, true, false, PLANNED),
            (false, _, true, feed::PLANNED) => instance!(false, true, true, PLANNED),
            (true, _, false, feed::PLANNED) => instance!(true, true, false, PLANNED),
            (true, _, true, feed::PLANNED) => instance!(true, true, true, PLANNED),
            (false, false, false, feed::SOURCE) => instance!(false, false, false, SOURCE),
            (false, true, false, feed::SOURCE) => instance!(false, true, false, SOURCE),
            (true, false, false, feed::SOURCE) => instance!(true, false, false, SOURCE),
            (true, true, false, feed::SOURCE) => instance!(true, true, false, SOURCE),
            // Workers that share a CQ are no sources.
            (false, false, true, _) => instance!(false, false, true, OWN),
            (false, true, true, _) => instance!(false, true, true, OWN),
            (true, false, true, _) => instance!(true, false, true, OWN),
            (true, true, true, _) => instance!(true, true, true, OWN),
            (false, false, false, _) => instance!(false, false, false, OWN),
            (false, true, false, _) => instance!(false, true, false, OWN),
            (true, false, false, _) => instance!(true, false, false, OWN),
            (true, true, false, _) => instance!(true, true, false, OWN),
        }
    }};
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
    let sleeping = sleep
        .zip(clock)
        .map(|(sleep, clock)| Sleeping::new(sleep, clock));
    if let [part] = parts {
        return with_worker!(part, worker => {
            start();
            serve(&mut worker, sleeping);
            vec![(part.flow, worker.into_report())]
        });
    }
    let mut several = Several {
        workers: parts.iter().map(boxed).collect(),
    };
    start();
    serve(&mut several, sleeping);
    let reports = several.workers.into_iter().map(|worker| worker.report());
    parts.iter().map(|part| part.flow).zip(reports).collect()
}

/// The worker of a part.
pub(super) fn boxed(part: &Part) -> Box<dyn FlowService + '_> {
    with_worker!(part, worker => Box::new(worker))
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
        let mut all = Pass::Exit;
        for worker in &mut self.workers {
            all = all.max(worker.pass(batch));
        }
        all
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
        let edges = self.workers.iter().filter_map(|worker| worker.edge_raw());
        edges.min()
    }

    /// Fails the first flow alone, which is enough to end the run.
    fn sleep_refused(&mut self, error: VerbsError) {
        if let Some(worker) = self.workers.first_mut() {
            worker.sleep_refused(error);
        }
    }
}
