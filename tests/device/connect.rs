//! `--op connect` on the kernel's device: every connection is counted, traffic goes on, and a peer's death between
//! two QPs is noticed.

use report::results::model::{CaseResult, FlowResult, Run};

use testing::check;
use testing::program::words;
use testing::program::{Program, Signal, send_signal};
use testing::proxy::{From, Proxy, Step};
use testing::server::Server;
use testing::traffic::Traffic;

const TRAFFIC: &str = "-s 4K -t 8 --op connect";

#[test]
fn connections_are_counted_beside_traffic_and_alone() {
    let server = Server::start();
    let all = format!("{TRAFFIC} -q 1,16,256 --traffic-qps 0,2 -n 3 --warmup 100ms");
    let ended = server.sweep(&words(&all)).exits(0);
    check::schema(ended.json());
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
        let traffic = config.traffic_qps;
        check_traffic(case, run);
        assert_eq!(connect.traffic_alone_gbit_per_s.is_some(), traffic > 0);
        for flow in &config.flows {
            assert_eq!(flow.path_mtu, Some(4096));
        }
        cases += 1;
    }
    assert_eq!(cases, 6);
    server.end();
}

/// At the third message of its kind, in the midst of the window.
#[test]
fn a_servers_death_at_any_step_of_a_round_is_noticed() {
    for (way, from, kind) in [
        ("tcp", From::Client, "setup_round"),
        ("tcp", From::Client, "setup_array"),
        ("tcp", From::Server, "setup_array"),
        ("tcp", From::Server, "setup_gone"),
        ("cm", From::Client, "setup_round"),
        ("cm", From::Server, "setup_array"),
    ] {
        let server = Server::start();
        let pid = server.program.pid();
        let step = Step { from, kind, nth: 3 };
        let address = server.name.parse().unwrap();
        let proxy = Proxy::start("192.0.2.1", address, step, move || {
            send_signal(pid, Signal::Kill);
        });
        let how = format!("-d rxe0 -q 64 -D 60s --warmup 0 {TRAFFIC} --connect {way}");
        let client = Program::sweep(&words(&format!("{} {how}", proxy.address)));
        proxy.await_deed();
        let ended = client.wait().exits(1).says(&["closed the connection"]);
        let run = ended.runs().remove(0);
        assert!(!run.complete, "{way} {kind}");
        assert!(run.connect.unwrap().connections >= 64, "{way} {kind}");
    }
}

#[test]
fn ctrl_c_is_obeyed_between_two_queue_pairs() {
    let server = Server::start();
    for way in ["tcp", "cm"] {
        let traffic = Traffic::of("rxe0");
        let long = format!("{TRAFFIC} -q 256 -D 60s --warmup 0 --connect {way}");
        let client = server.client(&words(&long));
        // It begins with the first round.
        traffic.await_packets(1_000);
        client.signal(Signal::Interrupt);
        let ended = client.wait().exits(1).says(&["interrupted"]);
        assert!(ended.runs()[0].interrupted);
        server.serves_the_next();
    }
    server.end();
}

/// The rounds' connections are all there at every step, be there a few or hundreds; each way has its own steps.
#[test]
fn by_the_connection_manager_beside_tcp() {
    let server = Server::start();
    let counted = "--traffic-qps 0 -n 3 -q 256";
    let timed = "--traffic-qps 0,1 -D 500ms -q 1,16";
    for (how, cases) in [(counted, 2), (timed, 8)] {
        let all = format!("--op connect --connect tcp,cm --warmup 100ms {how}");
        let ended = server.sweep(&words(&all)).exits(0);
        check::schema(ended.json());
        let result = ended.result();
        assert_eq!(result.cases.len(), cases);
        for case in &result.cases {
            check_way(case);
        }
    }
    server.end();
}

fn check_way(case: &CaseResult) {
    let (config, run) = (&case.config, &case.runs[0]);
    let connect = run.connect.as_ref().unwrap();
    assert!(run.complete, "{}: {:?}", case.id, run.failure);
    assert!(connect.rounds > 0 && connect.connections_per_second.unwrap() > 0.0);
    let connections = connect.rounds * u64::from(config.qps);
    assert_eq!(connect.connections, connections);
    let is_by_cm = config.connect == settings::ConnectMode::Cm;
    assert_eq!(case.id.ends_with("-cm"), is_by_cm, "{}", case.id);
    assert_eq!(connect.stale_rejections.is_some(), is_by_cm);
    let alike = ["create", "init", "exchange", "rtr", "rts", "destroy"];
    let client = "create resolve route connect init rtr rts destroy";
    let server = "create init rtr rts destroy";
    for (steps, by_cm) in [(&connect.steps, client), (&connect.peer_steps, server)] {
        let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
        let wanted = if is_by_cm { by_cm } else { &alike.join(" ") };
        assert_eq!(names.join(" "), wanted, "{}", case.id);
        for step in steps {
            let once = match step.per.as_str() {
                "round" => connect.rounds,
                _ => connections,
            };
            assert_eq!(step.time_ns.count, once, "{}: {}", case.id, step.step);
            assert!(step.time_ns.min > 0, "{}: {}", case.id, step.step);
        }
    }
    // Within the time of a connection its own transitions.
    let mean_of = |name: &str| {
        let step = connect.steps.iter().find(|step| step.step == name);
        step.map_or(0.0, |step| step.time_ns.mean)
    };
    if is_by_cm {
        let inner = ["init", "rtr", "rts"].map(mean_of).iter().sum::<f64>();
        assert!(inner < mean_of("connect"), "{}", case.id);
    }
    check_traffic(case, run);
}

/// The traffic beside set-up is a flow that moves something; without traffic there is none.
fn check_traffic(case: &CaseResult, run: &Run) {
    let traffic = case.config.traffic_qps;
    let qps: Vec<usize> = run.flows.iter().map(|flow| flow.qps.len()).collect();
    let wanted = (traffic > 0).then_some(traffic as usize);
    assert_eq!(qps, Vec::from_iter(wanted), "{}", case.id);
    let is_idle = |flow: &FlowResult| flow.totals.messages == 0;
    assert!(!run.flows.iter().any(is_idle), "{}", case.id);
}
