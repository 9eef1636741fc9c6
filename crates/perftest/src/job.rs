//! What one end may ask the other to start, whether perftest can run a case at all, and its arguments for a run. A job
//! says which program and which case, in numbers; both ends make the arguments from it where the program runs. So they
//! cannot differ, and no text of a peer's is ever an argument, a path or a command.

use std::time::Duration;

use plan::{Case, Flow, Sweep};
use serde::{Deserialize, Serialize};
use settings::{
    Access, AtomicTarget, ConnectMode, CqMode, GpuMaker, MemoryPlace, Mtu, Op, Ordering, PollMode,
    ROWS, Register, Settings, Spread, Stop, Warmup,
};

use crate::program::Program;

/// Longest that a peer may have a program run beyond its measurement.
pub const LONGEST_LIMIT: Duration = Duration::from_secs(3600);

/// One run of perftest, as both ends do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program, the same at both ends.
    pub program: Program,
    /// The case that it is to run.
    pub case: Case,
    /// Path MTU that rocebench used.
    pub mtu_bytes: u32,
    /// READs outstanding on a QP that rocebench used.
    pub outstanding_reads: u8,
    /// Messages on each QP; `None` measures for a time.
    pub messages: Option<u64>,
    /// How long each end may take beyond its measurement, in milliseconds: to listen, to connect, to end.
    pub limit_ms: u64,
}

/// A job that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this end does not start the requested run of perftest: {reason}")]
pub struct JobError {
    /// What is wrong with it.
    pub reason: String,
}

impl Job {
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms)
    }

    /// Checks a job that came from somewhere else.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), JobError> {
        let is_in_limit = (1..=LONGEST_LIMIT.as_millis()).contains(&self.limit_ms.into());
        let odd = self.messages.filter(|it| !(MIN_MESSAGES..=MAX_MESSAGES).contains(it));
        let reasons = [
            Sweep::check(&self.case).err().map(|error| error.to_string()),
            fits(&self.case).err().map(|misfit| misfit.to_string()),
            (self.program != Program::for_case(&self.case))
                .then(|| format!("{} does not run this case", self.program)),
            Mtu::try_from(self.mtu_bytes).err(),
            (self.outstanding_reads == 0).then(|| "no READ may be outstanding".into()),
            odd.map(|messages| format!("{messages} messages")),
            (!is_in_limit).then(|| format!("a limit of {} ms", self.limit_ms)),
        ];
        let reason = reasons.into_iter().flatten().next();
        reason.map_or(Ok(()), |reason| Err(JobError { reason }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Verbs name of its device.
    pub device: String,
    pub ib_port: u8,
    /// Index of the GID; `None` on InfiniBand without a GRH.
    pub gid_index: Option<u8>,
    pub pkey_index: u16,
}

/// Seconds of perftest's warm-up before its window, and of the same after it (`-f`).
const MARGIN_SECONDS: u64 = 1;

/// The arguments of either end, but the TCP port and, at the client, the address at which they meet.
pub fn arguments(job: &Job, place: &Place) -> Vec<String> {
    let case = &job.case;
    let mut arguments = Vec::new();
    let mut set = |flag: &str, value: u64| arguments.extend([flag.to_owned(), value.to_string()]);
    set("-i", place.ib_port.into());
    if let Some(index) = place.gid_index {
        set("-x", index.into());
    }
    if !case.op.profile().is_atomic() {
        set("-s", case.size_bytes.into());
    }
    set("-m", job.mtu_bytes.into());
    set("-u", case.timeout.into());
    if case.service_level != 0 {
        set("-S", case.service_level.into());
    }
    if case.op.profile().fetches {
        set("-o", job.outstanding_reads.into());
    } else {
        // perftest's own default differs from device to device.
        let inline = case.size_bytes <= case.inline_bytes;
        set("-I", if inline { case.inline_bytes.into() } else { 0 });
    }
    if case.op.profile().receives {
        set("-r", case.rx_depth.into());
    }
    if !job.program.is_latency() {
        set("-q", case.qps.into());
        set("-t", case.tx_depth.into());
        // Its default depends on the size.
        set("-Q", case.signal_every.into());
        if case.post_list > 1 {
            set("-l", case.post_list.into());
        }
    }
    match job.messages {
        Some(messages) => set("-n", messages),
        None => {
            let (window, margin) = seconds(case);
            set("-D", window + 2 * margin);
            // By default a quarter of -D, rounded down, is cut off at either end.
            set("-f", margin);
        }
    }
    if case.traffic_class != 0 {
        arguments.push(format!("--tclass={}", case.traffic_class));
    }
    if place.pkey_index != 0 {
        arguments.push(format!("--pkey_index={}", place.pkey_index));
    }
    if !job.program.is_latency() {
        if case.ordering == Ordering::Strict {
            arguments.push("--disable_pcie_relaxed".into());
        }
        arguments.push("--report_gbits".into());
        if case.bidirectional {
            arguments.push("-b".into());
        }
        if job.messages.is_some() {
            // Without the peak, for which it would read the clock at every message.
            arguments.push("-N".into());
        }
    }
    if sleeps(case) {
        arguments.push("-e".into());
    }
    if !case.service.is_reliable() {
        arguments.extend(["-c".to_owned(), case.service.name().to_uppercase()]);
    }
    let atomic = match case.op.profile().access {
        Access::Add => Some("FETCH_AND_ADD"),
        Access::Swap => Some("CMP_AND_SWAP"),
        Access::None | Access::Write | Access::Read => None,
    };
    if let Some(atomic) = atomic {
        arguments.extend(["-A".to_owned(), atomic.to_owned()]);
    }
    if let Some((maker, number)) = gpu(case) {
        arguments.push(format!("--use_{maker}={number}"));
        if by_dmabuf(case) {
            arguments.push(format!("--use_{maker}_dmabuf"));
        }
    }
    arguments.extend(["-d".into(), place.device.clone(), "-F".into()]);
    arguments
}

/// What a case needs of perftest at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needed {
    pub program: Program,
    /// Whose GPUs, which only some builds of perftest can use.
    gpus: Option<GpuMaker>,
    /// By dmabufs, which fewer can.
    dmabuf: bool,
}

