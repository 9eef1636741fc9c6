//! A client of PMI-1, by which the ranks of an MPICH-like launcher tell each other where rank 0 listens: lines of text on a
//! descriptor that the launcher leaves to each process (`PMI_FD`). Source: "PMI-1 Wire Protocol" in MPICH's doc/wiki, and
//! hydra 4.0.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Longer lines are none of PMI-1's: a value has 1024 bytes at most.
const MAX_LINE_BYTES: usize = 4096;

/// How long all ranks may take to come to the barrier.
const LIMIT: Duration = Duration::from_secs(60);

/// How often a wait looks at its stop flag.
const TICK: Duration = Duration::from_millis(50);

/// Under which the value is stored.
const KEY: &str = "rocebench-rank-0";

/// Why the store was of no use.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PmiError {
    #[error("descriptor {descriptor} of PMI-1 (PMI_FD): {source}")]
    Descriptor { descriptor: i32, source: Arc<io::Error> },
    #[error("PMI-1: {0}")]
    Io(Arc<io::Error>),
    #[error("PMI-1: the launcher closed its end")]
    Closed,
    #[error("PMI-1: not all ranks joined within {0} s")]
    Late(u64),
    #[error("PMI-1: got `{got}` instead of `{expected}`")]
    Unexpected { expected: &'static str, got: String },
    #[error("PMI-1: the value `{0}` cannot be sent")]
    Value(String),
    #[error("interrupted")]
    Interrupted,
}

impl PmiError {
    pub fn hint(&self) -> &'static str {
        "give all ranks the same --rank-0 HOST:PORT; then they do not need PMI-1"
    }
}

/// A reply: the word after `cmd=`, and all other `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub command: String,
    pub fields: BTreeMap<String, String>,
}

impl Reply {
    /// Reads a line without its end. Words that are no `KEY=VALUE` are passed over; of two with one key the last counts.
    pub fn parse(line: &str) -> Option<Reply> {
        let mut fields: BTreeMap<String, String> = line
            .split([' ', '\t'])
            .filter_map(|it| it.split_once('='))
            .filter(|(key, _)| !key.is_empty())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let command = fields.remove("cmd")?;
        Some(Reply { command, fields })
    }

    fn is_refused(&self) -> bool {
        self.fields.get("rc").is_some_and(|code| code != "0")
    }
}

/// Rank 0 tells `value` to all, which is `None` at the others; returns it at all of them. Each rank of the launcher must
/// come, and once only.
///
/// # Errors
/// There is no such descriptor, it speaks something else, or a rank does not come.
pub fn agree(descriptor: i32, value: Option<&str>, stop: &AtomicBool) -> Result<String, PmiError> {
    let stream = inherited(descriptor)
        .map_err(|source| PmiError::Descriptor { descriptor, source: Arc::new(source) })?;
    agree_over(stream, value, stop)
}

/// A descriptor that this process was started with; a copy, so that its owner may be another.
fn inherited(descriptor: i32) -> io::Result<UnixStream> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let copy = pidfd_getfd(own, descriptor, PidfdGetfdFlags::empty())?;
    Ok(UnixStream::from(copy))
}

fn agree_over(
    stream: UnixStream,
    value: Option<&str>,
    stop: &AtomicBool,
) -> Result<String, PmiError> {
    let mut store = Store::new(stream, stop)?;
    store.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
    let reply = store.ask("cmd=get_my_kvsname", "my_kvsname")?;
    let name = field(&reply, "kvsname", "my_kvsname")?;
    if let Some(value) = value {
        if value.is_empty() || value.contains(char::is_whitespace) || value.len() > 1023 {
            return Err(PmiError::Value(value.to_owned()));
        }
        let put = format!("cmd=put kvsname={name} key={KEY} value={value}");
        store.ask(&put, "put_result")?;
    }
    store.ask("cmd=barrier_in", "barrier_out")?;
    let got = store.ask(&format!("cmd=get kvsname={name} key={KEY}"), "get_result")?;
    let place = field(&got, "value", "get_result")?;
    // A launcher takes a rank that ends without this for one that failed.
    store.ask("cmd=finalize", "finalize_ack")?;
    Ok(place)
}

