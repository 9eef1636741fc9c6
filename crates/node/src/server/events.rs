//! What happens on a server, for a person to read.

use std::net::SocketAddr;
use std::sync::Arc;

use perftest::Program;
use protocol::error::AcceptError;
use protocol::failure::RunFailure;
use protocol::lesson_message::Lesson;

/// What happens on a server, as it tells a person. Called from several threads.
pub type ServerLog = Arc<dyn Fn(ServerEvent<'_>) + Send + Sync>;

/// An event on a server.
#[derive(Debug)]
#[allow(missing_docs)] // Some fields say what they are.
pub enum ServerEvent<'a> {
    /// A session begins.
    Accepted { client: SocketAddr },
    /// A run begins.
    Run {
        /// Name of the case.
        case: &'a str,
        /// Number of the run, from 1.
        run: u32,
    },
    /// Something that a person should know of the last run.
    Note {
        /// As a sentence.
        text: &'a str,
    },
    /// A lesson begins.
    Lesson {
        /// What is done.
        lesson: &'a Lesson,
    },
    /// perftest's server is started.
    Perftest {
        program: Program,
        /// Name of the case.
        case: &'a str,
    },
    /// A file was received.
    File {
        name: &'a str,
        bytes: u64,
        /// From the first word about it to its place.
        seconds: f64,
        /// QPs that it came over; 0 if it came over TCP, to compare, and was thrown away.
        qps: u32,
    },
    /// A session ended as it should.
    Finished {
        client: SocketAddr,
        /// Runs that were served.
        runs: u32,
    },
    /// A session ended otherwise.
    Broken { client: SocketAddr, failure: &'a RunFailure },
    /// A connection did not become a session.
    Refused { error: &'a AcceptError },
}