impl Needed {
    pub fn for_case(case: &Case) -> Needed {
        let gpus = gpu(case).map(|(maker, _)| maker);
        let dmabuf = gpus.is_some() && by_dmabuf(case);
        Needed { program: Program::for_case(case), gpus, dmabuf }
    }

    /// The options that only some builds of perftest have.
    pub(crate) fn options(self) -> Vec<String> {
        let endings = ["", "_dmabuf"].into_iter().take(1 + usize::from(self.dmabuf));
        (self.gpus.into_iter())
            .flat_map(|maker| endings.clone().map(move |ending| format!("--use_{maker}{ending}")))
            .collect()
    }
}

/// Whether perftest registers a GPU's memory by a dmabuf.
fn by_dmabuf(case: &Case) -> bool {
    case.register != Register::PeerMemory
}

/// The GPU on which both ends have their memory.
fn gpu(case: &Case) -> Option<(GpuMaker, u32)> {
    let [flow] = case.flows.as_slice() else { return None };
    match (flow.memory_at.client, flow.memory_at.server) {
        (MemoryPlace::Gpu(maker, Some(number)), other)
            if other == MemoryPlace::Gpu(maker, Some(number)) =>
        {
            Some((maker, number))
        }
        _ => None,
    }
}

/// perftest's window and its margin on either side of it, in whole seconds. Without a warm-up in the case
/// there is none in perftest.
fn seconds(case: &Case) -> (u64, u64) {
    let window = match case.stop() {
        Stop::DurationNs(ns) => Duration::from_nanos(ns).as_secs_f64().ceil() as u64,
        Stop::MessagesPerQp(_) => 1,
    };
    let margin = match case.warmup {
        Warmup::FixedNs(0) => 0,
        Warmup::FixedNs(_) | Warmup::AutoCapNs(_) => MARGIN_SECONDS,
    };
    (window.max(1), margin)
}

