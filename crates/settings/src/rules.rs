//! Which settings go together: each rule is a row, said once, below by subject. What a setting is to a case
//! ([`Row::idle_by`]) and what is wrong with a case ([`Settings::misfit`]) are answers of them. A new rule is a row there
//! and its example in the tests.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lists::{QpWeights, SizeMix};
use super::on_times::{ends_by, is_short, window_text};
use super::op::{ATOMIC_BYTES, LARGEST_MTU_BYTES, Service};
use super::row::{Scope, Takes};
use super::table::{ROWS, Row, Settings};
use super::text::listed;
use super::units::TimeSpan;
use super::words::{
    CallStyle, ConnectMode, CqMode, Domains, MrMode, Pace, Pattern, PollMode, RecvQueue, Spread,
    Timestamps, TouchOrder,
};

/// A rule that settings break.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum Misfit {
    #[error("--{flag} has no effect {why}")]
    NoEffect { flag: &'static str, why: &'static str },
    #[error("{setting} cannot be used {why}")]
    Refused {
        flag: &'static str,
        /// The flag with its value.
        setting: String,
        why: String,
        hint: String,
    },
}

impl Misfit {
    /// The option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            Misfit::NoEffect { flag, .. } | Misfit::Refused { flag, .. } => flag,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Misfit::NoEffect { flag, .. } => format!("leave --{flag} out"),
            Misfit::Refused { flag, hint, .. } if hint.is_empty() => {
                format!("change --{flag}, or leave it out")
            }
            Misfit::Refused { hint, .. } => hint.clone(),
        }
    }
}

/// All rules. Of several on one flag, the first one that is broken counts.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter()
}

/// The rules by which a flag has no effect.
fn on_effect_of(flag: &str) -> &'static [&'static Rule] {
    static BY_FLAG: LazyLock<HashMap<&str, Vec<&Rule>>> = LazyLock::new(|| {
        let mut by_flag: HashMap<&str, Vec<&Rule>> = HashMap::new();
        for rule in rules().filter(|rule| rule.kind != RuleKind::Refused) {
            for flag in rule.flags() {
                by_flag.entry(flag).or_default().push(rule);
            }
        }
        by_flag
    });
    BY_FLAG.get(flag).map_or(&[], Vec::as_slice)
}

impl Row {
    /// The rule by which it has no effect on a case, or on a flow, with these settings; `None` where it has one.
    pub fn idle_by(&self, settings: &Settings) -> Option<&'static Rule> {
        let mut rules = on_effect_of(self.flag).iter().copied();
        rules.find(|rule| (rule.is_broken)(settings))
    }

    /// Whether it has an effect on a case, or on a flow, with these settings.
    pub fn has_effect(&self, settings: &Settings) -> bool {
        self.idle_by(settings).is_none()
    }
}

impl Settings {
    /// What is wrong with them as those of a flow, or of a case as a whole: the first rule that they break. A setting
    /// without effect breaks one if it is not at its default, which no plan leaves it at.
    pub fn misfit(&self, scope: Scope) -> Option<Misfit> {
        self.refused(scope).or_else(|| self.idle(scope))
    }

    fn refused_by(&self, scope: Scope) -> Option<&'static Rule> {
        let mut of_scope = rules().filter(|it| it.kind == RuleKind::Refused && it.scope == scope);
        of_scope.find(|rule| (rule.is_broken)(self))
    }

    fn refused(&self, scope: Scope) -> Option<Misfit> {
        let rule = self.refused_by(scope)?;
        let row = Settings::row(rule.flags)?;
        let value = match row.takes {
            Takes::Switch => String::new(),
            _ => row.text(self),
        };
        Some(Misfit::Refused {
            flag: row.flag,
            setting: format!("--{} {value}", row.flag).trim_end().to_owned(),
            why: rule.says.replace("{}", &(rule.values)(self)),
            hint: (rule.hint)(self).replace("{flag}", row.flag),
        })
    }

    fn idle(&self, scope: Scope) -> Option<Misfit> {
        let mut usual = self.clone();
        usual.drop_idle();
        ROWS.iter().find_map(|row| {
            let rule = row.idle_by(self).filter(|rule| rule.scope == scope)?;
            let why = rule.why_idle().filter(|_| !row.is_equal(self, &usual))?;
            let flag = row.flag;
            Some(Misfit::NoEffect { flag, why })
        })
    }

    /// Gives what has no effect its default.
    pub fn drop_idle(&mut self) {
        let unfitted = Settings::unfitted();
        let requested = self.clone();
        for row in ROWS.iter().filter(|row| !row.has_effect(&requested)) {
            row.copy(self, &unfitted);
        }
        self.fit();
    }
}

