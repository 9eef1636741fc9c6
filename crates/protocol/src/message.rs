//! The messages of the control protocol.
//!
//! The client of a connection is a coordinator, or whoever sends files; its server is a node.
//!
//! On the wire a message is its conversation and its own name in it, `{"type": "run", "body": {"type": "open", "body": ...}}`,
//! the inner `body` absent where there is nothing to say. The body stands apart from the tag so that it may be any JSON
//! value and is parsed without an intermediate copy. Unknown fields are ignored. `join`, `hello`, `challenge` and `abort` keep their fields in
//! every version of the protocol from 4 on: by them ends of different versions can tell each other so.

use std::net::IpAddr;

use derive_more::From;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantNames};

use crate::endpoints::{Endpoints, Posts};
use crate::join::Join;
use crate::lesson::{Lesson, ObservedEnd, OtherEnd};
use crate::node_report::{NodeExamination, NodeFacts, NodeReport};
use perftest::{Job, Needed};
use plan::{Case, Devices, FlowDevice, Side};
use results::model::{QpResult, ResultFile};
use verbs::Network;

/// One control message: a word of one of the conversations that two ends have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, From)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
pub enum Message {
    /// Who the two ends are, and whether they go on with each other.
    #[strum(transparent)]
    Handshake(HandshakeMessage),
    /// What either end may say at any time.
    #[strum(transparent)]
    Session(SessionMessage),
    /// What a node has and can, before it is used.
    #[strum(transparent)]
    Examination(ExaminationMessage),
    /// The steps of a run, between the coordinator and each of its nodes.
    #[strum(transparent)]
    Run(RunMessage),
    /// Where set-up is measured: between the two nodes, whose messages the coordinator passes on.
    #[strum(transparent)]
    SetUp(SetUpMessage),
    /// perftest at the server, beside the client's.
    #[strum(transparent)]
    Perftest(PerftestMessage),
    /// One transfer on one QP, step by step.
    #[strum(transparent)]
    Lesson(LessonMessage),
    /// Files, and the same over TCP to compare.
    #[strum(transparent)]
    File(FileMessage),
}

impl Message {
    /// The message's name in errors, such as `hello` or `set_up_begin`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

/// Who the two ends are, and whether they go on with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HandshakeMessage {
    /// The first word of a node that has connected to its coordinator, which then speaks as the client.
    Join(Box<Join>),
    /// Client to server: the first word after connecting.
    Hello {
        /// The [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) that the client speaks.
        protocol: u32,
        /// Program version of the client.
        version: String,
        /// 32 random bytes in hex.
        nonce: String,
    },
    /// Server to client: the answer to `hello`.
    Challenge {
        /// The [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) that the server speaks.
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
    /// The server's last session ends; the answer comes when that is over.
    Wait,
    /// Another client has the server.
    Busy(BusyInfo),
}

/// What either end may say at any time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SessionMessage {
    /// Sign of life; the link swallows it.
    Heartbeat {
        /// Rises while the sender's work moves: a peer that waits for it waits on.
        progress: u64,
    },
    /// The sender gives the session up.
    Abort(NodeFailure),
    /// The sweep is over; the connection ends.
    Goodbye,
}

/// What a node has and can, before it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ExaminationMessage {
    /// Client to server: examine yourself, before anything else is asked for.
    Examine {
        /// The device to examine; the server's own without.
        device: Option<FlowDevice>,
    },
    /// Server to client: the answer to `examine`.
    Examined(Box<NodeExamination>),
    /// Coordinator to node: what can your device do, and what memory is there?
    AskLimits {
        /// Other devices that flows will ask for at this node.
        devices: Vec<FlowDevice>,
        /// Where it is to take its port, if it may take one there.
        network: Option<Network>,
        /// An RDMA address of another node: without a common network it takes the port from which packets to that leave.
        toward: Option<IpAddr>,
        /// The devices over which its flows go at once, in place of those that it was started with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rails: Option<Devices>,
    },
    /// Node to coordinator: the answer to `ask_limits`.
    Limits(Box<NodeFacts>),
}

