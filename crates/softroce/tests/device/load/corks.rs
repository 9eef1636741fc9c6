//! Small posts wait for the program's next poll while others are on their way. They must leave whether it polls or not.

use crate::support::end::{End, Plan, pair, request};
use crate::support::look::SOON;
use testing::wait::wait_until;

const QPS: usize = 16;
const MESSAGE_BYTES: usize = 64;

fn ends() -> (End, End) {
    pair(&Plan {
        qps: QPS,
        ..Plan::default()
    })
}

#[test]
fn posts_of_many_calls_and_qps_leave_together() {
    const ROUNDS: usize = 200;
    let (client, server) = ends();
    for _ in 0..ROUNDS {
        for qp in 0..QPS {
            client.post(qp, server.write_to(0), &[client.sge(0, MESSAGE_BYTES)]);
        }
        client.succeeds(QPS);
    }
    // The first post of a round leaves alone, the others with the poll; where the thread is held up they leave alone too.
    let alone = (ROUNDS * QPS) as u64;
    assert!(client.counter("datagrams_sent") < alone);
}

#[test]
fn posts_of_a_program_that_never_polls_arrive() {
    let (mut client, server) = ends();
    client.memory.fill(7);
    client.cq.poll(1, |_| {}).unwrap();
    for post in 0..8 * QPS {
        let sges = [client.sge(0, MESSAGE_BYTES)];
        let operation = server.write_to(post % QPS * MESSAGE_BYTES);
        let mut next = Some(request(7, operation, &sges));
        let unsignaled = || {
            let mut request = next.take()?;
            request.signaled = false;
            Some(request)
        };
        // SAFETY: nothing is inline.
        unsafe { client.qps[post % QPS].post_send(unsignaled) }.unwrap();
    }
    let last = QPS * MESSAGE_BYTES - 1;
    wait_until("the last byte", SOON, || server.byte(last) == 7);
}
