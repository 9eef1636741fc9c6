//! Rules on the load: what is posted, signalled and outstanding together on send queues and CQs, and which threads use
//! them; the offered load, and who keeps it; and ping-pong.

use super::rule::{Rule, rules};
use crate::lists::QpWeights;
use crate::table::Settings;
use crate::text::listed;
use crate::words::{CallStyle, CqMode, Domains, Pace, PollMode, Spread, Timestamps, TouchOrder};

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
    Rule::NO_EFFECT {
        flags: "tx-depth signal-every post-list", says: "with --ping-pong: each QP has one message under way",
        is_broken: |it| it.ping_pong,
    }
    Rule::REFUSED {
        flags: "ping-pong", says: "with{}", is_broken: |it| !others(it).is_empty(),
        values: |it| format!(" {}", listed(&others(it))), hint: |_| "leave one of them out".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "ordering", says: "with --ping-pong on --op write: the other end waits for the last byte, so writes keep their order",
        is_broken: Settings::awaits_bytes,
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

/// What a ping-pong has beside it and cannot be with.
fn others(it: &Settings) -> Vec<&'static str> {
    let share_a_cq = it.cq == CqMode::Shared && it.workers > 1;
    let polls = it.poll == PollMode::Busy;
    let conflicts = [
        (it.bidirectional, "--bidirectional"),
        (!it.rate.is_closed(), "--rate"),
        (it.spread != Spread::Own, "--spread"),
        (it.size_mix.is_some(), "--size-mix"),
        (it.no_latency, "--no-latency"),
        (it.timestamps == Timestamps::Device, "--timestamps device"),
        (share_a_cq, "--cq shared and several --workers"),
        (!polls && it.awaits_bytes(), "--poll event or adaptive on write"),
        // What the target answers has a number in its last byte, and one place in memory.
        (it.verify && it.is_answered(), "--verify on send or write"),
        (it.memory_bytes.is_some() && it.is_answered(), "--memory on send or write"),
        (it.ud_fan_out, "--ud-fan-out"),
    ];
    conflicts.into_iter().filter(|(is, _)| *is && it.ping_pong).map(|(_, what)| what).collect()
}
