//! Rules on a case as a whole: its end, its pattern, and set-up measured with or without traffic.

use super::rule::{Rule, rules};
use crate::pattern::Pattern;
use crate::row::Scope;
use crate::table::Settings;

const OF_TRAFFIC: &str = "cq size size-mix workers tx-depth signal-every post-list inline sges mr pages ordering alignment \
    offset memory touch-order spread outstanding qp-weights poll post poll-api domains timestamps seed \
    no-latency cq-depth";

const NO_EFFECT: Rule = Rule { scope: Scope::Case, ..Rule::NO_EFFECT };

const REFUSED: Rule = Rule { scope: Scope::Case, ..Rule::REFUSED };

/// A rule on what set-up cannot be measured with.
const NOT_SET_UP: Rule = Rule {
    says: "with --op connect: its traffic goes one way and is not checked",
    hint: |_| "leave --{flag} out, or measure --op connect in a sweep of its own".to_owned(),
    ..REFUSED
};

rules! {
    NO_EFFECT {
        flags: OF_TRAFFIC,
        says: "on --op connect with --traffic-qps 0: it sets the traffic, and there is none",
        is_broken: |it| !it.has_traffic(),
    }
    NO_EFFECT {
        flags: "service", says: "on --op connect: it sets up RC QPs", is_broken: Settings::is_set_up,
    }
    NO_EFFECT {
        flags: "rate", says: "on --op connect: its traffic is a closed loop", is_broken: Settings::is_set_up,
    }
    NO_EFFECT {
        flags: "ping-pong", says: "on --op connect: its traffic is a closed loop", is_broken: Settings::is_set_up,
    }
    NO_EFFECT {
        flags: "rx-depth", says: "on --op connect: its traffic is RDMA WRITEs, which need no receive",
        is_broken: Settings::is_set_up,
    }
    NO_EFFECT {
        flags: "traffic-qps", says: "without --op connect: it sets the traffic during set-up",
        is_broken: |it| !it.is_set_up(),
    }
    NO_EFFECT {
        flags: "pattern", says: "on --op connect: set-up is between two nodes", is_broken: Settings::is_set_up,
    }
    NO_EFFECT {
        flags: "fan-in", says: "without --pattern incast", is_broken: |it| it.pattern.is_none(),
    }
    Rule::IGNORED {
        flags: "fan-in", says: "with a --pattern other than incast",
        is_broken: |it| !matches!(it.pattern, Some(Pattern::Incast(_))),
    }
    NO_EFFECT {
        flags: "fan-out", says: "without --pattern outcast", is_broken: |it| it.pattern.is_none(),
    }
    Rule::IGNORED {
        flags: "fan-out", says: "with a --pattern other than outcast",
        is_broken: |it| !matches!(it.pattern, Some(Pattern::Outcast(_))),
    }
    NOT_SET_UP {
        flags: "verify", is_broken: |it| it.is_set_up() && it.verify,
    }
    NOT_SET_UP {
        flags: "bidirectional", is_broken: |it| it.is_set_up() && it.bidirectional,
    }
    REFUSED {
        flags: "duration", says: "with --iters: a run ends after a time or a number of messages",
        is_broken: |it| it.duration_seconds.is_some() && it.iterations_per_qp.is_some(),
        hint: |_| "leave one of them out".to_owned(), instead_of: "iters",
    }
    REFUSED {
        flags: "duration", says: "since it measures nothing",
        is_broken: |settings| {
            settings.iterations_per_qp.is_none() && settings.duration_seconds.is_none_or(|it| it.ns() == 0)
        },
        hint: |_| "give --duration a time such as 5s, or use --iters".to_owned(),
    }
}
