//! The options that describe a sweep, each as a flag; a configuration file has the same names.

use clap::Args;

use crate::plan::{
    ConnectMode, Count, CqMode, List, Mtu, PollMode, Size, SweepSpec, TimeSpan, Warmup, Workload,
};

/// What to run, on how many queues, over what transport. Switches take `=false` too, to turn off what
/// a configuration file turns on.
#[derive(Clone, Debug, Args)]
pub struct SweepArgs {
    /// Operations: send, write, read; connect measures the set-up of QPs itself [default: send]
    #[arg(long, value_name = "LIST", help_heading = "What to run")]
    pub op: Option<List<Workload>>,
    /// Message sizes in bytes, 1 to 1G [default: 64K]
    #[arg(short, long, value_name = "LIST", help_heading = "What to run")]
    pub size: Option<List<Size>>,
    /// Both ends send at once; each direction is reported
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, hide_possible_values = true, default_missing_value = "true", help_heading = "What to run")]
    pub bidirectional: Option<bool>,
    /// Length of a measurement: 5s, 500ms, 2m; a bare number is seconds [default: 5s]
    #[arg(
        short = 'D',
        long,
        value_name = "TIME",
        conflicts_with = "iters",
        help_heading = "What to run"
    )]
    pub duration: Option<TimeSpan>,
    /// Measure this many messages on each QP instead; with --op connect, this many rounds
    #[arg(short = 'n', long, value_name = "N", help_heading = "What to run")]
    pub iters: Option<Count>,
    /// Before a measurement: auto (until steady), auto:10s (at most), 2s, or 0 [default: auto:5s]
    #[arg(long, value_name = "TIME", help_heading = "What to run")]
    pub warmup: Option<Warmup>,
    /// Runs of each case, with fresh QPs [default: 1]
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub runs: Option<Count>,
    /// Fill payloads with a pattern and check every byte; a mismatch is an error
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, hide_possible_values = true, default_missing_value = "true", help_heading = "What to run")]
    pub verify: Option<bool>,
    /// Do not record latencies
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, hide_possible_values = true, default_missing_value = "true", help_heading = "What to run")]
    pub no_latency: Option<bool>,

    /// Queue pairs [default: 1]
    #[arg(
        short,
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub qps: Option<List<Count>>,
    /// With --op connect: QPs that carry traffic (writes) while others are set up; 0 for none [default: 1]
    #[arg(long, value_name = "LIST", help_heading = "Queue pairs and workers")]
    pub traffic_qps: Option<List<Count>>,
    /// Completion queues: shared (one for all), per-worker, per-qp [default: shared]
    #[arg(long, value_name = "LIST", help_heading = "Queue pairs and workers")]
    pub cq: Option<List<CqMode>>,
    /// How workers learn of completions: busy (they poll), event (they sleep on a completion channel),
    /// adaptive (they poll, and sleep after 50 us without one) [default: busy]
    #[arg(long, value_name = "LIST", help_heading = "Queue pairs and workers")]
    pub poll: Option<List<PollMode>>,
    /// How QPs are connected: tcp (their numbers and addresses are told over the control connection), cm (by the
    /// kernel's connection manager, rdma_cm) [default: tcp]
    #[arg(long, value_name = "LIST", help_heading = "Queue pairs and workers")]
    pub connect: Option<List<ConnectMode>>,
    /// Worker threads at each end [default: 1]
    #[arg(
        short,
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub workers: Option<List<Count>>,
    /// WRs in flight on each QP [default: 128]
    #[arg(
        short,
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub tx_depth: Option<List<Count>>,
    /// Receives posted on each QP, for send [default: 512]
    #[arg(
        short,
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub rx_depth: Option<List<Count>>,
    /// One signalled WR in so many [default: 64 for messages up to 8K, else 1; fitted to -t and -l]
    #[arg(
        short = 'Q',
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub signal_every: Option<List<Count>>,
    /// WRs in one ibv_post_send; above -Q, a multiple of it [default: 1]
    #[arg(
        short = 'l',
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub post_list: Option<List<Count>>,
    /// Send messages up to this many bytes inline; larger ones are not, nor is read [default: 0]
    #[arg(
        short = 'I',
        long,
        value_name = "LIST",
        help_heading = "Queue pairs and workers"
    )]
    pub inline: Option<List<Size>>,
    /// Entries of each CQ [default: what can be outstanding]
    #[arg(long, value_name = "N", help_heading = "Queue pairs and workers")]
    pub cq_depth: Option<Count>,

    /// Path MTUs in bytes: 256, 512, 1024, 2048, 4096 [default: the smaller of both ports']
    #[arg(short, long, value_name = "LIST", help_heading = "Transport")]
    pub mtu: Option<List<Mtu>>,
    /// ACK timeout, 0 to 31: 4.096 us x 2^N, 0 for ever [default: 14, which is 67 ms]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub timeout: Option<Count>,
    /// Retries after a timeout, 0 to 7 [default: 7]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub retry_cnt: Option<Count>,
    /// Retries when the peer has no receive posted, 0 to 7; 7 is for ever [default: 7]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub rnr_retry: Option<Count>,
    /// Code of the wait before such a retry, 0 to 31 [default: 12, which is 0.64 ms]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub min_rnr_timer: Option<Count>,
    /// READs outstanding on each QP, 1 to 255 [default: the devices' limit]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub max_rd_atomic: Option<Count>,
    /// Service level (priority), 0 to 15 [default: 0]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub service_level: Option<Count>,
    /// Traffic class (DSCP and ECN bits), 0 to 255 [default: 0]
    #[arg(long, value_name = "N", help_heading = "Transport")]
    pub traffic_class: Option<Count>,
}

impl From<SweepArgs> for SweepSpec {
    fn from(args: SweepArgs) -> SweepSpec {
        SweepSpec {
            op: args.op,
            cq: args.cq,
            poll: args.poll,
            connect: args.connect,
            size: args.size,
            qps: args.qps,
            traffic_qps: args.traffic_qps,
            workers: args.workers,
            tx_depth: args.tx_depth,
            rx_depth: args.rx_depth,
            signal_every: args.signal_every,
            post_list: args.post_list,
            inline: args.inline,
            mtu: args.mtu,
            bidirectional: args.bidirectional,
            duration: args.duration,
            iters: args.iters,
            warmup: args.warmup,
            runs: args.runs,
            verify: args.verify,
            no_latency: args.no_latency,
            cq_depth: args.cq_depth,
            timeout: args.timeout,
            retry_cnt: args.retry_cnt,
            rnr_retry: args.rnr_retry,
            min_rnr_timer: args.min_rnr_timer,
            max_rd_atomic: args.max_rd_atomic,
            service_level: args.service_level,
            traffic_class: args.traffic_class,
        }
    }
}
