//! Work spread over the cores.

use std::sync::Mutex;
use std::thread;

/// What `work` gives for each item, in their order.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let left = Mutex::new(items.iter().enumerate());
    let next = || left.lock().ok()?.next();
    let mut done: Vec<(usize, R)> = Vec::new();
    thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            while let Some((place, item)) = next() {
                done.push((place, work(item)));
            }
            done
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            done.extend(worker.join().unwrap_or_default());
        }
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
