//! What came of the messages of a flow that may lose some.

use plan::Flow;
use protocol::node_report::EndReport;
use results::model::{Delivery, FlowResult, gbit_per_s, mmsg_per_s};

/// What came from one end of a flow to the other.
pub(super) struct Arrived {
    delivery: Delivery,
    /// Messages lost of each QP; empty where that is not known.
    lost_of_qps: Vec<u64>,
}

impl Arrived {
    /// `None` of a service that loses nothing, and of messages that are not received. Where messages are counted, goodput
    /// is by the sender's window, which does not wait for those that do not come.
    pub(super) fn new(flow: &Flow, from: &EndReport, to: &EndReport) -> Option<Arrived> {
        if flow.service.is_reliable() {
            return None;
        }
        let received = to.received.as_ref()?;
        let own_seconds = from.sent.as_ref().map(|sent| sent.window.seconds);
        let seconds = received.window_seconds.or(own_seconds);
        let (sent, arrived) = (&from.posted_in_all, &to.received_in_all);
        let (delivery, lost_of_qps) = if flow.ud_fan_out {
            // What a QP receives comes from all QPs.
            (Delivery::of_qps(&[sent.iter().sum()], &[arrived.iter().sum()]), Vec::new())
        } else {
            (Delivery::of_qps(sent, arrived), Delivery::lost_of_qps(sent, arrived).collect())
        };
        Some(Arrived {
            delivery: Delivery {
                goodput_gbit_per_s: seconds.and_then(|it| gbit_per_s(received.bytes, it)),
                goodput_mmsg_per_s: seconds.and_then(|it| mmsg_per_s(received.messages, it)),
                ..delivery
            },
            lost_of_qps,
        })
    }

    /// Adds it to what the flow sent. The share of the limit is then that of what came.
    pub(super) fn tell(self, flow: &mut FlowResult) {
        for (qp, lost) in flow.qps.iter_mut().zip(self.lost_of_qps) {
            qp.lost = Some(lost);
        }
        flow.delivery = Some(self.delivery);
        let rate = flow.gbit_per_s();
        if let Some(limits) = &mut flow.limits {
            limits.share_of_limit = rate.and_then(|rate| limits.share_of(rate));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Side;
    use results::model::{Limits, QpResult, Received, Totals};

    fn end(side: Side, counts: [&[u64]; 2]) -> EndReport {
        EndReport {
            flow: 0,
            side,
            mtu_bytes: 1024,
            outstanding_reads: 0,
            sent: None,
            window_ns: None,
            received: None,
            receive_queues: None,
            errors: 0,
            posted_in_all: counts[0].to_vec(),
            received_in_all: counts[1].to_vec(),
            qps: 0,
        }
    }

    /// A flow of 1000-byte messages on two QPs, of which 2000 were sent in a window of a second and 500 received.
    fn received_by(flags: &[(&str, &str)]) -> FlowResult {
        let flow = Flow::forward(flags.iter().copied().collect());
        let from = end(Side::Initiator, [&[1500, 1500], &[]]);
        let mut to = end(Side::Target, [&[], &[1400, 101]]);
        to.received = Some(Received { messages: 500, bytes: 500_000, window_seconds: Some(1.0) });
        let mut result = FlowResult {
            totals: Totals::in_window(2000, 2_000_000, 0, 1.0),
            qps: vec![QpResult::default(); 2],
            limits: Some(Limits {
                link_gbit_per_s: 0.02,
                protocol_efficiency: 0.8,
                share_of_limit: Some(1.0),
            }),
            ..FlowResult::default()
        };
        if let Some(arrived) = Arrived::new(&flow, &from, &to) {
            arrived.tell(&mut result);
        }
        result
    }

    #[test]
    fn what_came_is_the_throughput_and_losses_are_told_of_each_qp() {
        let flow = received_by(&[("service", "uc")]);
        assert_eq!(flow.totals.gbit_per_s, Some(0.016));
        let rates = (flow.gbit_per_s(), flow.mmsg_per_s());
        assert_eq!(rates, (Some(0.004), Some(0.0005)));
        assert_eq!(flow.limits.as_ref().unwrap().share_of_limit, Some(0.25));
        let of_qps: Vec<_> = flow.qps.iter().map(|qp| qp.lost).collect();
        assert_eq!(of_qps, [Some(100), Some(1399)]);
        let delivery = flow.delivery.unwrap();
        let counts = (delivery.sent, delivery.received, delivery.lost);
        assert_eq!(counts, (3000, 1501, 1499));
    }

    #[test]
    fn a_receive_of_a_fan_out_does_not_tell_which_qp_lost() {
        let flow = received_by(&[("service", "ud"), ("ud-fan-out", "true")]);
        assert_eq!(flow.delivery.as_ref().unwrap().lost, 1499);
        assert!(flow.qps.iter().all(|qp| qp.lost.is_none()));
    }

    #[test]
    fn over_a_reliable_service_the_throughput_is_of_what_was_sent() {
        let flow = received_by(&[]);
        assert_eq!((&flow.delivery, flow.gbit_per_s()), (&None, Some(0.016)));
        assert_eq!(flow.limits.as_ref().unwrap().share_of_limit, Some(1.0));
        assert!(flow.qps.iter().all(|qp| qp.lost.is_none()));
    }
}
