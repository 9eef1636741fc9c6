//! When a device works: who polls, what waits for the next poll, timers. It must not know QPs or packets.

pub(crate) mod activity;
pub(crate) mod corked;
pub(crate) mod handled_until;
pub(crate) mod timers;
