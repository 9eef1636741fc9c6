//! The table of settings, in the order of the help, of results' fields and of the matrix of cases: what comes first
//! varies slowest. A new setting is a row here and the code that obeys it.
//!
//! A row begins with the help's text, which is also the documentation of the field in results; then come the field's
//! name, type and default, and what [`Row`] has besides, as far as it is not usual.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lists::{QpNumbers, QpWeights, SizeMix};
use super::op::{Op, Service, Workload};
use super::places::{MemoryAt, Register};
use super::row::{self, Id, Scope, Takes, Value};
use super::units::Rate;
use super::units::TimeSpan;
use super::words::Pattern;
use super::words::{
    Arrivals, AtomicTarget, CallStyle, ConnectMode, CqMode, Domains, MrMode, Mtu, Ordering, Pace,
    PollMode, RecvQueue, Split, Spread, Timestamps, TouchOrder, Warmup,
};

/// The largest number that programs which read JSON's numbers as `double`, such as jq, keep as it is.
const MAX_EXACT_IN_JSON: u64 = (1 << 53) - 1;

const RUN: &str = "What to run";
const QUEUES: &str = "Queue pairs and workers";
const LOAD: &str = "Load";
const BUFFERS: &str = "Buffers";
const TRANSPORT: &str = "Transport";
const NODES: &str = "Nodes and patterns";

const DEPTH: (u64, u64) = (1, 65_536);

/// One setting of a case.
pub type Row = row::Row<Settings>;

/// Makes [`Settings`] and [`ROWS`] from the rows.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $field:ident: $type:ty = $default:expr => { $($part:ident: $value:expr),* $(,)? })*) => {
        /// The settings of a case, as the coordinator sends them to nodes, and as results have them.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $($field: $default,)* }
            }
        }

        /// All settings, in the order of the help and of the matrix of cases.
        pub static ROWS: &[Row] = &[$(Row {
            field: stringify!($field),
            help: concat!($($help),+),
            words: <$type as Value>::words,
            read: |settings, text, row| {
                settings.$field = Value::read(text, row)?;
                Ok(())
            },
            write: |settings, row| settings.$field.write(row),
            equals: |one, other| one.$field == other.$field,
            copy: |settings, from| settings.$field = from.$field.clone(),
            $($part: $value,)*
            ..Row::USUAL
        },)*];
    };
}

