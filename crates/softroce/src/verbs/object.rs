//! What is behind the pointers that programs hold: in one allocation the verbs struct, which programs read and write,
//! and the device's data. It must not know which objects there are.

use std::mem::MaybeUninit;

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
    unsafe fn of<'a>(pointer: *mut P) -> &'a Self {
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
