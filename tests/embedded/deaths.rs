//! An end dies or falls silent at each step of a session: the other end notices, says so and keeps what was measured; a
//! server serves the next client. How soon it notices, the tests of the link state.

use std::net::SocketAddr;
use std::sync::mpsc::channel;

use testing::program::{Ended, Program, Signal, send_signal};
use testing::proxy::{From, Proxy, Step};
use testing::server::{Server, on_this_machine};

/// When an end dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// At a frame of the protocol.
    At(Step),
    /// When messages have moved in this phase.
    In(&'static str),
}

/// Two cases; the first is to be finished when the end dies in the second.
const TWO_CASES: [&str; 6] = ["-q", "2,3", "-n", "200", "--warmup", "10ms"];

/// One whose warm-up and whose window last until the end dies.
const WARMS_UP: [&str; 6] = ["-q", "3", "-D", "60s", "--warmup", "60s"];
const MEASURES: [&str; 6] = ["-q", "3", "-D", "60s", "--warmup", "0"];

const TRAFFIC_OF_BOTH: [&str; 6] = ["-t", "8", "--op", "send", "-s", "4K"];

/// At a frame of the second case.
const fn at(from: From, kind: &'static str) -> Death {
    Death::At(Step { from, kind, nth: 2 })
}

/// At the first message of its kind: in the handshake, or in the first case.
const fn first(from: From, kind: &'static str) -> Death {
    Death::At(Step::first(from, kind))
}

const HANDSHAKE: [Death; 5] = [
    first(From::Client, "hello"),
    first(From::Server, "challenge"),
    first(From::Client, "proof"),
    first(From::Server, "welcome"),
    first(From::Client, "introduce"),
];

const CONNECT: [Death; 5] = [
    at(From::Client, "prepare"),
    at(From::Client, "create"),
    at(From::Server, "created"),
    at(From::Client, "connect"),
    at(From::Server, "ready"),
];

const TRAFFIC: [Death; 6] = [
    at(From::Client, "start"),
    Death::In("warm-up"),
    at(From::Client, "measure"),
    at(From::Server, "measure"),
    at(From::Client, "open"),
    IN_THE_WINDOW,
];

const IN_THE_WINDOW: Death = Death::In("measure");

/// The queues run empty after a warm-up and after a window: these are after the second case's window.
const DRAIN: [Death; 4] = [
    drained(From::Client, "stop"),
    drained(From::Server, "drained"),
    drained(From::Client, "settle"),
    drained(From::Server, "settled"),
];

const fn drained(from: From, kind: &'static str) -> Death {
    Death::At(Step { from, kind, nth: 4 })
}

/// A client of `server` until `signal` has gone to the process that `victim` names.
fn client_until(
    death: Death,
    (server, more): (&Server, &[&str]),
    (signal, victim): (Signal, impl Fn(&Program) -> u32),
) -> Program {
    let (tell, told) = channel();
    let deed = move || send_signal(told.recv().unwrap(), signal);
    let (proxy, case) = match death {
        Death::At(step) => {
            let to: SocketAddr = server.name.parse().unwrap();
            let proxy = Proxy::start("127.0.0.1", to, step, deed);
            (Some(proxy), TWO_CASES)
        }
        Death::In("warm-up") => (None, WARMS_UP),
        Death::In(_) => (None, MEASURES),
    };
    let address = proxy.as_ref().map(|proxy| proxy.address.to_string());
    let mut all = vec![address.as_ref().unwrap_or(&server.name), "-d", "soft0"];
    let usual = case.chunks(2).chain(TRAFFIC_OF_BOTH.chunks(2));
    all.extend(usual.filter(|pair| !more.contains(&pair[0])).flatten());
    all.extend(more);
    let client = Program::sweep_of(on_this_machine(), &all);
    let pid = victim(&client);
    match (death, proxy) {
        (Death::In(phase), _) => {
            client.has_moved(0, phase, 0);
            send_signal(pid, signal);
        }
        (Death::At(_), proxy) => {
            tell.send(pid).unwrap();
            proxy.iter().for_each(Proxy::await_deed);
        }
    }
    client
}

