//! The worker threads of a node before they start: which thread serves which part of which flow, and the completion
//! channels on which they sleep. `datapath::worker_thread::sleeping` says which CQs may be on one channel.

use std::ops::Range;
use std::sync::Arc;

use datapath::{Sleep, ThreadSpec, WorkerSpec};
use settings::PollMode;
use verbs::{CompletionChannel, Context, Sleeper, VerbsError, Wakeup};

/// The worker threads of a node, for all of its flows.
pub struct NodeThreads {
    count: usize,
    poll: PollMode,
    /// Threads that serve the flow that is made now, and others of its set.
    set: Range<usize>,
    /// In the set, the thread that serves the first worker of the next flow.
    next: usize,
    channels: Vec<Channel>,
}

/// A channel of the CQs of one device that exactly `threads` poll.
struct Channel {
    context: Arc<Context>,
    threads: Vec<usize>,
    channel: Arc<CompletionChannel>,
}

impl NodeThreads {
    /// `count` threads that poll as `poll`.
    pub fn new(count: usize, poll: PollMode) -> Self {
        NodeThreads {
            count,
            poll,
            set: 0..count,
            next: 0,
            channels: Vec::new(),
        }
    }

    /// From now on flows are served by these threads alone.
    pub(crate) fn take_set(&mut self, set: Range<usize>) {
        if self.set != set {
            (self.set, self.next) = (set, 0);
        }
    }

    /// The threads that serve the next flow, ascending, one for each of its workers. Flows with fewer workers than there
    /// are threads take turns.
    pub(crate) fn threads_for(&mut self, workers: usize) -> Vec<usize> {
        let workers = workers.min(self.set.len());
        let mut threads: Vec<usize> = (self.next..self.next + workers)
            .map(|thread| self.set.start + thread % self.set.len())
            .collect();
        self.next += workers;
        threads.sort_unstable();
        threads
    }

    /// The channel for a CQ that `threads` poll; `None` if they do not sleep.
    pub(crate) fn channel(
        &mut self,
        context: &Arc<Context>,
        threads: &[usize],
    ) -> Result<Option<Arc<CompletionChannel>>, VerbsError> {
        if self.poll == PollMode::Busy || threads.is_empty() {
            return Ok(None);
        }
        let fits = |it: &&Channel| Arc::ptr_eq(&it.context, context) && it.threads == threads;
        if let Some(known) = self.channels.iter().find(fits) {
            return Ok(Some(Arc::clone(&known.channel)));
        }
        let channel = CompletionChannel::new(context)?;
        self.channels.push(Channel {
            context: Arc::clone(context),
            threads: threads.to_vec(),
            channel: Arc::clone(&channel),
        });
        Ok(Some(channel))
    }

    /// What each thread does: of each flow the parts of its workers, with the threads that serve them. Thread `index` is
    /// pinned to `cores[index]`, if there is such a core.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn specs(
        &self,
        cores: &[Option<usize>],
        flows: Vec<Vec<(usize, WorkerSpec)>>,
    ) -> Result<Vec<ThreadSpec>, VerbsError> {
        let mut specs = (0..self.count)
            .map(|index| {
                Ok(ThreadSpec {
                    core: cores.get(index).copied().flatten(),
                    sleep: self.sleep(index)?,
                    flows: flows.iter().map(|_| None).collect(),
                })
            })
            .collect::<Result<Vec<_>, VerbsError>>()?;
        for (flow, workers) in flows.into_iter().enumerate() {
            for (thread, worker) in workers {
                specs[thread].flows[flow] = Some(worker);
            }
        }
        Ok(specs)
    }

    fn sleep(&self, thread: usize) -> Result<Option<Sleep>, VerbsError> {
        if self.poll == PollMode::Busy {
            return Ok(None);
        }
        let channels = self.channels.iter();
        let channels = channels.filter(|it| it.threads.contains(&thread));
        let channels = channels.map(|it| Arc::clone(&it.channel)).collect();
        Ok(Some(Sleep {
            sleeper: Sleeper::new(channels, Arc::new(Wakeup::new()?)),
            adaptive: self.poll == PollMode::Adaptive,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_set_take_turns_and_those_of_another_have_other_threads() {
        let mut threads = NodeThreads::new(4, PollMode::Busy);
        threads.take_set(0..3);
        assert_eq!(threads.threads_for(2), [0, 1]);
        threads.take_set(0..3);
        assert_eq!(threads.threads_for(2), [0, 2]);
        threads.take_set(3..4);
        assert_eq!([threads.threads_for(1), threads.threads_for(9)], [[3]; 2]);
        threads.take_set(4..4);
        assert!(threads.threads_for(1).is_empty());
    }
}
