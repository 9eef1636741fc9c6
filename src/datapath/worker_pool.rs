//! The threads of the workers: pins them, waits until they are ready, and collects their reports.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam::channel::{Sender, bounded};

use crate::machine::cpu;

use super::report::WorkerReport;
use super::shared::{Phase, Shared};
use super::worker::{Worker, WorkerSpec};

/// The time limit for pinning all workers and allocating their histograms.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The worker threads of one end of a run.
pub struct WorkerPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<WorkerReport>>,
}

/// A worker could not be started or did not return.
#[derive(Debug, thiserror::Error)]
pub enum WorkerPoolError {
    /// The kernel could not create a thread.
    #[error("cannot start worker thread {index}: {source}")]
    Spawn {
        /// Worker number.
        index: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] cpu::CoreError),
    /// A worker was not ready in time, or died.
    #[error("worker thread {index} ended unexpectedly: this is a fault of rocebench")]
    Lost {
        /// Worker number.
        index: usize,
    },
}

impl WorkerPool {
    /// Starts a thread for each spec and waits until all are pinned and ready.
    ///
    /// # Errors
    /// A thread cannot be created, or a core cannot be used.
    pub fn start(
        shared: &Arc<Shared>,
        specs: Vec<WorkerSpec>,
    ) -> Result<WorkerPool, WorkerPoolError> {
        let (ready, all_ready) = bounded(specs.len());
        let mut pool = WorkerPool {
            shared: Arc::clone(shared),
            threads: Vec::with_capacity(specs.len()),
        };
        let count = specs.len();
        let wakeups = specs.iter().filter_map(|spec| spec.sleep.as_ref());
        shared.set_wakeups(wakeups.map(|sleep| Arc::clone(&sleep.wakeup)).collect());
        for spec in specs {
            let index = spec.index;
            let (shared, ready) = (Arc::clone(shared), ready.clone());
            let thread = Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || work(&shared, &spec, &ready))
                .map_err(|source| WorkerPoolError::Spawn { index, source })?;
            pool.threads.push(thread);
        }
        drop(ready);
        for index in 0..count {
            all_ready
                .recv_timeout(START_LIMIT)
                .map_err(|_| WorkerPoolError::Lost { index })??;
        }
        Ok(pool)
    }

    /// Tells all workers to exit, and collects their reports.
    ///
    /// # Errors
    /// A worker panicked.
    pub fn finish(mut self) -> Result<Vec<WorkerReport>, WorkerPoolError> {
        self.shared.set_phase(Phase::Exit);
        std::mem::take(&mut self.threads)
            .into_iter()
            .enumerate()
            .map(|(index, thread)| thread.join().map_err(|_| WorkerPoolError::Lost { index }))
            .collect()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.set_phase(Phase::Exit);
        for thread in self.threads.drain(..) {
            // The thread has already printed the panic.
            let _ = thread.join();
        }
    }
}

fn work(
    shared: &Shared,
    spec: &WorkerSpec,
    ready: &Sender<Result<(), cpu::CoreError>>,
) -> WorkerReport {
    let case = shared.case();
    match (case.verify, !case.no_latency, shared.contended()) {
        (false, false, false) => begin::<false, false, false>(shared, spec, ready),
        (false, false, true) => begin::<false, false, true>(shared, spec, ready),
        (false, true, false) => begin::<false, true, false>(shared, spec, ready),
        (false, true, true) => begin::<false, true, true>(shared, spec, ready),
        (true, false, false) => begin::<true, false, false>(shared, spec, ready),
        (true, false, true) => begin::<true, false, true>(shared, spec, ready),
        (true, true, false) => begin::<true, true, false>(shared, spec, ready),
        (true, true, true) => begin::<true, true, true>(shared, spec, ready),
    }
}

fn begin<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool>(
    shared: &Shared,
    spec: &WorkerSpec,
    ready: &Sender<Result<(), cpu::CoreError>>,
) -> WorkerReport {
    // Separate loops: a worker that polls has no code for sleeping.
    if spec.sleep.is_some() {
        enter::<VERIFY, LATENCY, CONTENDED, true>(shared, spec, ready)
    } else {
        enter::<VERIFY, LATENCY, CONTENDED, false>(shared, spec, ready)
    }
}

fn enter<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const SLEEPS: bool>(
    shared: &Shared,
    spec: &WorkerSpec,
    ready: &Sender<Result<(), cpu::CoreError>>,
) -> WorkerReport {
    // Pins the thread first, so that its memory is on the core's NUMA node.
    let pinned = spec.core.map_or(Ok(()), cpu::pin_current_thread);
    let worker = Worker::<VERIFY, LATENCY, CONTENDED, SLEEPS>::new(shared, spec);
    // If the receiver gave up, the phase is already Exit.
    let _ = ready.send(pinned);
    worker.run()
}
