//! Ctrl-C while messages are in flight that take far longer than anyone waits.

use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::program::{Program, Server, said, signal, with_others, works_for};

/// A message takes 5 s, and 128 of them are posted.
const SLOW: &str = "-d soft0 --op send -s 64M -D 60s --warmup 0 --timeout 18 --faults rate=100M";

/// Three seconds are promised; the rest is for a machine that runs other tests.
pub const PROMPT: Duration = Duration::from_secs(6);

fn is_interrupted(child: Child, asked: Instant, words: &str) {
    let (code, said) = said(child);
    assert!(asked.elapsed() < PROMPT, "{:?}: {said}", asked.elapsed());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_slow_send_in_one_process_stops_at_once() {
    let _machine = with_others();
    let mut program = Program::new(SLOW);
    let child = program.spawn();
    works_for(child.id(), 1.0);
    let asked = signal(&child, Signal::SIGINT);
    is_interrupted(child, asked, "interrupted");
    let run = &program.json()["cases"][0]["runs"][0];
    assert_eq!(
        (&run["interrupted"], &run["complete"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn a_search_that_is_stopped_keeps_its_trials() {
    let _machine = with_others();
    let words = "-d soft0 --slo p99<10s -t 4 -D 1s --warmup 0 --timeout 18";
    let mut program = Program::new(words);
    let child = program.spawn();
    // The closed loop takes a second before, and the search 9 s after it.
    works_for(child.id(), 5.0);
    let asked = signal(&child, Signal::SIGINT);
    is_interrupted(child, asked, "interrupted");
    let case = &program.json()["cases"][0];
    assert_eq!(case["runs"][0]["complete"], true);
    let search = &case["searches"][0];
    assert_eq!(search["end"], "stopped", "{search}");
    assert!(search["maximum_per_second"].as_f64() > Some(0.0));
}

#[test]
fn a_slow_send_to_a_server_stops_at_once_and_the_server_lives_on() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let to_server = format!("127.0.0.1:{}", server.port);
    let mut program = Program::new(&format!("{to_server} {SLOW}"));
    let child = program.spawn();
    server.is_in_a_run(0);
    let asked = signal(&child, Signal::SIGINT);
    is_interrupted(child, asked, "interrupted");
    server.has_said("session ends");
    Program::new(&format!(
        "{to_server} -d soft0 -n 50 --timeout 18 --warmup 0 --quiet"
    ))
    .run()
    .exits(0)
    .all_whole(1);
}

#[test]
fn a_server_in_a_slow_send_stops_at_once() {
    let _machine = with_others();
    let mut server = Server::start("-d soft0");
    let mut program = Program::new(&format!("127.0.0.1:{} {SLOW}", server.port));
    let child = program.spawn();
    server.is_in_a_run(0);
    let asked = server.signal(Signal::SIGINT);
    is_interrupted(child, asked, "the server was stopped");
    assert_eq!(server.status(), Some(0));
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
}
