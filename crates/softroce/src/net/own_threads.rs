//! What the library sets for its own threads, which are guests in a program. It must not know what they do.
#![allow(unsafe_code)]

use std::ptr;

/// Blocks all signals in the calling thread: they are for the program's threads.
pub fn block_signals() {
    // SAFETY: a set on the stack, filled before it is used.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut());
    }
}

/// Requests short time slices for the calling thread, which works for microseconds at a time. Linux 6.12 and later
/// then runs it at once when it wakes, instead of after the time slice of a thread that spins.
pub fn prefer_short_turns() {
    /// `struct sched_attr` of sched_setattr(2), in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    /// Linux' minimum.
    const TURN_NS: u64 = 100_000;
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: a struct of the size that is told, for the calling thread (0).
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    // A real-time or idle policy was chosen deliberately.
    if read != 0 || attributes.policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.runtime_ns = TURN_NS;
    // SAFETY: as above. Failing changes nothing, and all works as well as it can then.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
