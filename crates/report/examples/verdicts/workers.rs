//! Work spread over the cores.

use std::panic::resume_unwind;
use std::thread;

/// What `work` gives for each item, in their order; each has a thread.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads = items.iter().map(|item| scope.spawn(move || work(item)));
        let threads: Vec<_> = threads.collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
