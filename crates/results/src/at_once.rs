//! The same call for many things, several at a time.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// What `call` gives for each item, in their order; at most so many calls are on their way at a time.
pub fn at_once<T: Sync, R: Send>(
    most: usize,
    items: &[T],
    call: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            let result = call(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..items.len().min(most) {
            // Where there is no thread, the others do its part.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        let doubled: Vec<_> = (0..200).step_by(2).collect();
        assert_eq!(at_once(32, &items, |item| item * 2), doubled);
        assert!(at_once(32, &[] as &[u8], |item| *item).is_empty());
    }

    #[test]
    fn many_wait_at_a_time() {
        let (here, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let calls = [(); 8];
        at_once(32, &calls, |()| {
            most.fetch_max(here.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Each waits for the others: one after the other would never end.
            while most.load(Ordering::SeqCst) < calls.len() {
                thread::yield_now();
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), calls.len());
    }
}
