//! Rules on services, on how QPs are connected, on what is in packets' headers, and on messages: their sizes, their places
//! in memory, and what some operations do not have.

use super::rule::{Rule, rules};
use crate::lists::SizeMix;
use crate::op::{ATOMIC_BYTES, LARGEST_MTU_BYTES, Service};
use crate::table::Settings;
use crate::text::listed;
use crate::words::{ConnectMode, CqMode, Mtu, RecvQueue};

/// A rule on messages larger than a packet.
const TOO_LONG: Rule = Rule {
    says: "with --service ud above the MTU: a datagram is one packet{}",
    values: |it| match it.mtu {
        Some(mtu) => format!(", of at most {} bytes with --mtu {mtu}", mtu.bytes()),
        None => format!(", of at most {LARGEST_MTU_BYTES} bytes with the largest MTU"),
    },
    hint: |settings| {
        let most = most_bytes(settings);
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

rules! {
    Rule::REFUSED {
        flags: "op", says: "with this --service{}", is_broken: |it| !it.service.carries(it.op),
        values: |settings| {
            let ops: Vec<&str> = settings.service.ops().iter().map(|op| op.name()).collect();
            let service = settings.service.name().to_uppercase();
            format!(": {service} carries {}", listed(&ops))
        },
        hint: |settings| {
            let (op, service) = (settings.op, settings.service);
            let carriers = Service::ALL.iter().filter(|service| service.carries(op));
            let others: Vec<&str> = carriers.map(|service| service.name()).collect();
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
            let period = settings.size_mix.as_ref().map_or(0, SizeMix::period);
            u64::from(period) > settings.wrs_of(settings.qps)
        },
        values: |settings| {
            let period = settings.size_mix.as_ref().map_or(0, SizeMix::period);
            format!(": they take {period}, the queues have {}", settings.wrs_of(settings.qps))
        },
        hint: |_| "raise --tx-depth or --qps, or choose simpler weights".to_owned(),
    }
}

/// The longest datagram, as far as the path is known before a device is opened.
fn most_bytes(settings: &Settings) -> u32 {
    settings.mtu.map_or(LARGEST_MTU_BYTES, Mtu::bytes)
}

fn is_too_long(settings: &Settings) -> bool {
    settings.service == Service::Ud && settings.size_bytes > most_bytes(settings)
}

fn is_atomic(settings: &Settings) -> bool {
    settings.op.profile().is_atomic()
}
