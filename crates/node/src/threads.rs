//! The worker threads of a node before they start: which thread serves which part of which flow, the completion channels on
//! which they sleep (`datapath::worker_thread::sleeping` says which CQs may be on one), and the cores that are reserved for
//! them against all other workers on the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use datapath::{Sleep, ThreadSpec, WorkerSpec};
use machine::threads::{CoreList, CoreLocks, FOLDER_VARIABLE, HeldCore};
use results::model::WorkerResult;
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

/// The cores to choose from and those reserved: one per worker, kept from run to run until the session ends.
pub(crate) struct Cores {
    /// Of each worker, over and over again.
    of_workers: Vec<Vec<usize>>,
    allowed: Vec<usize>,
    locks: CoreLocks,
    held: Mutex<Vec<Arc<HeldCore>>>,
    noted: Mutex<BTreeSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cores {
    /// Reserves none yet of `allowed`, which are taken in this order.
    #[cfg(test)]
    pub(crate) fn new(allowed: Vec<usize>, locks: CoreLocks) -> Cores {
        Cores::of_workers(vec![allowed], locks)
    }

    /// The same where the first worker has others to choose from than the second, and so on over and over again.
    pub(crate) fn of_workers(of_workers: Vec<Vec<usize>>, locks: CoreLocks) -> Cores {
        let mut allowed: Vec<usize> = Vec::new();
        for core in of_workers.iter().flatten() {
            if !allowed.contains(core) {
                allowed.push(*core);
            }
        }
        Cores { of_workers, allowed, locks, held: Mutex::default(), noted: Mutex::default() }
    }

    pub(crate) fn allowed(&self) -> &[usize] {
        &self.allowed
    }

    fn held_now(&self) -> Vec<Arc<HeldCore>> {
        lock(&self.held).clone()
    }

    /// The cores of the first `count` workers; fewer only where there are none.
    pub(crate) fn hold(&self, count: usize) -> Vec<Arc<HeldCore>> {
        let mut held = lock(&self.held);
        while held.len() < count {
            let own: Vec<_> = held.iter().map(|held| held.core()).collect();
            let allowed = self.of_workers.get(own.len() % self.of_workers.len().max(1));
            match self.locks.take(allowed.unwrap_or(&self.allowed), &own) {
                Some(core) => held.push(Arc::new(core)),
                None => break,
            }
        }
        held.iter().take(count).cloned().collect()
    }

    /// Those on which no worker of this host polls now; all where each has one.
    ///
    /// A thread that works for a device takes turns with a worker on its core, and then handles packets that the worker
    /// waits for.
    pub(crate) fn without_workers(&self) -> Vec<usize> {
        let own: Vec<_> = self.held_now().iter().map(|held| held.core()).collect();
        let free: Vec<_> = self
            .allowed
            .iter()
            .copied()
            .filter(|core| !own.contains(core) && self.locks.workers_on(*core) == 0)
            .collect();
        if free.is_empty() { self.allowed.clone() } else { free }
    }

    /// Records for the workers of a run how many other workers share their cores now.
    pub(crate) fn tell_shared(&self, workers: &mut [WorkerResult]) {
        for (worker, held) in workers.iter_mut().zip(lock(&self.held).iter()) {
            worker.core_shared_with = Some(held.others());
        }
    }

    /// A warning about cores that so many workers that poll as `poll` share now; `None` if none is shared, or if it was
    /// given before.
    pub(crate) fn new_sharing_warning(&self, poll: PollMode, workers: usize) -> Option<String> {
        let held = self.held_now();
        let workers: Vec<_> =
            held.iter().take(workers).map(|held| (held.core(), held.others())).collect();
        let text = sharing_warning(poll, &workers).or_else(|| {
            if self.allowed.is_empty() {
                return Some(UNPINNED.to_owned());
            }
            let error = self.locks.check().err()?;
            Some(format!(
                "cores may be shared with other processes: cannot lock a file in {}: {error}; name \
                 another folder in {FOLDER_VARIABLE}",
                self.locks.folder().display()
            ))
        })?;
        lock(&self.noted).insert(text.clone()).then_some(text)
    }
}

const UNPINNED: &str = "workers are not pinned to cores: this process may not pin threads (sched_setaffinity: EPERM), as in \
                        some containers; rates and latencies depend on the scheduler";

/// A warning about shared cores for workers that poll as `poll`, given each worker's core and the number of other
/// workers on it; `None` if none is shared.
pub fn sharing_warning(poll: PollMode, workers: &[(usize, u32)]) -> Option<String> {
    let mut on_core: BTreeMap<usize, u32> = BTreeMap::new();
    for (core, others) in workers.iter().filter(|(_, others)| *others > 0) {
        let count = on_core.entry(*core).or_default();
        *count = others.saturating_add(1).max(*count);
    }
    let count = on_core.values().fold(0_u32, |sum, it| sum.saturating_add(*it));
    let cores: Vec<_> = on_core.into_keys().collect();
    let cores = match cores.as_slice() {
        [] => return None,
        [core] => format!("core {core}"),
        many => format!("{} cores ({})", many.len(), CoreList(many.to_vec())),
    };
    let (polling, instead) = match poll {
        PollMode::Busy => ("polling ", "--poll event, "),
        PollMode::Event | PollMode::Adaptive => ("", ""),
    };
    Some(format!(
        "{count} {polling}workers of rocebench share {cores}: rates and latencies depend on the scheduler; use fewer \
         workers, {instead}or other cores (--cores, taskset)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::{has, starts};

    #[test]
    fn what_is_shared_is_said_with_what_helps() {
        assert_eq!(sharing_warning(PollMode::Busy, &[(0, 0), (1, 0)]), None);
        assert_eq!(sharing_warning(PollMode::Busy, &[]), None);
        let noted = sharing_warning(PollMode::Busy, &[(0, 1), (1, 0)]).unwrap();
        starts(&noted, "2 polling workers of rocebench share core 0: ");
        has(&noted, ["--poll event"]);
        // Two workers here and two elsewhere on two cores: each core counts once.
        let workers = [(0, 1), (1, 1), (0, 1), (1, 1)];
        let of_events = sharing_warning(PollMode::Event, &workers).unwrap();
        starts(&of_events, "4 workers of rocebench share 2 cores (0-1): ");
        assert!(!of_events.contains("--poll"), "{of_events}");
    }

    #[test]
    fn ends_take_cores_apart_and_keep_them() {
        let folder = tempfile::tempdir().unwrap();
        let locks = CoreLocks::within(folder.path().to_owned());
        let end = || Cores::new(vec![2, 3, 4], locks.clone());
        let (client, server) = (end(), end());
        let cores = |held_by: &Cores, count| -> Vec<_> {
            held_by.hold(count).iter().map(|held| held.core()).collect()
        };
        assert_eq!((cores(&client, 1), cores(&server, 1)), (vec![2], vec![3]));
        let of_more = (cores(&client, 2), cores(&server, 1));
        assert_eq!(of_more, (vec![2, 4], vec![3]));
        assert_eq!(cores(&client, 1), [2]);
        drop(client);
        assert_eq!(cores(&server, 3), [3, 2, 4]);
    }

    #[test]
    fn workers_run_unpinned_where_no_thread_may_be_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let none = Cores::new(Vec::new(), CoreLocks::within(folder.path().to_owned()));
        assert!(none.hold(2).is_empty());
        assert_eq!(none.new_sharing_warning(PollMode::Busy, 2).as_deref(), Some(UNPINNED));
        assert_eq!(none.new_sharing_warning(PollMode::Busy, 2), None);
    }

    #[test]
    fn a_devices_own_thread_keeps_off_cores_with_workers_while_there_are_others() {
        let folder = tempfile::tempdir().unwrap();
        let locks = CoreLocks::within(folder.path().to_owned());
        let end = || Cores::new(vec![2, 3, 4], locks.clone());
        let (client, server) = (end(), end());
        assert_eq!(server.without_workers(), [2, 3, 4]);
        client.hold(2);
        for cores in [&client, &server] {
            assert_eq!(cores.without_workers(), [4]);
        }
        server.hold(1);
        assert_eq!(client.without_workers(), [2, 3, 4]);
        // Without locks it knows of its own alone.
        let alone = Cores::new(vec![0, 1], CoreLocks::within("/proc/there/is/none".into()));
        alone.hold(1);
        assert_eq!(alone.without_workers(), [1]);
    }
}
