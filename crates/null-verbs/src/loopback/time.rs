//! The time of the device: the system's, or one that its user passes in.

use std::sync::LazyLock;
use std::time::Instant;

#[derive(Default)]
pub(super) enum Time {
    #[default]
    System,
    Given(Box<dyn Fn() -> u64 + Send>),
}

impl Time {
    /// Nanoseconds since some instant.
    pub(super) fn now_ns(&self) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self {
            Time::System => u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Time::Given(now_ns) => now_ns(),
        }
    }

    /// Whether it is the system's.
    pub(super) fn passes_by_itself(&self) -> bool {
        matches!(self, Time::System)
    }
}
