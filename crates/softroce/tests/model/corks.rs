//! Small posts wait for the program's next poll while others are on their way. They must leave whether it polls or not.

use std::time::{Duration, Instant};

use softroce::transport::{Operation, Status};

use crate::counter::counter;
use crate::end::{End, Plan, pair, request};

const MESSAGE_BYTES: usize = 64;

fn write(client: &End, server: &End, qp: usize, signaled: bool) {
    let offset = qp * MESSAGE_BYTES;
    let sge = [client.sge(offset, MESSAGE_BYTES)];
    let operation = Operation::Write {
        address: server.address(offset),
        rkey: server.key,
    };
    let mut posted = Some(request(7, operation, &sge));
    let next = || {
        let mut request = posted.take()?;
        request.signaled = signaled;
        Some(request)
    };
    // SAFETY: nothing is inline.
    unsafe { client.qps[qp].post_send(next) }.unwrap();
}

#[test]
fn posts_of_many_calls_and_qps_leave_together() {
    let qps = 16;
    let (client, server) = pair(&Plan {
        qps,
        ..Plan::default()
    });
    let rounds = 200;
    let mut done = 0;
    for _ in 0..rounds {
        (0..qps).for_each(|qp| write(&client, &server, qp, true));
        let wanted = done + qps;
        while done < wanted {
            let each = |completion: &softroce::transport::Completion| {
                assert_eq!(completion.status, Status::Success);
                done += 1;
            };
            client.cq.poll(64, each).expect("the CQ has room");
            server.cq.poll(1, |_| {}).expect("the CQ has room");
        }
    }
    let datagrams = counter(&client.nic, "datagrams_sent");
    // The first post of a round leaves alone, the others with the poll; where the thread is held up they leave alone too.
    let alone = (rounds * qps) as u64;
    assert!(datagrams < alone / 2, "{datagrams} of {alone}");
}

#[test]
fn posts_of_a_program_that_never_polls_arrive() {
    let (mut client, mut server) = pair(&Plan {
        qps: 4,
        ..Plan::default()
    });
    client.memory.fill(7);
    server.memory.fill(0);
    client.cq.poll(1, |_| {}).expect("the CQ has room");
    for _ in 0..8 {
        (0..4).for_each(|qp| write(&client, &server, qp, false));
    }
    let began = Instant::now();
    let last = server.address(4 * MESSAGE_BYTES - 1);
    let last = std::ptr::with_exposed_provenance::<u8>(last as usize);
    // SAFETY: a byte of the server's memory.
    while unsafe { last.read_volatile() } != 7 {
        assert!(began.elapsed() < Duration::from_secs(1), "it did not come");
        std::thread::sleep(Duration::from_micros(20));
    }
}
