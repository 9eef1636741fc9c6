//! What a device or a machine cannot do comes back as a sentence with the limit, and exit code 2.

use testing::program::words;
use testing::server::Server;

fn refused(server: &Server, arguments: &[&str], told: &[&str]) {
    let all = [&["-n", "1", "--warmup", "0"], arguments].concat();
    server.sweep(&all).exits(2).says(told).says(&["hint:"]);
}

#[test]
fn more_than_the_device_has() {
    let server = Server::start();
    refused(
        &server,
        &["--cq-depth", "40000"],
        &["rxe0", "entries in one CQ", "32767", "40000"],
    );
    refused(
        &server,
        &words("-q 600 -t 100 -Q 1 -s 64 --op write"),
        &["entries in one CQ", "32767", "60000", "--cq per-qp"],
    );
    refused(&server, &["-I", "64K", "-s", "64"], &["inline", "--inline"]);
    refused(
        &server,
        &["--op", "read", "--max-rd-atomic", "255"],
        &["READs", "255", "--max-rd-atomic"],
    );
    server.serves_the_next();
}

/// Only the receiver needs room for receives: it is the server's limit, told to the client.
#[test]
fn the_servers_limit_reaches_the_client() {
    let server = Server::start();
    refused(
        &server,
        &["-r", "40000", "-t", "8", "-s", "64"],
        &["rxe1", "entries in one CQ", "32767", "40000", "--rx-depth"],
    );
    server.serves_the_next();
}

#[test]
fn a_larger_mtu_than_the_ports() {
    let lower = |mtu: &str| {
        for interface in ["v0", "v1"] {
            let command = ["link", "set", interface, "mtu", mtu];
            let status = std::process::Command::new("ip")
                .args(command)
                .status()
                .unwrap();
            assert!(status.success());
        }
    };
    let server = Server::start();
    lower("1500");
    let ended = server.sweep(&["-n", "1", "--warmup", "0", "-m", "4096"]);
    let smaller = server.sweep(&["-n", "9", "--warmup", "0", "--verify"]);
    lower("4200");
    ended.exits(2).says(&["4096", "1024", "--mtu"]);
    assert_eq!(
        smaller.exits(0).result().cases[0].config.flows[0].path_mtu,
        Some(1024)
    );
}

#[test]
fn no_such_device_port_or_gid() {
    let server = Server::start();
    drop(server);
    let sweep =
        |more: &[&str]| testing::program::sweep(&[&["-n", "1", "--warmup", "0"], more].concat());
    sweep(&["-d", "mlx5_9"]).exits(2).says(&["mlx5_9", "rxe0"]);
    sweep(&["-d", "rxe0", "-i", "7"])
        .exits(2)
        .says(&["7", "hint:"]);
    sweep(&["-d", "rxe0", "-x", "99"])
        .exits(2)
        .says(&["99", "--gid-index"]);
    testing::program::Program::bare(&["serve", "-d", "mlx5_9"])
        .wait()
        .exits(2)
        .says(&["mlx5_9"]);
}

/// How much can be sent inline is known only once a QP is made; what the device tells is checked before the first run.
#[test]
fn a_sweep_goes_on_after_a_case_that_cannot_be() {
    let server = Server::start();
    let ended = server
        .sweep(&words("-n 5 --warmup 0 -I 64K,0 --op write -s 64"))
        .exits(2);
    let runs = ended.runs();
    assert_eq!(
        (runs[0].complete, runs[1].complete),
        (false, true),
        "{}",
        ended.stderr()
    );
    assert_eq!(runs[1].flows[0].totals.messages, 5);
}