/// A rule on settings that do not go together.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The flags that it is about: one, or several that have no effect.
    flags: &'static str,
    /// What follows where it is broken.
    pub kind: RuleKind,
    /// Its sentence, after "--flag has no effect" or "--flag cannot be used"; `{}` stands for `values`.
    says: &'static str,
    /// Settings of what it judges: those of a flow, or those of the case as a whole.
    scope: Scope,
    /// Whether these settings break it.
    is_broken: fn(&Settings) -> bool,
    /// What the sentence says of these settings.
    values: fn(&Settings) -> String,
    /// What to do about it, where that is not the usual; `{flag}` stands for the flag.
    hint: fn(&Settings) -> String,
    /// The only other setting that it is about, where giving either replaces both.
    instead_of: &'static str,
}

/// What follows from a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// The setting has no effect, and may be given: other cases of the sweep, or another run of the command, have use
    /// for it.
    Ignored,
    /// The setting has no effect; a sweep in which no case has use for it is refused.
    NoEffect,
    /// The case is refused before anything is opened, with a hint.
    Refused,
}

impl RuleKind {
    /// What tables of rules call it.
    pub fn word(self) -> &'static str {
        match self {
            RuleKind::Ignored => "ignored",
            RuleKind::NoEffect => "without effect",
            RuleKind::Refused => "refused",
        }
    }
}

impl Rule {
    const IGNORED: Rule = Rule::new(RuleKind::Ignored);
    const NO_EFFECT: Rule = Rule::new(RuleKind::NoEffect);
    const REFUSED: Rule = Rule::new(RuleKind::Refused);

    const fn new(kind: RuleKind) -> Rule {
        Rule {
            flags: "",
            kind,
            says: "",
            scope: Scope::Flow,
            is_broken: |_| false,
            values: |_| String::new(),
            hint: |_| String::new(),
            instead_of: "",
        }
    }

    /// The flags that it is about.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        self.flags.split(' ')
    }

    /// Its sentence, whatever the settings are.
    pub fn sentence(&self) -> String {
        self.says.replace("{}", "")
    }

    /// Why a setting has no effect, after "--flag has no effect"; `None` where it is ignored, and of other rules.
    pub fn why_idle(&self) -> Option<&'static str> {
        (self.kind == RuleKind::NoEffect).then_some(self.says)
    }

    /// Two settings of which giving either replaces both.
    pub(crate) fn exclusive(&self) -> Option<[&'static str; 2]> {
        (!self.instead_of.is_empty()).then_some([self.flags, self.instead_of])
    }
}

/// Makes [`RULES`], each of a usual rule and what differs.
macro_rules! rules {
    ($($usual:path { $($part:ident: $value:expr),* $(,)? })*) => {
        static RULES: &[Rule] = &[$(Rule { $($part: $value,)* ..$usual },)*];
    };
}

const OF_TRAFFIC: &str = "cq size size-mix workers tx-depth signal-every post-list inline sges mr memory-at register ordering alignment \
    offset memory touch-order spread outstanding qp-weights poll post poll-api domains timestamps seed \
    no-latency cq-depth";

const CASE_NO_EFFECT: Rule = Rule { scope: Scope::Case, ..Rule::NO_EFFECT };

const CASE_REFUSED: Rule = Rule { scope: Scope::Case, ..Rule::REFUSED };

/// A rule on what set-up cannot be measured with.
const NOT_SET_UP: Rule = Rule {
    says: "with --op connect: its traffic goes one way and is not checked",
    hint: |_| "leave --{flag} out, or measure --op connect in a sweep of its own".to_owned(),
    ..CASE_REFUSED
};

