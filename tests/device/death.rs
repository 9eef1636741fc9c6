//! Either end is killed, or stopped so that it falls silent, at every step of a session. The other end
//! notices within two seconds and keeps what was measured; a server serves the next client.

use std::net::SocketAddr;
use std::time::Duration;

use crate::lab::NOTICED;
use crate::lab::program::{Ended, Program, Signal, send_signal};
use crate::lab::proxy::{From, Proxy, Step};
use crate::lab::server::Server;

/// Two cases; the first is to be finished when the end dies in the second.
const TWO_CASES: [&str; 12] = [
    "-q", "2,3", "-t", "8", "--op", "send", "-s", "4K", "-D", "200ms", "--warmup", "100ms",
];

/// Phases in the midst of which an end can die, also when a busy machine is late.
const LONG_PHASES: [&str; 4] = ["-D", "1200ms", "--warmup", "800ms"];

const SOON: Duration = Duration::from_millis(150);

const fn at(from: From, kind: &'static str) -> Step {
    Step {
        from,
        kind,
        nth: 2,
        later: Duration::ZERO,
    }
}

const fn after(from: From, kind: &'static str) -> Step {
    Step {
        later: SOON,
        ..at(from, kind)
    }
}

/// At the first message of its kind: in the handshake, or in the first case.
const fn first(from: From, kind: &'static str) -> Step {
    Step {
        nth: 1,
        ..at(from, kind)
    }
}

const HANDSHAKE: [Step; 5] = [
    first(From::Client, "hello"),
    first(From::Server, "challenge"),
    first(From::Client, "proof"),
    first(From::Server, "welcome"),
    first(From::Client, "introduce"),
];

const CONNECT: [Step; 5] = [
    at(From::Client, "prepare"),
    at(From::Client, "create"),
    at(From::Server, "created"),
    at(From::Client, "connect"),
    at(From::Server, "ready"),
];

const TRAFFIC: [Step; 6] = [
    at(From::Client, "start"),
    after(From::Client, "start"),
    at(From::Client, "measure"),
    at(From::Server, "measure"),
    at(From::Client, "open"),
    IN_THE_WINDOW,
];

const IN_THE_WINDOW: Step = after(From::Client, "open");

const DRAIN: [Step; 4] = [
    at(From::Client, "stop"),
    at(From::Server, "drained"),
    at(From::Client, "settle"),
    at(From::Server, "settled"),
];

fn client_of(proxy: &Proxy, step: Step, more: &[&str]) -> Program {
    let address = proxy.address.to_string();
    let long: &[&str] = if step.later.is_zero() {
        &[]
    } else {
        &LONG_PHASES
    };
    let more = [more, long].concat();
    let usual = TWO_CASES.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let mut all = vec![address.as_str(), "-d", "rxe0"];
    all.extend(usual.flatten());
    all.extend(&more);
    Program::sweep(&all)
}

fn address(server: &Server) -> SocketAddr {
    server.name.parse().unwrap()
}

/// A server that does not survive `signal` at `step`; how its client ends.
fn server_gets(signal: Signal, step: Step, more: &[&str]) -> (Ended, Proxy) {
    let server = Server::start();
    let pid = server.program.pid();
    let proxy = Proxy::start("192.0.2.1", address(&server), step, move || {
        send_signal(pid, signal);
    });
    let client = client_of(&proxy, step, more);
    proxy.await_deed();
    (client.wait().exits(1), proxy)
}

#[track_caller]
fn kept(ended: &Ended, step: Step) {
    let runs = ended.runs();
    assert_eq!(runs.len(), 2, "{step:?}: {}", ended.stderr());
    assert!(
        runs[0].complete && runs[0].flows[0].totals.messages > 0,
        "{step:?}: {:?}",
        runs[0].failure
    );
    assert!(!runs[1].complete && runs[1].failure.is_some(), "{step:?}");
    let has_measured = DRAIN.iter().any(|drain| drain.kind == step.kind)
        || step.kind == IN_THE_WINDOW.kind && !step.later.is_zero();
    if has_measured {
        assert!(
            runs[1].flows[0].totals.messages > 0,
            "{step:?}: the partial case is kept"
        );
        assert!(runs[1].flows[0].window.seconds > 0.0, "{step:?}");
    }
}

