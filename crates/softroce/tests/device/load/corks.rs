//! Small posts wait for the program's next poll while others are on their way. They must leave whether it polls or not.

use crate::support::end::{End, Plan};

const QPS: usize = 16;
const MESSAGE_BYTES: usize = 64;

#[test]
fn posts_of_many_calls_and_qps_leave_together() {
    const ROUNDS: usize = 200;
    let plan = Plan { qps: QPS, ..Plan::on(1, "delay=2us") };
    let (client, server) = (End::new(&plan), End::new(&plan));
    for (one, other) in [(&client, &server), (&server, &client)] {
        for (qp, peer) in one.qps.iter().zip(&other.qps) {
            // One flow, so that its packets can be in one datagram.
            one.connect_to(qp, other.nic.address(), peer.number(), 5);
        }
    }
    for _ in 0..ROUNDS {
        for qp in 0..QPS {
            client.post(qp, server.write_to(0), &[client.sge(0, MESSAGE_BYTES)]);
        }
        client.succeeds(QPS);
    }
    // The first post of a round leaves alone, the others with the poll.
    client.counts("datagrams_sent", 2 * ROUNDS as u64);
}
