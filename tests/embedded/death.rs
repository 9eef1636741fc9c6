//! What a server says and does when its client dies, and a client when one of its servers does, in traffic of each kind.

use serde_json::Value;
use testing::program::Signal;
use testing::server::Server;

/// Each with the phase in which somebody dies.
const TRAFFIC: [(&str, &str); 4] = [
    ("--op send -q 4", "measure"),
    ("--op read -q 4", "measure"),
    // Its workers sleep, and the death wakes them.
    ("--poll event -q 4 --workers 2", "measure"),
    // Between two of its queue pairs.
    ("--op connect -q 300 -s 4K", "set up"),
];

#[track_caller]
fn is_kept(run: &Value) {
    let messages = run["flows"][0]["totals"]["messages"].as_u64();
    assert!(messages > Some(0), "{run}");
    let connects = run["connect"].is_object();
    assert_eq!(connects, run["connect"]["connections"].is_u64(), "{run}");
}

#[test]
fn a_servers_death_is_noticed_and_what_was_measured_is_kept() {
    for (words, phase) in TRAFFIC {
        let server = Server::embedded("-d soft0");
        let words = format!("{words} -D 60 --timeout 18 --warmup 0");
        let client = server.call(&words).start();
        client.has_moved(0, phase, 0);
        server.kill();
        let ended = client.wait().exits(1);
        let ended = ended.says(&["its process ended or died", "hint:"]);
        let run = ended.first_run();
        assert_eq!(run["complete"], false, "{words}");
        is_kept(run);
    }
}

#[test]
fn a_server_outlives_clients_that_are_interrupted_or_die() {
    let server = Server::embedded("-d soft0");
    for (words, phase) in TRAFFIC {
        for how in [Signal::Interrupt, Signal::Kill] {
            let lines = server.program.lines().len();
            let words = format!("{words} -D 60 --timeout 18 --warmup 0");
            let client = server.call(&words).start();
            client.has_moved(0, phase, 0);
            client.signal(how);
            let ended = client.wait();
            if how == Signal::Interrupt {
                let ended = ended.exits(1).says(&["interrupted"]);
                assert_eq!(ended.first_run()["interrupted"], true, "{words}");
                is_kept(ended.first_run());
                server.says(lines, "session ends");
            } else {
                server.says(lines, "session ended early");
            }
        }
    }
    server.serves_the_next();
    server.end();
}

#[test]
fn a_server_of_one_session_says_whether_it_ended_well() {
    let server = Server::embedded("-d soft0 --once");
    let client = server.call("-n 50 --timeout 18 --warmup 0 --quiet");
    client.passes();
    server.program.wait().exits(0);

    let server = Server::embedded("-d soft0 --once");
    let client = server.call("-D 60 --timeout 18 --warmup 0").start();
    client.has_moved(0, "measure", 0);
    client.signal(Signal::Kill);
    client.wait();
    server.program.wait().exits(1).says(&[
        "session ended early: ",
        "rocebench: error: the session of --once ended early",
    ]);
}
