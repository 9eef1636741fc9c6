//! rocebench between the kernel's Soft-RoCE and the embedded device, either as the client, every byte checked:
//! each is the other's proof of the wire format.

use testing::network::{End, RXE, SOFT, Wire};
use testing::process::Call;
use testing::program::{patient, program};

/// Sweeps from `client`, with these options; all cases must be complete and right.
fn sweep(client: End, port: u16, cases: usize, options: &str) {
    let server = client.other().serve(port);
    let usual = "--op send,write,read --verify --warmup 0 -t 8 -r 16";
    let line = format!("{} -d {} {usual} {options}", server.name, client.device);
    let call = Call::new(client.command(program()), &patient(&line));
    for case in call.is_whole(cases).result().cases {
        let flow = &case.config.flows[0];
        let ends = [&flow.from_device, &flow.to_device].map(|it| it.as_deref());
        assert_eq!(ends, [client, client.other()].map(|it| Some(it.device)));
    }
    server.end();
}

/// Sizes whose last packets need padding; and each connection manager is the other's proof too.
#[test]
fn either_as_client() {
    let _wire = Wire::lay();
    for (client, port, mtu) in [(SOFT, 18600, 1024), (RXE, 18601, 4096)] {
        sweep(client, port, 6, &format!("-q 3 -s 61,20001 -n 9 -m {mtu}"));
        sweep(client, port + 2, 3, "-q 8 -s 4096 -n 5 --connect cm");
    }
}

/// The ACK timeout of 268 ms is longer than an answer takes in a slow guest: rxe is not to repeat without need
/// (docs/dev/lab.md).
#[test]
fn one_percent_of_loss_between_the_two_corrupts_nothing() {
    let wire = Wire::lay();
    wire.lose(1);
    for (client, port) in [(SOFT, 18604), (RXE, 18605)] {
        let before = wire.repaired();
        let options = "--cq per-worker --workers 2 -q 2 -m 1024 -s 20001 -n 25 --timeout 16";
        sweep(client, port, 3, options);
        let what = "nothing was lost, so nothing was tested";
        assert!(wire.repaired() > before, "{what}, {client:?}");
    }
}

/// A client's own node is reached over it.
#[test]
fn a_client_without_loopback_is_told() {
    let wire = Wire::lay();
    wire.take_loopback();
    let line = format!("-d {} -n 1", SOFT.device);
    let call = Call::new(SOFT.command(program()), &line);
    call.fails(&["ip link set lo up"]);
}
