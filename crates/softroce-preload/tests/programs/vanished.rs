//! A peer killed during a run: the other end gets a completion error instead of waiting for ever.

use std::time::{Duration, Instant};

use crate::child::{Ended, machine};
use crate::pair::start_pair;

/// Starts both ends of a long run, kills one, and returns how the other ends.
fn survivor(
    program: &str,
    arguments: &str,
    kill_server: bool,
    limit: Duration,
) -> (Ended, Duration) {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    let (mut victim, mut survivor) = match kill_server {
        true => (server, client),
        false => (client, server),
    };
    // What comes before messages move takes a fraction of this.
    for end in [&mut victim, &mut survivor] {
        end.works_for(0.5);
    }
    let both_run = victim.runs() && survivor.runs();
    victim.kill();
    let killed = Instant::now();
    let survivor = survivor.end(killed + limit);
    let victim = victim.end(killed);
    assert!(both_run, "{}{}", victim.report(), survivor.report());
    (survivor, killed.elapsed())
}

fn fails_with_retry_exceeded(program: &str, arguments: &str, kill_server: bool) {
    sees_it(&survivor(
        program,
        arguments,
        kill_server,
        Duration::from_secs(30),
    ));
}

fn sees_it((survivor, took): &(Ended, Duration)) {
    let report = format!("after {took:?}\n{}", survivor.report());
    assert!(!survivor.killed && !survivor.succeeded(), "{report}");
    // IBV_WC_RETRY_EXC_ERR is 12.
    let status = ["Failed status 12", "transport retry counter exceeded (12)"];
    let said = format!("{}{}", survivor.stdout, survivor.stderr);
    assert!(
        status.iter().any(|status| said.contains(status)),
        "{report}"
    );
}

#[test]
fn the_client_of_a_bandwidth_test_sees_its_server_go() {
    fails_with_retry_exceeded("ib_send_bw", "-F -D 60", true);
    fails_with_retry_exceeded("ib_write_bw", "-F -D 60 -q 4", true);
    fails_with_retry_exceeded("ib_read_bw", "-F -D 60", true);
}

#[test]
fn either_end_of_a_ping_pong_sees_the_other_go() {
    // If the peer is killed between its acknowledgement and its answer, the other end has nothing outstanding, and
    // waiting for a message is no error: RC reports a dead peer only to a sender. So it may take several attempts.
    const TRIES: usize = 10;
    for (events, kill_server) in [("", true), ("-e", false)] {
        let arguments = format!("-d soft0 -g 0 -n 100000000 {events}");
        let ended = (0..TRIES)
            .map(|_| {
                let limit = Duration::from_secs(3);
                survivor("ibv_rc_pingpong", arguments.trim_end(), kill_server, limit)
            })
            .find(|(survivor, _)| !survivor.killed);
        sees_it(&ended.unwrap_or_else(|| panic!("no survivor of {TRIES} saw it: {arguments}")));
    }
}
