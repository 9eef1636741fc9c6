//! What is behind the pointers that programs hold: in one allocation the verbs struct, which programs read and write,
//! and the device's data.
//!
//! Beside it what objects share: [`Users`] counts those of one, so that PDs, CQs, SRQs and channels in use are not
//! destroyed.

use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// An object; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub struct Object<V, T> {
    /// What programs read and write.
    pub verbs: V,
    /// What the device keeps for it, out of programs' sight.
    pub inner: T,
}

/// Data behind a pointer to `P`, which is the verbs struct `V` or its first member.
pub trait Behind<P, V = P>: Sized {
    /// Makes an object, which lives until [`Behind::take_back`].
    fn lend(self, verbs: V) -> *mut P {
        const { assert!(align_of::<Self>() <= align_of::<usize>(), "data begins at one place") };
        Box::into_raw(Box::new(Object { verbs, inner: self })).cast()
    }

    /// Reserves memory for an object whose address others have to know before it is made.
    fn reserve() -> *mut P {
        const { assert!(align_of::<Self>() <= align_of::<usize>(), "data begins at one place") };
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

    /// As [`Behind::take_back`], and drops it.
    ///
    /// # Safety
    /// As there.
    unsafe fn free(pointer: *mut P) {
        // SAFETY: the caller's.
        drop(unsafe { Self::take_back(pointer) });
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
pub struct Users(Arc<()>);

/// One use; it ends when this is dropped.
pub struct Use {
    _counted: Arc<()>,
}

impl Users {
    pub fn begin(&self) -> Use {
        let _counted = Arc::clone(&self.0);
        Use { _counted }
    }

    /// As [`Users::begin`]. ENOMEM if there are so many already.
    pub fn begin_within(&self, most: c_int) -> Result<Use, c_int> {
        let counted = self.begin();
        let fits = self.count() <= usize::try_from(most).unwrap_or(0);
        fits.then_some(counted).ok_or(libc::ENOMEM)
    }

    /// How many uses have not ended.
    pub fn count(&self) -> usize {
        let count = Arc::strong_count(&self.0) - 1;
        // What a user did before its use ended is done.
        fence(Ordering::Acquire);
        count
    }

    /// EBUSY while there are users.
    pub fn none(&self) -> Result<(), c_int> {
        match self.count() {
            0 => Ok(()),
            _ => Err(libc::EBUSY),
        }
    }
}