settings! {
    /// Operations: send, write, read, send-imm and write-imm (with immediate data), fetch-add and compare-swap (on 8
    /// bytes); connect measures the set-up of QPs
    op: Workload = Workload::Transfer(Op::Send) => {
        flag: "op", heading: RUN, takes: Takes::List, default: "send", id: Id::Head, column: "op",
        title: "operation",
    }
    /// Transport services: rc (reliable connections), uc (unreliable connections: send and write), ud (datagrams: send up
    /// to the path MTU). Lost messages of uc and ud are counted and do not fail a run
    service: Service = Service::Rc => {
        flag: "service", heading: RUN, takes: Takes::List, default: "rc", id: Id::Word,
        column: "service",
        title: "service", label: "service {}", is_quiet: true,
    }
    /// Flows between the nodes: pairs (each node to each other, one partner at a time), ring (each to the next),
    /// incast (all others to the first node, or to NODE with incast:NODE), outcast (the opposite), all-to-all (each to
    /// each other at once), bisection (between the halves of the list, both ways), loop (each to itself)
    pattern: Option<Pattern> = None => {
        flag: "pattern", heading: NODES, scope: Scope::Case, takes: Takes::List, default: "", id: Id::Word,
        column: "pattern",
        title: "pattern",
    }
    /// Number of senders in an incast
    fan_in: Option<u32> = None => {
        flag: "fan-in", heading: NODES, scope: Scope::Case, takes: Takes::List, default: "all others",
        range: (1, 4_095), id: Id::Letter('F'), column: "fan-in",
        title: "fan-in", label: "{} sender|{} senders",
    }
    /// Number of receivers in an outcast
    fan_out: Option<u32> = None => {
        flag: "fan-out", heading: NODES, scope: Scope::Case, takes: Takes::List, default: "all others",
        range: (1, 4_095), id: Id::Letter('O'), column: "fan-out",
        title: "fan-out", label: "{} receiver|{} receivers",
    }
    /// With --pattern ring or all-to-all: nodes move in steps, as collectives do. ring is an all-reduce, all-to-all an
    /// exchange of --size bytes at each node; a step begins when all that it needs has arrived
    lock_step: bool = false => {
        flag: "lock-step", heading: NODES, scope: Scope::Case, takes: Takes::Switch, id: Id::Letter('k'),
        title: "lock-step", label: "in lock-step", is_quiet: true,
    }
    /// With --lock-step and --pattern all-to-all: shares of the nodes in each buffer: equal, zipf (the n-th node of the list
    /// gets 1/n as much as the first), hot-K (the first K nodes get half of it)
    split: Split = Split::Equal => {
        flag: "split", heading: NODES, scope: Scope::Case, takes: Takes::List, default: "equal", id: Id::Word,
        column: "split",
        title: "split of buffers", label: "split {}", is_quiet: true,
    }
    /// With --lock-step: pause between two iterations, in which a program would compute
    compute_seconds: Option<TimeSpan> = None => {
        flag: "compute", heading: NODES, scope: Scope::Case, takes: Takes::List, default: "", id: Id::Word,
        column: "compute",
        title: "pause to compute", label: "pauses of {}",
    }
    /// Completion queues: shared (one for all; workers share its lock), per-worker (best for several workers),
    /// per-qp (costs a poll for each QP)
    cq: CqMode = CqMode::Shared => {
        flag: "cq", heading: QUEUES, takes: Takes::List, default: "shared", id: Id::Head,
        column: "cq",
        title: "CQ mode", label: "CQ {}",
    }
    /// Message sizes in bytes, 1 to 2147483647 (2 GiB - 1) or the ports' limit
    size_bytes: u32 = 65_536 => {
        flag: "size", short: Some('s'), heading: RUN, takes: Takes::List,
        default: "64K, with --service ud 1K or --mtu if smaller",
        range: (1, (1 << 31) - 1), is_size: true, id: Id::Head, column: "size",
        title: "message size",
    }
    /// Several message sizes with weights: 64:9,64K:1 sends nine messages of 64 bytes for each one of 64 KiB;
    /// size_bytes in results is then the largest
    size_mix: Option<SizeMix> = None => {
        flag: "size-mix", heading: RUN, takes: Takes::One("SIZES"), id: Id::Head,
        column: "sizes",
        title: "message sizes", label: "sizes {}",
    }
    /// Queue pairs; with --op connect, the QPs set up in each round
    qps: u32 = 1 => {
        flag: "qps", short: Some('q'), heading: QUEUES, takes: Takes::List, default: "1",
        range: (1, 131_072), id: Id::Head, column: "qps",
        title: "QPs", label: "{} QP|{} QPs",
    }
    /// With --op connect: QPs that carry traffic (RDMA WRITEs) while others are set up; 0 for none
    traffic_qps: u32 = 1 => {
        flag: "traffic-qps", heading: QUEUES, scope: Scope::Case, takes: Takes::List, default: "1",
        range: (0, 65_536), id: Id::Letter('T'), column: "traffic",
        title: "QPs with traffic", label: "{} QP with traffic|{} QPs with traffic",
    }
    /// Worker threads at each node, for all flows there
    workers: u32 = 1 => {
        flag: "workers", heading: QUEUES, scope: Scope::Case, takes: Takes::List, default: "1",
        range: (1, 1_024), id: Id::Letter('w'), column: "workers",
        title: "workers", label: "{} worker|{} workers",
    }
    /// WRs in flight on each QP: 16 and more for throughput of small messages, few for low latency
    tx_depth: u32 = 128 => {
        flag: "tx-depth", short: Some('t'), heading: QUEUES, takes: Takes::List, default: "128, or -Q or -l if larger",
        range: DEPTH, id: Id::Letter('t'), column: "tx",
        title: "send depth", label: "send depth {}", may_follow: true,
    }
    /// With --service ud: each QP sends to all QPs of the peer in turn, not only to the QP with its index
    ud_fan_out: bool = false => {
        flag: "ud-fan-out", heading: QUEUES, takes: Takes::Switch, id: Id::Letter('f'),
        title: "UD fan-out", label: "to all QPs in turn", is_quiet: true,
    }
    /// Receive queues: per-qp (one for each QP), shared (one SRQ at the receiver for all QPs of a flow)
    recv_queue: RecvQueue = RecvQueue::PerQp => {
        flag: "recv-queue", heading: QUEUES, takes: Takes::List, default: "per-qp", id: Id::Letter('S'),
        column: "recvs",
        title: "receive queues", label: "receives {}", is_quiet: true,
    }
    /// Receives posted on each QP, for send and immediate data; with --recv-queue shared, on the SRQ. Raise it where the
    /// table says `receiver not ready`
    rx_depth: u32 = FITTED => {
        flag: "rx-depth", short: Some('r'), heading: QUEUES, takes: Takes::List,
        default: "512, above 128 QPs the larger of 65536 / -q and 4 x -t, up to 512; with --recv-queue shared as many as senders can have in flight, up to 16384",
        range: DEPTH, id: Id::Letter('r'), column: "rx",
        title: "receive depth", label: "receive depth {}", may_follow: true,
    }
    /// Signal one WR in this many: 1 for the latency of each message, 64 for the highest rate
    signal_every: u32 = FITTED => {
        flag: "signal-every", short: Some('Q'), heading: QUEUES, takes: Takes::List,
        default: "1; with --no-latency 64 for messages up to 8K, fitted to -t and -l",
        range: DEPTH, id: Id::Letter('Q'), column: "signal",
        title: "signalling", label: "signalled 1 in {}", may_follow: true,
    }
    /// WRs in one ibv_post_send: 1 as most programs do, 32 for the highest rate; above -Q only multiples of -Q
    post_list: u32 = 1 => {
        flag: "post-list", short: Some('l'), heading: QUEUES, takes: Takes::List, default: "1",
        range: DEPTH, id: Id::Letter('l'), column: "list",
        title: "post list", label: "post list {}", may_follow: true,
    }
    /// Send messages up to this many bytes inline; reads and atomics are never inline
    inline_bytes: u32 = 0 => {
        flag: "inline", short: Some('I'), heading: QUEUES, takes: Takes::List, default: "0",
        range: (0, 65_536), is_size: true, id: Id::Letter('I'), column: "inline",
        title: "inline", label: "inline up to {}", is_quiet: true, may_follow: true,
    }
    /// Scatter/gather elements of each message and each receive; a message of fewer bytes has one for each byte
    sges: u32 = 1 => {
        flag: "sges", heading: QUEUES, takes: Takes::List, default: "1", range: (1, 1_024), id: Id::Letter('g'),
        column: "sges",
        title: "SGEs", label: "{} SGE|{} SGEs", is_quiet: true,
    }
    /// Memory regions: one (for all QPs of a flow at each end), per-qp
    mr: MrMode = MrMode::One => {
        flag: "mr", heading: BUFFERS, takes: Takes::List, default: "one", id: Id::Letter('M'),
        column: "mr",
        title: "memory regions", label: "MR {}", is_quiet: true,
    }
    /// Memory for messages: ordinary, huge (pages of usually 2 MiB, reserved in /proc/sys/vm/nr_hugepages), transparent
    /// (as large, if the kernel has some), dmabuf (the host's, behind a dmabuf), cuda:N or rocm:N (a GPU's), cuda:auto
    /// (the GPU nearest to the adapter); client=PLACE and server=PLACE are for one end
    memory_at: MemoryAt = MemoryAt::default() => {
        flag: "memory-at", heading: BUFFERS, takes: Takes::List, default: "ordinary", id: Id::Letter('P'),
        column: "memory-at",
        title: "place of memory", label: "memory {}", is_quiet: true,
    }
    /// Registration of a GPU's memory: dmabuf (ibv_reg_dmabuf_mr), peermem (ibv_reg_mr, with a peer-memory module), auto
    /// (dmabuf, else peermem)
    register: Register = Register::Auto => {
        flag: "register", heading: BUFFERS, takes: Takes::List, default: "auto", id: Id::Word,
        column: "register",
        title: "registration", label: "registered by {}", is_quiet: true,
    }
    /// PCIe ordering of the adapter's writes: relaxed (they may pass each other, if driver and adapter can; faster on
    /// many AMD hosts; perftest's default), strict
    ordering: Ordering = Ordering::Relaxed => {
        flag: "ordering", heading: BUFFERS, takes: Takes::List, default: "relaxed", id: Id::Word,
        column: "ordering",
        title: "PCIe ordering", label: "{} PCIe ordering", is_quiet: true,
    }
    /// Start messages at a multiple of this many bytes, plus --offset
    alignment_bytes: u32 = 64 => {
        flag: "alignment", heading: BUFFERS, takes: Takes::List, default: "64",
        range: (1, 4_096), is_size: true, id: Id::Letter('a'), column: "align",
        title: "alignment", label: "aligned to {}", is_quiet: true,
    }
    /// Start messages this many bytes after a multiple of --alignment
    offset_bytes: u32 = 0 => {
        flag: "offset", heading: BUFFERS, takes: Takes::List, default: "0",
        range: (0, 4_095), is_size: true, id: Id::Letter('f'), column: "offset",
        title: "offset", label: "offset {}", is_quiet: true,
    }
    /// Spread each end's messages over at least this much memory, to exceed a cache: each QP has an equal part and
    /// uses one place of it after another
    memory_bytes: Option<u64> = None => {
        flag: "memory", heading: BUFFERS, takes: Takes::List, default: "a page for each QP, or one message",
        range: (1, 1 << 40), is_size: true, id: Id::Letter('W'), column: "memory",
        title: "working set", label: "working set {}",
    }
    /// Register at least this much memory for the messages of each end, whatever they use of it: an adapter translates the
    /// addresses of all of it
    region_bytes: Option<u64> = None => {
        flag: "region", heading: BUFFERS, takes: Takes::List, default: "what messages use",
        range: (1, 1 << 40), is_size: true, id: Id::Letter('G'), column: "region",
        title: "registered memory", label: "region {}",
    }
    /// Order in which messages walk through --memory: sequential, random (shuffled by --seed)
    touch_order: TouchOrder = TouchOrder::Sequential => {
        flag: "touch-order", heading: BUFFERS, takes: Takes::List, default: "sequential", id: Id::Word,
        column: "order",
        title: "order in memory", label: "{} order", is_quiet: true,
    }
    /// The 8 bytes that atomic operations change: shared (by all QPs of a flow), per-qp, spread (different bytes for
    /// each WR in flight, as far as a page has room)
    atomic_target: AtomicTarget = AtomicTarget::PerQp => {
        flag: "atomic-target", heading: LOAD, takes: Takes::List, default: "per-qp", id: Id::Letter('A'),
        column: "atomics",
        title: "target of atomics", label: "atomics {}", is_quiet: true,
    }
    /// QP for the next message: own (the QP whose message completed), or among all QPs of a worker: round-robin,
    /// least-loaded (the fewest outstanding messages), hash (of the message's number)
    spread: Spread = Spread::Own => {
        flag: "spread", heading: QUEUES, takes: Takes::List, default: "own", id: Id::Word,
        column: "spread",
        title: "spreading over QPs", label: "spread {}", is_quiet: true,
    }
    /// With --spread: WRs in flight over all QPs of a worker
    outstanding: Option<u32> = None => {
        flag: "outstanding", heading: QUEUES, takes: Takes::List, default: "half of what their send queues hold",
        range: (1, 1 << 30), id: Id::Letter('o'), column: "outstanding",
        title: "WRs outstanding", label: "{} outstanding", may_follow: true,
    }
    /// With --spread round-robin: groups of QPs and their shares of the messages; 4:90,60:10 gives the first 4 QPs
    /// 90 of 100 messages, and the other 60 the rest
    qp_weights: Option<QpWeights> = None => {
        flag: "qp-weights", heading: QUEUES, takes: Takes::One("GROUPS"), id: Id::Word,
        column: "weights",
        title: "weights of QPs", label: "QPs weighted {}",
    }
    /// Path MTUs in bytes: 256, 512, 1024, 2048, 4096
    mtu: Option<Mtu> = None => {
        flag: "mtu", short: Some('m'), heading: TRANSPORT, takes: Takes::List,
        default: "the smaller of both ports' MTUs", id: Id::Letter('m'), column: "MTU",
    }
    /// Traffic both ways on the same QPs; each direction has its own figures
    bidirectional: bool = false => {
        flag: "bidirectional", short: Some('b'), heading: RUN, takes: Takes::Switch, id: Id::Letter('b'),
        title: "traffic of both ends", label: "bidirectional", is_quiet: true,
    }
    /// Send one message at a time on each QP and wait for the answer, as ib_send_lat does: latency is half of the
    /// round trip (all of it for read and atomics)
    ping_pong: bool = false => {
        flag: "ping-pong", heading: RUN, takes: Takes::Switch, id: Id::Letter('L'),
        title: "ping-pong", label: "ping-pong", is_quiet: true,
    }
    /// Waiting for completions: busy (workers poll), event (they sleep on a completion channel), adaptive (they poll, and
    /// sleep after 50 us without a completion)
    poll: PollMode = PollMode::Busy => {
        flag: "poll", heading: QUEUES, scope: Scope::Case, takes: Takes::List, default: "busy", id: Id::Word,
        column: "poll",
        title: "polling", is_quiet: true,
    }
    /// How QPs connect: tcp (the ends exchange QP numbers over the control connection), cm (rdma_cm, the connection
    /// manager)
    connect: ConnectMode = ConnectMode::Tcp => {
        flag: "connect", heading: QUEUES, takes: Takes::List, default: "tcp", id: Id::Word,
        column: "connect",
        title: "connecting", is_quiet: true,
    }
    /// Calls that post sends: legacy (ibv_post_send, in most programs), extended (ibv_wr_start, and a call for each part of
    /// a WR)
    post: CallStyle = CallStyle::Legacy => {
        flag: "post", heading: QUEUES, takes: Takes::List, default: "legacy", id: Id::Letter('p'),
        column: "post",
        title: "posting", label: "{} posting", is_quiet: true,
    }
    /// Calls that poll completions: legacy (ibv_poll_cq), extended (ibv_start_poll, and a call for each field)
    poll_api: CallStyle = CallStyle::Legacy => {
        flag: "poll-api", heading: QUEUES, takes: Takes::List, default: "legacy", id: Id::Letter('c'),
        column: "poll-api",
        title: "polling calls", label: "{} polling", is_quiet: true,
    }
    /// Locks in the verbs library: usual (any thread may use a QP or CQ), thread (none; for the highest rate, with one
    /// worker or a CQ for each)
    domains: Domains = Domains::Usual => {
        flag: "domains", heading: QUEUES, takes: Takes::List, default: "usual", id: Id::Letter('d'),
        column: "domains",
        title: "thread domains", label: "{} domains", is_quiet: true,
    }
    /// End of a latency: cpu (the worker sees the completion), device (the device's time stamp, with --poll-api
    /// extended; results also have the time from the stamp until the worker sees it)
    timestamps: Timestamps = Timestamps::Cpu => {
        flag: "timestamps", heading: QUEUES, takes: Takes::List, default: "cpu", id: Id::Letter('C'),
        column: "stamps",
        title: "time stamps", label: "{} time stamps", is_quiet: true,
    }
    /// Offered load: closed (a completion posts the next message), or an open loop with planned times: 2M messages a
    /// second, 10Gb payload bits a second, or 50% of the closed loop's rate, which is measured first
    rate: Rate = Rate::Closed => {
        flag: "rate", heading: LOAD, takes: Takes::List, default: "closed", id: Id::Letter('R'),
        column: "load",
        title: "offered load", label: "load {}", is_quiet: true,
    }
    /// Pacing of the offered load: worker (messages have planned times), device (the device limits the rate of each QP,
    /// and a completion posts the next message)
    pace: Pace = Pace::Worker => {
        flag: "pace", heading: LOAD, takes: Takes::List, default: "worker", id: Id::Word,
        column: "pace",
        title: "pace", label: "paced by the {}", is_quiet: true,
    }
    /// Planned times: poisson (independent, with exponential gaps), fixed (with equal gaps)
    arrivals: Arrivals = Arrivals::Poisson => {
        flag: "arrivals", heading: LOAD, takes: Takes::List, default: "poisson", id: Id::Word,
        column: "arrivals",
        title: "arrivals", label: "{} arrivals", is_quiet: true,
    }
    /// Seed of the planned times and of --touch-order random: the same seed gives the same times and order
    seed: u64 = 1 => {
        flag: "seed", heading: LOAD, default: "1", range: (0, MAX_EXACT_IN_JSON),
        title: "seed", label: "seed {}", is_quiet: true, may_differ: true,
    }
    /// Begin a flow this long after the window opens
    start_seconds: Option<TimeSpan> = None => {
        flag: "start", heading: LOAD, takes: Takes::One("TIME"), default: "before the window",
        title: "start", label: "from {}",
    }
    /// End a flow this long after the window opens
    stop_seconds: Option<TimeSpan> = None => {
        flag: "stop", heading: LOAD, takes: Takes::One("TIME"), default: "with the window",
        title: "stop", label: "until {}",
    }
    /// Send for this long, pause for --off, and so on
    on_seconds: Option<TimeSpan> = None => {
        flag: "on", heading: LOAD, takes: Takes::One("TIME"), default: "all the time",
        title: "on", label: "on for {}",
    }
    /// Pause for this long after each --on
    off_seconds: Option<TimeSpan> = None => {
        flag: "off", heading: LOAD, takes: Takes::One("TIME"),
        title: "off", label: "off for {}",
    }
    /// Length of the measurement: 5s, 500ms, 2m; a bare number is seconds
    duration_seconds: Option<TimeSpan> = None => {
        flag: "duration", short: Some('D'), heading: RUN, scope: Scope::Case, takes: Takes::One("TIME"), default: "5s",
        title: "window", label: "windows of {}", may_follow: true,
    }
    /// Measure this many messages on each QP instead; with --op connect, this many rounds
    iterations_per_qp: Option<u64> = None => {
        flag: "iters", short: Some('n'), heading: RUN, scope: Scope::Case, range: (1, 1 << 40),
        title: "messages a QP", label: "{} message a QP|{} messages a QP", may_follow: true,
    }
    /// Traffic before the measurement: auto (until steady), auto:10s (at most 10 s), 2s, or 0
    warmup: Warmup = Warmup::AUTO => {
        flag: "warmup", heading: RUN, scope: Scope::Case, takes: Takes::One("TIME"), default: "auto:5s",
    }
    /// Runs of each case, with fresh QPs; of several, doubtful ones are measured again
    runs: u32 = 1 => {
        flag: "runs", heading: RUN, scope: Scope::Case, default: "1", range: (1, 1_000), may_differ: true,
    }
    /// Fill payloads with a pattern and check every byte; a mismatch is an error
    verify: bool = false => {
        flag: "verify", heading: RUN, takes: Takes::Switch,
        title: "payload check", label: "payload checked", is_quiet: true,
    }
    /// Do not record latencies
    no_latency: bool = false => {
        flag: "no-latency", heading: RUN, takes: Takes::Switch,
        title: "no latencies", label: "no latencies", is_quiet: true,
    }
    /// Entries of each CQ
    cq_depth: Option<u32> = None => {
        flag: "cq-depth", heading: QUEUES, default: "all that can be outstanding", range: (1, i32::MAX as u64),
    }
    /// ACK timeout N, 0 to 31: 4.096 us x 2^N; 0 waits for ever
    timeout: u8 = 14 => {
        flag: "timeout", heading: TRANSPORT, default: "14, which is 67 ms", range: (0, 31),
        range_hint: "the ACK timeout is 4.096 us x 2^timeout: 14 is 67 ms; 0 waits for ever",
        title: "ACK timeout exponent", label: "ACK timeout exponent {}", is_quiet: true,
    }
    /// Retries after a timeout, 0 to 7
    retry_cnt: u8 = 7 => {
        flag: "retry-cnt", heading: TRANSPORT, default: "7", range: (0, 7),
        title: "retries", label: "retries {}", is_quiet: true,
    }
    /// Retries when the peer has no receive posted, 0 to 7; 7 retries for ever
    rnr_retry: u8 = 7 => {
        flag: "rnr-retry", heading: TRANSPORT, default: "7", range: (0, 7),
        range_hint: "0 to 6 count retries, 7 retries for ever",
        title: "RNR retries", label: "RNR retries {}", is_quiet: true,
    }
    /// Wait before that retry, a code of 0 to 31: 1 is 0.01 ms, 12 is 0.64 ms
    min_rnr_timer: u8 = 12 => {
        flag: "min-rnr-timer", heading: TRANSPORT, default: "12, which is 0.64 ms", range: (0, 31),
        title: "RNR timer code", label: "RNR timer code {}", is_quiet: true,
    }
    /// READs and atomic operations outstanding on each QP, 1 to 255
    max_rd_atomic: Option<u8> = None => {
        flag: "max-rd-atomic", heading: TRANSPORT, default: "the devices' limit", range: (1, 255),
        title: "READs outstanding", label: "READs outstanding {}", is_quiet: true,
    }
    /// Service level (priority), 0 to 15
    service_level: u8 = 0 => {
        flag: "service-level", short: Some('S'), heading: TRANSPORT, default: "0", range: (0, 15),
        title: "service level", label: "service level {}", is_quiet: true,
    }
    /// DSCP of packets, 0 to 63: sets their priority in switches and adapters, and allows ECN marks (traffic class 4 x
    /// N + 2). Lossless RoCE is often 26
    dscp: Option<u8> = None => {
        flag: "dscp", heading: TRANSPORT, takes: Takes::List, range: (0, 63), id: Id::Letter('D'),
        column: "dscp", title: "DSCP", label: "DSCP {}",
    }
    /// Traffic class of packets, 0 to 255: DSCP x 4 + ECN bits
    traffic_class: u8 = 0 => {
        flag: "traffic-class", alias: "tclass", short: Some('T'), heading: TRANSPORT, default: "0, or what --dscp gives",
        range: (0, 255),
        title: "traffic class", label: "traffic class {}", is_quiet: true,
    }
    /// Flow labels of the QPs, 1 to 1048575, in turn if there are more QPs; many adapters derive the UDP source port
    /// from it, and switches choose the path by that port
    flow_label: Option<QpNumbers> = None => {
        flag: "flow-label", heading: TRANSPORT, takes: Takes::One("LIST"), range: (1, 0xf_ffff),
        default: "0: drivers derive the port from the QP numbers", id: Id::Never,
        title: "flow labels", label: "flow labels {}",
    }
    /// UDP source ports of the QPs, 49152 to 65535, in turn if there are more QPs (only mlx5, over RC and UC)
    udp_sport: Option<QpNumbers> = None => {
        flag: "udp-sport", heading: TRANSPORT, takes: Takes::One("LIST"), range: (0xc000, 0xffff),
        default: "the driver's", id: Id::Never,
        title: "UDP source ports", label: "UDP source ports {}",
    }
    /// Hop limit of packets, 1 to 255
    hop_limit: u8 = 64 => {
        flag: "hop-limit", heading: TRANSPORT, default: "64", range: (1, 255),
        title: "hop limit", label: "hop limit {}", is_quiet: true,
    }
}