/// A rule on messages larger than a packet.
const TOO_LONG: Rule = Rule {
    says: "with --service ud above the MTU: a datagram is one packet{}",
    values: |it| match it.mtu {
        Some(mtu) => format!(", of at most {} bytes with --mtu {mtu}", mtu.bytes()),
        None => format!(", of at most {LARGEST_MTU_BYTES} bytes with the largest MTU"),
    },
    hint: |settings| {
        let most = settings.longest_datagram_bytes();
        format!(
            "give --{{flag}} at most {most} bytes; over uc and rc messages take several packets"
        )
    },
    ..Rule::REFUSED
};

/// A rule on places that atomic operations cannot act on.
const ATOMIC_PLACE: Rule = Rule {
    says: "on atomic operations, but for multiples of 8: they act on 8 aligned bytes",
    ..Rule::REFUSED
};

/// A rule on what the CPU does in messages' memory, which it cannot do on a GPU.
const NOT_ON_GPU: Rule = Rule {
    flags: "memory-at",
    hint: |_| {
        "take --op send, send-imm, write-imm or read, without --inline, or --memory-at ordinary or dmabuf".to_owned()
    },
    ..Rule::REFUSED
};

/// Entries of a CQ: `ibv_create_cq(3)` takes a C `int`.
const MOST_CQ_ENTRIES: u64 = i32::MAX as u64;

/// A rule on what the send queue holds.
const ABOVE_DEPTH: Rule =
    Rule { says: "above --tx-depth{}", values: |it| format!(" {}", it.tx_depth), ..Rule::REFUSED };

/// A rule on rates that a device cannot keep.
const NOT_OF_DEVICE: Rule = Rule {
    flags: "pace",
    hint: |_| {
        "take --pace worker, or --op send or write with a rate in messages or bits".to_owned()
    },
    ..Rule::REFUSED
};

/// A rule on flows that pause: a freed slot is kept by the worker that saw it.
const NOT_SHARED: Rule = Rule {
    says: "when workers share a CQ: each worker pauses the QPs whose completions it sees",
    hint: |_| "take --cq per-worker or per-qp, or --workers 1".to_owned(),
    ..Rule::REFUSED
};

/// A rule on pauses that a worker would not keep.
const TOO_SHORT: Rule = Rule {
    says: "below 10us: workers look at the clock once a poll",
    hint: |_| "give --{flag} at least 10us".to_owned(),
    ..Rule::REFUSED
};