/// The steps of a run, between the coordinator and each of its nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunMessage {
    /// Coordinator to node, before the first run: does it have the memory for this case?
    Admit {
        /// The case.
        case: Box<Case>,
        /// The node's number in the session.
        node: u32,
    },
    /// It does; otherwise it gives up.
    Admitted,
    /// Coordinator to node: a run begins.
    Prepare {
        /// The case, with the flows that have an end at this node.
        case: Box<Case>,
        /// Number of each of them in the whole case, by which the node tells of it.
        flows: Vec<u32>,
        /// Index of the run within the case.
        run: u32,
        /// The node's number in the session.
        node: u32,
    },
    /// The node can, and has reserved its cores.
    Prepared,
    /// Coordinator to node: create the objects of all ends of flows at this node.
    Create,
    /// They are created: the QPs and memory of each end, in the order of the case's flows.
    Created {
        /// The array of each end at the node.
        arrays: Vec<EndArray>,
        /// What a person should know of the cores of its workers.
        note: Option<String>,
    },
    /// Coordinator to node: connect them to the other ends, which are in the same order.
    Connect(Vec<EndArray>),
    /// QPs are in RTS and receives are posted.
    Ready,
    /// Coordinator to node: start the traffic (the warm-up).
    Start,
    /// Node to coordinator: the warm-up is over.
    Warm(WarmUp),
    /// Coordinator to node: count messages from the next one on, where messages are counted; the node's answer is the same.
    Measure,
    /// Coordinator to node: what time is it?
    AskClock,
    /// A reading of the node's clock.
    Clock {
        /// In nanoseconds since some time of its own.
        ns: u64,
    },
    /// Coordinator to node: open the window.
    Open {
        /// At this reading of the node's clock.
        at_ns: u64,
        /// Tell latencies while it is open: somebody looks on.
        live_latency: bool,
    },
    /// How far the node's traffic is; sent now and then.
    Progress(Progress),
    /// The node's windows are closed, or all messages have completed.
    Measured {
        /// Messages that completed in them, over all flows from this node.
        messages: u64,
        /// Length of the longest window, in seconds.
        seconds: f64,
    },
    /// Coordinator to node: stop posting and drain.
    Stop,
    /// The send queues are empty: for each end, what it has sent.
    Drained(Vec<Drained>),
    /// Coordinator to node: what the other end of each flow has sent; wait for all of it, and check it.
    Settle(Vec<Drained>),
    /// All has come, and is as it should be.
    Settled,
    /// Coordinator to node: end the run, and report.
    Finish {
        /// What is still in the queues is given up.
        flush: bool,
        /// The QPs stay as they are, for `again`.
        #[serde(default)]
        keep: bool,
    },
    /// The run failed at the node, which waits for `finish`.
    Failed(Box<NodeFailure>),
    /// Node to coordinator: what the node measured; the answer to `finish`.
    Report(Box<NodeReport>),
    /// Coordinator to node: QPs of an end of a flow from this one on, which the report left out.
    AskQps {
        /// Number of the end in the report.
        end: u32,
        /// Index of the first QP.
        from: u32,
    },
    /// Node to coordinator: as many of them as fit a message.
    Qps(Vec<QpResult>),
    /// Coordinator to node: it has the whole report.
    RunDone,
    /// Coordinator to node that shows results: the run that is over, without the figures of each QP. There is no answer.
    Show(Box<ResultFile>),
    /// The same as `run_done`, where QPs were kept: another run of the case begins on them. The answer is `ready`.
    Again {
        /// Index of that run within the case.
        run: u32,
    },
}

