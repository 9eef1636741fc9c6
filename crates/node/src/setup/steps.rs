//! The steps of set-up and their times.

use std::collections::BTreeMap;

use metrics::Clock;
use metrics::latency::{Digits, Recorder};
use results::model::ConnectStep;

/// A step; listed in order. Which steps there are depends on the method of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SetupStep {
    Create,
    /// rdma_cm: resolves IP addresses to the device and the hardware address.
    Resolve,
    /// rdma_cm: resolves the path.
    Route,
    /// rdma_cm: from the request until the answer is confirmed; includes the transitions to RTS.
    Connect,
    Init,
    /// Both ends have the other's connection array.
    Exchange,
    Rtr,
    Rts,
    Destroy,
}

impl SetupStep {
    #[cfg(test)]
    const ALL: [SetupStep; 9] = [
        SetupStep::Create,
        SetupStep::Resolve,
        SetupStep::Route,
        SetupStep::Connect,
        SetupStep::Init,
        SetupStep::Exchange,
        SetupStep::Rtr,
        SetupStep::Rts,
        SetupStep::Destroy,
    ];

    /// Its name in results and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SetupStep::Create => "create",
            SetupStep::Resolve => "resolve",
            SetupStep::Route => "route",
            SetupStep::Connect => "connect",
            SetupStep::Init => "init",
            SetupStep::Exchange => "exchange",
            SetupStep::Rtr => "rtr",
            SetupStep::Rts => "rts",
            SetupStep::Destroy => "destroy",
        }
    }

    /// The unit that the step is done for.
    fn per(self) -> &'static str {
        match self {
            SetupStep::Exchange => "round",
            _ => "connection",
        }
    }
}

/// Times of all steps at one node.
pub(crate) struct StepTimes {
    clock: Clock,
    times: BTreeMap<SetupStep, Recorder>,
    stale_rejections: u64,
}

impl StepTimes {
    pub(crate) fn new(clock: &Clock) -> Self {
        StepTimes { clock: clock.clone(), times: BTreeMap::new(), stale_rejections: 0 }
    }

    /// Does a step and records its time, unless it fails.
    pub(crate) fn time<T, E>(
        &mut self,
        step: SetupStep,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let start = self.clock.raw();
        let done = body()?;
        let end = self.clock.raw();
        self.record(step, self.clock.ns_between(start, end));
        Ok(done)
    }

    /// Adds a time that was measured elsewhere.
    pub(crate) fn record(&mut self, step: SetupStep, ns: u64) {
        self.times.entry(step).or_insert_with(|| Recorder::new(Digits::Three)).record(ns);
    }

    /// Counts requests that rdma_cm rejected because it remembered the last connection of their QP number.
    pub(crate) fn count_stale(&mut self, rejections: u32) {
        self.stale_rejections += u64::from(rejections);
    }

    /// The stale rejections so far.
    pub(crate) fn stale_rejections(&self) -> u64 {
        self.stale_rejections
    }

    /// Discards all times, as between warm-up and measurement.
    pub(crate) fn clear(&mut self) {
        self.stale_rejections = 0;
        self.times.values_mut().for_each(Recorder::clear);
    }

    /// The steps in the form of a result.
    pub(crate) fn results(&self) -> Vec<ConnectStep> {
        self.times
            .iter()
            .filter_map(|(step, recorder)| {
                Some(ConnectStep {
                    step: step.name().to_owned(),
                    per: step.per().to_owned(),
                    time_ns: recorder.latency()?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_their_order_with_their_times() {
        let mut times = StepTimes::new(&Clock::new());
        times.record(SetupStep::Destroy, 5);
        times.record(SetupStep::Create, 7);
        times.clear();
        times.count_stale(2);
        times.clear();
        times.count_stale(3);
        assert_eq!(times.stale_rejections(), 3);
        times.record(SetupStep::Rts, 300);
        times.record(SetupStep::Create, 100);
        times.record(SetupStep::Create, 200);
        let failed: Result<(), &str> = times.time(SetupStep::Init, || Err("no"));
        assert_eq!(failed, Err("no"));
        times.time(SetupStep::Exchange, || Ok::<_, ()>(())).unwrap();
        let told = times.results();
        let names = told.iter().map(|it| (&*it.step, &*it.per, it.time_ns.count));
        let expected =
            [("create", "connection", 2), ("exchange", "round", 1), ("rts", "connection", 1)];
        assert!(names.eq(expected), "{told:?}");
        assert_eq!((told[0].time_ns.min, told[0].time_ns.max), (100, 200));
    }

    #[test]
    fn names_tell_steps_apart() {
        let names: std::collections::HashSet<_> = SetupStep::ALL.map(SetupStep::name).into();
        assert_eq!(names.len(), SetupStep::ALL.len());
    }
}