rules! {
    // A case as a whole: its end, its pattern, and set-up measured with or without traffic.
    CASE_NO_EFFECT {
        flags: OF_TRAFFIC,
        says: "on --op connect with --traffic-qps 0: it sets the traffic, and there is none",
        is_broken: |it| !it.has_traffic(),
    }
    CASE_NO_EFFECT {
        flags: "service", says: "on --op connect: it sets up RC QPs", is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "rate", says: "on --op connect: its traffic is a closed loop", is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "start stop on off", says: "on --op connect: its traffic goes on as long as the set-ups",
        is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "ping-pong", says: "on --op connect: its traffic is a closed loop", is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "rx-depth", says: "on --op connect: its traffic is RDMA WRITEs, which need no receive",
        is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "traffic-qps", says: "without --op connect: it sets the traffic during set-up",
        is_broken: |it| !it.is_set_up(),
    }
    CASE_NO_EFFECT {
        flags: "pattern", says: "on --op connect: set-up is between two nodes", is_broken: Settings::is_set_up,
    }
    CASE_NO_EFFECT {
        flags: "fan-in", says: "without --pattern incast", is_broken: |it| it.pattern.is_none(),
    }
    Rule::IGNORED {
        flags: "fan-in", says: "with a --pattern other than incast",
        is_broken: |it| !matches!(it.pattern, Some(Pattern::Incast(_))),
    }
    CASE_NO_EFFECT {
        flags: "fan-out", says: "without --pattern outcast", is_broken: |it| it.pattern.is_none(),
    }
    Rule::IGNORED {
        flags: "fan-out", says: "with a --pattern other than outcast",
        is_broken: |it| !matches!(it.pattern, Some(Pattern::Outcast(_))),
    }
    CASE_REFUSED {
        flags: "lock-step", says: "without --pattern ring or all-to-all: it is an all-reduce or an exchange of all nodes",
        is_broken: |it| it.lock_step && !matches!(it.pattern, Some(Pattern::Ring | Pattern::AllToAll)),
        hint: |_| "add --pattern ring or --pattern all-to-all, and --nodes".to_owned(),
    }
    CASE_REFUSED {
        flags: "lock-step", says: "with --iters: nodes end their steps together, after a time",
        is_broken: |it| it.lock_step && it.iterations_per_qp.is_some(),
        hint: |_| "give --duration a time instead".to_owned(),
    }
    CASE_NO_EFFECT {
        flags: "split compute", says: "without --lock-step", is_broken: |it| !it.lock_step,
    }
    Rule::IGNORED {
        flags: "split", says: "with --pattern ring: its chunks are equal",
        is_broken: |it| it.lock_step && it.pattern == Some(Pattern::Ring),
    }
    NOT_SET_UP {
        flags: "verify", is_broken: |it| it.is_set_up() && it.verify,
    }
    NOT_SET_UP {
        flags: "bidirectional", is_broken: |it| it.is_set_up() && it.bidirectional,
    }
    CASE_REFUSED {
        flags: "duration", says: "with --iters: a run ends after a time or a number of messages",
        is_broken: |it| it.duration_seconds.is_some() && it.iterations_per_qp.is_some(),
        hint: |_| "leave one of them out".to_owned(), instead_of: "iters",
    }
    CASE_REFUSED {
        flags: "duration", says: "since it measures nothing",
        is_broken: |settings| {
            settings.iterations_per_qp.is_none() && settings.duration_seconds.is_none_or(|it| it.ns() == 0)
        },
        hint: |_| "give --duration a time such as 5s, or use --iters".to_owned(),
    }

    // Services, how QPs are connected, what is in packets' headers, and messages: their sizes, their places in memory, and
    // what some operations do not have.
    Rule::REFUSED {
        flags: "op", says: "with this --service{}", is_broken: |it| !it.service.carries(it.op),
        values: |settings| {
            let ops: Vec<&str> = settings.service.ops().iter().map(|op| op.name()).collect();
            let service = settings.service.name().to_uppercase();
            format!(": {service} carries {}", listed(&ops))
        },
        hint: |settings| {
            let (op, service) = (settings.op, settings.service);
            let carriers = Service::ALL.iter().filter(|other| other.carries(op));
            let others: Vec<&str> = carriers.map(|other| other.name()).collect();
            format!(
                "take {op} out of --op, or {service} out of --service; {op} goes over {}",
                others.join(" and ")
            )
        },
    }
    TOO_LONG {
        flags: "size", is_broken: |it| it.size_mix.is_none() && is_too_long(it),
    }
    TOO_LONG {
        flags: "size-mix", is_broken: |it| it.size_mix.is_some() && is_too_long(it),
    }
    Rule::NO_EFFECT {
        flags: "ud-fan-out", says: "without --service ud: only its QPs can send to any QP",
        is_broken: |it| it.service != Service::Ud,
    }
    Rule::REFUSED {
        flags: "ud-fan-out", says: "with a --tx-depth below --qps: each WR of a QP goes to one QP{}",
        is_broken: |it| it.ud_fan_out && it.tx_depth < it.qps,
        values: |it| format!(", and there are {} WRs for {} QPs", it.tx_depth, it.qps),
        hint: |_| "raise --tx-depth, lower --qps, or leave --ud-fan-out out".to_owned(),
    }
    Rule::REFUSED {
        flags: "connect", says: "with --service uc or ud: rdma_cm connects RC QPs here",
        is_broken: |it| it.connect == ConnectMode::Cm && it.service != Service::Rc,
    }
    Rule::NO_EFFECT {
        flags: "timeout retry-cnt rnr-retry min-rnr-timer",
        says: "with --service uc or ud: they have no acknowledgements and no retries",
        is_broken: |it| it.service != Service::Rc,
    }
    Rule::NO_EFFECT {
        flags: "max-rd-atomic", says: "with --service uc or ud: they have no READs and atomic operations",
        is_broken: |it| it.service != Service::Rc,
    }
    Rule::NO_EFFECT {
        flags: "traffic-class", says: "with --dscp: it sets the traffic class", is_broken: |it| it.dscp.is_some(),
        instead_of: "dscp",
    }
    Rule::NO_EFFECT {
        flags: "udp-sport", says: "with --service ud: the driver chooses its datagrams' port",
        is_broken: |it| it.service == Service::Ud,
    }
    Rule::IGNORED {
        flags: "size", says: "on atomic operations: they act on 8 bytes", is_broken: is_atomic,
    }
    Rule::NO_EFFECT {
        flags: "size", says: "with --size-mix: it sets the sizes", is_broken: |it| it.size_mix.is_some(),
        instead_of: "size-mix",
    }
    Rule::NO_EFFECT {
        flags: "size-mix", says: "on atomic operations: they act on 8 bytes", is_broken: is_atomic,
    }
    Rule::NO_EFFECT {
        flags: "sges", says: "on atomic operations: their 8 bytes are one piece", is_broken: is_atomic,
    }
    Rule::NO_EFFECT {
        flags: "memory", says: "on atomic operations: --atomic-target chooses their 8 bytes", is_broken: is_atomic,
    }
    Rule::NO_EFFECT {
        flags: "region", says: "with --mr per-qp: each QP registers what its messages use",
        is_broken: |it| it.mr == MrMode::PerQp,
    }
    Rule::NO_EFFECT {
        flags: "touch-order", says: "without --memory: messages use the same few places again and again",
        is_broken: |it| it.memory_bytes.is_none() || is_atomic(it),
    }
    Rule::NO_EFFECT {
        flags: "atomic-target", says: "without --op fetch-add or compare-swap", is_broken: |it| !is_atomic(it),
    }
    Rule::NO_EFFECT {
        flags: "inline", says: "on --op read or atomic operations: they send no payload",
        is_broken: |it| it.op.profile().fetches && it.inline_bytes > 0,
    }
    Rule::IGNORED {
        flags: "inline", says: "of 0 on --op read or atomic operations", is_broken: |it| it.op.profile().fetches,
    }
    Rule::NO_EFFECT {
        flags: "recv-queue", says: "without --op send, send-imm or write-imm: other operations take no receives",
        is_broken: |it| !it.op.profile().receives,
    }
    Rule::IGNORED {
        flags: "rx-depth", says: "without --op send, send-imm or write-imm: other operations take no receives",
        is_broken: |it| !it.op.profile().receives,
    }
    Rule::NO_EFFECT {
        flags: "register", says: "without --memory-at cuda or rocm: other memory is registered in one way",
        is_broken: |it| !it.memory_at.has_gpu(),
    }
    NOT_ON_GPU {
        says: "on atomic operations: their words are looked at by the CPU",
        is_broken: |it| it.memory_at.has_gpu() && is_atomic(it),
    }
    NOT_ON_GPU {
        says: "with --inline: the CPU copies inline messages, and cannot read a GPU's memory",
        is_broken: |it| it.memory_at.has_gpu() && it.inline_bytes > 0,
    }
    NOT_ON_GPU {
        says: "with --ping-pong on --op write, or over uc and ud: the CPU waits for a byte in memory",
        is_broken: |settings| {
            let is_unreliable = settings.is_answered() && !settings.service.is_reliable();
            settings.memory_at.has_gpu() && (settings.awaits_bytes() || is_unreliable)
        },
    }
    ATOMIC_PLACE {
        flags: "alignment", is_broken: |it| is_atomic(it) && !it.alignment_bytes.is_multiple_of(ATOMIC_BYTES),
    }
    ATOMIC_PLACE {
        flags: "offset", is_broken: |it| is_atomic(it) && !it.offset_bytes.is_multiple_of(ATOMIC_BYTES),
    }
    Rule::REFUSED {
        flags: "memory", says: "when workers share receives: only one worker can walk through memory{}",
        is_broken: |settings| {
            let is_shared = settings.cq == CqMode::Shared || settings.recv_queue == RecvQueue::Shared;
            let walks = settings.memory_bytes.is_some() && settings.op.profile().fills_receives();
            walks && is_shared && settings.workers > 1
        },
        values: |it| format!(", and {} share the receives of --op {}", it.workers, it.op),
        hint: |_| {
            "take --cq per-worker or per-qp with --recv-queue per-qp, or --workers 1".to_owned()
        },
    }
    Rule::REFUSED {
        flags: "size-mix", says: "when its weights take more WRs than all send queues have{}",
        is_broken: |settings| {
            let period = settings.size_mix.as_ref().map_or(0, SizeMix::period);
            u64::from(period) > settings.wrs_of(settings.qps)
        },
        values: |settings| {
            let period = settings.size_mix.as_ref().map_or(0, SizeMix::period);
            format!(": they take {period}, the queues have {}", settings.wrs_of(settings.qps))
        },
        hint: |_| "raise --tx-depth or --qps, or choose simpler weights".to_owned(),
    }

    // The load: what is posted, signalled and outstanding together on send queues and CQs, and which threads use them; the
    // offered load, and who keeps it; and ping-pong.
    ABOVE_DEPTH {
        flags: "signal-every", is_broken: |it| it.signal_every > it.tx_depth,
        hint: |it| fitting_depth(it.signal_every, it.tx_depth),
    }
    ABOVE_DEPTH {
        flags: "post-list", is_broken: |it| it.post_list > it.tx_depth,
        hint: |it| fitting_depth(it.post_list, it.tx_depth),
    }
    Rule::REFUSED {
        flags: "post-list", says: "above --signal-every{} unless it is a multiple of that",
        is_broken: |settings| {
            settings.post_list > settings.signal_every && !settings.post_list.is_multiple_of(settings.signal_every)
        },
        values: |it| format!(" {}", it.signal_every),
        hint: |settings| {
            let below = settings.post_list - settings.post_list % settings.signal_every.max(1);
            format!(
                "take --post-list {below}, or --signal-every {}",
                settings.post_list
            )
        },
    }
    Rule::NO_EFFECT {
        flags: "qp-weights", says: "without --spread round-robin: only then do QPs take turns",
        is_broken: |it| it.spread != Spread::RoundRobin,
    }
    Rule::REFUSED {
        flags: "qp-weights", says: "unless its groups have as many QPs as --qps{}",
        is_broken: |settings| {
            let weights = settings.qp_weights.as_ref();
            weights.is_some_and(|weights| weights.qps() != u64::from(settings.qps))
        },
        values: |settings| {
            let of_groups = settings.qp_weights.as_ref().map_or(0, QpWeights::qps);
            format!(": they have {of_groups} instead of {}", settings.qps)
        },
    }
    Rule::REFUSED {
        flags: "spread", says: "when workers share a CQ: each worker must see its own QPs' completions",
        is_broken: |it| it.spread != Spread::Own && share_a_cq(it),
        hint: |_| "take --cq per-worker or per-qp, or --workers 1".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "outstanding", says: "with --spread own: each QP keeps its send queue full",
        is_broken: |it| it.spread == Spread::Own,
    }
    Rule::REFUSED {
        flags: "outstanding", says: "below the WRs that are posted together (--signal-every, --post-list){}",
        is_broken: |it| it.outstanding.is_some_and(|wrs| wrs < it.slot_wrs()),
        values: |it| format!(": {} WRs", it.slot_wrs()), hint: |_| fitting_outstanding(),
    }
    Rule::REFUSED {
        flags: "outstanding", says: "above the send queues of a worker's QPs{}",
        is_broken: |settings| {
            settings.outstanding
                .is_some_and(|wrs| u64::from(wrs) > settings.wrs_of_a_worker())
        },
        values: |it| format!(": {} WRs", it.wrs_of_a_worker()), hint: |_| fitting_outstanding(),
    }
    Rule::NO_EFFECT {
        flags: "timestamps", says: "with --no-latency: only latencies use time stamps", is_broken: |it| it.no_latency,
    }
    Rule::REFUSED {
        flags: "timestamps", says: "without --poll-api extended: ibv_poll_cq reports no time stamps",
        is_broken: |it| it.timestamps == Timestamps::Device && it.poll_api == CallStyle::Legacy,
        hint: |_| {
            "take --poll-api extended and leave --no-latency out, or take --timestamps cpu"
                .to_owned()
        },
    }
    Rule::REFUSED {
        flags: "domains", says: "when workers share a CQ: only one thread may use each QP and CQ",
        is_broken: |it| it.domains == Domains::Thread && share_a_cq(it),
        hint: |_| "take --cq per-worker or per-qp, or --workers 1".to_owned(),
    }
    Rule::REFUSED {
        flags: "qps", says: "with more WRs on one CQ than a CQ can have{}",
        is_broken: |it| it.cq_depth.is_none() && it.cq_entries() > MOST_CQ_ENTRIES,
        values: |it| format!(": it would need {} entries", it.cq_entries()),
        hint: |_| "lower --qps, --tx-depth or --rx-depth, or take --cq per-qp".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "pace", says: "without --rate: a closed loop has no load to keep", is_broken: |it| it.rate.is_closed(),
    }
    Rule::NO_EFFECT {
        flags: "arrivals", says: "without --rate: a closed loop has no planned times",
        is_broken: |it| it.rate.is_closed(),
    }
    Rule::NO_EFFECT {
        flags: "arrivals", says: "with --pace device: its loop is a closed one, which has no planned times",
        is_broken: |it| it.pace == Pace::Device,
    }
    Rule::NO_EFFECT {
        flags: "seed", says: "without --rate or --touch-order random: nothing else is random",
        is_broken: |it| it.is_closed_loop() && it.touch_order == TouchOrder::Sequential,
    }
    // The latencies of an open loop are those of all messages.
    Rule::NO_EFFECT {
        flags: "signal-every post-list",
        says: "with --rate: each message has its own time and its own completion",
        is_broken: |it| !it.is_closed_loop(),
    }
    Rule::NO_EFFECT {
        flags: "no-latency", says: "with --rate: it measures latency", is_broken: |it| !it.is_closed_loop(),
    }
    Rule::REFUSED {
        flags: "spread", says: "with --rate: each QP has its own planned times",
        is_broken: |it| it.spread != Spread::Own && !it.is_closed_loop(),
    }
    Rule::REFUSED {
        flags: "rate", says: "with --iters: a load needs a --duration",
        is_broken: |it| it.iterations_per_qp.is_some() && !it.is_closed_loop(),
        hint: |_| "give --duration a time instead".to_owned(),
    }
    NOT_OF_DEVICE {
        says: "with a share of the closed loop's rate: a device takes bits a second",
        is_broken: |it| it.pace == Pace::Device && it.rate.share().is_some(),
    }
    NOT_OF_DEVICE {
        says: "on --op read or atomic operations: a device limits what a QP sends, and the other end sends their data",
        is_broken: |it| it.pace == Pace::Device && it.op.profile().fetches,
    }
    Rule::REFUSED {
        flags: "rate", says: "with --pace device, unless each QP has 1 to 4294967295 kbit/s{}",
        is_broken: |settings| {
            let kbit_per_s = settings.device_kbit_per_s();
            kbit_per_s.is_some_and(|it| !(1..=u32::MAX.into()).contains(&it))
        },
        values: |settings| {
            let kbit_per_s = settings.device_kbit_per_s().unwrap_or_default();
            format!(": each of {} would have {kbit_per_s}", settings.qps)
        },
    }

    // When a flow is on.
    Rule::NO_EFFECT {
        flags: "start stop on off", says: "with --iters: they are times in a window, which --duration gives",
        is_broken: |it| it.iterations_per_qp.is_some(),
    }
    Rule::NO_EFFECT {
        flags: "off", says: "without --on: the flow never pauses", is_broken: |it| it.on_seconds.is_none(),
    }
    Rule::REFUSED {
        flags: "on", says: "without --off: give the length of the pauses too",
        is_broken: |it| it.on_seconds.is_some() && it.off_seconds.is_none(),
        hint: |_| "give --off a time, or leave --on out".to_owned(),
    }
    TOO_SHORT { flags: "on", is_broken: |it| is_short(it.on_seconds) }
    TOO_SHORT { flags: "off", is_broken: |it| is_short(it.off_seconds) }
    Rule::REFUSED {
        flags: "start", says: "at or after the end of the window{}",
        is_broken: |it| it.start_seconds.is_some_and(|start| ends_by(it, start)),
        values: window_text, hint: |_| "give --start less, or --duration more".to_owned(),
    }
    Rule::REFUSED {
        flags: "stop", says: "unless it is after --start and before the end of the window{}",
        is_broken: |it| it.stop_seconds.is_some_and(|stop| {
            stop.ns() <= it.start_seconds.map_or(0, TimeSpan::ns) || ends_by(it, stop)
        }),
        values: window_text, hint: |_| "change --stop, --start or --duration, or leave --stop out".to_owned(),
    }
    NOT_SHARED { flags: "start", is_broken: |it| it.start_seconds.is_some() && share_a_cq(it) }
    NOT_SHARED { flags: "stop", is_broken: |it| it.stop_seconds.is_some() && share_a_cq(it) }
    NOT_SHARED { flags: "on", is_broken: |it| it.on_seconds.is_some() && share_a_cq(it) }

    Rule::NO_EFFECT {
        flags: "signal-every post-list no-latency",
        says: "with --lock-step: each message has its own time and its own completion", is_broken: |it| it.lock_step,
    }
    Rule::REFUSED {
        flags: "lock-step", says: "with{}", is_broken: |it| !excluded_by_lock_step(it).is_empty(),
        values: |it| format!(" {}", listed(&excluded_by_lock_step(it))), hint: |_| "leave one of them out".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "tx-depth signal-every post-list", says: "with --ping-pong: each QP has one message under way",
        is_broken: |it| it.ping_pong,
    }
    Rule::REFUSED {
        flags: "ping-pong", says: "with{}", is_broken: |it| !excluded_by_ping_pong(it).is_empty(),
        values: |it| format!(" {}", listed(&excluded_by_ping_pong(it))), hint: |_| "leave one of them out".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "ordering", says: "with --ping-pong on --op write: the other end waits for the last byte, so writes keep their order",
        is_broken: Settings::awaits_bytes,
    }
}

