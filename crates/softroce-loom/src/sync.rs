//! loom's atomics and locks, as the device's files expect them.

use std::cell::Cell;

pub(crate) use loom::hint::spin_loop;
use loom::sync::atomic;
pub(crate) use loom::sync::atomic::{Ordering, fence};
use loom::sync::{Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

loom::thread_local! {
    static HAS_STORED: Cell<bool> = Cell::new(false);
}

/// loom takes `SeqCst` of accesses for `AcqRel`. What the device relies on beyond that is that a `SeqCst` load does not pass
/// a `SeqCst` store before it: between such two there is a fence, and nowhere else.
fn begin(order: Ordering, loads: bool, stores: bool) {
    if order == Ordering::SeqCst {
        HAS_STORED.with(|has_stored| {
            if loads && has_stored.get() {
                fence(Ordering::SeqCst);
            }
            has_stored.set(stores || !loads && has_stored.get());
        });
    }
}

macro_rules! atomics {
    ($($name:ident: $value:ty, [$($change:ident),*];)*) => { $(
        #[derive(Default)]
        pub(crate) struct $name(atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> $name {
                $name(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                begin(order, true, false);
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                begin(order, false, true);
                self.0.store(value, order);
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                begin(success, true, true);
                self.0.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            $(pub(crate) fn $change(&self, value: $value, order: Ordering) -> $value {
                begin(order, true, true);
                self.0.$change(value, order)
            })*
        }
    )* };
}

atomics! {
    AtomicBool: bool, [swap];
    AtomicI64: i64, [fetch_add];
    AtomicU8: u8, [swap, fetch_max];
    AtomicU32: u32, [];
    AtomicU64: u64, [fetch_min];
    AtomicUsize: usize, [fetch_add, fetch_sub];
}
