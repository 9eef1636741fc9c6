//! Rules on the offered load, on who keeps it, and on ping-pongs.

use super::rule::{Rule, rules};
use crate::calls::Timestamps;
use crate::listed::listed;
use crate::table::Settings;
use crate::words::{CqMode, Pace, PollMode, Spread, TouchOrder};

/// A rule on rates that a device cannot keep.
const NOT_OF_DEVICE: Rule = Rule {
    flags: "pace",
    hint: |_| {
        "take --pace worker, or --op send or write with a rate in messages or bits".to_owned()
    },
    ..Rule::REFUSED
};

/// What a ping-pong cannot be with.
fn not_with_ping_pong(it: &Settings) -> Vec<&'static str> {
    let answered = it.is_answered();
    let of_answered = [
        (
            it.cq == CqMode::Shared && it.workers > 1,
            "several --workers on --cq shared",
        ),
        (it.timestamps == Timestamps::Device, "--timestamps device"),
        (
            it.poll != PollMode::Busy && it.awaits_bytes(),
            "--poll event or adaptive on --op write",
        ),
        (it.verify, "--verify"),
        (it.memory_bytes.is_some(), "--memory"),
        (it.size_mix.is_some(), "--size-mix"),
        (it.ud_fan_out, "--ud-fan-out"),
    ];
    let of_all = [
        (it.bidirectional, "--bidirectional"),
        (!it.rate.is_closed(), "--rate"),
        (it.spread != Spread::Own, "--spread"),
        (it.no_latency, "--no-latency"),
    ];
    let of_answered = of_answered.into_iter().filter(|_| answered);
    let broken = of_answered.chain(of_all).filter(|_| it.ping_pong);
    broken.filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

rules! {
    Rule::NO_EFFECT {
        flags: "tx-depth signal-every post-list", says: "with --ping-pong: each QP has one message under way",
        is_broken: |it| it.ping_pong,
    }
    Rule::REFUSED {
        flags: "ping-pong", says: "with settings of other loads{}", is_broken: |it| !not_with_ping_pong(it).is_empty(),
        values: |it| format!(": {}", listed(&not_with_ping_pong(it))), hint: |_| "leave one of them out".to_owned(),
    }
    Rule::NO_EFFECT {
        flags: "ordering", says: "with --ping-pong on --op write: the last byte is awaited, so that writes keep their order",
        is_broken: Settings::awaits_bytes,
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
        flags: "seed", says: "without --rate or --touch-order random: neither times nor places are chosen",
        is_broken: |it| it.is_closed_loop() && it.touch_order == TouchOrder::Sequential,
    }
    // The latencies of an open loop are those of all messages.
    Rule::NO_EFFECT {
        flags: "signal-every post-list",
        says: "with --rate: each message is posted at its time, and has a completion of its own",
        is_broken: |it| !it.is_closed_loop(),
    }
    Rule::NO_EFFECT {
        flags: "no-latency", says: "with --rate: the latency is its result", is_broken: |it| !it.is_closed_loop(),
    }
    Rule::REFUSED {
        flags: "spread", says: "with --rate: each QP has its own planned times",
        is_broken: |it| it.spread != Spread::Own && !it.is_closed_loop(),
    }
    Rule::REFUSED {
        flags: "rate", says: "with --iters: messages are offered for a time",
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
        is_broken: |it| {
            let kbit_per_s = it.device_kbit_per_s();
            kbit_per_s.is_some_and(|it| !(1..=u32::MAX.into()).contains(&it))
        },
        values: |it| {
            let kbit_per_s = it.device_kbit_per_s().unwrap_or_default();
            format!(": each of {} would have {kbit_per_s}", it.qps)
        },
    }
}