fn is_too_long(settings: &Settings) -> bool {
    settings.service == Service::Ud && settings.size_bytes > settings.longest_datagram_bytes()
}

fn is_atomic(settings: &Settings) -> bool {
    settings.op.profile().is_atomic()
}

fn fitting_depth(wrs: u32, tx_depth: u32) -> String {
    format!("raise --tx-depth to at least {wrs}, or lower --{{flag}} to at most {tx_depth}")
}

fn fitting_outstanding() -> String {
    "change --outstanding, --tx-depth or --signal-every, or leave --outstanding out".to_owned()
}

fn share_a_cq(settings: &Settings) -> bool {
    settings.cq == CqMode::Shared && settings.workers > 1
}

/// The words of what is given, of a list that only counts where something `is_on`.
fn given(is_on: bool, list: &[(bool, &'static str)]) -> Vec<&'static str> {
    list.iter().filter(|(is_given, _)| is_on && *is_given).map(|(_, flag)| *flag).collect()
}

/// What a ping-pong has beside it and cannot be with.
fn excluded_by_ping_pong(settings: &Settings) -> Vec<&'static str> {
    given(
        settings.ping_pong,
        &[
            (settings.bidirectional, "--bidirectional"),
            (!settings.rate.is_closed(), "--rate"),
            (settings.spread != Spread::Own, "--spread"),
            (settings.size_mix.is_some(), "--size-mix"),
            (settings.no_latency, "--no-latency"),
            (settings.timestamps == Timestamps::Device, "--timestamps device"),
            (share_a_cq(settings), "--cq shared and several --workers"),
            (
                settings.poll != PollMode::Busy && settings.awaits_bytes(),
                "--poll event or adaptive on write",
            ),
            // What the target answers has a number in its last byte, and one place in memory.
            (settings.verify && settings.is_answered(), "--verify on send or write"),
            (
                settings.memory_bytes.is_some() && settings.is_answered(),
                "--memory on send or write",
            ),
            (settings.ud_fan_out, "--ud-fan-out"),
            (settings.has_on_times(), "--start, --stop or --on"),
        ],
    )
}

/// What flows in lock-step have beside it and cannot be with: what a message needs shows in completions of receives, at the
/// worker that posts it.
fn excluded_by_lock_step(settings: &Settings) -> Vec<&'static str> {
    given(
        settings.lock_step,
        &[
            (!settings.op.profile().receives, "--op without receives (take send or write-imm)"),
            (!settings.service.is_reliable(), "--service uc or ud"),
            (settings.bidirectional, "--bidirectional"),
            (settings.ping_pong, "--ping-pong"),
            (!settings.rate.is_closed(), "--rate"),
            (settings.spread != Spread::Own, "--spread"),
            (settings.size_mix.is_some(), "--size-mix"),
            (share_a_cq(settings), "--cq shared and several --workers"),
            (
                settings.poll != PollMode::Busy && settings.workers > 1,
                "--poll event and several --workers",
            ),
            (settings.has_on_times(), "--start, --stop or --on"),
        ],
    )
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
