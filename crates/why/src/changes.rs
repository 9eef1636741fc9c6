//! What can be changed of a case: a row for each change, with what it makes of the case.

use plan::Case;
use settings::{
    Arrivals, ConnectMode, CqMode, Domains, MemoryAt, Mtu, Op, Ordering, PollMode, ROWS, Rate,
    Settings, Workload,
};

use crate::evidence::Evidence;
use crate::signs::reads;

/// Makes the changes from the rows.
macro_rules! changes {
    ($($change:ident: $id:literal, $words:literal, $make:expr;)*) => {
        /// One thing that is changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Change {
            $(#[doc = $words] $change),*
        }

        /// All changes, those first that tell most, where several tell as much.
        pub const CHANGES: &[Change] = &[$(Change::$change),*];

        impl Change {
            /// Its name in results.
            pub fn id(self) -> &'static str {
                match self {
                    $(Change::$change => $id),*
                }
            }

            /// What is changed, for a person.
            pub fn words(self) -> &'static str {
                match self {
                    $(Change::$change => $words),*
                }
            }

            fn make(self) -> fn(&Evidence<'_>) -> Option<Case> {
                match self {
                    $(Change::$change => $make),*
                }
            }
        }
    };
}

changes! {
    MoreQps: "more_qps", "the same bytes in flight over more QPs", |evidence| with(evidence, |settings| {
        let times = if settings.tx_depth >= 4 { 4 } else { 2 };
        is_throughput(settings).then_some(())?;
        settings.tx_depth = divided(settings.tx_depth, times)?;
        settings.qps = settings.qps.checked_mul(times)?;
        fit_slots(settings)
    });
    HalfTheDepth: "half_the_depth", "half the bytes in flight", |evidence| with(evidence, |settings| {
        is_throughput(settings).then_some(())?;
        settings.tx_depth = divided(settings.tx_depth, 2)?;
        fit_slots(settings)
    });
    TwiceTheDepth: "twice_the_depth", "twice the bytes in flight", |evidence| {
        let most = most_wrs(evidence);
        with(evidence, |settings| {
            is_throughput(settings).then_some(())?;
            deepen(settings, 2, most)
        })
    };
    HalfTheSize: "half_the_size", "messages of half the size, as many bytes in flight", |evidence| {
        let most = most_wrs(evidence);
        with(evidence, |settings| {
            let is_fit = is_throughput(settings) && settings.size_mix.is_none() && !settings.op.profile().is_atomic();
            is_fit.then_some(())?;
            settings.size_bytes = divided(settings.size_bytes, 2)?;
            deepen(settings, 2, most)
        })
    };
    SmallerMtu: "smaller_mtu", "packets of half the size", |evidence| {
        let flow = evidence.flow()?;
        let mtu = Mtu::try_from(evidence.situation.mtu_bytes(flow) / 2).ok()?;
        (flow.size_bytes > mtu.bytes()).then(|| with(evidence, |settings| {
            settings.mtu = Some(mtu);
            Some(())
        }))?
    };
    LargerMtu: "larger_mtu", "packets of twice the size", |evidence| {
        let flow = evidence.flow()?;
        let mtu_bytes = evidence.situation.mtu_bytes(flow);
        let mtu = Mtu::try_from(mtu_bytes * 2).ok()?;
        let is_carried = evidence.situation.least(flow, |port| port.mtu_bytes)? >= mtu.bytes();
        (is_carried && flow.size_bytes > mtu_bytes).then(|| with(evidence, |settings| {
            settings.mtu = Some(mtu);
            Some(())
        }))?
    };
    LighterPosting: "lighter_posting", "lists of WRs, one completion each, no latencies", |evidence| with(evidence, |settings| {
        is_throughput(settings).then_some(())?;
        let wrs = (settings.tx_depth / 4).min(32);
        let list = 1 << wrs.checked_ilog2()?;
        (list > settings.post_list).then_some(())?;
        (settings.post_list, settings.signal_every, settings.no_latency) = (list, list, true);
        Some(())
    });
    MoreWorkers: "more_workers", "twice the workers, each with a CQ", |evidence| {
        let flow = evidence.flow()?;
        let cores = evidence.situation.least(flow, |port| port.cores)?;
        with(evidence, |settings| {
            let workers = settings.workers.checked_mul(2)?;
            (workers <= cores && workers <= settings.qps).then_some(())?;
            (settings.workers, settings.cq) = (workers, CqMode::PerWorker);
            Some(())
        })
    };
    FewerQps: "fewer_qps", "the same bytes in flight over a quarter of the QPs", |evidence| {
        let most = most_wrs(evidence);
        with(evidence, |settings| {
            is_throughput(settings).then_some(())?;
            settings.qps = divided(settings.qps, 4)?;
            deepen(settings, 4, most)
        })
    };
    WriteForRead: "write_for_read", "WRITE in place of READ", |evidence| {
        evidence.is_op(Op::Read).then(|| with(evidence, write))?
    };
    WriteForSend: "write_for_send", "WRITE in place of SEND", |evidence| {
        evidence.is_op(Op::Send).then(|| with(evidence, write))?
    };
    HalfTheReads: "half_the_reads", "half the READs outstanding", |evidence| {
        let reads = reads_outstanding(evidence)?;
        with(evidence, |settings| {
            settings.max_rd_atomic = Some(u8::try_from(divided(reads, 2)?).ok()?);
            Some(())
        })
    };
    MoreReads: "more_reads", "twice the READs outstanding", |evidence| {
        let (reads, flow) = (reads_outstanding(evidence)?, evidence.flow()?);
        let most = evidence.situation.least(flow, |port| port.max_reads)?;
        let more = reads.checked_mul(2).filter(|more| *more <= most.min(255))?;
        with(evidence, |settings| {
            settings.max_rd_atomic = Some(u8::try_from(more).ok()?);
            Some(())
        })
    };
    NextPowerOfTwo: "next_power_of_two", "messages of the next power of two", |evidence| with(evidence, |settings| {
        let is_odd = settings.size_bytes > 64 && !settings.size_bytes.is_multiple_of(64);
        (is_odd && settings.size_mix.is_none()).then_some(())?;
        settings.size_bytes = settings.size_bytes.checked_next_power_of_two()?;
        Some(())
    });
    MoreReceives: "more_receives", "four times the receives", |evidence| {
        let most = most_wrs(evidence);
        with(evidence, |settings| {
            settings.op.profile().receives.then_some(())?;
            settings.rx_depth = settings.rx_depth.checked_mul(4).filter(|receives| *receives <= most)?;
            Some(())
        })
    };
    UsualRnrTimer: "usual_rnr_timer", "an RNR timer of 0.64 ms", |evidence| with(evidence, |settings| {
        (settings.op.profile().receives && settings.min_rnr_timer == 0).then_some(())?;
        settings.min_rnr_timer = Settings::default().min_rnr_timer;
        Some(())
    });
    HalfTheLoad: "half_the_load", "half the load", |evidence| at_load(evidence, 0.5);
    TenthOfTheLoad: "tenth_of_the_load", "a tenth of the load", |evidence| at_load(evidence, 0.1);
    OnePacket: "one_packet", "single packets, each long after the one before", |evidence| {
        let (flow, p50_ns) = (evidence.flow()?, evidence.p50_ns()?);
        let mtu_bytes = evidence.situation.mtu_bytes(flow);
        // Not one at a time, whose loss only a time-out shows: the next one shows the gap.
        let rate = Rate::Messages((1e9 / (2.0 * p50_ns)).max(1.0) as u64);
        with(evidence, |settings| {
            is_throughput(settings).then_some(())?;
            (settings.size_bytes, settings.size_mix) = (settings.size_bytes.min(mtu_bytes), None);
            (settings.qps, settings.workers) = (1, 1);
            (settings.rate, settings.arrivals) = (rate, Arrivals::Fixed);
            (settings.signal_every, settings.post_list) = (1, 1);
            Some(())
        })
    };
    OtherPorts: "other_ports", "other UDP source ports", |evidence| on_ports(evidence, [0xd431, 0x2_f315]);
    YetOtherPorts: "yet_other_ports", "yet other UDP source ports", |evidence| {
        // Of few QPs the first ones may have taken the same path again.
        (evidence.flow()?.qps < 4).then(|| on_ports(evidence, [0xe9a6, 0x5_1a69]))?
    };
    OtherDirection: "other_direction", "the other direction", |evidence| {
        let mut case = evidence.case.clone();
        for flow in &mut case.flows {
            (!flow.bidirectional && !flow.lock_step).then_some(())?;
            (flow.from, flow.to) = (flow.to, flow.from);
            (flow.from_device, flow.to_device) = (flow.to_device.take(), flow.from_device.take());
        }
        Some(case)
    };
    OneFlow: "one_flow", "the first flow alone", |evidence| {
        let mut case = evidence.case.clone();
        (case.flows.len() > 1 && !case.lock_step).then(|| case.flows.truncate(1))?;
        Some(case)
    };
    LoopAtInitiator: "loop_at_initiator", "the initiator's adapter to itself", |evidence| looped(evidence, true);
    LoopAtTarget: "loop_at_target", "the target's adapter to itself", |evidence| looped(evidence, false);
    HugePages: "huge_pages", "memory in huge pages", |evidence| with(evidence, |settings| {
        let is_large = settings.memory_bytes.max(settings.region_bytes) >= Some(LARGE_BYTES);
        (is_large && settings.memory_at == MemoryAt::default()).then_some(())?;
        settings.memory_at = "huge".parse().ok()?;
        Some(())
    });
    LessMemory: "less_memory", "as little memory as messages need", |evidence| with(evidence, |settings| {
        settings.memory_bytes.take().max(settings.region_bytes.take())?;
        settings.drop_idle();
        Some(())
    });
    OtherOrdering: "other_ordering", "the other PCIe ordering", |evidence| {
        (!evidence.situation.is_embedded()).then(|| with(evidence, |settings| {
            (!settings.awaits_bytes()).then_some(())?;
            settings.ordering = match settings.ordering {
                Ordering::Relaxed => Ordering::Strict,
                Ordering::Strict => Ordering::Relaxed,
            };
            Some(())
        }))?
    };
    OtherConnect: "other_connect", "the other way of connecting", |evidence| with(evidence, |settings| {
        settings.connect = match settings.connect {
            ConnectMode::Tcp => ConnectMode::Cm,
            ConnectMode::Cm => ConnectMode::Tcp,
        };
        Some(())
    });
    BusyPolling: "busy_polling", "workers that never sleep", |evidence| with(evidence, |settings| {
        (settings.poll != PollMode::Busy).then(|| settings.poll = PollMode::Busy)
    });
    NoCheck: "no_check", "payloads unchecked", |evidence| with(evidence, |settings| {
        settings.verify.then(|| settings.verify = false)
    });
    OwnCqs: "own_cqs", "a CQ for each worker", |evidence| with(evidence, |settings| {
        (settings.workers > 1 && settings.cq == CqMode::Shared).then(|| settings.cq = CqMode::PerWorker)
    });
    NoLocks: "no_locks", "no locks in the verbs library", |evidence| with(evidence, |settings| {
        let is_safe = settings.workers == 1 || settings.cq != CqMode::Shared;
        (is_safe && settings.domains == Domains::Usual).then(|| settings.domains = Domains::Thread)
    });
    LosslessPriority: "lossless_priority", "the DSCP whose packets have PFC", |evidence| {
        let dscp = evidence.lossless_dscps().next()?;
        with(evidence, |settings| {
            (settings.dscp != Some(dscp)).then_some(())?;
            settings.dscp = Some(dscp);
            settings.fit();
            Some(())
        })
    };
    MoreLoad: "more_load", "twice the load", |evidence| {
        let may = evidence.situation.may_load_more;
        with(evidence, |settings| match settings.rate {
            Rate::Messages(rate) if may => {
                settings.rate = Rate::Messages(rate.checked_mul(2)?);
                Some(())
            }
            _ => None,
        })
    };
}