/// What was measured before is in the result, and what was not is marked.
#[track_caller]
fn kept(ended: &Ended, death: Death) {
    let mut runs = ended.runs();
    let last = runs.pop().unwrap();
    assert!(!last.complete && last.failure.is_some(), "{death:?}");
    let has_measured = match death {
        Death::At(step) => {
            let said = ended.stderr();
            assert_eq!(runs.len(), 1, "{death:?}: {said}");
            assert!(runs[0].complete, "{death:?}: {:?}", runs[0].failure);
            assert!(runs[0].flows[0].totals.messages > 0, "{death:?}");
            let kind = |death: &Death| matches!(death, Death::At(it) if it.kind == step.kind);
            DRAIN.iter().any(kind)
        }
        Death::In(phase) => phase == "measure",
    };
    if has_measured {
        let flow = &last.flows[0];
        assert!(flow.totals.messages > 0, "{death:?}: the part is kept");
        assert!(flow.window.seconds > 0.0, "{death:?}");
    }
}

/// What is said of an end that got a signal.
fn words_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Stop => "silent",
        _ => "closed the connection",
    }
}

/// The server gets `signal` at each of these times of a run with `more` flags; its client says so, and keeps what it has.
#[track_caller]
fn servers_get(signal: Signal, deaths: &[Death], more: &[&str]) {
    for &death in deaths {
        let server = Server::embedded("-d soft0");
        let victim = |_: &Program| server.program.pid();
        let client = client_until(death, (&server, more), (signal, victim));
        let ended = client.wait().exits(1).says(&[words_of(signal)]);
        if !matches!(death, Death::At(step) if step.nth == 1) {
            kept(&ended, death);
        }
    }
}

/// The client gets `signal` at each of these times; one server sees them all, and serves on.
#[track_caller]
fn clients_get(signal: Signal, deaths: &[Death], more: &[&str]) {
    let server = Server::embedded("-d soft0");
    for &death in deaths {
        let lines = server.program.lines().len();
        let client = client_until(death, (&server, more), (signal, Program::pid));
        server.says(lines, words_of(signal));
        client.signal(Signal::Kill);
        assert_eq!(client.wait().signal, Some(9), "{death:?}");
        server.serves_the_next();
    }
    server.end();
}

fn killed_servers(deaths: &[Death], more: &[&str]) {
    servers_get(Signal::Kill, deaths, more);
}

fn killed_clients(deaths: &[Death], more: &[&str]) {
    clients_get(Signal::Kill, deaths, more);
}

#[test]
fn server_killed_in_handshake() {
    killed_servers(&HANDSHAKE, &[]);
}

#[test]
fn server_killed_in_connect() {
    killed_servers(&CONNECT, &[]);
}

#[test]
fn server_killed_in_warm_up_or_measurement() {
    killed_servers(&TRAFFIC, &[]);
}

#[test]
fn server_killed_in_drain() {
    killed_servers(&DRAIN, &[]);
}

#[test]
fn server_killed_under_every_operation() {
    for op in ["write", "read"] {
        killed_servers(&[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
}

#[test]
fn server_falls_silent() {
    let deaths = [at(From::Client, "prepare"), IN_THE_WINDOW, DRAIN[0]];
    servers_get(Signal::Stop, &deaths, &[]);
}

#[test]
fn client_killed_in_handshake() {
    killed_clients(&HANDSHAKE, &[]);
}

#[test]
fn client_killed_in_connect() {
    killed_clients(&CONNECT, &[]);
}

#[test]
fn client_killed_in_warm_up_or_measurement() {
    killed_clients(&TRAFFIC, &[]);
}

#[test]
fn client_killed_in_drain_or_report() {
    // After the last run's `run_done` a client may say goodbye before it is gone.
    let report = [
        at(From::Client, "finish"),
        at(From::Server, "report"),
        first(From::Client, "run_done"),
    ];
    killed_clients(&[&DRAIN[..], &report].concat(), &[]);
}

#[test]
fn client_killed_in_both_directions() {
    for op in ["send", "write", "read"] {
        killed_clients(&[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
}

#[test]
fn client_falls_silent() {
    let deaths = [at(From::Client, "prepare"), Death::In("warm-up"), DRAIN[1]];
    clients_get(Signal::Stop, &deaths, &[]);
}
