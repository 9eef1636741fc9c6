//! The messages of the control protocol and the checks on what a peer puts into them. It must not know
//! sockets or verbs.
//!
//! On the wire a message is `{"type": "...", "body": ...}`, `body` absent where there is nothing to
//! say. The body stands apart from the tag so that it may be any JSON value and is parsed without an
//! intermediate copy. Unknown fields are ignored. `hello`, `challenge` and `abort` keep their fields in
//! every version of the protocol: by them ends of different versions can tell each other so.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::device_limits::DeviceLimits;
use super::end_report::EndReport;
use super::endpoints::Endpoints;
use super::file_message::{FileAccept, FileAck, FileFin, FileHello, TcpAccept, TcpHello};
use super::lesson_message::{Lesson, ObservedEnd, OtherEnd};

use super::memory_offer::MemoryOffer;
use crate::perftest::{Job, Program};
use crate::plan::case::Case;
use crate::protocol::posts::Posts;

/// One control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
pub enum Message {
    /// Client's first word.
    Hello {
        /// [`PROTOCOL_VERSION`](crate::protocol::PROTOCOL_VERSION) of the client.
        protocol: u32,
        /// Program version of the client.
        version: String,
        /// 32 random bytes in hex.
        nonce: String,
    },
    /// Server's answer to `Hello`.
    Challenge {
        /// [`PROTOCOL_VERSION`](crate::protocol::PROTOCOL_VERSION) of the server.
        protocol: u32,
        /// Program version of the server.
        version: String,
        /// 32 random bytes in hex.
        nonce: String,
        /// The server takes only clients that prove its token.
        token_required: bool,
    },
    /// Client's proof of the token.
    Proof {
        /// HMAC in hex; `None` from a client without a token.
        mac: Option<String>,
    },
    /// The server has taken the client; with its own proof of the token.
    Welcome {
        /// HMAC in hex; `None` from a server without a token.
        mac: Option<String>,
        /// Facts about the server's host, for the result file.
        host: Value,
        /// Whether it was started to receive files.
        receives_files: bool,
        /// The server's clock when it sent this, in nanoseconds since 1970 (UTC); `None` from a server that
        /// does not tell.
        clock_ns: Option<u64>,
    },
    /// Facts about the client's host.
    Introduce {
        /// Facts about the client's host, for the server's log.
        host: Value,
    },
    /// Another client has the server.
    Busy(BusyInfo),
    /// Client to server: what can your device do, and what memory is there?
    AskLimits,
    /// This.
    Limits {
        /// Of the device.
        device: Box<DeviceLimits>,
        /// For a run.
        memory: MemoryOffer,
    },
    /// Client to server: create the objects of this run.
    Prepare {
        /// The whole case.
        case: Box<Case>,
        /// Index of the run within the case.
        run: u32,
    },
    /// The sender's QPs and memory.
    Endpoints(Box<Endpoints>),
    /// Server to client, after its `Endpoints`, where QPs are connected by rdma_cm: it listens.
    CmListening(CmListening),
    /// QPs are in RTS and receives are posted.
    Ready,
    /// Client to server: start the traffic (the warm-up).
    Start,
    /// The measurement window is open.
    Measure,
    /// Client to server: stop posting and drain.
    Stop {
        /// At once; else a run counted in messages first sends all of them.
        now: bool,
    },
    /// The sender has drained its send queues.
    Drained(Box<Drained>),
    /// What the sender measured.
    Report(Box<EndReport>),
    /// The run is over and its objects are gone.
    RunDone,
    /// Client to server: could the server run these programs of perftest?
    PerftestCheck {
        /// The programs that the sweep will ask for.
        programs: Vec<Program>,
    },
    /// It could.
    PerftestChecked {
        /// The version that its perftest tells.
        version: Option<String>,
    },
    /// Client to server: start perftest's server for this.
    PerftestStart(Box<Job>),
    /// perftest's server listens.
    PerftestStarted {
        /// On this TCP port of the address that the control connection goes to.
        port: u16,
    },
    /// Client to server, once for each start: perftest's client has ended.
    PerftestStop {
        /// Kill perftest's server; else it may end by itself.
        now: bool,
    },
    /// perftest's server has ended, or could not be started; once for each start.
    PerftestEnded(Box<PerftestEnd>),
    /// Client to server: prepare for one transfer on one QP.
    Explain(Box<Lesson>),
    /// The server's QP is in RTS.
    ExplainReady(Box<OtherEnd>),
    /// Client to server: the transfer is over, or there will be none.
    ExplainLook,
    /// What there is at the server then.
    ExplainSeen(Box<ObservedEnd>),
    /// Client to server: a file is to be sent.
    FileHello(Box<FileHello>),
    /// The server is ready for its chunks.
    FileAccept(Box<FileAccept>),
    /// Client to server: all of it was sent.
    FileFin(FileFin),
    /// It is in its place.
    FileAck(FileAck),
    /// Client to server: the same file comes over TCP, to compare.
    TcpHello(TcpHello),
    /// The server listens for it; `file_fin` and `file_ack` end it.
    TcpAccept(TcpAccept),
    /// Client to server, where set-up is measured: create the QPs of a round.
    SetupRound,
    /// The sender's QPs of the round, all in INIT.
    SetupArray(Box<SetupArray>),
    /// The sender has destroyed its QPs of the round.
    SetupGone,
    /// Sign of life; the link swallows it.
    Heartbeat {
        /// Rises while the sender's work moves: a peer that waits for it waits on.
        progress: u64,
    },
    /// The sender gives the session up.
    Abort {
        /// Why, as a sentence.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
        /// What was asked for cannot be done at all, as opposed to a run that failed.
        bad_input: bool,
    },
    /// The sweep is over; the connection ends.
    Goodbye,
}

