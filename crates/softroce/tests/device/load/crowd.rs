//! A thousand QPs: none fails because the others take long, and a timer of one looks at no other.

use softroce::transport::{Operation, Status};

use crate::support::end::{End, Plan, pair, post, request};

const QPS: usize = 1024;
const LIST: usize = 32;
const BYTES: usize = 64;

fn receive(end: &End, qp: usize) {
    let sge = end.sge(qp * BYTES, BYTES);
    end.qps[qp].post_recv(qp as u64, &[sge]).unwrap();
}

fn post_list(client: &End, qp: usize) {
    let sge = [client.sge(qp * BYTES, BYTES)];
    let mut list = [request(qp as u64, Operation::Send, &sge); LIST];
    let unsignaled = &mut list[..LIST - 1];
    unsignaled.iter_mut().for_each(|it| it.signaled = false);
    post(&client.qps[qp], &list).unwrap();
}

#[test]
fn lists_of_a_thousand_qps_all_arrive() {
    let (client, server) = pair(&Plan {
        qps: QPS,
        memory_bytes: QPS * BYTES,
        send_wrs: LIST as u32,
        recv_wrs: 2 * LIST as u32,
        ..Plan::on(1, "delay=2us")
    });
    for qp in 0..QPS {
        (0..2 * LIST).for_each(|_| receive(&server, qp));
    }
    for _ in 0..2 {
        (0..QPS).for_each(|qp| post_list(&client, qp));
        client.succeeds(QPS);
    }
    server.succeeds(2 * QPS * LIST);
}

#[test]
fn pauses_of_one_qp_look_at_no_other() {
    const PAUSES: u8 = 6;
    let mut plan = Plan {
        qps: QPS,
        memory_bytes: 1 << 16,
        send_wrs: 4,
        recv_wrs: 4,
        ..Plan::on(1, "delay=2us")
    };
    plan.deliveries.rnr_retry = PAUSES;
    let (from, to) = pair(&plan);
    // No receive is posted: a receiver that is not ready asks for a pause, again and again.
    from.post(0, Operation::Send, &[from.sge(0, 64)]);
    assert_eq!(from.completion().status, Status::RnrRetryExceededError);
    assert_eq!(to.counter("rnr_naks_sent"), u64::from(PAUSES) + 1);
    let checks = from.counter("timer_checks");
    assert!((PAUSES.into()..QPS as u64).contains(&checks), "{checks}");
}
