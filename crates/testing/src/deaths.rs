//! An end is killed, or stopped so that it falls silent, at a step of a session: the other end notices within two seconds and
//! keeps what was measured; a server serves the next client. It must not know devices.

use std::net::SocketAddr;
use std::time::Duration;

use crate::program::NOTICED;
use crate::program::{Ended, Program, Signal, send_signal};
use crate::proxy::{From, Proxy, Step};
use crate::server::{Ends, Server};

/// Two cases; the first is to be finished when the end dies in the second.
const TWO_CASES: [&str; 12] = [
    "-q", "2,3", "-t", "8", "--op", "send", "-s", "4K", "-D", "200ms", "--warmup", "100ms",
];

/// Phases in the midst of which an end can die, also when a busy machine is late.
const LONG_PHASES: [&str; 4] = ["-D", "1200ms", "--warmup", "800ms"];

pub const SOON: Duration = Duration::from_millis(150);

pub const fn at(from: From, kind: &'static str) -> Step {
    Step {
        from,
        kind,
        nth: 2,
        later: Duration::ZERO,
    }
}

pub const fn after(from: From, kind: &'static str) -> Step {
    Step {
        later: SOON,
        ..at(from, kind)
    }
}

/// At the first message of its kind: in the handshake, or in the first case.
pub const fn first(from: From, kind: &'static str) -> Step {
    Step {
        nth: 1,
        ..at(from, kind)
    }
}

pub const HANDSHAKE: [Step; 5] = [
    first(From::Client, "hello"),
    first(From::Server, "challenge"),
    first(From::Client, "proof"),
    first(From::Server, "welcome"),
    first(From::Client, "introduce"),
];

pub const CONNECT: [Step; 5] = [
    at(From::Client, "prepare"),
    at(From::Client, "create"),
    at(From::Server, "created"),
    at(From::Client, "connect"),
    at(From::Server, "ready"),
];

pub const TRAFFIC: [Step; 6] = [
    at(From::Client, "start"),
    after(From::Client, "start"),
    at(From::Client, "measure"),
    at(From::Server, "measure"),
    at(From::Client, "open"),
    IN_THE_WINDOW,
];

pub const IN_THE_WINDOW: Step = after(From::Client, "open");

pub const DRAIN: [Step; 4] = [
    at(From::Client, "stop"),
    at(From::Server, "drained"),
    at(From::Client, "settle"),
    at(From::Server, "settled"),
];

fn client_of(ends: Ends, proxy: &Proxy, step: Step, more: &[&str]) -> Program {
    let address = proxy.address.to_string();
    let long: &[&str] = if step.later.is_zero() {
        &[]
    } else {
        &LONG_PHASES
    };
    let more = [more, long].concat();
    let usual = TWO_CASES.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let mut all = vec![address.as_str(), "-d", ends.client_device];
    all.extend(usual.flatten());
    all.extend(&more);
    Program::sweep_of((ends.command)(), &all)
}

fn address(server: &Server) -> SocketAddr {
    server.name.parse().unwrap()
}

/// A server that does not survive `signal` at `step`; how its client ends.
fn server_gets(ends: Ends, signal: Signal, step: Step, more: &[&str]) -> (Ended, Proxy) {
    let server = Server::of(ends, &[]);
    let pid = server.program.pid();
    let proxy = Proxy::start(ends.client_address, address(&server), step, move || {
        send_signal(pid, signal);
    });
    let client = client_of(ends, &proxy, step, more);
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

/// The server gets `signal` at each step of a run with `more` flags; its client says so, and keeps what it has.
#[track_caller]
pub fn servers_get(ends: Ends, signal: Signal, steps: &[Step], more: &[&str]) {
    for &step in steps {
        let (ended, proxy) = server_gets(ends, signal, step, more);
        let noticed = ended
            .time_of(words_of(signal))
            .saturating_duration_since(proxy.done_at());
        assert!(noticed < NOTICED + proxy.lag(), "{step:?}: {noticed:?}");
        if step.nth == 2 {
            kept(&ended, step);
        }
    }
}

/// What is said of an end that got a signal.
fn words_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Stop => "silent",
        _ => "closed the connection",
    }
}

/// The client gets `signal` at each step; one server sees them all, and serves on.
#[track_caller]
pub fn clients_get(ends: Ends, signal: Signal, steps: &[Step], more: &[&str]) {
    let server = Server::of(ends, &[]);
    for &step in steps {
        let lines = server.program.lines().len();
        let victim = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let pid = std::sync::Arc::clone(&victim);
        let proxy = Proxy::start(ends.client_address, address(&server), step, move || {
            send_signal(pid.load(std::sync::atomic::Ordering::SeqCst), signal);
        });
        let client = client_of(ends, &proxy, step, more);
        victim.store(client.pid(), std::sync::atomic::Ordering::SeqCst);
        let died = proxy.await_deed();
        let noticed = server
            .says(lines, words_of(signal))
            .saturating_duration_since(died);
        assert!(noticed < NOTICED + proxy.lag(), "{step:?}: {noticed:?}");
        client.signal(Signal::Kill);
        assert_eq!(client.wait().signal, Some(9), "{step:?}");
        server.serves_the_next();
    }
    server.end();
}
