//! Rules on services, on how QPs are connected, and on what is in packets' headers.

use super::rule::{Rule, rules};
use crate::listed::listed;
use crate::service::{LARGEST_MTU_BYTES, Service};
use crate::table::Settings;
use crate::words::ConnectMode;

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
}

/// The longest datagram, as far as the path is known before a device is opened.
fn most_bytes(settings: &Settings) -> u32 {
    settings.mtu.map_or(LARGEST_MTU_BYTES, super::super::words::Mtu::bytes)
}

fn is_too_long(settings: &Settings) -> bool {
    settings.service == Service::Ud && settings.size_bytes > most_bytes(settings)
}
