//! One case: everything both ends must agree on to run one cell of the sweep's matrix. It is sent
//! whole to the server, so that different settings on both ends cannot happen.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The RDMA operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// SEND into receives that the other end has posted.
    Send,
    /// RDMA WRITE into the other end's memory.
    Write,
    /// RDMA READ from the other end's memory.
    Read,
}

/// How QPs, CQs and workers belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CqMode {
    /// One CQ for all QPs, polled by all workers.
    Shared,
    /// One CQ for each worker's QPs.
    PerWorker,
    /// One CQ for each QP; a worker walks those of its QPs.
    PerQp,
}

/// How a worker learns of completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PollMode {
    /// It polls its CQs without a pause.
    #[default]
    Busy,
    /// It sleeps on a completion channel while its CQs are empty.
    Event,
    /// It polls for a short time, and then sleeps.
    Adaptive,
}

/// How the QPs of both ends find each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectMode {
    /// The ends tell each other their QPs over the control connection.
    #[default]
    Tcp,
    /// The kernel's connection manager, through librdmacm.
    Cm,
}

/// A path MTU, in payload bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub enum Mtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

/// When a run's measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this time, in nanoseconds.
    DurationNs(u64),
    /// After this many messages on each QP (and in each direction); where set-up is measured, after so many rounds.
    MessagesPerQp(u64),
}

/// How long a run warms up before its measurement window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Until throughput is steady, but at most this many nanoseconds.
    AutoCapNs(u64),
    /// For this many nanoseconds; 0 is no warm-up.
    FixedNs(u64),
}

/// One cell of the sweep's matrix, with every setting that both ends apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the case within its sweep, such as `send-shared-q16-64KiB`; unique.
    pub id: String,
    /// The operation.
    pub op: Op,
    /// How completion queues are shared.
    pub cq: CqMode,
    /// How workers learn of completions.
    #[serde(default)]
    pub poll: PollMode,
    /// How QPs are connected.
    #[serde(default)]
    pub connect: ConnectMode,
    /// Queue pairs.
    pub qps: u32,
    /// Payload of one message, in bytes; at least 1.
    pub size_bytes: u32,
    /// Send work requests in flight on each QP.
    pub tx_depth: u32,
    /// Receives posted on each QP (SEND only).
    pub rx_depth: u32,
    /// One signalled WR in so many.
    pub signal_every: u32,
    /// WRs given to one `ibv_post_send`.
    pub post_list: u32,
    /// Messages up to this size are sent inline; 0 is off.
    pub inline_bytes: u32,
    /// Worker threads at each end.
    pub workers: u32,
    /// Path MTU asked for; `None` is the smaller of both ports' active MTU.
    pub mtu: Option<Mtu>,
    /// Both ends send at once.
    pub bidirectional: bool,
    /// When the measurement ends.
    pub stop: Stop,
    /// How it is warmed up.
    pub warmup: Warmup,
    /// Payloads are filled with a pattern and checked.
    pub verify: bool,
    /// Latency of each signalled batch goes into a histogram of its QP.
    pub latency: bool,
    /// Entries of each CQ; `None` is enough for all that can be outstanding.
    pub cq_depth: Option<u32>,
    /// How the transport treats lost packets and absent receives.
    pub transport: Transport,
    /// Set-up is what is measured, and the other settings are of the traffic meanwhile, see [`SetUp`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetUp>,
}

/// What a case of set-up has besides [`Case::qps`], which there is how many QPs a round connects.
/// The other settings of such a case are those of the traffic on other QPs meanwhile, which are RDMA WRITEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// QPs that carry traffic while others are set up; 0 for none.
    pub traffic_qps: u32,
}

/// Attributes of the reliable connection, each as `ibv_modify_qp(3)` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transport {
    /// Local ACK timeout exponent: 4.096 µs × 2^timeout; 0 is for ever.
    pub timeout: u8,
    /// Retries after a timeout or a sequence error, 0 to 7.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK, 0 to 7; 7 is for ever.
    pub rnr_retry: u8,
    /// RNR NAK timer code, 0 to 31 (InfiniBand specification, table 45).
    pub min_rnr_timer: u8,
    /// READs outstanding on one QP; `None` is the smaller of both devices' limits.
    pub max_rd_atomic: Option<u8>,
    /// Service level (priority), 0 to 15.
    pub service_level: u8,
    /// GRH traffic class (DSCP and ECN bits on RoCE v2).
    pub traffic_class: u8,
    /// GRH hop limit.
    pub hop_limit: u8,
}

impl Default for Transport {
    /// perftest's defaults.
    fn default() -> Self {
        Transport {
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_rd_atomic: None,
            service_level: 0,
            traffic_class: 0,
            hop_limit: 64,
        }
    }
}

impl Op {
    /// All operations, in the order in which a sweep runs them.
    pub const ALL: [Op; 3] = [Op::Send, Op::Write, Op::Read];

    /// The word of the command line and of the result file.
    pub fn name(self) -> &'static str {
        match self {
            Op::Send => "send",
            Op::Write => "write",
            Op::Read => "read",
        }
    }
}

impl CqMode {
    /// The word of the command line and of the result file.
    pub fn name(self) -> &'static str {
        match self {
            CqMode::Shared => "shared",
            CqMode::PerWorker => "per-worker",
            CqMode::PerQp => "per-qp",
        }
    }
}

impl PollMode {
    /// All modes.
    pub const ALL: [PollMode; 3] = [PollMode::Busy, PollMode::Event, PollMode::Adaptive];

    /// The word of the command line and of the result file.
    pub fn name(self) -> &'static str {
        match self {
            PollMode::Busy => "busy",
            PollMode::Event => "event",
            PollMode::Adaptive => "adaptive",
        }
    }
}

impl ConnectMode {
    /// All modes.
    pub const ALL: [ConnectMode; 2] = [ConnectMode::Tcp, ConnectMode::Cm];

    /// The word of the command line and of the result file.
    pub fn name(self) -> &'static str {
        match self {
            ConnectMode::Tcp => "tcp",
            ConnectMode::Cm => "cm",
        }
    }
}

impl Mtu {
    /// All path MTUs, ascending.
    pub const ALL: [Mtu; 5] = [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096];

    /// Payload bytes of a full packet.
    pub fn bytes(self) -> u32 {
        match self {
            Mtu::B256 => 256,
            Mtu::B512 => 512,
            Mtu::B1024 => 1024,
            Mtu::B2048 => 2048,
            Mtu::B4096 => 4096,
        }
    }
}

impl From<Mtu> for u32 {
    fn from(mtu: Mtu) -> u32 {
        mtu.bytes()
    }
}

impl TryFrom<u32> for Mtu {
    type Error = String;

    fn try_from(bytes: u32) -> Result<Self, Self::Error> {
        Mtu::ALL
            .into_iter()
            .find(|mtu| mtu.bytes() == bytes)
            .ok_or_else(|| format!("an MTU is 256, 512, 1024, 2048 or 4096, not {bytes}"))
    }
}

impl Warmup {
    /// The longest that the warm-up can take.
    pub fn longest(self) -> Duration {
        match self {
            Warmup::AutoCapNs(ns) | Warmup::FixedNs(ns) => Duration::from_nanos(ns),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for CqMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for PollMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for ConnectMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}
