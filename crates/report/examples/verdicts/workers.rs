//! Work spread over the cores.

use std::panic::resume_unwind;
use std::thread;

/// What `work` gives for each item, in their order; each has a thread.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .map(|it| it.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