/// Where set-up is measured: between the two nodes, whose messages the coordinator passes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", prefix = "set_up_")]
pub enum SetUpMessage {
    /// Coordinator to node: measure set-ups with the other node, whose messages the coordinator passes on.
    Begin,
    /// Node to coordinator: a phase of measuring set-ups begins.
    Phase {
        /// The phase's name, for the line that shows progress.
        name: String,
        /// How long it is expected to take, in milliseconds.
        expected_ms: Option<u64>,
    },
    /// Where set-up is measured, from the node that leads to the other: create the QPs of a round.
    Round,
    /// The sender's QPs of the round, all in INIT.
    Array(Box<SetupArray>),
    /// The sender has destroyed its QPs of the round.
    Gone,
    /// Where set-up is measured and QPs are connected by rdma_cm: the sender listens.
    CmListening(CmListening),
}

/// perftest at the server, beside the client's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", prefix = "perftest_")]
pub enum PerftestMessage {
    /// Coordinator to node: could the node run these programs of perftest?
    Check {
        /// What the cases of the sweep need.
        needed: Vec<Needed>,
    },
    /// Node to coordinator: it could; else it sends `abort`.
    Checked {
        /// The version that its perftest tells.
        version: Option<String>,
    },
    /// Coordinator to node: start perftest's server for this.
    Start(Box<Job>),
    /// Node to coordinator: perftest's server listens.
    Started {
        /// On this TCP port of the address that the control connection goes to.
        port: u16,
    },
    /// Coordinator to node, once for each start: perftest's client has ended.
    Stop {
        /// Kill perftest's server; else it may end by itself.
        now: bool,
    },
    /// perftest's server has ended, or could not be started; once for each start.
    Ended(Box<PerftestEnd>),
}

/// One transfer on one QP, step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", prefix = "lesson_")]
pub enum LessonMessage {
    /// Client to server: prepare for one transfer on one QP.
    Prepare(Box<Lesson>),
    /// Where one transfer is done as a lesson: the sender's QP and memory.
    Endpoints(Box<Endpoints>),
    /// The server's QP is in RTS.
    Ready(Box<OtherEnd>),
    /// Client to server: the transfer is over, or there will be none.
    Look,
    /// What there is at the server then.
    Seen(Box<ObservedEnd>),
}

/// Files, and the same over TCP to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", prefix = "file_")]
pub enum FileMessage {
    /// Client to server: a file is to be sent.
    Hello(Box<FileHello>),
    /// The server is ready for its chunks.
    Accept(Box<FileAccept>),
    /// Client to server: all of it was sent.
    Fin(FileFin),
    /// It is in its place.
    Ack(FileAck),
    /// Client to server: the same file comes over TCP, to compare.
    TcpHello(TcpHello),
    /// The server listens for it; `file_fin` and `file_ack` end it.
    TcpAccept(TcpAccept),
}

/// The connection array of one end of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndArray {
    /// Number of the flow in the whole case.
    pub flow: u32,
    /// The end whose QPs these are.
    pub side: Side,
    /// Its port, QPs and memory.
    pub endpoints: Endpoints,
    /// Where a target listens whose QPs are connected by rdma_cm.
    pub listening: Option<CmListening>,
}

/// How a node's warm-up went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Throughput came to be steady; `None` where that was not asked for, or nothing goes from this node.
    pub is_steady: Option<bool>,
}

/// How far a node's traffic is, over all flows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Since the phase began, in nanoseconds.
    pub elapsed_ns: u64,
    /// Messages completed since the phase began.
    pub messages: u64,
    /// Payload bytes of these messages.
    pub bytes: u64,
    /// Messages that are posted and not completed.
    pub outstanding: u64,
    /// 99th percentile of latencies since the last one that was told, of the flow where it is highest, in nanoseconds;
    /// `None` where it is not asked for, not due yet, or of no samples.
    pub p99_ns: Option<u64>,
    /// Events on the path of packets since the window opened, by the device's counters; `None` where it is not asked for, or has
    /// none.
    #[serde(default)]
    pub path_events: Option<u64>,
}