fn field(reply: &Reply, key: &str, expected: &'static str) -> Result<String, PmiError> {
    reply.fields.get(key).filter(|it| !it.is_empty()).cloned().ok_or_else(|| PmiError::Unexpected {
        expected,
        got: format!("{} without {key}", reply.command),
    })
}

struct Store<'a> {
    stream: UnixStream,
    /// What was read and not yet taken.
    unread: Vec<u8>,
    stop: &'a AtomicBool,
}

impl<'a> Store<'a> {
    fn new(stream: UnixStream, stop: &'a AtomicBool) -> Result<Store<'a>, PmiError> {
        let configured =
            stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(TICK)));
        configured.map_err(|error| PmiError::Io(Arc::new(error)))?;
        Ok(Store { stream, unread: Vec::new(), stop })
    }

    /// Sends a command and takes its reply.
    fn ask(&mut self, command: &str, expected: &'static str) -> Result<Reply, PmiError> {
        let request = format!("{command}\n");
        self.stream.write_all(request.as_bytes()).map_err(|error| PmiError::Io(Arc::new(error)))?;
        let line = self.line()?;
        Reply::parse(&line).filter(|it| it.command == expected && !it.is_refused()).ok_or_else(
            || PmiError::Unexpected { expected, got: results::text::printable(&line, 100) },
        )
    }

    fn line(&mut self) -> Result<String, PmiError> {
        let started = Instant::now();
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.unread.len() > MAX_LINE_BYTES {
                return Err(PmiError::Unexpected {
                    expected: "a line",
                    got: format!("{} bytes without an end", self.unread.len()),
                });
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(PmiError::Interrupted);
            }
            if started.elapsed() >= LIMIT {
                return Err(PmiError::Late(LIMIT.as_secs()));
            }
            let mut bytes = [0; 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(PmiError::Closed),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(PmiError::Io(Arc::new(error))),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn hydra(stream: UnixStream, known: Option<&str>) -> Vec<String> {
        let mut commands = Vec::new();
        let mut out = stream.try_clone().unwrap();
        let mut stored = known.map(str::to_owned);
        for line in BufReader::new(stream).lines() {
            let reply = Reply::parse(&line.unwrap()).unwrap();
            stored = reply.fields.get("value").cloned().or(stored);
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
            commands.push(reply.command);
            writeln!(out, "{answer}").unwrap();
        }
        commands
    }

    fn agreed(
        own: Option<&str>,
        stored: Option<&'static str>,
    ) -> (Result<String, PmiError>, String) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let launcher = thread::spawn(move || hydra(theirs, stored));
        let value = agree_over(ours, own, &AtomicBool::new(false));
        (value, launcher.join().unwrap().join(" "))
    }

    #[test]
    fn rank_0_tells_and_the_others_hear() {
        let (own, commands_of_rank_0) = agreed(Some("node1:4711"), None);
        assert_eq!(own.unwrap(), "node1:4711");
        let words = "init get_my_kvsname put barrier_in get finalize";
        assert_eq!(commands_of_rank_0, words);
        let (heard, commands_of_other) = agreed(None, Some("node1:4711"));
        assert_eq!(heard.unwrap(), "node1:4711");
        assert!(!commands_of_other.contains("put"), "{commands_of_other}");
    }

    #[test]
    fn what_cannot_be_told_or_was_not_is_an_error() {
        let (unsent, _) = agreed(Some("node1 4711"), None);
        assert!(matches!(unsent, Err(PmiError::Value(_))), "{unsent:?}");
        let (unheard, _) = agreed(None, None);
        results::sample::has(unheard.unwrap_err().to_string(), ["key_not_found"]);
    }

    #[test]
    fn a_silent_launcher_is_waited_for_until_the_wish_to_stop() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let value = agree_over(ours, None, &AtomicBool::new(true));
        assert!(matches!(value, Err(PmiError::Interrupted)), "{value:?}");
    }

    #[test]
    fn a_descriptor_is_taken_by_its_number() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let launcher = thread::spawn(move || hydra(theirs, Some("a:1")));
        let value = agree(ours.as_raw_fd(), None, &AtomicBool::new(false));
        drop(ours);
        assert_eq!(value.unwrap(), "a:1");
        launcher.join().unwrap();
        let absent = agree(1_000_000, None, &AtomicBool::new(false));
        assert!(matches!(absent, Err(PmiError::Descriptor { .. })), "{absent:?}");
    }
}