/// As many source ports as switches usually have paths of equal cost, twice over.
const PATHS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A working set for which ordinary pages, of 4 to 64 KiB, are many.
const LARGE_BYTES: u64 = 64 << 20;

impl Change {
    /// The case with this changed; `None` where it has nothing to change there.
    pub fn apply(self, evidence: &Evidence<'_>) -> Option<Case> {
        let mut case = self.make()(evidence)?;
        case.id = format!("{}-{}", evidence.case.id, self.id());
        Some(case)
    }
}

/// The case with a change of the settings of all its flows.
fn with(evidence: &Evidence<'_>, change: impl Fn(&mut Settings) -> Option<()>) -> Option<Case> {
    let mut case = evidence.case.clone();
    for flow in &mut case.flows {
        change(&mut flow.settings)?;
    }
    change(&mut case.settings)?;
    Some(case)
}

/// Whether it is asked how much moves, not how long a message takes; in lock-step steps set how much is under way.
fn is_throughput(settings: &Settings) -> bool {
    !settings.ping_pong && !settings.lock_step && settings.is_closed_loop() && !settings.is_set_up()
}

/// `None` where nothing would be left.
fn divided(value: u32, by: u32) -> Option<u32> {
    Some(value / by).filter(|part| *part > 0)
}

/// Makes send queues so many times as deep; receives follow where they were as many.
fn deepen(settings: &mut Settings, times: u32, most: u32) -> Option<()> {
    let had_receives = settings.rx_depth >= settings.tx_depth;
    settings.tx_depth = settings.tx_depth.checked_mul(times).filter(|depth| *depth <= most)?;
    if had_receives {
        settings.rx_depth = settings.rx_depth.max(settings.tx_depth);
    }
    Some(())
}

