//! The table of causes: what makes each likely, what changes of a case do if it is the one, its sentence and its remedy. A
//! new one is a row here, and a line of ground truth in its tests.

use results::model::PathEventKind;
use results::numbers::fixed;
use settings::Size;

use crate::changes::Change::{self, *};
use crate::effect::Effect::{self, *};
use crate::effect::Losses;
use crate::evidence::Evidence;
use crate::signs::{
    LEAST_PAUSES, by_packets, comes_late, fetches, has_losses, in_flight, is_many_packets,
    is_not_ready, messages_in_flight, missing_cpu, of_losses, of_lost, one_qp, packets,
    packets_per_s, reads, round_trip, slow_part,
};
use crate::states::{
    BOND_MEMBER, ECN_WITHOUT_CNPS, FAR_NUMA_NODE, HALF_STARTED, ONE_FUNCTION, SLEEP_STATES,
};

/// How likely the runs of the case make a cause, before anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// They contradict it, or the case cannot have it.
    Against,
    /// They say nothing of it.
    Open,
    /// They look like it, as other causes do.
    Hinted,
    /// A counter or a state shows it.
    Shown,
}

/// What may limit a case.
pub struct Cause {
    /// Its name in results.
    pub id: &'static str,
    pub weight: fn(&Evidence<'_>) -> Weight,
    /// What a change does if this limits the case.
    pub effect: fn(&Evidence<'_>, Change) -> Effect,
    /// Changes of which one that comes out as expected proves it.
    pub proof: &'static [Change],
    /// All of `proof` are needed: it has no change that helps.
    pub needs_all: bool,
    /// Changes that must have come out as expected too, where a case has them.
    pub besides: &'static [Change],
    /// Causes that it explains, so that they are not named beside it.
    pub covers: &'static [&'static str],
    /// What limits the case, and where, as a sentence.
    pub sentence: fn(&Evidence<'_>) -> String,
    /// What to do about it.
    pub remedy: fn(&Evidence<'_>) -> String,
}

pub(crate) const USUAL: Cause = Cause {
    id: "",
    weight: |_| Weight::Open,
    effect: |_, change| usual(change),
    proof: &[],
    needs_all: false,
    besides: &[],
    covers: &[],
    sentence: |_| String::new(),
    remedy: |_| String::new(),
};

/// A cause that one change proves, and nothing shows before.
macro_rules! simple {
    ($id:literal, $proof:expr, $sentence:literal, $remedy:literal) => {
        Cause {
            id: $id,
            effect: |_, change| if change == $proof { Faster } else { usual(change) },
            proof: &[$proof],
            sentence: |_| $sentence.to_owned(),
            remedy: |_| $remedy.to_owned(),
            ..USUAL
        }
    };
}

/// What a change does where something else limits: nothing. What it does to losses, and at one end alone, is not said.
pub(crate) fn usual(change: Change) -> Effect {
    match change {
        OtherDirection | OneFlow | LoopAtInitiator | LoopAtTarget | HalfTheLoad
        | TenthOfTheLoad | OnePacket => Anything,
        // Payload takes the other direction then, and other parts of the adapters.
        WriteForRead => Anything,
        HalfTheReads => NotHalved,
        _ => NotFaster,
    }
}

/// What a change does to a case whose losses limit it: of its speed nothing is known.
pub(crate) fn lossy(change: Change) -> Effect {
    match change {
        LighterPosting | NoLocks | OwnCqs | NoCheck | HugePages | LessMemory | OtherOrdering => {
            NotFaster
        }
        _ => Anything,
    }
}

/// Causes that are told by speed alone. Where losses take much of the time, whatever changes how many packets are in flight
/// changes what a loss costs, and so the speed.
const OF_SPEED: &[&str] = &[
    "bytes_in_flight",
    "reads_outstanding",
    "qp_packets",
    "qp_messages",
    "qp_window",
    "packets",
    "slow_path",
    "qp_cache",
    "path_mtu",
    "bits",
];

/// All causes. Of two that one result shows the earlier is named first.
pub const CAUSES: &[Cause] = &[
    Cause {
        id: "bytes_in_flight",
        weight: |evidence| known(evidence.case.ping_pong, Weight::Against, Weight::Open),
        effect: |evidence, change| match change {
            TwiceTheDepth => Faster,
            HalfTheDepth => Halved,
            // Of few messages the last bytes come sooner where they are smaller: it may help.
            HalfTheSize if messages_in_flight(evidence) < 8 => Anything,
            HalfTheSize | SmallerMtu => NearlySame,
            WriteForRead => NotFaster,
            _ => usual(change),
        },
        proof: &[TwiceTheDepth],
        sentence: |evidence| {
            format!(
                "{} in flight do not fill the path from {} to {}: a round trip takes {}.",
                in_flight(evidence),
                evidence.initiator(),
                evidence.target(),
                round_trip(evidence),
            )
        },
        remedy: |evidence| match evidence.flow() {
            Some(flow) => format!(
                "Keep more in flight: --tx-depth {}, or more QPs.",
                flow.tx_depth.saturating_mul(4)
            ),
            None => String::new(),
        },
        ..USUAL
    },
    Cause {
        id: "reads_outstanding",
        weight: |evidence| known(fetches(evidence), Weight::Open, Weight::Against),
        effect: |_, change| match change {
            MoreReads | WriteForRead | MoreQps => Faster,
            HalfTheReads => Halved,
            HalfTheSize | FewerQps => Slower,
            SmallerMtu => NearlySame,
            HalfTheDepth => Anything,
            _ => usual(change),
        },
        proof: &[MoreReads, HalfTheReads, WriteForRead],
        // Other things than READ may be slow in the direction of its payload.
        besides: &[MoreQps],
        // A limit of each QP that WRITEs do not have, or that follows their number, is that of READs.
        covers: &["qp_packets", "qp_messages", "qp_window"],
        sentence: |evidence| {
            format!(
                "READs outstanding limit {}: each QP waits for {} of them at a time.",
                evidence.initiator(),
                reads(evidence).map_or_else(|| "a few".to_owned(), |count| count.to_string())
            )
        },
        remedy: |_| {
            "Use more QPs, larger READs, or WRITE from the other end; raise --max-rd-atomic if the devices can.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "qp_packets",
        weight: one_qp,
        effect: |evidence, change| match change {
            MoreQps => Faster,
            FewerQps => Slower,
            SmallerMtu => by_packets(evidence),
            HalfTheSize if !is_many_packets(evidence) => Slower,
            HalfTheSize | LargerMtu | NextPowerOfTwo => Anything,
            _ => usual(change),
        },
        proof: &[MoreQps],
        sentence: |evidence| {
            format!(
                "One QP alone limits {}: its packets are handled one after the other.",
                evidence.initiator()
            )
        },
        remedy: |_| "Spread the messages over more QPs, or use larger packets.".to_owned(),
        ..USUAL
    },
    Cause {
        id: "qp_messages",
        weight: |evidence| known(is_many_packets(evidence), one_qp(evidence), Weight::Against),
        effect: |_, change| match change {
            MoreQps => Faster,
            FewerQps | HalfTheSize => Slower,
            SmallerMtu => NearlySame,
            NextPowerOfTwo => Anything,
            _ => usual(change),
        },
        proof: &[MoreQps],
        sentence: |evidence| {
            format!(
                "One QP alone limits {}: its messages are handled one after the other.",
                evidence.initiator()
            )
        },
        remedy: |_| "Spread the messages over more QPs, or use larger messages.".to_owned(),
        ..USUAL
    },
    Cause {
        id: "qp_window",
        weight: one_qp,
        effect: |evidence, change| match change {
            MoreQps => Faster,
            FewerQps => Slower,
            // A window may count packets, and of a few of them smaller ones fill it better.
            HalfTheSize if !is_many_packets(evidence) => Anything,
            SmallerMtu => NotHalved,
            HalfTheSize => NearlySame,
            _ => usual(change),
        },
        proof: &[MoreQps],
        sentence: |evidence| {
            format!(
                "One QP alone limits {}: its adapter has a rate for a QP, or keeps fewer bytes of it in flight than it was given ({} a round trip).",
                evidence.initiator(),
                round_trip(evidence)
            )
        },
        remedy: |_| {
            "Spread the messages over more QPs: each has a rate and a window of its own.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "packets",
        effect: |evidence, change| match change {
            SmallerMtu => by_packets(evidence),
            LargerMtu => Faster,
            HalfTheSize if !is_many_packets(evidence) => Halved,
            HalfTheSize | NextPowerOfTwo | HalfTheDepth => Anything,
            _ => usual(change),
        },
        proof: &[SmallerMtu, LargerMtu, HalfTheSize],
        sentence: |evidence| {
            let rate = packets_per_s(evidence).map_or_else(String::new, |rate| {
                format!(": {} million a second", fixed(rate / 1e6, 2))
            });
            format!(
                "Packets a second limit the path from {} to {}{rate}.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| {
            "Use larger packets (--mtu, and the port's MTU) and larger messages.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "sender_worker",
        weight: |evidence| match evidence.empty_polls(evidence.initiator()) {
            Some(share) if share < 0.1 => Weight::Hinted,
            Some(share) if share > 0.9 => Weight::Against,
            _ => Weight::Open,
        },
        effect: |_, change| match change {
            LighterPosting | MoreWorkers => Faster,
            NoCheck | NoLocks | OwnCqs | WriteForSend => Anything,
            HalfTheSize => Slower,
            SmallerMtu => NearlySame,
            HalfTheDepth => Anything,
            _ => usual(change),
        },
        proof: &[LighterPosting, MoreWorkers],
        sentence: |evidence| {
            format!(
                "The worker of {} cannot post and poll faster: its core is the limit.",
                evidence.initiator()
            )
        },
        remedy: |_| {
            "Post lists (-l 32 -Q 32), record no latencies, or use more workers (--workers)."
                .to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "rnr_timer",
        weight: |evidence| {
            known(
                evidence.case.min_rnr_timer == 0 && is_not_ready(evidence),
                Weight::Shown,
                Weight::Against,
            )
        },
        effect: |_, change| match change {
            UsualRnrTimer | WriteForSend => Faster,
            _ => not_ready(change),
        },
        proof: &[UsualRnrTimer],
        // A worker without a core waits less than that.
        covers: &["receiver_not_ready", "stolen_cpu", "embedded_cpu"],
        sentence: |evidence| {
            format!(
                "{} waits 655 ms each time {} has no receive: --min-rnr-timer 0 is the longest wait.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| "Use --min-rnr-timer 12 (0.64 ms) or 1 (0.01 ms).".to_owned(),
        ..USUAL
    },
    Cause {
        id: "receiver_not_ready",
        weight: |evidence| known(is_not_ready(evidence), Weight::Shown, Weight::Against),
        effect: |_, change| match change {
            WriteForSend => Faster,
            _ => not_ready(change),
        },
        proof: &[WriteForSend, MoreReceives],
        sentence: |evidence| {
            format!(
                "{} has no receive posted in time: {} times it told {} to wait.",
                evidence.target(),
                evidence.count(PathEventKind::ReceiverNotReady),
                evidence.initiator()
            )
        },
        remedy: |_| {
            "Post more receives (--rx-depth), give the receiver a core of its own, or use WRITE."
                .to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "priority_without_pfc",
        weight: |evidence| {
            let has_other = evidence
                .flow()
                .is_some_and(|flow| evidence.lossless_dscps().any(|dscp| flow.dscp != Some(dscp)));
            known(has_other && has_losses(evidence), Weight::Shown, Weight::Against)
        },
        effect: |_, change| match change {
            LosslessPriority => LossesGo,
            _ => lossy(change),
        },
        proof: &[LosslessPriority],
        covers: &["congestion", "spraying", "lossy_link"],
        sentence: |_| {
            "Packets have a priority without PFC, though the ports have PFC for another: they are lost where it is full.".to_owned()
        },
        remedy: |evidence| {
            evidence.lossless_dscps().next().map_or_else(String::new, |dscp| {
                format!("Use --dscp {dscp}, whose packets have PFC here.")
            })
        },
        ..USUAL
    },
    Cause {
        id: "congestion",
        weight: of_lost,
        effect: |_, change| match change {
            HalfTheLoad | TenthOfTheLoad => LossesGo,
            _ => lossy(change),
        },
        proof: &[HalfTheLoad, TenthOfTheLoad],
        covers: OF_SPEED,
        sentence: |evidence| {
            format!(
                "The network from {} to {} loses packets under load: a queue there is full.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| {
            "Look for a slower link or other traffic on the path; PFC or ECN for this priority would keep packets from being lost.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "spraying",
        weight: |evidence| match of_losses(evidence) {
            Weight::Shown => {
                known(comes_late(evidence) == Some(false), Weight::Against, Weight::Shown)
            }
            weight => weight,
        },
        effect: |evidence, change| match change {
            // The packets of a message stay together.
            HalfTheLoad if packets(evidence) >= 4 => LossesStay,
            OnePacket => LossesGo,
            _ => lossy(change),
        },
        proof: &[OnePacket],
        covers: OF_SPEED,
        sentence: |evidence| {
            format!(
                "Packets from {} overtake each other on several paths, and {} takes that for loss.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| {
            "Turn packet spraying off for this traffic, or let the adapter accept packets out of order.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "lossy_link",
        weight: of_lost,
        effect: |_, change| match change {
            HalfTheLoad | TenthOfTheLoad | OnePacket => LossesStay,
            _ => lossy(change),
        },
        proof: &[TenthOfTheLoad, OnePacket],
        covers: OF_SPEED,
        sentence: |evidence| {
            let ppm = evidence.losses().map_or(0.0, Losses::ppm);
            format!(
                "The path from {} to {} loses {} of a million packets, whatever the load.",
                evidence.initiator(),
                evidence.target(),
                fixed(ppm, 0)
            )
        },
        remedy: |evidence| {
            let what = if evidence.situation.is_embedded() {
                "Look for planted faults (--faults), and for a receive buffer that is full as its CPU is busy."
            } else {
                "Look for errors of the ports, cables and transceivers of the path."
            };
            what.to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "slow_path",
        weight: |evidence| match evidence.least_qp_share() {
            Some(share) if share < 0.7 => Weight::Shown,
            // All of a few may share the slow one.
            Some(share) if share > 0.85 && evidence.case.qps >= 4 => Weight::Against,
            _ => Weight::Open,
        },
        effect: |_, change| match change {
            // They may be on the slow path again.
            OtherPorts | YetOtherPorts => MayBeFaster,
            MoreQps | FewerQps | TwiceTheDepth | HalfTheDepth => Anything,
            HalfTheSize | SmallerMtu => NearlySame,
            _ => usual(change),
        },
        proof: &[OtherPorts, YetOtherPorts],
        sentence: |evidence| {
            format!(
                "One of several paths from {} to {} is slow, and UDP source ports choose it.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| {
            "Compare the switches' ports of that path; meanwhile choose other ports (--flow-label, --udp-sport).".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "qp_cache",
        weight: |evidence| known(evidence.case.qps >= 8, Weight::Open, Weight::Against),
        effect: |_, change| match change {
            FewerQps => Faster,
            // Deeper queues may let more messages of a QP follow each other, which miss once.
            HalfTheSize | SmallerMtu | LargerMtu | HalfTheDepth | TwiceTheDepth => Anything,
            _ => usual(change),
        },
        proof: &[FewerQps],
        sentence: |evidence| {
            format!(
                "{} QPs are more than an adapter's cache holds: it fetches their contexts again and again.",
                evidence.case.qps
            )
        },
        remedy: |evidence| {
            format!("Use fewer QPs with deeper queues, such as -q {}.", evidence.case.qps / 4)
        },
        ..USUAL
    },
    Cause {
        id: "odd_size",
        weight: |evidence| {
            known(evidence.case.size_bytes.is_multiple_of(64), Weight::Against, Weight::Hinted)
        },
        effect: |_, change| match change {
            NextPowerOfTwo => Faster,
            HalfTheSize | SmallerMtu | LargerMtu => Anything,
            _ => usual(change),
        },
        proof: &[NextPowerOfTwo],
        sentence: |evidence| {
            format!(
                "{} bytes are no multiple of 64: the adapter moves such messages more slowly.",
                evidence.case.size_bytes
            )
        },
        remedy: |evidence| {
            let size =
                evidence.case.size_bytes.checked_next_power_of_two().and_then(Size::from_bytes);
            size.map_or_else(String::new, |size| format!("Pad messages to {size}."))
        },
        ..USUAL
    },
    simple!(
        "shared_cq",
        OwnCqs,
        "Workers wait for the lock of their common CQ.",
        "Use --cq per-worker."
    ),
    simple!(
        "sleeping_worker",
        BusyPolling,
        "Workers sleep, and wake too late for the next completion.",
        "Use --poll busy."
    ),
    SLEEP_STATES,
    simple!(
        "locks",
        NoLocks,
        "Locks of the verbs library take a part of each message's time.",
        "Use --domains thread."
    ),
    simple!(
        "payload_check",
        NoCheck,
        "Checking the payload takes longer than moving it.",
        "Leave --verify out where you measure speed."
    ),
    simple!(
        "small_pages",
        HugePages,
        "Memory in ordinary pages is more than the adapter's translations hold.",
        "Use huge pages (--memory-at huge)."
    ),
    simple!(
        "working_set",
        LessMemory,
        "The working set is more than a cache on the way holds.",
        "Reuse buffers: a smaller --memory shows from where on."
    ),
    simple!(
        "pcie_ordering",
        OtherOrdering,
        "The PCIe ordering of the adapter's writes slows them down.",
        "Use the other --ordering."
    ),
    simple!(
        "way_of_connecting",
        OtherConnect,
        "QPs take another path, or other attributes, by this way of connecting.",
        "Compare GID, traffic class and MTU of both ways (--connect)."
    ),
    simple!(
        "path_mtu",
        SmallerMtu,
        "The path does not carry packets of this MTU well.",
        "Use a smaller --mtu, or raise the MTU of every port on the path."
    ),
    Cause {
        id: "company",
        weight: |evidence| known(evidence.case.flows.len() > 1, Weight::Open, Weight::Against),
        effect: |_, change| match change {
            OneFlow => Faster,
            _ => lossy(change),
        },
        proof: &[OneFlow],
        sentence: |evidence| {
            format!(
                "{} flows together move less than one alone: they harm each other.",
                evidence.case.flows.len()
            )
        },
        remedy: |_| {
            "Look at the port where they meet: its queue, PFC and ECN; use fewer senders at a time."
                .to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "embedded_cpu",
        weight: |evidence| {
            let shares =
                [evidence.initiator(), evidence.target()].map(|node| evidence.engine_share(node));
            let is_busy = shares.into_iter().flatten().any(|share| share > 0.85);
            known(evidence.situation.is_embedded() && is_busy, Weight::Shown, Weight::Against)
        },
        effect: |_, change| match change {
            TwiceTheDepth | MoreQps => NotFaster,
            _ => Anything,
        },
        covers: &["packets", "bits"],
        sentence: |_| "The embedded device's CPU moves all bytes, and has no time left.".to_owned(),
        remedy: |_| {
            "Use larger messages, or a machine with more free CPUs; figures of this device are those of CPUs.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "paused_by_network",
        weight: |evidence| is_paused(evidence, PathEventKind::PausedByNetwork),
        effect: |_, change| paused(change),
        covers: &["bits", "packets"],
        sentence: |evidence| {
            pauses(evidence, PathEventKind::PausedByNetwork, "is told by the network to wait")
        },
        remedy: |_| {
            "Look for the slow or busy receiver behind the switch whose pauses spread, and at ECN, which slows senders down before.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "paused_by_host",
        weight: |evidence| is_paused(evidence, PathEventKind::PausedByHost),
        effect: |_, change| paused(change),
        covers: &["bits", "packets", "paused_by_network"],
        sentence: |evidence| {
            pauses(
                evidence,
                PathEventKind::PausedByHost,
                "cannot take what comes, and tells the network to wait",
            )
        },
        remedy: |_| {
            "Look at that host: PCIe speed, memory near the adapter, relaxed ordering, fewer QPs or memory regions.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "stolen_cpu",
        weight: |evidence| known(missing_cpu(evidence).is_some(), Weight::Shown, Weight::Against),
        effect: |_, _| Anything,
        sentence: |evidence| missing_cpu(evidence).unwrap_or_default(),
        remedy: |_| {
            "Give the process the CPUs that it needs: a larger quota, fewer neighbours, workers pinned to free cores.".to_owned()
        },
        ..USUAL
    },
    Cause {
        id: "slow_part",
        weight: |evidence| known(slow_part(evidence).is_some(), Weight::Shown, Weight::Against),
        effect: |_, change| bits(change),
        covers: &["bits"],
        sentence: |evidence| slow_part(evidence).unwrap_or_default(),
        remedy: |_| {
            "Reseat the card or the cable, and look at what the slot and the port can do."
                .to_owned()
        },
        ..USUAL
    },
    HALF_STARTED,
    ONE_FUNCTION,
    BOND_MEMBER,
    ECN_WITHOUT_CNPS,
    FAR_NUMA_NODE,
    Cause {
        id: "bits",
        effect: |_, change| bits(change),
        proof: &[TwiceTheDepth, MoreQps, HalfTheSize],
        needs_all: true,
        sentence: |evidence| {
            let rate = evidence
                .gbit_per_s()
                .map_or_else(String::new, |rate| format!(" of {} Gb/s", fixed(rate, 2)));
            format!(
                "A limit{rate} below the link's speed: pacing, PCIe, or a slower link between {} and {}.",
                evidence.initiator(),
                evidence.target()
            )
        },
        remedy: |_| {
            "Look for a rate limit of the adapter, the PCIe speed of both, and the speed of each link on the path.".to_owned()
        },
        ..USUAL
    },
];

pub(crate) fn bits(change: Change) -> Effect {
    match change {
        HalfTheSize | SmallerMtu => NearlySame,
        HalfTheDepth | LargerMtu | NextPowerOfTwo => Anything,
        _ => usual(change),
    }
}

/// What a change does where pauses take a part of the time: as many bytes pass in the rest.
fn paused(change: Change) -> Effect {
    match change {
        TwiceTheDepth | MoreQps | LighterPosting | NoLocks | OtherOrdering => NotFaster,
        _ => Anything,
    }
}

fn is_paused(evidence: &Evidence<'_>, kind: PathEventKind) -> Weight {
    known(evidence.count(kind) >= LEAST_PAUSES, Weight::Shown, Weight::Against)
}

fn pauses(evidence: &Evidence<'_>, kind: PathEventKind, what: &str) -> String {
    let node = evidence.where_counted(kind).unwrap_or("a node");
    format!("{node} {what}: {} pauses.", evidence.count(kind))
}

fn not_ready(change: Change) -> Effect {
    match change {
        // Where the receiver is slow, more of them are used up too.
        MoreReceives => MayBeFaster,
        NoLocks | OtherOrdering => NotFaster,
        _ => Anything,
    }
}

pub(crate) fn known(condition: bool, yes: Weight, no: Weight) -> Weight {
    if condition { yes } else { no }
}