/// Why an end gives a run or the session up, as it tells the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFailure {
    /// What happened, as a sentence.
    pub reason: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What was asked for cannot be done at all, as opposed to a run that failed.
    pub bad_input: bool,
}

impl NodeFailure {
    /// What happened in a run, and what to do about it.
    pub fn new(reason: impl Into<String>, hint: Option<String>) -> NodeFailure {
        NodeFailure { reason: reason.into(), hint, bad_input: false }
    }
}

/// Where rdma_cm finds a target, at the address of its GID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CmListening {
    /// Port number, in the port space of rdma_cm's RC connections.
    pub port: u16,
    /// 16 bytes in hex, by which it knows the requests of this run.
    pub nonce: String,
}

/// A node's connection array of a round of set-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupArray {
    /// The QPs; they offer no memory.
    pub endpoints: Endpoints,
    /// From the node that follows: how long it had the other's array before it had its own to answer with, in nanoseconds.
    #[serde(default)]
    pub held_ns: u64,
}

/// The session that has the server, for a client that is sent away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyInfo {
    /// Address of the client that has it.
    pub client: String,
    /// How long it has had it, in seconds.
    pub since_seconds: u64,
}

/// What an end of a flow has done when its send queues are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Messages sent on all QPs since they were created.
    pub sent_messages: u64,
    /// With `verify`: for each QP and each position of its send ring, how often it was posted.
    pub posts: Option<Posts>,
}

/// How perftest's server ended, as the node tells the coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerftestEnd {
    /// It ended by itself, with exit status 0.
    pub success: bool,
    /// Its exit status in words, or why it was not started.
    pub status: String,
    /// Its command line and what it printed, the end of it where it was long.
    pub output: String,
}

/// A file is to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHello {
    /// Its name, one component; on the wire `file_name`, which comes as it was sent.
    #[serde(rename = "file_name")]
    pub name: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// A file of that name may be overwritten.
    pub force: bool,
    /// With the first file: the sender's QPs and how they are to be used. Later ones use the same.
    pub channel: Option<ChannelHello>,
}

/// How the chunks of all files of a session are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelHello {
    pub settings: ChannelSettings,
    /// The sender's QPs; none of its memory is accessible.
    pub endpoints: Endpoints,
}

/// What both ends must have alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// QPs over which chunks go, at each end.
    pub qps: u32,
    /// Bytes of a chunk; a file's last may have less.
    pub chunk_bytes: u32,
    /// Chunks that each QP may have outstanding: slots of the receiver's memory.
    pub window: u32,
    /// Path MTU in bytes; `None` is the largest that both ports have.
    pub mtu_bytes: Option<u32>,
    /// Local ACK timeout as verbs take it, 0 to 31: 4.096 µs times 2 to its power; 0 waits for ever.
    pub timeout: u8,
    /// Retries after a timeout before the QP fails, 0 to 7.
    pub retry_cnt: u8,
}

/// The receiver is ready for the chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccept {
    /// Where the sender sent its QPs: the receiver's, with address and key of each QP's slots.
    pub endpoints: Option<Endpoints>,
}

/// All of the file is out and was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFin {
    /// The checksum of what was read, in hex.
    pub digest: String,
}

/// The file is whole, on the disk, and has its name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileAck {
    /// How long it took to bring it to the disk, in seconds.
    pub sync_seconds: f64,
}

/// The same file is to be sent once more, over a plain TCP connection, to be thrown away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpHello {
    /// Its name, for what a person reads.
    #[serde(rename = "file_name")]
    pub name: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Bytes of a chunk of the checksum.
    pub chunk_bytes: u32,
}

/// The receiver listens for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpAccept {
    /// On this TCP port of the address that the control connection goes to.
    pub port: u16,
    /// The first bytes on that connection, in hex: nobody else has them.
    pub key: String,
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
