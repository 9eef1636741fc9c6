//! One case: everything both ends must agree on to run one cell of the sweep's matrix. It is sent
//! whole to the server, so that different settings on both ends cannot happen.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use settings::{Op, Settings, Stop, TimeSpan};

/// One cell of the sweep's matrix, with every setting that both ends apply, which are fields of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the case within its sweep, such as `send-shared-q16-64KiB`; unique.
    pub id: String,
    /// Every setting.
    #[serde(flatten)]
    pub settings: Settings,
}

impl Deref for Case {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Case {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl Case {
    /// The case of what is moved: itself; where set-up is measured, the traffic meanwhile, which goes on until
    /// it is stopped; `None` without traffic.
    pub fn moving(&self) -> Option<Case> {
        if !self.is_set_up() {
            return Some(self.clone());
        }
        if !self.has_traffic() {
            return None;
        }
        let mut traffic = self.clone();
        traffic.qps = self.traffic_qps;
        traffic.op = self.op.transfer().into();
        traffic.set_stop(Stop::DurationNs(TimeSpan::MAX.ns()));
        Some(traffic)
    }

    /// The operation that moves data.
    pub fn transfer(&self) -> Op {
        self.op.transfer()
    }

    /// The span of the measurement, for people.
    pub fn stop_text(&self) -> String {
        match self.stop() {
            Stop::MessagesPerQp(rounds) if self.is_set_up() => format!("{rounds} rounds"),
            Stop::DurationNs(ns) => TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX).to_string(),
            Stop::MessagesPerQp(messages) => format!("{messages} messages a QP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use settings::{Given, Workload};

    use super::super::Sweep;

    #[test]
    fn traffic_is_a_case_without_set_up() {
        let mut case = Sweep::new(&Given::default()).unwrap().cases.remove(0);
        assert_eq!(case.moving(), Some(case.clone()));
        (case.op, case.traffic_qps) = (Workload::Connect, 3);
        let traffic = case.moving().unwrap();
        assert_eq!((traffic.qps, traffic.is_set_up()), (3, false));
        case.traffic_qps = 0;
        assert_eq!(case.moving(), None);
    }
}
