//! An end dies or falls silent at each step of a session: the other end notices, says so and keeps what was measured; a
//! server serves the next client. How soon it notices, the tests of the link state.

use std::net::SocketAddr;
use std::sync::mpsc::channel;

use testing::process::{Ended, Program, Signal, send_signal};
use testing::program::{Server, call};
use testing::sessions::{Proxy, Sender, Step};

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

const TRAFFIC_OF_BOTH: [&str; 8] = ["-t", "8", "--op", "send", "-s", "4K", "--timeout", "18"];

/// At a frame of the second case.
const fn at(from: Sender, kind: &'static str) -> Death {
    Death::At(Step { from, kind, nth: 2 })
}

/// At the first message of its kind: in the handshake, or in the first case.
const fn first(from: Sender, kind: &'static str) -> Death {
    Death::At(Step::first(from, kind))
}

const HANDSHAKE: [Death; 5] = [
    first(Sender::Client, "hello"),
    first(Sender::Server, "challenge"),
    first(Sender::Client, "proof"),
    first(Sender::Server, "welcome"),
    first(Sender::Client, "introduce"),
];

const CONNECT: [Death; 5] = [
    at(Sender::Client, "prepare"),
    at(Sender::Client, "create"),
    at(Sender::Server, "created"),
    at(Sender::Client, "connect"),
    at(Sender::Server, "ready"),
];

const TRAFFIC: [Death; 6] = [
    at(Sender::Client, "start"),
    Death::In("warm-up"),
    at(Sender::Client, "measure"),
    at(Sender::Server, "measure"),
    at(Sender::Client, "open"),
    IN_THE_WINDOW,
];

const IN_THE_WINDOW: Death = Death::In("measure");

/// The queues run empty after a warm-up and after a window: these are after the second case's window.
const DRAIN: [Death; 4] = [
    drained(Sender::Client, "stop"),
    drained(Sender::Server, "drained"),
    drained(Sender::Client, "settle"),
    drained(Sender::Server, "settled"),
];

const fn drained(from: Sender, kind: &'static str) -> Death {
    Death::At(Step { from, kind, nth: 4 })
}

/// A client of `server` until `signal` has gone to the process that `victim` names.
fn client_until(
    death: Death,
    (server, more): (&Server, &[&str]),
    (signal, victim): (Signal, impl Fn(&Program) -> u32),
) -> Program {
    let (pid_sender, pid_to_signal) = channel();
    let (proxy, case) = match death {
        Death::At(step) => {
            let to: SocketAddr = server.name.parse().unwrap();
            let proxy = Proxy::start("127.0.0.1", to, step, move || {
                send_signal(pid_to_signal.recv().unwrap(), signal);
            });
            (Some(proxy), TWO_CASES)
        }
        Death::In("warm-up") => (None, WARMS_UP),
        Death::In(_) => (None, MEASURES),
    };
    let address = proxy.as_ref().map(|proxy| proxy.address.to_string());
    let mut words = vec![address.as_ref().unwrap_or(&server.name), "-d", "soft0"];
    let usual = case.chunks(2).chain(TRAFFIC_OF_BOTH.chunks(2));
    words.extend(usual.filter(|pair| !more.contains(&pair[0])).flatten());
    words.extend(more);
    let client = call(&words.join(" ")).start();
    let pid = victim(&client);
    match (death, proxy) {
        (Death::In(phase), _) => {
            client.has_moved(0, phase, 0);
            send_signal(pid, signal);
        }
        (Death::At(_), proxy) => {
            pid_sender.send(pid).unwrap();
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
            let stderr = ended.stderr();
            assert_eq!(runs.len(), 1, "{death:?}: {stderr}");
            assert!(runs[0].complete, "{death:?}: {:?}", runs[0].failure);
            assert!(runs[0].flows[0].totals.messages > 0, "{death:?}");
            DRAIN.iter().any(|other| matches!(other, Death::At(it) if it.kind == step.kind))
        }
        Death::In(phase) => phase != "warm-up",
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
        Signal::Interrupt => "session ends",
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
            kept(&ended.says(&["hint:"]), death);
        }
    }
}