impl Message {
    /// The message's name on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Hello { .. } => "hello",
            Message::Challenge { .. } => "challenge",
            Message::Proof { .. } => "proof",
            Message::Welcome { .. } => "welcome",
            Message::Introduce { .. } => "introduce",
            Message::Busy(_) => "busy",
            Message::AskLimits => "ask_limits",
            Message::Limits { .. } => "limits",
            Message::Prepare { .. } => "prepare",
            Message::Endpoints(_) => "endpoints",
            Message::CmListening(_) => "cm_listening",
            Message::Ready => "ready",
            Message::Start => "start",
            Message::Measure => "measure",
            Message::Stop { .. } => "stop",
            Message::Drained(_) => "drained",
            Message::Report(_) => "report",
            Message::RunDone => "run_done",
            Message::PerftestCheck { .. } => "perftest_check",
            Message::PerftestChecked { .. } => "perftest_checked",
            Message::PerftestStart(_) => "perftest_start",
            Message::PerftestStarted { .. } => "perftest_started",
            Message::PerftestStop { .. } => "perftest_stop",
            Message::PerftestEnded(_) => "perftest_ended",
            Message::Explain(_) => "explain",
            Message::ExplainReady(_) => "explain_ready",
            Message::ExplainLook => "explain_look",
            Message::ExplainSeen(_) => "explain_seen",
            Message::FileHello(_) => "file_hello",
            Message::FileAccept(_) => "file_accept",
            Message::FileFin(_) => "file_fin",
            Message::FileAck(_) => "file_ack",
            Message::TcpHello(_) => "tcp_hello",
            Message::TcpAccept(_) => "tcp_accept",
            Message::SetupRound => "setup_round",
            Message::SetupArray(_) => "setup_array",
            Message::SetupGone => "setup_gone",
            Message::Heartbeat { .. } => "heartbeat",
            Message::Abort { .. } => "abort",
            Message::Goodbye => "goodbye",
        }
    }
}

/// Where rdma_cm finds the server, at the address of its GID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CmListening {
    /// Port number, in the port space of rdma_cm's RC connections.
    pub port: u16,
    /// 16 bytes in hex, by which it knows the requests of this run.
    pub nonce: String,
}

/// One side's connection array of a round of set-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupArray {
    /// The QPs; they offer no memory.
    pub endpoints: Endpoints,
    /// Of the server's: how long it had the client's array before it had its own to answer with, in nanoseconds.
    #[serde(default)]
    pub held_ns: u64,
}

/// Who has the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyInfo {
    /// The client's address.
    pub client: String,
    /// How long it has had it, in seconds.
    pub since_seconds: u64,
}

/// What a side has done when its send queues are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Messages sent on all QPs since they were created.
    pub sent_messages: u64,
    /// With `verify`: for each QP and each position of its send ring, how often it was posted.
    pub posts: Option<Posts>,
}

/// How perftest's server ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerftestEnd {
    /// By itself and well.
    pub success: bool,
    /// Its exit status in words, or why it was not started.
    pub status: String,
    /// Its command line and what it printed, the end of it where it was long.
    pub output: String,
}

#[cfg(test)]
#[path = "message_tests.rs"]
pub(crate) mod tests;
