//! CPU time that a window takes besides that of the node's workers: the embedded device's own thread, and all of the
//! machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use softroce::transport::ENGINE_CPU_NS;
use verbs::Context;

/// What was used between two instants close to a window's edges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTimes {
    /// By the threads of embedded devices; `None` without one.
    pub(crate) engine_seconds: Option<f64>,
    /// By everything on this machine; `None` where the kernel does not say.
    pub(crate) machine_seconds: Option<f64>,
}

impl CpuTimes {
    fn read(contexts: &[Arc<Context>]) -> CpuTimes {
        let of_engines = contexts.iter().filter_map(|context| {
            let mut own =
                context.counters()?.into_iter().filter(|(name, _)| *name == ENGINE_CPU_NS);
            own.next().map(|(_, ns)| ns as f64 * 1e-9)
        });
        CpuTimes {
            engine_seconds: of_engines.reduce(|one, other| one + other),
            machine_seconds: machine::threads::machine_seconds(),
        }
    }
}

/// Reads CPU times at the start and at the end of a window.
pub(crate) struct CpuWatch {
    contexts: Vec<Arc<Context>>,
    began: Instant,
    before: CpuTimes,
}

impl CpuWatch {
    /// Begins now.
    pub(crate) fn start(contexts: Vec<Arc<Context>>) -> CpuWatch {
        CpuWatch { began: Instant::now(), before: CpuTimes::read(&contexts), contexts }
    }

    /// What was used since, in a window of this length, or in all of the time if it has none. A node looks each 10 ms, and its
    /// window is told in proportion: what is used in a second hardly changes at its edges.
    pub(crate) fn finish(self, window: Option<Duration>) -> CpuTimes {
        let now = CpuTimes::read(&self.contexts);
        let share = window.map_or(1.0, |window| in_proportion(window, self.began.elapsed()));
        CpuTimes {
            engine_seconds: used(now.engine_seconds, self.before.engine_seconds, share),
            machine_seconds: used(now.machine_seconds, self.before.machine_seconds, share),
        }
    }
}

fn used(now: Option<f64>, before: Option<f64>, share: f64) -> Option<f64> {
    Some((now? - before?).max(0.0) * share)
}

/// A window over the time for which it was watched.
fn in_proportion(window: Duration, watched: Duration) -> f64 {
    window.as_secs_f64() / watched.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_of_the_windows_length() {
        for (window_ms, watched_ms, expected) in
            [(1000, 1000, 1.0), (1000, 1250, 0.8), (20, 16, 1.25)]
        {
            let [window, watched] = [window_ms, watched_ms].map(Duration::from_millis);
            assert_eq!(in_proportion(window, watched), expected);
        }
    }
}
