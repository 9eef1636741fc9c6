//! The messages of the control protocol and the checks on what a peer puts into them. It must not know
//! sockets or verbs.
//!
//! On the wire a message is `{"type": "...", "body": ...}`, `body` absent where there is nothing to
//! say. The body stands apart from the tag so that it may be any JSON value and is parsed without an
//! intermediate copy. Unknown fields are ignored. `hello`, `challenge` and `abort` keep their fields in
//! every version of the protocol: by them ends of different versions can tell each other so.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::device_limits::DeviceLimits;
use super::end_report::EndReport;
use super::file_message::{FileAccept, FileAck, FileFin, FileHello, TcpAccept, TcpHello};
use super::lesson_message::{Lesson, OtherEnd, Sight};

use super::memory_offer::MemoryOffer;
use crate::perftest::{Job, Program};
use crate::plan::case::{Case, Mtu};
use crate::protocol::posts::Posts;
use report::text::printable;

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
        /// What this server can do that servers before it could not, by name; none in the first ones.
        #[serde(default)]
        features: Vec<String>,
        /// The server's clock when it sent this, in nanoseconds since 1970 (UTC); `None` from a server that
        /// does not tell.
        #[serde(default)]
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
    ExplainSeen(Box<Sight>),
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

/// One side's connection array. LID, GID and the limits belong to the side's port, and all of a side's
/// QPs are on one port; so they stand here once, not with each QP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// The port's active MTU, in payload bytes of a packet.
    pub mtu_bytes: u32,
    /// READs that the device takes at once on one QP.
    pub max_rd_atomic: u8,
    /// The port's LID; 0 on Ethernet.
    pub lid: u16,
    /// The port's GID, as [`gid_text`] writes it.
    pub gid: String,
    /// What the port is.
    pub link_layer: LinkLayer,
    /// One entry a QP, in QP order.
    pub qps: Vec<QpEndpoint>,
}

/// What lies beneath the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// RoCE: addressed by GID.
    Ethernet,
    /// InfiniBand: addressed by LID.
    Infiniband,
}

/// One QP and the memory that its peer may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpEndpoint {
    /// QP number, 24 bits.
    pub qpn: u32,
    /// First PSN that this QP sends, 24 bits.
    pub psn: u32,
    /// Start of the memory, as the device takes it; 0 if none is accessible.
    pub address: u64,
    /// Its remote key.
    pub rkey: u32,
    /// Its length in bytes.
    pub length: u64,
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

/// What is wrong with the connection array that a peer sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointsError {
    /// Not as many QPs as the case has.
    #[error("the peer sent {got} QPs where the case has {expected}")]
    Count {
        /// QPs of the case.
        expected: u32,
        /// QPs in the array.
        got: usize,
    },
    /// A number has more bits than its field in a packet.
    #[error("the peer's QP {index} has {field} {value:#x}, which is not a 24-bit number")]
    Not24Bits {
        /// Index of the QP.
        index: usize,
        /// `QPN` or `PSN`.
        field: &'static str,
        /// What was sent.
        value: u32,
    },
    /// The memory is too small for the case, or runs past the end of the address space.
    #[error(
        "the peer's QP {index} offers {length} bytes at {address:#x}, the case needs {needed_bytes}"
    )]
    Memory {
        /// Index of the QP.
        index: usize,
        /// Start of the memory.
        address: u64,
        /// Its length in bytes.
        length: u64,
        /// Bytes that the case accesses.
        needed_bytes: u64,
    },
    /// Not an MTU of the transport.
    #[error("the peer's port has MTU {0}, which is none of 256, 512, 1024, 2048 and 4096")]
    Mtu(u32),
    /// Not a GID, or one that addresses nothing on RoCE.
    #[error("the peer's GID `{0}` is not an address")]
    Gid(String),
}

impl Endpoints {
    /// Checks the peer's array against the case: `expected_qps` of them, each with at least
    /// `needed_bytes` of memory (0 if the case accesses none).
    ///
    /// # Errors
    /// The first thing that is wrong, as a sentence.
    pub fn check(&self, expected_qps: u32, needed_bytes: u64) -> Result<(), EndpointsError> {
        Mtu::try_from(self.mtu_bytes).map_err(|_| EndpointsError::Mtu(self.mtu_bytes))?;
        let gid = self.gid_bytes()?;
        if self.link_layer == LinkLayer::Ethernet && gid == [0; 16] {
            return Err(self.bad_gid());
        }
        if usize::try_from(expected_qps) != Ok(self.qps.len()) {
            return Err(EndpointsError::Count {
                expected: expected_qps,
                got: self.qps.len(),
            });
        }
        self.qps
            .iter()
            .enumerate()
            .try_for_each(|(index, qp)| qp.check(index, needed_bytes))
    }

    /// The GID's 16 bytes.
    ///
    /// # Errors
    /// [`EndpointsError::Gid`] if the text is none.
    pub fn gid_bytes(&self) -> Result<[u8; 16], EndpointsError> {
        self.gid
            .parse::<Ipv6Addr>()
            .map(|gid| gid.octets())
            .map_err(|_| self.bad_gid())
    }

    fn bad_gid(&self) -> EndpointsError {
        EndpointsError::Gid(printable(&self.gid, 60))
    }
}

impl QpEndpoint {
    fn check(&self, index: usize, needed_bytes: u64) -> Result<(), EndpointsError> {
        for (field, value) in [("QPN", self.qpn), ("PSN", self.psn)] {
            if value >> 24 != 0 {
                return Err(EndpointsError::Not24Bits {
                    index,
                    field,
                    value,
                });
            }
        }
        let fits = self.length >= needed_bytes && self.address.checked_add(self.length).is_some();
        if fits {
            return Ok(());
        }
        Err(EndpointsError::Memory {
            index,
            address: self.address,
            length: self.length,
            needed_bytes,
        })
    }
}

/// A GID as sysfs writes it: eight groups of four hex digits with colons between.
pub fn gid_text(gid: [u8; 16]) -> String {
    Ipv6Addr::from(gid)
        .segments()
        .map(|group| format!("{group:04x}"))
        .join(":")
}

#[cfg(test)]
#[path = "message_tests.rs"]
pub(crate) mod tests;
