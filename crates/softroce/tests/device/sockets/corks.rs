//! Small posts wait for the program's next poll. They must leave although it does not poll.

use crate::support::end::{Plan, pair, post, request};
use crate::support::look::SOON;
use testing::wait::wait_until;

const QPS: usize = 16;
const MESSAGE_BYTES: usize = 64;

#[test]
fn posts_of_a_program_that_never_polls_arrive() {
    let (mut client, server) = pair(&Plan { qps: QPS, ..Plan::default() });
    client.memory.fill(7);
    client.cq.poll(1, |_| {}).unwrap();
    for number in 0..8 * QPS {
        let sges = [client.sge(0, MESSAGE_BYTES)];
        let operation = server.write_to(number % QPS * MESSAGE_BYTES);
        let mut unsignaled = request(7, operation, &sges);
        unsignaled.signaled = false;
        post(&client.qps[number % QPS], &[unsignaled]).unwrap();
    }
    let last = QPS * MESSAGE_BYTES - 1;
    wait_until("the last byte", SOON, || server.byte(last) == 7);
}
