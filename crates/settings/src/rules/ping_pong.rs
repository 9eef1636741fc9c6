//! Rules on ping-pongs: of each QP one message is under way, and its latency is the result.

use super::rule::{Rule, rules};
use crate::calls::Timestamps;
use crate::listed::listed;
use crate::table::Settings;
use crate::words::{CqMode, PollMode, Spread};

rules! {
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
