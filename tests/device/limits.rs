//! What a device or a machine cannot do comes back as a sentence with the limit, and exit code 2.

use testing::program::{Server, bare, run, sweep};

#[test]
fn more_than_the_devices_have() {
    let server = Server::start();
    let of_cqs = ["entries in one CQ", "32767"];
    for (line, reasons) in [
        ("--cq-depth 40000", &["rxe0", "40000", of_cqs[0], of_cqs[1]][..]),
        ("-q 600 -t 100 -Q 1 -s 64 --op write", &["60000", "--cq per-qp", of_cqs[0], of_cqs[1]]),
        ("-I 64K -s 64", &["inline", "--inline"]),
        ("--op read --max-rd-atomic 255", &["READs", "255", "--max-rd-atomic"]),
        // Only the receiver needs room for receives: it is the server's limit, told to the client.
        ("-r 40000 -t 8 -s 64", &["rxe1", "40000", "--rx-depth", of_cqs[0], of_cqs[1]]),
    ] {
        let call = server.call(&format!("{line} -n 1 --warmup 0"));
        call.is_refused(reasons).says(&["hint:"]);
    }
    server.serves_the_next();
}

#[test]
fn a_larger_mtu_than_the_ports() {
    let lower = |mtu: &str| {
        for interface in ["v0", "v1"] {
            run(&format!("ip link set {interface} mtu {mtu}"));
        }
    };
    let server = Server::start();
    lower("1500");
    let ended = server.call("-n 1 --warmup 0 -m 4096").run();
    let smaller = server.call("-n 9 --warmup 0 --verify").run();
    lower("4200");
    ended.exits(2).says(&["4096", "1024", "--mtu"]);
    let config = &smaller.exits(0).result().cases[0].config;
    assert_eq!(config.flows[0].path_mtu, Some(1024));
}

#[test]
fn no_such_device_port_or_gid() {
    for (line, reasons) in [
        ("-d mlx5_9", ["mlx5_9", "rxe0"]),
        ("-d rxe0 -i 7", ["7", "hint:"]),
        ("-d rxe0 -x 99", ["99", "--gid-index"]),
    ] {
        sweep(&format!("{line} -n 1 --warmup 0")).is_refused(&reasons);
    }
    bare("serve -d mlx5_9").is_refused(&["mlx5_9"]);
}

/// How much can be sent inline is known only once a QP is made; what the device tells is checked before the first run.
#[test]
fn a_sweep_goes_on_after_a_case_that_cannot_be() {
    let server = Server::start();
    let call = server.call("-n 5 --warmup 0 -I 64K,0 --op write -s 64");
    let runs = call.is_refused(&[]).runs();
    let complete: Vec<bool> = runs.iter().map(|run| run.complete).collect();
    assert_eq!(complete, [false, true]);
    assert_eq!(runs[1].flows[0].totals.messages, 5);
}
