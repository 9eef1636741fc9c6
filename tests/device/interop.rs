//! rocebench between the kernel's Soft-RoCE and the embedded device, either as the client, every byte checked:
//! each is the other's proof of the wire format.

use testing::check;
use testing::namespace::{End, RXE, SOFT, Wire};
use testing::program::{Program, Signal, program};
use testing::server::Server;

/// Sizes whose last packets need padding.
const SIZES: &str = "61,20001";

/// Sweeps from `client`, with these options; all cases must be complete and right.
fn sweep(client: End, port: u16, cases: usize, options: &str) {
    let server = Server::at(client.other(), port);
    let arguments: Vec<&str> = [server.name.as_str(), "-d", client.device]
        .into_iter()
        .chain(["--op", "send,write,read", "-m", "1024,4096"])
        .chain(["--verify", "--warmup", "0", "-t", "8", "-r", "16"])
        .chain(options.split_whitespace())
        .collect();
    let ended = Program::sweep_of(client.command(program()), &arguments).wait();
    let result = check::complete(&ended.exits(0));
    assert_eq!(result.cases.len(), cases);
    for case in &result.cases {
        assert_eq!(
            case.config.flows[0].from_device.as_deref(),
            Some(client.device)
        );
        let peer = case.config.flows[0].to_device.as_deref();
        assert_eq!(peer, Some(client.other().device));
        for run in &case.runs {
            assert!(run.flows[0].totals.gbit_per_s > Some(0.0), "{}", case.id);
        }
    }
    server.program.signal(Signal::Interrupt);
    server.program.wait().exits(0);
}

#[test]
fn the_embedded_device_as_client() {
    let _wire = Wire::lay();
    let options = format!("-q 3 -s {SIZES} -n 17");
    sweep(SOFT, 18600, 12, &options);
}

#[test]
fn the_kernels_device_as_client() {
    let _wire = Wire::lay();
    let options = format!("-q 3 -s {SIZES} -n 17");
    sweep(RXE, 18601, 12, &options);
}

/// The ACK timeout of 268 ms is longer than an answer takes in a slow guest: rxe is not to repeat without need
/// (docs/lab.md).
#[test]
fn one_percent_of_loss_between_the_two_corrupts_nothing() {
    let wire = Wire::lay();
    wire.lose(1);
    for (client, port) in [(SOFT, 18602), (RXE, 18603)] {
        let before = wire.repaired();
        let options = "--cq per-worker --workers 2 -q 2 -s 20001 -n 40 --timeout 16";
        sweep(client, port, 6, options);
        let what = "nothing was lost, so nothing was tested";
        assert!(wire.repaired() > before, "{what}, {client:?}");
    }
}

/// Each connection manager is the other's proof: the kernel's asks the embedded device's, and the other way round.
#[test]
fn both_connection_managers() {
    let _wire = Wire::lay();
    for (client, port) in [(SOFT, 18604), (RXE, 18605)] {
        sweep(client, port, 6, "-q 40 -s 4096 -n 17 --connect cm");
    }
}

/// A client's own node is reached over it.
#[test]
fn a_client_without_loopback_is_told() {
    let wire = Wire::lay();
    wire.take_loopback();
    Program::sweep_of(SOFT.command(program()), &["-d", SOFT.device, "-n", "1"])
        .wait()
        .exits(1)
        .says(&["ip link set lo up"]);
}
