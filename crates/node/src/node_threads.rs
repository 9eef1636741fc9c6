//! The worker threads of a node before they start: which thread serves which part of which flow, and the completion
//! channels on which they sleep. `datapath::worker_thread::sleeping` says which CQs may be on one channel.

use std::sync::Arc;

use datapath::{Sleep, ThreadSpec, WorkerSpec};
use settings::PollMode;
use verbs::{CompletionChannel, Context, Sleeper, VerbsError, Wakeup};

/// The worker threads of a node, for all of its flows.
pub struct NodeThreads {
    count: usize,
    poll: PollMode,
    /// Threads that serve some of the flows: those over a rail, or those of a set.
    groups: Vec<Group>,
    /// The group of the next flow.
    group: usize,
    channels: Vec<Channel>,
}

/// Threads that serve some of the flows.
struct Group {
    threads: Vec<usize>,
    /// The place of the one that serves the first worker of the next flow.
    next: usize,
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
        NodeThreads::in_groups(count, poll, [(0..count).collect()])
    }

    /// The same, of which each flow is served by a group.
    pub(crate) fn in_groups(
        count: usize,
        poll: PollMode,
        groups: impl IntoIterator<Item = Vec<usize>>,
    ) -> Self {
        NodeThreads {
            count,
            poll,
            groups: groups.into_iter().map(|threads| Group { threads, next: 0 }).collect(),
            group: 0,
            channels: Vec::new(),
        }
    }

    /// This group serves the next flow; how many threads it has.
    pub(crate) fn take_group(&mut self, group: usize) -> usize {
        self.group = group;
        self.groups.get(group).map_or(0, |it| it.threads.len())
    }

    /// The threads that serve the next flow, ascending, one for each of its workers. Flows with fewer workers than there
    /// are threads take turns.
    pub(crate) fn threads_for(&mut self, workers: usize) -> Vec<usize> {
        let Some(Group { threads, next }) = self.groups.get_mut(self.group) else {
            return Vec::new();
        };
        let count = workers.min(threads.len());
        let mut taken: Vec<usize> = threads
            .iter()
            .cycle()
            .skip(*next % threads.len().max(1))
            .take(count)
            .copied()
            .collect();
        *next += count;
        taken.sort_unstable();
        taken
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
        if let Some(known) = self
            .channels
            .iter()
            .find(|it| Arc::ptr_eq(&it.context, context) && it.threads == threads)
        {
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
        let channels = self
            .channels
            .iter()
            .filter(|it| it.threads.contains(&thread))
            .map(|it| Arc::clone(&it.channel))
            .collect();
        Ok(Some(Sleep {
            sleeper: Sleeper::new(channels, Arc::new(Wakeup::new()?)),
            adaptive: self.poll == PollMode::Adaptive,
        }))
    }
}
