//! Ctrl-C, `kill` or a lost terminal while messages are in flight that take far longer than anyone waits: the end does not
//! wait for them.

use testing::process::{Call, Program, Signal};
use testing::program::{Server, call, call_by};

/// A message takes 5 s, and 128 of them are posted.
const SLOW: &str = "-d soft0 --op send -s 64M -D 60s --warmup 0 --timeout 18 --faults rate=100M";

/// The program with these words, which a lost terminal ends also where the tests run under `nohup`.
fn heeding(words: &str) -> Call {
    call_by("env --default-signal=HUP", words)
}

#[test]
fn a_slow_send_in_one_process_is_stopped_by_each_wish() {
    for wish in [Signal::Interrupt, Signal::Terminate, Signal::HangUp] {
        let program = heeding(SLOW).start();
        program.has_said("phase measure");
        program.signal(wish);
        let ended = program.wait().exits(1).says(&["interrupted"]);
        let run = ended.runs().remove(0);
        assert!(run.interrupted && !run.complete);
    }
}

#[test]
fn a_lost_terminal_ends_nothing_under_nohup() {
    let words = "-d soft0 -s 64 -D 2s --warmup 0 --timeout 18";
    let program = call_by("nohup", words).start();
    program.has_said("phase measure");
    program.signal(Signal::HangUp);
    let ended = program.wait().exits(0);
    assert!(ended.runs().remove(0).complete);
}

#[test]
fn a_sweep_whose_reader_goes_ends_and_keeps_its_files() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let words = "-d soft0 -s 64 -n 1 --runs 1000 --warmup 0 --timeout 18";
    let ended = call(words).start_to(writer).wait().exits(1).says(&["interrupted"]);
    assert!((1..1000).contains(&ended.runs().len()));
}

#[test]
fn a_search_that_is_stopped_keeps_its_trials() {
    let program =
        call("-d soft0 --slo p50<10s -s 64 -t 4 -D 500ms --warmup 0 --timeout 18").start();
    program.has_said(": trial 2 at ");
    program.signal(Signal::Interrupt);
    let ended = program.wait().exits(1).says(&["interrupted"]);
    assert_eq!(ended.first_run()["complete"], true);
    let search = &ended.cases()[0]["searches"][0];
    assert_eq!(search["end"], "stopped", "{search}");
    assert!(!search["trials"].as_array().unwrap().is_empty(), "{search}");
    assert!(search["maximum_per_second"].as_f64() > Some(0.0));
}

/// Who stops in a slow send to a server.
fn stopped(who: impl Fn(&Server, &Program), says: &str) -> Server {
    let server = Server::embedded_by(heeding("serve -p 0 -d soft0"));
    let client = call(&format!("{} {SLOW}", server.name)).start();
    client.has_said("phase measure");
    who(&server, &client);
    client.wait().exits(1).says(&[says]);
    server
}

#[test]
fn a_slow_send_to_a_server_is_interrupted_and_the_server_lives_on() {
    let server =
        stopped(|_: &Server, client: &Program| client.signal(Signal::Interrupt), "interrupted");
    server.says(0, "session ends");
    server.serves_the_next();
}

#[test]
fn a_server_in_a_slow_send_is_interrupted() {
    for wish in [Signal::Interrupt, Signal::HangUp] {
        let server = stopped(
            |server: &Server, _: &Program| server.program.signal(wish),
            "the server was stopped",
        );
        server.program.wait().exits(0);
    }
}
