//! Why a sweep cannot be run as it was asked for. Every variant knows the option that mends it.

use settings::{SettingError, Settings};

use super::matrix::MOST_CASES;

/// A sweep that makes no sense. [`PlanError::flag`] names the option to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlanError {
    /// A value that its setting does not take.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// Batches that do not fit into the send queue.
    #[error("--{flag} {value} does not fit into --tx-depth {tx_depth} (case {case})")]
    BatchTooDeep {
        /// `signal-every` or `post-list`.
        flag: &'static str,
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
    /// A setting that set-up cannot be measured with.
    #[error(
        "--{flag} cannot be had with --op connect, whose traffic goes one way and is not checked"
    )]
    NotWithConnect {
        /// The option's long name.
        flag: &'static str,
    },
    /// A setting that no case has use for.
    #[error("--{flag} has no effect {why}")]
    NoEffect {
        /// The option's long name.
        flag: &'static str,
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
    #[error("the lists' product is {cases} cases; a sweep has at most {MOST_CASES}")]
    TooManyCases {
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
            PlanError::Setting(SettingError::OutOfRange { flag, .. })
            | PlanError::BatchTooDeep { flag, .. }
            | PlanError::NotWithConnect { flag }
            | PlanError::NoEffect { flag, .. } => flag,
            // Values are read before a sweep is made of them; what a peer sends has no flag.
            PlanError::Setting(SettingError::Syntax(_)) => "",
            PlanError::ListDoesNotFit { .. } => "post-list",
            PlanError::TwoStops | PlanError::NoDuration => "duration",
            PlanError::TooManyCases { longest, .. } => longest,
            PlanError::CqTooLarge { .. } => "qps",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            PlanError::Setting(SettingError::OutOfRange { flag, min, max, .. }) => {
                match Settings::row(flag).map_or("", |row| row.range_hint) {
                    "" => format!("give --{flag} a value from {min} to {max}"),
                    hint => hint.to_owned(),
                }
            }
            PlanError::Setting(SettingError::Syntax(_)) => {
                "`rocebench --help` shows what each setting takes".into()
            }
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
            PlanError::NotWithConnect { flag } => {
                format!("leave --{flag} out, or take connect out of --op and measure it by itself")
            }
            PlanError::NoEffect { flag, .. } => format!("leave --{flag} out"),
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
