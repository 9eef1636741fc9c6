//! The worker threads of a node: starts them, waits until they are ready, and collects their workers' reports.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::bounded;
use machine::threads::ThreadError;
use machine::{cpu, threads};
use verbs::WcBatch;

use super::report::WorkerReport;
use super::shared::{Phase, Shared};
use super::worker::{FlowService, Pass, ThreadSpec, WorkerPlace};
use super::worker_thread::{Part, boxed, work};

/// The time limit for pinning all threads and allocating their workers' histograms.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The worker threads of a node, which serve all of its flows.
pub struct WorkerPool {
    flows: Vec<Arc<Shared>>,
    /// Each returns its workers' reports with the numbers of their flows.
    threads: Vec<JoinHandle<Vec<(usize, WorkerReport)>>>,
}

/// A thread could not be started or did not return.
#[derive(Debug, thiserror::Error)]
pub enum WorkerPoolError {
    /// The kernel could not create a thread.
    #[error(transparent)]
    Spawn(#[from] ThreadError),
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] cpu::CoreError),
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
        let parts = parts(flows, &mut threads);
        for (flow, shared) in flows.iter().enumerate() {
            let sleeps = threads
                .iter()
                .zip(&parts)
                .filter(|(_, parts)| parts.iter().any(|part| part.flow == flow))
                .filter_map(|(thread, _)| thread.sleep.as_ref());
            shared.set_wakeups(sleeps.map(|it| Arc::clone(it.sleeper.wakeup())).collect());
        }
        let (to_pool, ready) = bounded(count);
        let mut pool = WorkerPool { flows: flows.to_vec(), threads: Vec::with_capacity(count) };
        for (index, (spec, parts)) in threads.into_iter().zip(parts).enumerate() {
            let to_pool = to_pool.clone();
            let thread = threads::spawn(format!("worker-{index}"), move || {
                work(&parts, spec.core, spec.sleep, &to_pool)
            })?;
            pool.threads.push(thread);
        }
        drop(to_pool);
        for index in 0..count {
            ready.recv_timeout(START_LIMIT).map_err(|_| WorkerPoolError::Lost { index })??;
        }
        Ok(pool)
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
pub(super) fn parts(flows: &[Arc<Shared>], threads: &mut [ThreadSpec]) -> Vec<Vec<Part>> {
    let mut workers = vec![0; flows.len()];
    threads
        .iter_mut()
        .enumerate()
        .map(|(thread, spec)| {
            let core = spec.core;
            std::mem::take(&mut spec.flows)
                .into_iter()
                .enumerate()
                .filter_map(|(flow, spec)| {
                    let (shared, worker) = (flows.get(flow)?, workers.get_mut(flow)?);
                    let spec = spec?;
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

// The worker threads of a node without threads: whoever owns them calls each pass. So a test decides in which order they
// run, and at which times. They never sleep.

/// What the threads of a node serve.
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
