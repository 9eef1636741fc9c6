use std::sync::mpsc;

use serde_json::json;
use testing::wait::wait_until;

use protocol::handshake::{ServerTerms, accept};
use protocol::join::{JoinError, join};
use results::sample::{has, starts};

use super::*;

static GO_ON: AtomicBool = AtomicBool::new(false);

fn own(ranks: u32) -> Join {
    rank(0, ranks)
}

fn rank(rank: u32, ranks: u32) -> Join {
    Join::new(rank, ranks, "host".to_owned(), vec!["--size=64".to_owned()])
}

fn open(ranks: u32, token: Option<&str>) -> Ranks {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = (0..ranks).map(|rank| format!("node{rank}")).collect();
    Ranks::open(listener, own(ranks), hosts, token.map(secret), json!({})).unwrap()
}

fn secret(text: &str) -> Token {
    Token::new(text.as_bytes()).unwrap()
}

/// A rank that joins, until its session ends; what it heard at last.
fn joins(ranks: &Ranks, own: Join, token: Option<&str>) -> mpsc::Receiver<String> {
    let (port, terms) = (ranks.port, ServerTerms::new(token.map(secret), json!({})));
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        let joined = join(&["127.0.0.1".to_owned()], port, &own, &terms, &GO_ON);
        let text = match joined {
            Ok(accepted) => match accepted.link.recv(Duration::from_secs(20), &GO_ON) {
                Ok(message) => message.kind().to_owned(),
                Err(error) => error.to_string(),
            },
            Err(JoinError::Accept(error)) => error.to_string(),
            Err(JoinError::Connect(error)) => error.to_string(),
        };
        let _ = sender.send(text);
    });
    heard
}

fn gathered(ranks: &Ranks) -> Result<Vec<String>, String> {
    let gathered = ranks.gather(&GO_ON, |_, _| {});
    gathered.map_err(|failure| {
        assert!(failure.hint.is_some());
        failure.message
    })
}

#[test]
fn all_join_and_are_taken_in_their_order() {
    let ranks = open(3, None);
    let two = joins(&ranks, rank(2, 3), None);
    let mut other = rank(1, 3);
    other.host = "other".to_owned();
    let one = joins(&ranks, other, None);
    let mut seen = Vec::new();
    let names = ranks.gather(&GO_ON, |joined, of| seen.push((joined, of)));
    assert_eq!(names.unwrap(), ["host.0", "other", "host.2"]);
    assert_eq!(seen.last(), Some(&(3, 3)));
    let links = ranks.take(&GO_ON).ok().unwrap();
    assert_eq!(links.len(), 2);
    links[0].0.send(SessionMessage::Goodbye).unwrap();
    assert_eq!(one.recv().unwrap(), "goodbye");
    drop(links);
    assert!(two.recv().unwrap().contains("closed the connection"));
}

