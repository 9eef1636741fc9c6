//! Who gets a session: one client at a time, and with a token only those that have it.

use testing::program::{Program, Signal};
use testing::server::{Server, on_this_machine};

const SHORT: [&str; 6] = ["-n", "5", "--warmup", "0", "-s", "64"];

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    let server = Server::embedded("-d soft0");
    let first = server.client(&["-D", "60s", "--warmup", "0", "-t", "8", "-s", "64"]);
    server.says(0, "run 1");
    server
        .sweep(&SHORT)
        .exits(1)
        .says(&["busy", "has served [::ffff:127.", "hint:"]);
    server.says(0, "was refused: the server is busy");
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
    let server = Server::embedded("-d soft0 --token open-sesame");
    server
        .sweep(&[&SHORT[..], &["--token", "open-sesame"]].concat())
        .exits(0);
    let lines = server.program.lines().len();
    let wrong = server.sweep(&[&SHORT[..], &["--token", "open-barley"]].concat());
    wrong.exits(2).says(&["token", "hint:"]);
    server.says(lines, "did not prove the token");
    server
        .sweep(&SHORT)
        .exits(2)
        .says(&["requires a token", "--token"]);
    let recorded = server
        .sweep(&[&SHORT[..], &["--token", "open-sesame"]].concat())
        .exits(0);
    assert!(
        !recorded.file(".json").contains("sesame"),
        "the token is not in the result"
    );
    server.end();

    let open = Server::embedded("-d soft0");
    let ended = open.sweep(&[&SHORT[..], &["--token", "open-sesame"]].concat());
    ended.exits(2).says(&["hint:"]);
}

#[test]
fn nobody_listens_or_the_port_is_taken() {
    let server = Server::embedded("-d soft0");
    let port = server.port.to_string();
    let words = ["serve", "--bind", "127.0.0.1", "-d", "soft0", "-p", &port];
    let taken = Program::bare_of(on_this_machine(), &words).wait();
    taken.exits(2).says(&["cannot listen", "--port"]);
    let name = server.name.clone();
    server.end();
    let words = [&[name.as_str(), "-d", "soft0"], &SHORT[..]].concat();
    Program::sweep_of(on_this_machine(), &words)
        .wait()
        .exits(1)
        .says(&["Connection refused", "rocebench serve"]);
}
