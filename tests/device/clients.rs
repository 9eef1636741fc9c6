//! Who gets a session: one client at a time, and with a token only those that have it.

use std::time::Duration;

use crate::lab::program::{Signal, sweep};
use crate::lab::server::Server;

const SHORT: [&str; 6] = ["-n", "5", "--warmup", "0", "-s", "64"];

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    let server = Server::start();
    let first = server.client(&["-D", "60s", "--warmup", "0", "-t", "8", "-s", "64"]);
    server.says(0, "run 1");
    let second = server
        .sweep(&SHORT)
        .exits(1)
        .says(&["busy", "has served 192.0.2.", "hint:"]);
    assert!(second.took < Duration::from_secs(5), "{:?}", second.took);
    server.says(0, "was told that the server is busy");
    first.signal(Signal::Interrupt);
    let first = first.wait().exits(1);
    assert!(
        first.runs()[0].interrupted,
        "the first one was not disturbed"
    );
    server.serves_the_next();
}

#[test]
fn tokens() {
    let server = Server::with(&["--token", "open sesame"]);
    server
        .sweep(&[&SHORT[..], &["--token", "open sesame"]].concat())
        .exits(0);
    let lines = server.program.lines().len();
    let wrong = server.sweep(&[&SHORT[..], &["--token", "open barley"]].concat());
    wrong.exits(2).says(&["token", "hint:"]);
    server.says(lines, "did not prove the token");
    server
        .sweep(&SHORT)
        .exits(2)
        .says(&["requires a token", "--token"]);
    let recorded = server
        .sweep(&[&SHORT[..], &["--token", "open sesame"]].concat())
        .exits(0);
    assert!(
        !recorded.file(".json").contains("sesame"),
        "the token is not in the result"
    );
    server.end();

    let open = Server::start();
    let ended = open.sweep(&[&SHORT[..], &["--token", "open sesame"]].concat());
    ended.exits(2).says(&["hint:"]);
}

#[test]
fn nobody_listens_or_the_port_is_taken() {
    let server = Server::start();
    let port = server.port.to_string();
    let taken =
        crate::lab::program::Program::bare(&["serve", "--bind", "192.0.2.2", "-p", &port]).wait();
    taken.exits(2).says(&["cannot listen", "--port"]);
    let name = server.name.clone();
    server.end();
    sweep(&[&[name.as_str()], &SHORT[..]].concat())
        .exits(1)
        .says(&["Connection refused", "rocebench serve"]);
}