#[test]
fn one_that_does_not_come_back_is_named() {
    let ranks = open(3, None);
    let _heard = [1, 2].map(|number| joins(&ranks, rank(number, 3), None));
    gathered(&ranks).unwrap();
    drop(ranks.take(&GO_ON));
    let _again = joins(&ranks, rank(1, 3), None);
    wait_until("rank 1", Duration::from_secs(1), || ranks.slots.lock().slots[0].link.is_some());
    let Err(Missing::Connect(error)) = ranks.take(&GO_ON) else {
        panic!("it was taken");
    };
    let expected = "rank 2 (host) did not come back within 2 s";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn one_that_joins_twice_ends_the_job() {
    let ranks = open(3, None);
    let first = joins(&ranks, rank(1, 3), None);
    let second = joins(&ranks, rank(1, 3), None);
    let expected = "rank 1 joined twice, from host and from host";
    assert_eq!(gathered(&ranks).unwrap_err(), expected);
    ranks.dismiss(&RunFailure::new("over", None), false);
    let heard = [first, second].map(|it| it.recv().unwrap()).concat();
    has(heard, [expected, "gave up: over"]);
}

#[test]
fn one_whose_first_connection_was_closed_may_join_again() {
    for _ in 0..50 {
        let ranks = open(2, None);
        let terms = ServerTerms::new(None, json!({}));
        let first = join(&["127.0.0.1".to_owned()], ranks.port, &rank(1, 2), &terms, &GO_ON);
        drop(first.ok().unwrap());
        let second = joins(&ranks, rank(1, 2), None);
        gathered(&ranks).unwrap();
        let links = ranks.take(&GO_ON).ok().unwrap();
        links[0].0.send(SessionMessage::Goodbye).unwrap();
        assert_eq!(second.recv().unwrap(), "goodbye");
    }
}

#[test]
fn one_of_another_job_ends_this_one() {
    let mut without_options = rank(2, 3);
    without_options.options.clear();
    let other_options = "rank 2 (host) was started with other options";
    for (other, words) in [
        (rank(1, 4), "rank 1 (host) was started with 4 ranks"),
        (rank(0, 3), "ranks are 1 to 2"),
        (rank(u32::MAX, 3), "ranks are 1 to 2"),
        (without_options, other_options),
    ] {
        let ranks = open(3, None);
        let heard = joins(&ranks, other, None);
        has(gathered(&ranks).unwrap_err(), [words]);
        has(heard.recv().unwrap(), [words]);
    }
}

/// With the token the same words end the job; without it they cost the stranger its connection, and it learns nothing.
#[test]
fn a_stranger_without_the_token_ends_nothing_and_learns_nothing() {
    let mut other_options = rank(1, 3);
    other_options.options = vec!["--size=4096".to_owned()];
    let mut other_version = rank(1, 3);
    other_version.version = "9.9.9".to_owned();
    let mut no_host = rank(1, 3);
    no_host.host = "a b".to_owned();
    let ranks = open(3, Some("a"));
    for stranger in [other_options, other_version, no_host, rank(1, 4), rank(7, 3)] {
        for token in [None, Some("b")] {
            let answer = wait_for(&joins(&ranks, stranger.clone(), token));
            assert!(!answer.contains("--size"), "{answer}");
        }
    }
    assert!(ranks.slots.lock().refused.is_none());
    let who = ranks.slots.lock().unproven.clone();
    assert_eq!(who.as_deref(), Some("rank 7 (host)"));
    let _heard = [1, 2].map(|number| joins(&ranks, rank(number, 3), Some("a")));
    gathered(&ranks).unwrap();
}

#[test]
fn one_of_another_job_that_knows_the_token_ends_this_one() {
    let ranks = open(3, Some("a"));
    let mut other = rank(1, 3);
    other.options.clear();
    let heard = joins(&ranks, other, Some("a"));
    let words = "rank 1 (host) was started with other options";
    has(gathered(&ranks).unwrap_err(), [words]);
    has(wait_for(&heard), [words]);
}

#[test]
fn a_rank_that_reaches_a_server_is_told_what_listens_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let terms = ServerTerms::new(None, json!({}));
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            accept(stream, &terms, &GO_ON, |_| Ok(())).map(drop)
        });
        join(&["127.0.0.1".to_owned()], port, &rank(1, 2), &terms, &GO_ON).map(drop)
    });
    has(refused.unwrap_err().to_string(), ["this port belongs to `rocebench serve`"]);
}

#[test]
fn idle_connections_keep_no_rank_out() {
    let ranks = open(3, None);
    let idle: Vec<_> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", ranks.port)).unwrap()).collect();
    let _heard = [1, 2].map(|number| joins(&ranks, rank(number, 3), None));
    gathered(&ranks).unwrap();
    drop(idle);
}

#[test]
fn of_those_that_are_missing_the_ones_that_were_there_are_named() {
    let ranks = open(3, None);
    let mut state = ranks.slots.lock();
    state.slots[0].was_here = true;
    assert_eq!(ranks.slots.give_up(&mut state, true), "rank 1 (node1)");
    assert_eq!(ranks.slots.give_up(&mut state, false), "rank 2 (node2)");
}

#[test]
fn the_end_is_told_to_those_that_come_late() {
    let ranks = open(2, None);
    thread::scope(|scope| {
        scope.spawn(|| ranks.dismiss(&RunFailure::refused("no such file", "look for it"), false));
        has(wait_for(&joins(&ranks, rank(1, 2), None)), ["no such file"]);
    });
}

fn wait_for(heard: &mpsc::Receiver<String>) -> String {
    heard.recv_timeout(Duration::from_secs(20)).unwrap()
}

#[test]
fn what_speaks_otherwise_is_told_and_does_no_harm() {
    let ranks = open(2, None);
    let (port, terms) = (ranks.port, json!({}));
    let error = protocol::handshake::connect("127.0.0.1", port, None, None, &terms, &GO_ON)
        .unwrap_err()
        .to_string();
    has(error, ["rank 0 of a launcher's job"]);
    let heard = joins(&ranks, rank(1, 2), None);
    gathered(&ranks).unwrap();
    ranks.part();
    assert_eq!(wait_for(&heard), "goodbye");
}

#[test]
fn the_wish_to_stop_ends_the_wait() {
    let ranks = open(2, None);
    let failure = ranks.gather(&AtomicBool::new(true), |_, _| {}).unwrap_err();
    assert!(failure.interrupted);
}

#[test]
fn many_that_miss_are_told_by_some() {
    let ranks = open(12, None);
    let text = ranks.slots.give_up(&mut ranks.slots.lock(), false);
    starts(&text, "rank 1 (node1), rank 2 (node2)");
    assert!(text.ends_with("rank 8 (node8) and 3 more"), "{text}");
}
