//! Messages that each QP's sender has completed since the start, for the thread that samples. Each worker has cells of its
//! own, which it alone writes with plain stores; no cache line has cells of two workers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_utils::CachePadded;

/// Cells of a padded block, which they fill.
const CELLS: usize = 16;

type Cells = Box<[CachePadded<[AtomicU64; CELLS]>]>;

/// The counts of all workers of an end.
pub(super) struct QpCounts {
    workers: Vec<Cells>,
}

impl QpCounts {
    /// Memory that a worker keeps per QP of the run, in bytes.
    pub(super) const BYTES_PER_QP: usize = size_of::<AtomicU64>();

    pub(super) fn new(qps: usize, workers: usize) -> QpCounts {
        QpCounts {
            workers: (0..workers)
                .map(|_| (0..qps.div_ceil(CELLS)).map(|_| CachePadded::default()).collect())
                .collect(),
        }
    }

    /// A worker's cells, by index of the QP; at least one for each QP.
    pub(super) fn of_worker(&self, worker: usize) -> impl Iterator<Item = &AtomicU64> {
        self.workers.get(worker).into_iter().flatten().flat_map(|block| block.iter())
    }

    /// Writes the counts of all workers together, by index of the QP.
    pub(super) fn read(&self, into: &mut [u64]) {
        into.fill(0);
        for worker in 0..self.workers.len() {
            for (sum, cell) in into.iter_mut().zip(self.of_worker(worker)) {
                *sum += cell.load(Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_all_workers_and_no_line_is_shared() {
        let counts = QpCounts::new(17, 2);
        for worker in 0..2 {
            let cells: Vec<_> = counts.of_worker(worker).collect();
            assert!(cells.len() >= 17);
            cells[16].store(5 + worker as u64, Relaxed);
            let first = std::ptr::from_ref(cells[0]).addr();
            assert_eq!(first % align_of::<CachePadded<u8>>(), 0);
        }
        let mut read = [9; 17];
        counts.read(&mut read);
        assert_eq!(read[15..], [0, 11]);
        assert_eq!(counts.of_worker(2).count(), 0);
    }

    #[test]
    fn cells_fill_their_blocks() {
        let bytes = size_of::<CachePadded<[AtomicU64; CELLS]>>();
        assert!(bytes >= CELLS * QpCounts::BYTES_PER_QP);
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(bytes, CELLS * QpCounts::BYTES_PER_QP);
        }
    }
}
