//! Rules on messages: their sizes, their places in memory, and what some operations do not have.

use super::rule::{Rule, rules};
use crate::op::ATOMIC_BYTES;
use crate::table::Settings;
use crate::words::{CqMode, RecvQueue};

/// A rule on places that atomic operations cannot act on.
const ATOMIC_PLACE: Rule = Rule {
    says: "on atomic operations, but for multiples of 8: they act on 8 aligned bytes",
    ..Rule::REFUSED
};

rules! {
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
            let period = settings.size_mix.as_ref().map_or(0, super::super::weights::SizeMix::period);
            u64::from(period) > settings.wrs_of(settings.qps)
        },
        values: |settings| {
            let period = settings.size_mix.as_ref().map_or(0, super::super::weights::SizeMix::period);
            format!(": they take {period}, the queues have {}", settings.wrs_of(settings.qps))
        },
        hint: |_| "raise --tx-depth or --qps, or choose simpler weights".to_owned(),
    }
}

fn is_atomic(settings: &Settings) -> bool {
    settings.op.profile().is_atomic()
}
