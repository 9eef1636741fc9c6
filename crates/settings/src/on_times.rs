//! When a flow is on: from `--start` to `--stop`, and between them all the time, or `--on` for a while and `--off` for a
//! while.

use std::ops::Range;

use super::table::Settings;
use super::units::TimeSpan;

/// Stretches of time in which a flow is on, in nanoseconds after its window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnTimes {
    start_ns: u64,
    stop_ns: u64,
    /// Length of a stretch, and from the beginning of one to that of the next.
    on_ns: u64,
    period_ns: u64,
}

impl Settings {
    /// Whether the flow is not on all the time.
    pub fn has_on_times(&self) -> bool {
        self.start_seconds.is_some() || self.stop_seconds.is_some() || self.on_seconds.is_some()
    }

    /// When the flow is on; `None` for all the time.
    pub fn on_times(&self) -> Option<OnTimes> {
        let times = [self.start_seconds, self.stop_seconds, self.on_seconds, self.off_seconds];
        let [start_ns, stop_ns, on_ns, off_ns] = times.map(|span| span.map(TimeSpan::ns));
        self.has_on_times().then(|| {
            // A period of none would have no end of stretches; the rules let none through.
            let stretch_ns = on_ns.unwrap_or(u64::MAX).max(1);
            OnTimes {
                start_ns: start_ns.unwrap_or(0),
                stop_ns: stop_ns.unwrap_or(u64::MAX),
                on_ns: stretch_ns,
                period_ns: stretch_ns.saturating_add(off_ns.unwrap_or(0)),
            }
        })
    }

    /// For how long the flow is on in a window of this length.
    pub fn on_ns(&self, window_ns: u64) -> u64 {
        self.on_times().map_or(window_ns, |times| times.on_ns(0..window_ns))
    }
}

impl OnTimes {
    /// Whether it is on when the window opens, and so in the warm-up.
    pub fn is_on_at_first(&self) -> bool {
        self.start_ns == 0
    }

    /// The stretch with this number, from 0; `None` behind the last.
    pub fn stretch(&self, number: u64) -> Option<Range<u64>> {
        let begins_ns = self.period_ns.checked_mul(number)?.checked_add(self.start_ns)?;
        let ends_ns = begins_ns.saturating_add(self.on_ns).min(self.stop_ns);
        (begins_ns < ends_ns).then_some(begins_ns..ends_ns)
    }

    /// The stretches that begin before `end_ns`, without what lies behind it.
    pub fn until(self, end_ns: u64) -> impl Iterator<Item = Range<u64>> {
        let stretches = (0..).map_while(move |number| self.stretch(number));
        stretches
            .take_while(move |stretch| stretch.start < end_ns)
            .map(move |stretch| stretch.start..stretch.end.min(end_ns))
    }

    /// For how long it is on in a part of the window.
    pub fn on_ns(&self, part: Range<u64>) -> u64 {
        let [before_ns, by_end_ns] = [part.start, part.end].map(|at_ns| {
            let since_ns = at_ns.min(self.stop_ns).saturating_sub(self.start_ns);
            since_ns / self.period_ns * self.on_ns + (since_ns % self.period_ns).min(self.on_ns)
        });
        by_end_ns.saturating_sub(before_ns)
    }

    /// The longest time in which it is off, in a window of this length.
    pub fn longest_off_ns(&self, window_ns: u64) -> u64 {
        let between_ns = self.period_ns - self.on_ns;
        self.start_ns.max(between_ns).max(window_ns.saturating_sub(self.stop_ns))
    }
}

// What rules say of these times.

/// A worker looks at the clock once a pass, which takes some microseconds.
const SHORTEST_TURN_NS: u64 = 10_000;

pub(super) fn is_short(span: Option<TimeSpan>) -> bool {
    span.is_some_and(|span| span.ns() < SHORTEST_TURN_NS)
}

/// Whether a window has an end that is not after this time; of one that messages end another rule speaks.
pub(super) fn ends_by(settings: &Settings, span: TimeSpan) -> bool {
    settings.window_ns().is_some_and(|window_ns| window_ns <= span.ns())
}

pub(super) fn window_text(settings: &Settings) -> String {
    settings.duration_seconds.map_or(String::new(), |span| format!(", which is {span} long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn stretches_are_as_the_settings_say() {
        for (flags, stretches_ms) in [
            (&[("start", "30ms")][..], &[(30, 100)][..]),
            (&[("stop", "30ms")], &[(0, 30)]),
            (&[("start", "10ms"), ("stop", "30ms")], &[(10, 30)]),
            (&[("on", "20ms"), ("off", "40ms")], &[(0, 20), (60, 80)]),
            (
                &[("start", "5ms"), ("stop", "65ms"), ("on", "10ms"), ("off", "20ms")],
                &[(5, 15), (35, 45)],
            ),
            (&[("stop", "65ms"), ("on", "10ms"), ("off", "20ms")], &[(0, 10), (30, 40), (60, 65)]),
        ] {
            let settings: Settings = flags.iter().copied().collect();
            let times = settings.on_times().unwrap();
            let stretches: Vec<_> =
                times.until(100 * MS).map(|it| (it.start / MS, it.end / MS)).collect();
            assert_eq!(stretches, stretches_ms, "{flags:?}");
            assert_eq!(times.is_on_at_first(), stretches[0].0 == 0);
            for (from_ms, to_ms) in [(0, 100), (7, 62), (12, 13), (40, 40)] {
                let overlaps = stretches.iter().map(|(begins_ms, ends_ms)| {
                    ends_ms.min(&to_ms).saturating_sub(*begins_ms.max(&from_ms))
                });
                let expected = overlaps.sum::<u64>() * MS;
                assert_eq!(times.on_ns(from_ms * MS..to_ms * MS), expected, "{flags:?}");
            }
        }
        assert_eq!(Settings::default().on_times(), None);
        let late = Settings::from([("stop", "30ms")]).on_times().unwrap();
        assert_eq!(late.longest_off_ns(100 * MS), 70 * MS);
    }
}
