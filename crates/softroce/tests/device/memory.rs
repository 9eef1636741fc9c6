//! Devices of one process, whose packets go through memory: where the kernel carries none, since loopback is down.

use softroce::transport::{Kind, Wire};
use testing::own_network::in_own_network;
use testing::wait::wait_until;

use crate::support::end::{End, Plan, pair, post, request};
use crate::support::look::SOON;

/// Loopback is down in a new namespace.
const NO_LOOPBACK: &str = "exec \"$@\"";
const BYTES: usize = 64 << 10;

fn plan() -> Plan {
    Plan { wire: Wire::Memory, ..Plan::default() }
}

#[test]
fn transfers_need_no_kernel() {
    in_own_network("memory::transfers_need_no_kernel", NO_LOOPBACK, || {
        let (mut client, mut server) = pair(&plan());
        let number = server.qps[0].number();
        assert_eq!(client.nic.wire_to(server.nic.address(), number), Wire::Memory);
        client.fill();
        client.run(32, 4, BYTES, |_| (server.write_to(0), 0));
        assert!(server.memory[..BYTES] == client.memory[..BYTES]);
        server.memory[..BYTES].fill(9);
        client.run(32, 4, BYTES, |_| (server.read_from(0), 0));
        assert!(client.memory[..BYTES].iter().all(|byte| *byte == 9));
        for nothing in ["send_errors", "timeouts", "go_backs", "bad_icrc", "socket_drops"] {
            assert_eq!(client.counter(nothing), 0, "{nothing}");
        }
    });
}

#[test]
fn what_comes_while_nobody_polls_is_handled() {
    in_own_network("memory::what_comes_while_nobody_polls_is_handled", NO_LOOPBACK, || {
        let (mut client, server) = pair(&plan());
        for value in 1..=100 {
            client.memory.fill(value);
            // One poll: the engine takes the program for one that polls, and must find out that it has stopped.
            server.cq.poll(1, |_| {}).unwrap();
            client.cq.poll(1, |_| {}).unwrap();
            let sges = [client.sge(0, 64)];
            let mut unsignaled = request(7, server.write_to(0), &sges);
            unsignaled.signaled = false;
            post(&client.qps[0], &[unsignaled]).unwrap();
            wait_until("the last byte", SOON, || server.byte(63) == value);
        }
    });
}

#[test]
fn a_device_that_wants_sockets_is_reached_by_them_alone() {
    let by_memory = End::new(&plan());
    let by_sockets = End::new(&Plan { wire: Wire::Udp, ..plan() });
    let ends = [(&by_memory, &by_sockets), (&by_sockets, &by_memory), (&by_memory, &by_memory)];
    let wires = ends.map(|(from, to)| from.nic.wire_to(to.nic.address(), to.qps[0].number()));
    assert_eq!(wires, [Wire::Udp, Wire::Udp, Wire::Memory]);
}

#[test]
fn a_device_that_was_closed_is_not_reached() {
    let (client, server) = pair(&Plan { kind: Kind::Uc, ..plan() });
    let (address, number) = (server.nic.address(), server.qps[0].number());
    drop(server);
    assert_eq!(client.nic.wire_to(address, number), Wire::Udp);
    let to = softroce::transport::Operation::Write { address: 0, rkey: 0 };
    client.post(0, to, &[client.sge(0, 64)]);
    client.succeeds(1);
}
