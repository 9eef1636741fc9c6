//! An end that is killed in a run: the other notices and says so.

use std::time::{Duration, Instant};

use crate::program::{Server, said, with_others};

#[test]
fn a_servers_death_is_noticed() {
    let _machine = with_others();
    for op in ["send", "read"] {
        let mut server = Server::start("-d soft0");
        let mut client = server.client(&format!("--op {op} -q 4 -D 60 --timeout 18 --warmup 0"));
        let child = client.spawn();
        server.is_in_a_run(0);
        server.kill();
        let killed = Instant::now();
        let (code, said) = said(child);
        // Notice within 2 s, and a try to connect again.
        assert!(
            killed.elapsed() < Duration::from_secs(4),
            "{:?}",
            killed.elapsed()
        );
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("its process ended or died") && said.contains("hint:"),
            "{said}"
        );
        let run = &client.json()["cases"][0]["runs"][0];
        assert_eq!(run["complete"], false);
        assert!(
            run["flows"][0]["totals"]["messages"].as_u64().unwrap() > 0,
            "{run}"
        );
    }
}

#[test]
fn a_server_outlives_its_client() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let mut killed = server.client("-q 4 -D 60 --timeout 18 --warmup 0");
    let mut child = killed.spawn();
    server.is_in_a_run(0);
    child.kill().unwrap();
    child.wait().unwrap();
    server.has_said("session ended early");
    let next = server.client("-q 2 -n 50 --timeout 18 --warmup 0 --verify --quiet");
    next.run().exits(0).all_whole(1);
}

#[test]
fn a_server_of_one_session_says_whether_it_ended_well() {
    let _machine = with_others();
    let mut server = Server::start("-d soft0 --once");
    let client = server.client("-n 50 --timeout 18 --warmup 0 --quiet");
    client.run().exits(0);
    assert_eq!(server.status(), Some(0));

    let mut server = Server::start("-d soft0 --once");
    let mut killed = server.client("-D 60 --timeout 18 --warmup 0");
    let mut child = killed.spawn();
    server.is_in_a_run(0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(server.status(), Some(1));
    let said = server.end();
    assert!(
        said.contains("session ended early: ")
            && said.contains("rocebench: error: the session of --once ended early"),
        "{said}"
    );
}
