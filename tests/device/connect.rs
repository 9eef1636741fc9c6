//! `--op connect` on the kernel's device: every connection is counted, traffic goes on, and a peer's death between
//! two QPs is noticed.

use std::time::Duration;

use crate::lab::NOTICED;
use crate::lab::check;
use crate::lab::program::{Program, Signal, send_signal};
use crate::lab::proxy::{From, Proxy, Step};
use crate::lab::server::Server;

const TRAFFIC: [&str; 6] = ["-s", "4K", "-t", "8", "--op", "connect"];

#[test]
fn connections_are_counted_beside_traffic_and_alone() {
    let server = Server::start();
    let rounds = ["-q", "1,16,256", "--traffic-qps", "0,2", "-n", "3"];
    let more = ["--warmup", "100ms"];
    let ended = server
        .sweep(&[&TRAFFIC[..], &rounds, &more].concat())
        .exits(0);
    check::schema(&ended.json());
    let mut cases = 0;
    let result = ended.result();
    for case in &result.cases {
        let (config, run) = (&case.config, &case.runs[0]);
        let connect = run.connect.as_ref().unwrap();
        assert!(run.complete, "{}: {:?}", case.id, run.failure);
        assert_eq!(connect.connections, 3 * u64::from(config.qps));
        for steps in [&connect.steps, &connect.peer_steps] {
            assert_eq!(steps.len(), 6, "{}", case.id);
            for step in steps {
                let count = match step.per.as_str() {
                    "round" => 3,
                    _ => connect.connections,
                };
                assert_eq!(step.time_ns.count, count, "{}: {}", case.id, step.step);
            }
        }
        let traffic = config.traffic_qps.unwrap();
        assert_eq!(run.forward.qps.len(), traffic as usize);
        assert_eq!(run.forward.totals.messages > 0, traffic > 0, "{}", case.id);
        assert_eq!(connect.traffic_alone_gbit_per_s.is_some(), traffic > 0);
        assert_eq!(config.mtu, Some(4096));
        cases += 1;
    }
    assert_eq!(cases, 6);
    server.end();
}

/// At the third message of its kind, in the midst of the window.
#[test]
fn a_servers_death_at_any_step_of_a_round_is_noticed() {
    for (from, kind) in [
        (From::Client, "setup_round"),
        (From::Client, "setup_array"),
        (From::Server, "setup_array"),
        (From::Server, "setup_gone"),
    ] {
        let server = Server::start();
        let pid = server.program.pid();
        let step = Step {
            from,
            kind,
            nth: 3,
            later: Duration::ZERO,
        };
        let address = server.name.parse().unwrap();
        let proxy = Proxy::start("192.0.2.1", address, step, move || {
            send_signal(pid, Signal::Kill);
        });
        let name = proxy.address.to_string();
        let words = [
            &name, "-d", "rxe0", "-q", "64", "-D", "60s", "--warmup", "0",
        ];
        let client = Program::sweep(&[&words[..], &TRAFFIC].concat());
        proxy.await_deed();
        let ended = client.wait().exits(1);
        let noticed = ended
            .time_of("closed the connection")
            .saturating_duration_since(proxy.done_at());
        assert!(noticed < NOTICED + proxy.lag(), "{kind}: {noticed:?}");
        let run = ended.runs().remove(0);
        assert!(!run.complete, "{kind}");
        assert!(run.connect.unwrap().connections >= 64, "{kind}");
    }
}

#[test]
fn ctrl_c_is_obeyed_between_two_queue_pairs() {
    let server = Server::start();
    let lines = server.program.lines().len();
    let client =
        server.client(&[&TRAFFIC[..], &["-q", "256", "-D", "60s", "--warmup", "0"]].concat());
    server.says(lines, "run 1");
    std::thread::sleep(Duration::from_millis(1500));
    let asked = std::time::Instant::now();
    client.signal(Signal::Interrupt);
    let ended = client.wait().exits(1).says(&["interrupted"]);
    assert!(ended.at - asked < Duration::from_secs(4));
    assert!(ended.runs()[0].interrupted);
    server.serves_the_next();
    server.end();
}