fn killed_servers(steps: &[Step]) {
    for &step in steps {
        let (ended, proxy) = server_gets(Signal::Kill, step, &[]);
        let noticed = ended
            .time_of("closed the connection")
            .saturating_duration_since(proxy.done_at());
        assert!(noticed < NOTICED + proxy.lag(), "{step:?}: {noticed:?}");
        if step.nth == 2 {
            kept(&ended, step);
        }
    }
}

#[test]
fn server_killed_in_handshake() {
    killed_servers(&HANDSHAKE);
}

#[test]
fn server_killed_in_connect() {
    killed_servers(&CONNECT);
}

#[test]
fn server_killed_in_warm_up_or_measurement() {
    killed_servers(&TRAFFIC);
}

#[test]
fn server_killed_in_drain() {
    killed_servers(&DRAIN);
}

#[test]
fn server_killed_under_every_operation() {
    for op in ["write", "read"] {
        let step = IN_THE_WINDOW;
        let (ended, proxy) = server_gets(Signal::Kill, step, &["--op", op, "-b"]);
        let noticed = ended
            .time_of("closed the connection")
            .saturating_duration_since(proxy.done_at());
        assert!(noticed < NOTICED + proxy.lag(), "{op}: {noticed:?}");
        kept(&ended, step);
    }
}

#[test]
fn server_falls_silent() {
    for step in [
        at(From::Client, "prepare"),
        after(From::Client, "start"),
        IN_THE_WINDOW,
        at(From::Client, "stop"),
    ] {
        let (ended, proxy) = server_gets(Signal::Stop, step, &[]);
        let noticed = ended
            .time_of("silent")
            .saturating_duration_since(proxy.done_at());
        assert!(noticed < NOTICED + proxy.lag(), "{step:?}: {noticed:?}");
        kept(&ended, step);
    }
}

/// The client gets `signal` at each step; one server sees them all, and serves on.
fn clients_get(signal: Signal, steps: &[Step], more: &[&str], words: &str) {
    let server = Server::start();
    for &step in steps {
        let lines = server.program.lines().len();
        let victim = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let pid = std::sync::Arc::clone(&victim);
        let proxy = Proxy::start("192.0.2.1", address(&server), step, move || {
            send_signal(pid.load(std::sync::atomic::Ordering::SeqCst), signal);
        });
        let client = client_of(&proxy, step, more);
        victim.store(client.pid(), std::sync::atomic::Ordering::SeqCst);
        let died = proxy.await_deed();
        let noticed = server.says(lines, words).saturating_duration_since(died);
        assert!(noticed < NOTICED + proxy.lag(), "{step:?}: {noticed:?}");
        client.signal(Signal::Kill);
        assert_eq!(client.wait().signal, Some(9), "{step:?}");
        server.serves_the_next();
    }
    server.end();
}

const CLOSED: &str = "closed the connection";

#[test]
fn client_killed_in_handshake() {
    clients_get(Signal::Kill, &HANDSHAKE, &[], CLOSED);
}

#[test]
fn client_killed_in_connect() {
    clients_get(Signal::Kill, &CONNECT, &[], CLOSED);
}

#[test]
fn client_killed_in_warm_up_or_measurement() {
    clients_get(Signal::Kill, &TRAFFIC, &[], CLOSED);
}

#[test]
fn client_killed_in_drain_or_report() {
    // After the last run's `run_done` a client may say goodbye before it is gone.
    let report = [
        at(From::Client, "finish"),
        at(From::Server, "report"),
        first(From::Client, "run_done"),
    ];
    clients_get(Signal::Kill, &[&DRAIN[..], &report].concat(), &[], CLOSED);
}

#[test]
fn client_killed_in_both_directions() {
    for op in ["send", "write", "read"] {
        clients_get(Signal::Kill, &[IN_THE_WINDOW], &["--op", op, "-b"], CLOSED);
    }
}

#[test]
fn client_killed_among_many_qps() {
    // Long enough for the end to die while QPs are made and connected.
    let steps = [
        first(From::Client, "create"),
        Step {
            later: SOON,
            ..first(From::Client, "create")
        },
        Step {
            later: SOON,
            ..first(From::Client, "connect")
        },
    ];
    clients_get(
        Signal::Kill,
        &steps,
        &["-q", "500", "-t", "4", "-r", "8", "-Q", "1"],
        CLOSED,
    );
}

#[test]
fn client_falls_silent() {
    let steps = [
        at(From::Client, "prepare"),
        after(From::Client, "start"),
        IN_THE_WINDOW,
        at(From::Server, "drained"),
    ];
    clients_get(Signal::Stop, &steps, &[], "silent");
}