/// Lets lists and signalled WRs fit the send queue.
fn fit_slots(settings: &mut Settings) -> Option<()> {
    settings.signal_every = settings.signal_every.min(settings.tx_depth);
    settings.post_list = settings.post_list.min(settings.tx_depth);
    Some(())
}

fn most_wrs(evidence: &Evidence<'_>) -> u32 {
    let of_ports = evidence.flow().and_then(|flow| evidence.situation.least(flow, |it| it.max_wrs));
    of_ports.unwrap_or(8_192)
}

/// READs or atomic operations that a QP may have outstanding now; `None` of other operations, and where the send queue
/// holds fewer.
fn reads_outstanding(evidence: &Evidence<'_>) -> Option<u32> {
    let flow = evidence.flow().filter(|flow| flow.op.profile().fetches)?;
    reads(evidence).filter(|reads| flow.tx_depth >= *reads)
}

/// The case with other source ports from this one on, or other flow labels where drivers choose ports by them.
fn on_ports(evidence: &Evidence<'_>, [port, label]: [u32; 2]) -> Option<Case> {
    let flow = evidence.flow()?;
    let takes_ports = evidence.situation.ends(flow).iter().flatten().all(|end| end.takes_udp_ports);
    with(evidence, |settings| {
        let first = if takes_ports { port } else { label };
        let numbers = PATHS.map(|step| (first + step).to_string()).join(",").parse().ok();
        if takes_ports {
            settings.udp_sport = numbers;
        } else {
            settings.flow_label = numbers;
        }
        Some(())
    })
}

