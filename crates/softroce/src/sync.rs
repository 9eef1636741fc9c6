//! Atomics and locks of the files that `crates/softroce-loom` models, where this is loom's.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::thread::yield_now;

pub(crate) use provider::Lock;
