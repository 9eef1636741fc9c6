//! Why a sweep cannot be run as it was asked for. Every variant knows the option that mends it.

use super::limits;

/// A sweep that makes no sense. [`PlanError::flag`] names the option to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A number outside its range.
    #[error("--{flag} {value} is out of range: it must be {min} to {max}")]
    OutOfRange {
        /// The option's long name.
        flag: &'static str,
        /// What was given.
        value: u64,
        /// The least that is accepted.
        min: u64,
        /// The most that is accepted.
        max: u64,
    },
    /// Batches that do not fit into the send queue.
    #[error("--{flag} {value} does not fit into --tx-depth {tx_depth} (case {case})")]
    BatchTooDeep {
        /// `signal-every` or `post-list`.
        flag: &'static str,
        /// Its value.
        value: u32,
        /// The send queue's depth in this case.
        tx_depth: u32,
        /// Id of the first such case.
        case: String,
    },
    /// A posted list that ends in the middle of a signalled batch.
    #[error(
        "--post-list {post_list} is not a multiple of --signal-every {signal_every} (case {case})"
    )]
    ListDoesNotFit {
        /// WRs in one post.
        post_list: u32,
        /// WRs of one signalled batch; less than `post_list`.
        signal_every: u32,
        /// Id of the first such case.
        case: String,
    },
    /// Inline is for payload that a WR carries out, and a READ's carries none.
    #[error(
        "--inline {inline_bytes} has no effect on --op read: an RDMA READ carries no payload out"
    )]
    InlineOnRead {
        /// What was asked for.
        inline_bytes: u64,
    },
    /// Traffic is beside set-ups only.
    #[error(
        "--traffic-qps has no effect without --op connect: it is the traffic while QPs are set up"
    )]
    TrafficWithoutConnect,
    /// A setting that set-up cannot be measured with.
    #[error(
        "--{flag} cannot be had with --op connect, whose traffic goes one way and is not checked"
    )]
    NotWithConnect {
        /// The option's long name.
        flag: &'static str,
    },
    /// A setting of something that cases of set-up do not have.
    #[error("--{flag} has no effect on --op connect: {why}")]
    NoEffectOnConnect {
        /// The option's long name.
        flag: &'static str,
        /// Why, as half a sentence.
        why: &'static str,
    },
    /// Two ends of a measurement.
    #[error(
        "--duration and --iters exclude each other: a run ends after a time or after a number of messages"
    )]
    TwoStops,
    /// A measurement without length.
    #[error("--duration 0 measures nothing")]
    NoDuration,
    /// A product beyond all reason.
    #[error(
        "the lists' product is {cases} cases; a sweep has at most {}",
        limits::CASES
    )]
    TooManyCases {
        /// How many it would be.
        cases: u64,
        /// The option with the longest list.
        longest: &'static str,
    },
    /// A CQ larger than `ibv_create_cq` can be asked for.
    #[error("one CQ would need {entries} entries, more than any can have (case {case})")]
    CqTooLarge {
        /// WRs that can be outstanding on the QPs of that CQ.
        entries: u64,
        /// Id of the first such case.
        case: String,
    },
}

impl PlanError {
    /// The long name, without dashes, of the option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            PlanError::OutOfRange { flag, .. }
            | PlanError::BatchTooDeep { flag, .. }
            | PlanError::NotWithConnect { flag }
            | PlanError::NoEffectOnConnect { flag, .. } => flag,
            PlanError::TrafficWithoutConnect => "traffic-qps",
            PlanError::ListDoesNotFit { .. } => "post-list",
            PlanError::InlineOnRead { .. } => "inline",
            PlanError::TwoStops | PlanError::NoDuration => "duration",
            PlanError::TooManyCases { longest, .. } => longest,
            PlanError::CqTooLarge { .. } => "qps",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            PlanError::OutOfRange { flag, min, max, .. } => match *flag {
                "timeout" => {
                    "the ACK timeout is 4.096 us x 2^timeout: 14 is 67 ms; 0 waits for ever".into()
                }
                "rnr-retry" => "0 to 6 count retries, 7 retries for ever".into(),
                flag => format!("give --{flag} a value from {min} to {max}"),
            },
            PlanError::BatchTooDeep {
                flag,
                value,
                tx_depth,
                ..
            } => {
                format!(
                    "raise --tx-depth to at least {value}, or lower --{flag} to at most {tx_depth}"
                )
            }
            PlanError::ListDoesNotFit {
                post_list,
                signal_every,
                ..
            } => {
                let below = post_list - post_list % signal_every;
                format!("take --post-list {below}, or --signal-every {post_list}")
            }
            PlanError::InlineOnRead { .. } => {
                "leave --inline out, or add send or write to --op".into()
            }
            PlanError::TrafficWithoutConnect => {
                "leave --traffic-qps out, or add connect to --op".into()
            }
            PlanError::NotWithConnect { flag } => {
                format!("leave --{flag} out, or take connect out of --op and measure it by itself")
            }
            PlanError::NoEffectOnConnect { flag, .. } => format!("leave --{flag} out"),
            PlanError::TwoStops => "leave one of them out".into(),
            PlanError::NoDuration => "give --duration a time such as 5s, or use --iters".into(),
            PlanError::TooManyCases { longest, .. } => {
                format!("shorten the lists, --{longest} first; --dry-run shows the cases")
            }
            PlanError::CqTooLarge { .. } => {
                "lower --qps, --tx-depth or --rx-depth, or take --cq per-qp".into()
            }
        }
    }
}
