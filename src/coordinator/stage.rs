//! Where a run takes place, and how its progress is shown.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::node::resources::NodeResources;
use crate::plan::Case;
use crate::protocol::link::Link;

use super::observer::Observer;

/// How often progress is shown.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Where a run takes place.
pub(crate) struct Stage<'a> {
    pub(crate) link: &'a Link,
    pub(crate) resources: &'a NodeResources,
    /// The user's wish to stop.
    pub(crate) stop: &'a AtomicBool,
}

/// Shows a rate now and then.
pub(crate) struct Meter {
    bits_per_message: f64,
    shown: (Duration, u64),
}

impl Meter {
    pub(crate) fn new(case: &Case) -> Self {
        Meter {
            bits_per_message: f64::from(case.size_bytes) * 8.0,
            shown: (Duration::ZERO, 0),
        }
    }

    pub(crate) fn show(&mut self, elapsed: Duration, messages: u64, observer: &mut dyn Observer) {
        let since = elapsed.saturating_sub(self.shown.0);
        if since < SAMPLE_EVERY {
            return;
        }
        let rate = messages.saturating_sub(self.shown.1) as f64 / since.as_secs_f64();
        observer.sample(elapsed, rate * self.bits_per_message / 1e9, rate / 1e6);
        self.shown = (elapsed, messages);
    }
}
