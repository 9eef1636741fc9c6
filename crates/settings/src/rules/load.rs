//! Rules on the offered load, and on who keeps it.

use super::rule::{Rule, rules};
use crate::words::{Pace, Spread, TouchOrder};

/// A rule on rates that a device cannot keep.
const NOT_OF_DEVICE: Rule = Rule {
    flags: "pace",
    hint: |_| {
        "take --pace worker, or --op send or write with a rate in messages or bits".to_owned()
    },
    ..Rule::REFUSED
};

rules! {
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
}
