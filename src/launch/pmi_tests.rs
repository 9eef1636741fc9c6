use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::thread;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_reply_is_read_as_it_was_written(
        command in "[a-z_]{1,20}",
        fields in proptest::collection::btree_map("[a-z]{1,8}", "[!-~]{0,40}", 0..6),
    ) {
        prop_assume!(!fields.contains_key("cmd"));
        let words: Vec<String> = fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let line = format!("cmd={command} {}", words.join(" "));
        prop_assert_eq!(Reply::parse(&line), Some(Reply { command, fields }));
    }

    #[test]
    fn any_line_is_read_without_harm(line in ".{0,200}") {
        if let Some(reply) = Reply::parse(&line) {
            let command = format!("cmd={}", reply.command);
            prop_assert!(line.contains(&command));
        }
    }

    /// Whatever a launcher answers, in pieces of any size: an error or the value, and no hang.
    #[test]
    fn a_launcher_that_talks_nonsense_is_told_so(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..6),
    ) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        for piece in &pieces {
            theirs.write_all(piece).unwrap();
        }
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        prop_assert!(agree_over(ours, Some("h:1"), &AtomicBool::new(false)).is_err());
    }
}

/// Answers as hydra does, to one rank that is alone.
fn hydra(stream: UnixStream, value: Option<&str>) -> Vec<String> {
    let mut asked = Vec::new();
    let mut out = stream.try_clone().unwrap();
    let mut stored = value.map(str::to_owned);
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let reply = Reply::parse(&line).unwrap();
        if let Some(value) = reply.fields.get("value") {
            stored = Some(value.clone());
        }
        let answer = match reply.command.as_str() {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1_0".to_owned(),
            "put" => "cmd=put_result rc=0 msg=success".to_owned(),
            "barrier_in" => "cmd=barrier_out".to_owned(),
            "get" => match &stored {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
            },
            "finalize" => "cmd=finalize_ack".to_owned(),
            other => panic!("{other}"),
        };
        asked.push(reply.command);
        writeln!(out, "{answer}").unwrap();
    }
    asked
}

fn agreed(own: Option<&str>, stored: Option<&'static str>) -> (Result<String, PmiError>, String) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let launcher = thread::spawn(move || hydra(theirs, stored));
    let told = agree_over(ours, own, &AtomicBool::new(false));
    (told, launcher.join().unwrap().join(" "))
}

#[test]
fn rank_0_tells_and_the_others_hear() {
    let (told, asked) = agreed(Some("node1:4711"), None);
    assert_eq!(told.unwrap(), "node1:4711");
    let words = "init get_my_kvsname put barrier_in get finalize";
    assert_eq!(asked, words);
    let (told, asked) = agreed(None, Some("node1:4711"));
    assert_eq!(told.unwrap(), "node1:4711");
    assert!(!asked.contains("put"), "{asked}");
}

#[test]
fn what_cannot_be_told_or_was_not_is_an_error() {
    let (told, _) = agreed(Some("node1 4711"), None);
    assert!(matches!(told, Err(PmiError::Value(_))), "{told:?}");
    let (told, _) = agreed(None, None);
    crate::tests::has(told.unwrap_err().to_string(), ["key_not_found"]);
}

#[test]
fn a_silent_launcher_is_waited_for_until_the_wish_to_stop() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let told = agree_over(ours, None, &AtomicBool::new(true));
    assert!(matches!(told, Err(PmiError::Interrupted)), "{told:?}");
}

#[test]
fn a_descriptor_is_taken_by_its_number() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let launcher = thread::spawn(move || hydra(theirs, Some("a:1")));
    let told = agree(ours.as_raw_fd(), None, &AtomicBool::new(false));
    drop(ours);
    assert_eq!(told.unwrap(), "a:1");
    launcher.join().unwrap();
    let told = agree(1_000_000, None, &AtomicBool::new(false));
    assert!(matches!(told, Err(PmiError::Descriptor { .. })), "{told:?}");
}