/// The client gets `signal` at each of these times; one server sees them all, and serves on. Who is interrupted keeps what
/// was measured.
#[track_caller]
fn clients_get(signal: Signal, deaths: &[Death], more: &[&str]) {
    let server = Server::embedded("-d soft0");
    for &death in deaths {
        let lines = server.program.lines().len();
        let client = client_until(death, (&server, more), (signal, Program::pid));
        if signal == Signal::Interrupt {
            let run = client.wait().exits(1).says(&["interrupted"]).runs().remove(0);
            assert!(run.interrupted, "{death:?} {more:?}");
            assert!(run.flows[0].totals.messages > 0, "{death:?} {more:?}");
        } else if signal == Signal::Stop {
            // It is still there, and its own absence is all that it can tell.
            server.serves_the_next();
            client.signal(Signal::Continue);
            client.wait().exits(1).says(&["this process did not run for", "hint: repeat the run"]);
        } else {
            server.serves_the_next();
            client.signal(Signal::Kill);
            assert_eq!(client.wait().signal, Some(9), "{death:?}");
        }
        server.says(lines, words_of(signal));
        server.serves_the_next();
    }
    server.end();
}

#[test]
fn server_killed_at_each_step() {
    servers_get(Signal::Kill, &[&HANDSHAKE[..], &CONNECT, &TRAFFIC, &DRAIN].concat(), &[]);
}

/// Workers that sleep, which a death wakes; and a death between two queue pairs that are set up.
const OTHER_TRAFFIC: [(Death, &[&str]); 4] = [
    (IN_THE_WINDOW, &["-q", "4"]),
    (IN_THE_WINDOW, &["--op", "read", "-q", "4"]),
    (IN_THE_WINDOW, &["--poll", "event", "-q", "4", "--workers", "2"]),
    (Death::In("set up"), &["--op", "connect", "-q", "300"]),
];

#[test]
fn server_killed_under_every_operation() {
    for op in ["write", "read"] {
        servers_get(Signal::Kill, &[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
    for (death, more) in OTHER_TRAFFIC {
        servers_get(Signal::Kill, &[death], more);
    }
}

#[test]
fn server_falls_silent() {
    let deaths = [at(Sender::Client, "prepare"), IN_THE_WINDOW, DRAIN[0]];
    servers_get(Signal::Stop, &deaths, &[]);
}

#[test]
fn client_killed_at_each_step() {
    // After the last run's `run_done` a client may say goodbye before it is gone.
    let report = [
        at(Sender::Client, "finish"),
        at(Sender::Server, "report"),
        first(Sender::Client, "run_done"),
    ];
    let deaths = [&HANDSHAKE[..], &CONNECT, &TRAFFIC, &DRAIN, &report];
    clients_get(Signal::Kill, &deaths.concat(), &[]);
}

#[test]
fn client_killed_in_both_directions() {
    for op in ["send", "write", "read"] {
        clients_get(Signal::Kill, &[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
}

#[test]
fn client_killed_or_interrupted_under_every_operation() {
    for (death, more) in OTHER_TRAFFIC {
        for how in [Signal::Interrupt, Signal::Kill] {
            clients_get(how, &[death], more);
        }
    }
}

#[test]
fn client_falls_silent() {
    let deaths = [at(Sender::Client, "prepare"), Death::In("warm-up"), DRAIN[1]];
    clients_get(Signal::Stop, &deaths, &[]);
}

#[test]
fn a_server_of_one_session_that_ended_well_ends_well() {
    let server = Server::embedded("-d soft0 --once");
    server.call("-n 50 --timeout 18 --warmup 0 --quiet").passes();
    server.program.wait().exits(0);
}

#[test]
fn a_partner_that_dies_ends_it_with_what_was_measured() {
    for op in ["send", "write", "read"] {
        let server = Server::embedded("-d soft0");
        let client = server
            .call(&format!("--ping-pong --op {op} -s 64 -q 2 -D 60s --warmup 0 --timeout 18"))
            .start();
        client.has_moved(0, "measure", 0);
        server.kill();
        let ended = client.wait().exits(1).says(&["closed the connection"]);
        let run = ended.runs().remove(0);
        assert!(!run.complete && run.flows[0].totals.messages > 0, "{op}");
    }
}
