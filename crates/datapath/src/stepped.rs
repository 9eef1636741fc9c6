//! The worker threads of a node without threads: whoever owns them calls each pass. So a test decides in which order they
//! run, and at which times. They never sleep.

use std::sync::Arc;

use verbs::WcBatch;

use super::report::WorkerReport;
use super::shared::Shared;
use super::worker::{FlowService, Pass, ThreadSpec};
use super::worker_pool::parts;
use super::worker_thread::{Part, boxed};

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
