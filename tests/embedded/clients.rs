//! Who gets a session: one client at a time, and with a token only those that have it.

use testing::program::Signal;
use testing::server::{Server, call};

const SHORT: &str = "-n 5 --warmup 0 -s 64 --timeout 18";

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    let server = Server::embedded("-d soft0");
    let first = server.call("-D 60s --warmup 0 -t 8 -s 64").start();
    server.says(0, "run 1");
    let second = server.call(SHORT);
    second.fails(&["busy", "has served [::ffff:127.", "hint:"]);
    server.says(0, "was refused: the server is busy");
    first.signal(Signal::Interrupt);
    let first = first.wait().exits(1);
    assert!(first.runs()[0].interrupted, "the first one was not disturbed");
    server.serves_the_next();
}

#[test]
fn tokens() {
    let server = Server::embedded("-d soft0 --token open-sesame");
    let with = |server: &Server, token: &str| server.call(&format!("{SHORT} {token}"));
    let lines = server.program.lines().len();
    with(&server, "--token open-barley").is_refused(&["token", "hint:"]);
    server.says(lines, "does not know the token");
    with(&server, "").is_refused(&["requires a token", "--token"]);
    let recorded = with(&server, "--token open-sesame").passes();
    let json = recorded.file(".json");
    assert!(!json.contains("sesame"), "the token is in the result");
    server.end();

    let open = Server::embedded("-d soft0");
    with(&open, "--token open-sesame").is_refused(&["hint:"]);
}

#[test]
fn nobody_listens_or_the_port_is_taken() {
    let server = Server::embedded("-d soft0");
    let taken = format!("serve --bind 127.0.0.1 -d soft0 -p {}", server.port);
    call(&taken).is_refused(&["cannot listen", "--port"]);
    let client = server.call(SHORT);
    server.end();
    client.fails(&["Connection refused", "rocebench serve"]);
}