/// How long perftest sends in a run of a case; `None` where it counts messages.
pub fn measuring(case: &Case) -> Option<Duration> {
    if Program::for_case(case).is_latency() || matches!(case.stop(), Stop::MessagesPerQp(_)) {
        return None;
    }
    let (window, margin) = seconds(case);
    Some(Duration::from_secs(window + 2 * margin))
}

/// Least messages on a QP that perftest takes.
pub const MIN_MESSAGES: u64 = 5;

/// Most messages on a QP that both generations of perftest take. Its latency programs keep a time of each.
const MAX_MESSAGES: u64 = 100_000_000;

/// perftest's largest queue depth, message and number of QPs.
const MAX_DEPTH: u32 = 15_000;
const MAX_SIZE_BYTES: u32 = 1 << 23;
const MAX_QPS: u32 = 16_384;

/// Most bytes inline that both generations take.
const MAX_INLINE_BYTES: u32 = 912;

/// Settings of receive queues and buffers that perftest has in other forms, or not at all.
const ONLY_HERE: [&str; 18] = [
    "recv-queue",
    "sges",
    "mr",
    "memory-at",
    "register",
    "alignment",
    "offset",
    "post",
    "poll-api",
    "domains",
    "timestamps",
    "memory",
    "pace",
    "start",
    "stop",
    "on",
    // 6.29 has flow labels, 4.5 has not.
    "flow-label",
    "udp-sport",
];

/// perftest's retries and its RNR timer, which no option changes.
const RETRY_CNT: u8 = 7;
const RNR_RETRY: u8 = 7;
const MIN_RNR_TIMER: u8 = 12;

/// A case that perftest cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("perftest cannot run the case {case}: {reason}")]
pub struct Misfit {
    pub case: String,
    pub reason: String,
    pub hint: String,
}

/// Whether perftest can run a case.
pub fn fits(case: &Case) -> Result<(), Misfit> {
    let Some((reason, hint)) = why_not(case) else { return Ok(()) };
    Err(Misfit { case: case.id.clone(), reason, hint: hint.into() })
}

