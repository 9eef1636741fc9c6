//! Rules on send queues and CQs: what is posted, signalled and outstanding together, and which threads use them.

use super::rule::{Rule, rules};
use crate::calls::{CallStyle, Domains, Timestamps};
use crate::table::Settings;
use crate::words::{CqMode, Spread};

/// Entries of a CQ: `ibv_create_cq(3)` takes a C `int`.
const MOST_CQ_ENTRIES: u64 = i32::MAX as u64;

/// A rule on what the send queue holds.
const ABOVE_DEPTH: Rule =
    Rule { says: "above --tx-depth{}", values: |it| format!(" {}", it.tx_depth), ..Rule::REFUSED };

rules! {
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
            let of_groups = settings.qp_weights.as_ref().map_or(0, super::super::weights::QpWeights::qps);
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
                .is_some_and(|wrs| u64::from(wrs) > of_worker(settings))
        },
        values: |it| format!(": {} WRs", of_worker(it)), hint: |_| fitting_outstanding(),
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
        is_broken: |it| it.cq_depth.is_none() && cq_entries(it) > MOST_CQ_ENTRIES,
        values: |it| format!(": it would need {} entries", cq_entries(it)),
        hint: |_| "lower --qps, --tx-depth or --rx-depth, or take --cq per-qp".to_owned(),
    }
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

/// WRs that the send queues of a worker's QPs hold, of the worker with the fewest.
fn of_worker(settings: &Settings) -> u64 {
    let workers = settings.workers.clamp(1, settings.qps.max(1));
    settings.wrs_of(settings.qps / workers)
}

/// WRs that can be outstanding on the QPs of one CQ.
fn cq_entries(settings: &Settings) -> u64 {
    let qps = match settings.cq {
        CqMode::Shared => settings.qps,
        CqMode::PerWorker => settings.qps.div_ceil(settings.workers),
        CqMode::PerQp => 1,
    };
    let receives = if settings.op.profile().receives { settings.receives_of(qps) } else { 0 };
    u64::from(qps) * u64::from(settings.tx_depth) + receives
}
