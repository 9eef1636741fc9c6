//! Unreliable services on `null0`, which completes all that is sent and delivers nothing: what they cost the harness can be
//! measured there, in both directions.

use plan::Case;
use settings::{Service, Settings};

use crate::loopback_node::{Device, Flows, Pair, Steer, case_of, null_port, small};

const MESSAGES: u64 = 100;

#[test]
fn every_operation_of_uc_and_ud_completes_both_ways() {
    let _device = Device::get();
    for service in [Service::Uc, Service::Ud] {
        for (&op, bidirectional) in service.ops().iter().flat_map(|op| [(op, false), (op, true)]) {
            let case = case_of(Settings { service, bidirectional, qps: 3, ..small(op) });
            sends_all(&case);
        }
    }
}

/// Each end that sends completes all of its messages, and none comes to the other.
fn sends_all(case: &Case) {
    let directions = 1 + usize::from(case.bidirectional);
    let mut flows = Flows::alone(&null_port(), case);
    let pair = &mut flows.pairs[0];
    pair.start_counted(MESSAGES);
    let messages = MESSAGES * u64::from(case.qps);
    let ends = |flow: &Pair| [&flow.client, &flow.server].map(|end| end.shared.counts());
    let done = |flow: &Pair| ends(flow).iter().filter(|it| it.completed == messages).count();
    pair.wait("all messages", |flow| done(flow) == directions).unwrap();
    pair.come_to_rest().unwrap();
    let rest = flows.finish().remove(0);
    rest.assert_clean();
    let received =
        rest.client_sums().received_in_all.into_iter().chain(rest.server_sums().received_in_all);
    assert_eq!(received.sum::<u64>(), 0, "{case:?}");
}