/// What perftest cannot do in a case, and what to change.
fn why_not(case: &Case) -> Option<(String, &'static str)> {
    let usual = Settings::default();
    let supported: &[&str] = if gpu(case).is_some() { &["memory-at", "register"] } else { &[] };
    let mut unsupported =
        ROWS.iter().filter(|row| ONLY_HERE.contains(&row.flag) && !supported.contains(&row.flag));
    let missing = unsupported.find(|row| !row.is_equal(case, &usual));
    let too_large = [
        ("-t", case.tx_depth, MAX_DEPTH),
        ("-r", case.rx_depth, MAX_DEPTH),
        ("-s", case.size_bytes, MAX_SIZE_BYTES),
        ("-q", case.qps, MAX_QPS),
        ("-I", case.inline_bytes, MAX_INLINE_BYTES),
    ]
    .into_iter()
    .find(|(_, value, most)| value > most);
    let is_one_flow = matches!(
        case.flows.as_slice(),
        [Flow { from: 0, to: 1, from_device: None, to_device: None, .. }]
    );
    let list = case.post_list;
    let messages = match case.stop() {
        Stop::MessagesPerQp(messages) => Some(messages),
        Stop::DurationNs(_) => None,
    };
    let reasons = [
        case.is_set_up().then(|| {
            ("none of its programs measures the set-up of QPs".into(), "take connect out of --op")
        }),
        Program::measuring(case).is_none().then(|| {
            let hint = "compare --op send or write: immediate data is 4 bytes more in the last packet";
            (format!("none of its programs measures {}", case.op), hint)
        }),
        (case.op.profile().is_atomic() && case.atomic_target != AtomicTarget::PerQp).then(|| {
            let reason = "its atomic operations act on 8 bytes for each QP".into();
            (reason, "compare with --atomic-target per-qp")
        }),
        missing.map(|row| {
            let hint = "compare with the default receive queues, SGEs, buffers and calls";
            (format!("it does not support --{} {}", row.flag, row.text(case)), hint)
        }),
        (!is_one_flow).then(|| {
            let reason =
                "it moves one kind of traffic, from the client to the server, on the devices of --device";
            (reason.into(), "compare flow by flow, each with the options of the command line")
        }),
        (case.connect == ConnectMode::Cm).then(|| {
            let reason =
                "with rdma_cm (-R) it takes device, GID, MTU and timeouts from route and kernel, not from the case";
            let hint =
                "compare with --connect tcp: the way of connecting QPs does not change how data moves";
            (reason.into(), hint)
        }),
        case.size_mix.is_some().then(|| {
            let hint = "give --size instead of --size-mix in a comparison";
            ("all its messages have one size".into(), hint)
        }),
        (case.ping_pong && case.qps > 1)
            .then(|| ("its latency programs have one QP".into(), "compare with --qps 1")),
        (case.spread != Spread::Own).then(|| {
            ("each of its QPs posts its own next message".into(), "compare with --spread own")
        }),
        case.ud_fan_out.then(|| {
            ("each of its UD QPs sends to one QP".into(), "compare without --ud-fan-out")
        }),
        case.verify.then(|| {
            let reason = "it does not check payloads, so --verify would slow only rocebench";
            (reason.into(), "leave --verify out of a comparison")
        }),
        (list > 1 && !list.is_multiple_of(case.signal_every)).then(|| {
            let moderation = case.signal_every;
            let reason = format!(
                "its post list ({list}) must be a multiple of its CQ moderation ({moderation})"
            );
            (reason, "give -Q a divisor of -l")
        }),
        too_large.map(|(flag, value, most)| {
            (format!("{flag} {value} is beyond its limit of {most}"), "lower that option")
        }),
        messages.filter(|it| !(MIN_MESSAGES..=MAX_MESSAGES).contains(it)).map(|messages| {
            let reason =
                format!("it takes {MIN_MESSAGES} to {MAX_MESSAGES} messages a QP, not {messages}");
            (reason, "choose another -n, or give -D")
        }),
        messages.filter(|it| !it.is_multiple_of(list.into())).map(|messages| {
            let reason =
                format!("its messages ({messages}) must be a multiple of its post list ({list})");
            (reason, "choose -n a multiple of -l, or give -D")
        }),
    ];
    reasons.into_iter().flatten().next()
}

/// Whether perftest sleeps on completion events in this case, which it can for all but WRITE.
fn sleeps(case: &Case) -> bool {
    case.poll == PollMode::Event && case.op != Op::Write.into()
}

/// What a reader must know of a comparison besides its figures; `None` when both do the same.
pub fn note(case: &Case) -> Option<String> {
    let mut notes = Vec::new();
    if case.workers > 1 {
        notes.push(format!(
            "rocebench has {} workers at each end, perftest one thread",
            case.workers
        ));
    }
    let several_cqs = match case.cq {
        CqMode::Shared => false,
        CqMode::PerWorker => case.workers > 1 && case.qps > 1,
        CqMode::PerQp => case.qps > 1,
    };
    if several_cqs {
        notes.push("perftest has one CQ for all QPs".into());
    }
    if case.poll != PollMode::Busy && !sleeps(case) {
        notes.push(format!("perftest polls, rocebench's workers have --poll {}", case.poll));
    }
    if (case.retry_cnt, case.rnr_retry, case.min_rnr_timer) != (RETRY_CNT, RNR_RETRY, MIN_RNR_TIMER)
    {
        notes.push(format!(
            "perftest has no options for retries: it takes {RETRY_CNT}, {RNR_RETRY} for RNR, RNR timer {MIN_RNR_TIMER}"
        ));
    }
    let program = Program::for_case(case);
    if program.ordering(case) != case.ordering {
        notes.push(format!(
            "{} always has {} PCIe ordering, rocebench {}",
            program,
            program.ordering(case),
            case.ordering
        ));
    }
    if !case.service.is_reliable() {
        notes.push(format!(
            "over {} both count sent messages; only rocebench's result has the received ones",
            case.service.name().to_uppercase()
        ));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
