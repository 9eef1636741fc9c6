//! What is behind the pointers that programs hold: in one allocation the verbs struct, which programs read and write,
//! and the device's data.
//!
//! Beside it what objects share: [`Users`] counts those of one, so that PDs, CQs, SRQs and channels in use are not
//! destroyed, and a [`Latch`] is a lock taken in one C call and released in another, for extended polling and posting.

use std::hint::spin_loop;
use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread;

/// An object; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub(crate) struct Object<V, T> {
    pub(crate) verbs: V,
    pub(crate) inner: T,
}

/// Data behind a pointer to `P`, which is the verbs struct `V` or its first member.
pub(crate) trait Behind<P, V = P>: Sized {
    /// Makes an object, which lives until [`Behind::take_back`].
    fn lend(self, verbs: V) -> *mut P {
        Box::into_raw(Box::new(Object { verbs, inner: self })).cast()
    }

    /// Reserves memory for an object whose address others have to know before it is made.
    fn reserve() -> *mut P {
        Box::into_raw(Box::<Object<V, Self>>::new_uninit()).cast()
    }

    /// As [`Behind::lend`], in reserved memory.
    ///
    /// # Safety
    /// The place came from [`Behind::reserve`], and nothing was made there.
    unsafe fn lend_at(self, place: *mut P, verbs: V) {
        // SAFETY: the caller's.
        unsafe { place.cast::<Object<V, Self>>().write(Object { verbs, inner: self }) };
    }

    /// Gives up reserved memory.
    ///
    /// # Safety
    /// As for [`Behind::lend_at`].
    unsafe fn give_up(place: *mut P) {
        // SAFETY: the caller's.
        drop(unsafe { Box::<MaybeUninit<Object<V, Self>>>::from_raw(place.cast()) });
    }

    /// The data behind a pointer.
    ///
    /// # Safety
    /// The object is live.
    unsafe fn from_raw<'a>(pointer: *mut P) -> &'a Self {
        // SAFETY: an object lies there; the reference covers nothing that programs write.
        unsafe { &(*pointer.cast::<Object<V, Self>>()).inner }
    }

    /// Ends an object.
    ///
    /// # Safety
    /// It is live, and nothing of it is used again.
    unsafe fn take_back(pointer: *mut P) -> Box<Object<V, Self>> {
        // SAFETY: each object is made in such a box.
        unsafe { Box::from_raw(pointer.cast()) }
    }
}

/// Counts the users of one object.
#[derive(Default)]
pub(crate) struct Users(Arc<()>);

/// One use; it ends when this is dropped.
pub(crate) struct Use {
    _counted: Arc<()>,
}

impl Users {
    pub(crate) fn begin(&self) -> Use {
        let _counted = Arc::clone(&self.0);
        Use { _counted }
    }

    pub(crate) fn count(&self) -> usize {
        let count = Arc::strong_count(&self.0) - 1;
        // What a user did before its use ended is done.
        fence(Ordering::Acquire);
        count
    }

    /// EBUSY while there are users.
    pub(crate) fn none(&self) -> Result<(), c_int> {
        match self.count() {
            0 => Ok(()),
            _ => Err(libc::EBUSY),
        }
    }
}

/// Held by one thread at a time, across several calls.
#[derive(Default)]
pub(super) struct Latch {
    is_held: AtomicBool,
    /// Whether somebody has waited long. A thread that takes the latch again as soon as it has given it would keep all
    /// others out, for seconds where they share its core.
    is_awaited: AtomicBool,
}

impl Latch {
    /// Waits until it is free; other threads hold it for a few polls or posts.
    pub(super) fn take(&self) {
        const SPINS: u32 = 100;
        if self.is_awaited.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let mut spins = 0;
        while self
            .is_held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                self.is_awaited.store(true, Ordering::Relaxed);
                thread::yield_now();
            }
        }
        if spins >= SPINS {
            self.is_awaited.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn give(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}