fn write(settings: &mut Settings) -> Option<()> {
    (!settings.ping_pong && !settings.lock_step).then_some(())?;
    settings.op = Workload::Transfer(Op::Write);
    settings.drop_idle();
    Some(())
}

/// The closed loop as an open one, at a part of what it moved.
fn at_load(evidence: &Evidence<'_>, share: f64) -> Option<Case> {
    let mut case = evidence.case.clone();
    for flow in &mut case.flows {
        is_throughput(&flow.settings).then_some(())?;
        let mmsg_per_s = evidence.over_runs(|run| run.flow(&flow.name)?.mmsg_per_s())?;
        let rate = (mmsg_per_s * 1e6 * share).round().max(1.0);
        // Evenly: by chance messages would come together, and fill a queue at any load.
        flow.settings.arrivals = Arrivals::Fixed;
        flow.settings.rate = Rate::Messages(rate as u64);
        (flow.settings.signal_every, flow.settings.post_list) = (1, 1);
    }
    if let [only] = case.flows.as_slice() {
        let settings = only.settings.clone();
        case.settings = settings;
    }
    Some(case)
}

/// The case with both ends of each flow at one node of different machines.
fn looped(evidence: &Evidence<'_>, is_at_initiator: bool) -> Option<Case> {
    let mut case = evidence.case.clone();
    let is_between_two = !evidence.situation.is_one_machine && case.flows.len() == 1;
    for flow in case.flows.iter_mut().filter(|_| is_between_two) {
        if is_at_initiator {
            (flow.to, flow.to_device) = (flow.from, flow.from_device.clone());
        } else {
            (flow.from, flow.from_device) = (flow.to, flow.to_device.clone());
        }
    }
    is_between_two.then_some(case)
}

/// The options that make `changed` of a case, as one types them; empty where options cannot.
pub fn changed_options(case: &Case, changed: &Case) -> String {
    let [from, to] =
        [case, changed].map(|it| it.flows.first().map_or(&it.settings, |flow| &flow.settings));
    let flags: Vec<String> = ROWS
        .iter()
        .filter(|row| !row.is_equal(from, to))
        .map(|row| match row.text(to) {
            value if value.is_empty() => format!("--{} (none)", row.flag),
            value if row.takes == settings::Takes::Switch => match value.as_str() {
                "true" => format!("--{}", row.flag),
                _ => format!("no --{}", row.flag),
            },
            value => format!("--{} {value}", row.flag),
        })
        .collect();
    flags.join(" ")
}
