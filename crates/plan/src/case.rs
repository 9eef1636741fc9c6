//! One case: all that the nodes must agree on to run one cell of the sweep's matrix. It is sent whole to each node, so
//! that settings cannot differ between them.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use settings::{Rate, Settings, Stop, TimeSpan};

use super::flow::{Flow, Side};

/// Flows of one case: 64 nodes, each to all others, are 4032.
pub(super) const MOST_FLOWS: usize = 4_096;

/// One cell of the sweep's matrix, with every setting of it, which are fields of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the case within its sweep, such as `send-shared-q16-64KiB`; unique.
    pub id: String,
    #[serde(flatten)]
    pub settings: Settings,
    /// What moves: one flow or several; where set-up is measured, the traffic meanwhile, which goes on until it is
    /// stopped, or none.
    pub flows: Vec<Flow>,
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
    /// The case of these settings, with one flow, or none where set-up is measured without traffic.
    pub fn new(id: String, settings: Settings) -> Case {
        let mut moving = settings.clone();
        if settings.is_set_up() {
            moving.qps = settings.traffic_qps;
            moving.op = settings.op.transfer().into();
            moving.set_stop(Stop::DurationNs(TimeSpan::MAX.ns()));
        }
        let flows = if settings.has_traffic() { vec![Flow::forward(moving)] } else { Vec::new() };
        Case { id, settings, flows }
    }

    /// The ends of flows at a node, each with its flow's index.
    pub fn ends_at(&self, node: u32) -> impl Iterator<Item = (usize, &Flow, Side)> {
        self.flows.iter().enumerate().flat_map(move |(index, flow)| {
            let ends = [(flow.from, Side::Initiator), (flow.to, Side::Target)];
            ends.into_iter()
                .filter(move |(end, _)| *end == node)
                .map(move |(_, side)| (index, flow, side))
        })
    }

    /// Whether the rate of a flow is a share of what the closed loop moves.
    pub fn has_shares(&self) -> bool {
        self.flows.iter().any(|flow| flow.rate.share().is_some())
    }

    /// The closed loop whose maximum the shares of `--rate` are of: the same case without them. `None` where no flow has
    /// a share.
    pub fn closed_loop(&self) -> Option<Case> {
        if !self.has_shares() {
            return None;
        }
        let mut closed = self.clone();
        let mut all_settings: Vec<&mut Settings> =
            closed.flows.iter_mut().map(|flow| &mut flow.settings).collect();
        all_settings.push(&mut closed.settings);
        for settings in all_settings.into_iter().filter(|it| it.rate.share().is_some()) {
            settings.rate = Rate::Closed;
            settings.drop_idle();
        }
        Some(closed)
    }

    /// The case with messages a second in place of shares, by what each of its flows moved in the closed loop; `None`
    /// where that is not known.
    pub fn with_maxima(&self, messages_per_second: impl Fn(&Flow) -> Option<f64>) -> Option<Case> {
        let mut case = self.clone();
        for (flow, asked) in case.flows.iter_mut().zip(&self.flows) {
            if let Some(share) = asked.rate.share() {
                let rate = (messages_per_second(asked)? * share).round().max(1.0);
                flow.rate = Rate::Messages(rate as u64);
            }
        }
        if let [only] = case.flows.as_slice() {
            case.settings.rate = only.rate;
        }
        Some(case)
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
    use settings::Workload;

    use super::*;

    #[test]
    fn shares_are_of_the_same_case_as_a_closed_loop() {
        let settings = Settings::from([("rate", "25%"), ("arrivals", "fixed"), ("qps", "4")]);
        let case = Case::new("c".to_owned(), settings);
        let closed = case.closed_loop().unwrap();
        let same = Settings::from([("qps", "4"), ("signal-every", "1")]);
        let of_case = (&closed.settings, &closed.flows[0].settings);
        assert_eq!(of_case, (&same, &same));
        assert_eq!(closed.closed_loop(), None);
        let known = case.with_maxima(|_| Some(1_000.0)).unwrap();
        let rate = Rate::Messages(250);
        assert_eq!((known.rate, known.flows[0].rate), (rate, rate));
        assert_eq!(case.with_maxima(|_| None), None);
        assert_eq!(known.with_maxima(|_| None).as_ref(), Some(&known));
    }

    #[test]
    fn beside_set_up_traffic_is_a_flow() {
        let mut settings = Settings::default();
        let case = Case::new(String::new(), settings.clone());
        assert_eq!(case.flows, [Flow::forward(settings.clone())]);
        let at = |node| case.ends_at(node).map(|end| end.2).collect::<Vec<_>>();
        assert_eq!(at(0), [Side::Initiator]);
        assert_eq!((at(1), at(2)), (vec![Side::Target], vec![]));
        (settings.op, settings.traffic_qps) = (Workload::Connect, 3);
        let case = Case::new(String::new(), settings.clone());
        assert_eq!((case.flows[0].qps, case.flows[0].is_set_up()), (3, false));
        settings.traffic_qps = 0;
        assert_eq!(Case::new(String::new(), settings).flows, []);
    }
}