/// What size, both depths and moderation are until a case's other settings are known, see [`Settings::fit`].
pub(super) const FITTED: u32 = 0;

impl<'a> FromIterator<(&'a str, &'a str)> for Settings {
    /// The defaults, but for what these flags say; what is not read is left out.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Settings {
        let mut settings = Settings::default();
        for (flag, text) in pairs {
            let read = Settings::row(flag).map(|row| row.read(&mut settings, text));
            debug_assert_eq!(read, Some(Ok(())), "{flag} {text}");
        }
        settings.fit();
        settings
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Settings {
    fn from(pairs: [(&str, &str); N]) -> Settings {
        pairs.into_iter().collect()
    }
}

impl Settings {
    /// The row of the setting with this flag.
    pub fn row(flag: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.flag == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            for other in &ROWS[..index] {
                assert!(row.flag != other.flag && row.field != other.field);
                let is_alone = row.short.is_none() || row.short != other.short;
                assert!(is_alone, "{}", row.flag);
                assert!(row.alias.is_empty() || row.alias != other.flag);
            }
        }
    }

    /// What the help says is the default is the default.
    #[test]
    fn defaults_are_as_the_help_says() {
        let mut usual = Settings::default();
        usual.fit();
        for row in ROWS {
            let default = row.default.split(',').next().unwrap();
            let mut read = Settings::default();
            match row.read(&mut read, default) {
                Ok(()) if !default.is_empty() => {
                    assert!(row.is_equal(&usual, &read), "{}", row.flag);
                }
                // Words for what the case or the device decides.
                _ => assert!(
                    row.text(&Settings::default()).is_empty()
                        || row.takes == Takes::Switch
                        || row.flag == "signal-every",
                    "{}",
                    row.flag
                ),
            }
        }
    }

    #[test]
    fn values_are_read_back_and_ranges_end_where_they_say() {
        let mut settings = Settings::default();
        settings.fit();
        for row in ROWS {
            let mut copy = settings.clone();
            row.copy(&mut copy, &settings);
            assert_eq!(copy, settings, "{}", row.flag);
        }
        for row in ROWS.iter().filter(|row| row.range != Row::USUAL.range) {
            let (min, max) = row.range;
            for value in [min, max] {
                row.read(&mut settings, &value.to_string()).unwrap();
                assert!(!row.text(&settings).is_empty());
            }
            let before = settings.clone();
            for value in [min.checked_sub(1), Some(max + 1)].into_iter().flatten() {
                let read = row.read(&mut settings, &value.to_string());
                assert!(read.is_err(), "--{} {value}", row.flag);
            }
            assert_eq!(settings, before);
        }
    }

    #[test]
    fn a_dscp_makes_the_traffic_class_and_lets_switches_mark() {
        let of = |flag, text| Settings::from([(flag, text)]).traffic_class;
        assert_eq!([of("dscp", "26"), of("dscp", "0"), of("traffic-class", "104")], [106, 2, 104]);
    }

    #[test]
    fn settings_travel_whole() {
        let mut settings = Settings::default();
        settings.fit();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        for row in ROWS {
            let name = format!("\"{}\":", row.field);
            assert!(text.contains(&name), "{name}");
        }
    }
}
